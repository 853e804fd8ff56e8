//! A peer that plays a server by script: for what real servers do not do any more, or never should.

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use underlay_ovsdb::wire::Decoder;
use underlay_testkit::Scratch;

use super::within;

/// A schema with one table that is also in the northbound database.
pub fn small_schema() -> Value {
    let map = json!({"key": "string", "value": "string", "min": 0, "max": "unlimited"});
    json!({"name": "OVN_Northbound", "version": "0.0.1", "tables": {"Logical_Switch": {"isRoot": true, "columns": {
        "name": {"type": "string"}, "external_ids": {"type": map}}}}})
}

/// Where clients come to.
pub struct ScriptedPeer {
    scratch: Scratch,
    listener: UnixListener,
}

impl ScriptedPeer {
    pub fn listen() -> Self {
        let scratch = Scratch::new("peer");
        let listener = UnixListener::bind(scratch.join("sock")).unwrap();
        Self { scratch, listener }
    }

    pub fn remote(&self) -> String {
        let path: PathBuf = self.scratch.join("sock");
        format!("unix:{}", path.display())
    }

    /// Waits for a client.
    pub async fn accept(&self) -> Talk {
        let (stream, _) = within("a client", self.listener.accept()).await.unwrap();
        Talk { stream, decoder: Decoder::new(1 << 24) }
    }

    /// Waits for a client and gives it the schema.
    pub async fn accept_and_tell_schema(&self) -> Talk {
        let mut talk = self.accept().await;
        let (id, params) = talk.request("get_schema").await;
        assert_eq!(params, json!(["OVN_Northbound"]));
        talk.reply(&id, &small_schema()).await;
        talk
    }
}

/// A connection with a client.
pub struct Talk {
    stream: UnixStream,
    decoder: Decoder,
}

impl Talk {
    /// The next message; none at the end of the connection.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(serde_json::from_slice(&frame).unwrap());
            }
            // A client that is done with us may do so with what we wrote unread, which is an error here.
            match within("the client to speak", self.stream.read_buf(self.decoder.space())).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next message, which must be this request: its id and parameters.
    pub async fn request(&mut self, method: &str) -> (Value, Value) {
        let message = self.next().await.expect("the client speaks");
        assert_eq!(message["method"], method, "{message}");
        (message["id"].clone(), message["params"].clone())
    }

    pub async fn say(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes()).await;
    }

    pub async fn reply(&mut self, id: &Value, result: &Value) {
        self.say(&json!({"id": id, "result": result, "error": null})).await;
    }

    pub async fn refuse(&mut self, id: &Value, error: &Value) {
        self.say(&json!({"id": id, "result": null, "error": error})).await;
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        within("the client to read", self.stream.write_all(bytes)).await.unwrap();
    }

    /// Waits until the client has ended the connection.
    pub async fn ended(&mut self) {
        while self.next().await.is_some() {}
    }
}
