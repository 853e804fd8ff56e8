//! JSON-RPC 1.0 as OVSDB speaks it.
//!
//! In: bytes as they arrive. Out: [`Message`]s; and the other way round, the bytes of ours. Messages follow each other
//! without a separator and are cut anywhere by the network. The decoder looks at every byte once to find where a message
//! ends, however many pieces it came in, and keeps no more than one message of the greatest size allowed.

use std::borrow::Cow;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How much room there is for a read at least.
const READ_SIZE: usize = 64 * 1024;
/// From this size of a message on, its room is given back.
const KEPT_SIZE: usize = 256 * 1024;

/// What arrived cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A message is larger than we are willing to keep.
    #[error("a message is larger than the {limit} bytes allowed")]
    TooLarge {
        /// The greatest size.
        limit: usize,
    },
    /// What should be a message does not begin like one.
    #[error("a message begins with byte {0:#04x}, not with an opening brace")]
    NotAnObject(u8),
    /// It is not the JSON of a message.
    #[error("reading a message")]
    Json(#[from] serde_json::Error),
    /// It is JSON, but neither request, notification nor reply.
    #[error("a message without method, result and error")]
    Shapeless,
}

/// Cuts what arrives into messages.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    /// How far the message at the head of the buffer was looked at.
    scanned: usize,
    /// How many brackets and braces are open there.
    depth: usize,
    in_string: bool,
    after_backslash: bool,
    limit: usize,
}

impl Decoder {
    /// A decoder for messages up to this many bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            depth: 0,
            in_string: false,
            after_backslash: false,
            limit,
        }
    }

    /// Where to append what was read. It has room for a good piece.
    pub fn space(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_SIZE);
        &mut self.buffer
    }

    /// The text of the next message, or none until more is read. After an error the stream cannot be gone on with.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, DecodeError> {
        if self.scanned == 0 {
            let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.buffer.advance(blank);
        }
        if let Some(&first) = self.buffer.first()
            && first != b'{'
        {
            return Err(DecodeError::NotAnObject(first));
        }
        let complete = self.scan();
        if self.scanned > self.limit {
            return Err(DecodeError::TooLarge { limit: self.limit });
        }
        if !complete {
            return Ok(None);
        }
        let frame = self.buffer.split_to(self.scanned).freeze();
        self.scanned = 0;
        if frame.len() > KEPT_SIZE {
            // The room of a large message goes with it; kept, it would be the size of the first dump for ever.
            self.buffer = BytesMut::from(&*self.buffer);
        }
        Ok(Some(frame))
    }

    /// Looks at the bytes that were not looked at, up to the end of the message. Says whether that was found.
    fn scan(&mut self) -> bool {
        for (at, &byte) in self.buffer.iter().enumerate().skip(self.scanned) {
            if self.in_string {
                match byte {
                    _ if self.after_backslash => self.after_backslash = false,
                    b'\\' => self.after_backslash = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                // A message begins with a brace, so at least one is open.
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.scanned = at + 1;
                        return true;
                    }
                }
                _ => {}
            }
        }
        self.scanned = self.buffer.len();
        false
    }
}

/// A message of the server. What its parts say depends on what was asked, so they stay text until that is known; they
/// share the bytes that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Wants a reply.
    Request {
        /// To be repeated in the reply.
        id: Bytes,
        /// What is wanted.
        method: String,
        /// Of what.
        params: Bytes,
    },
    /// Tells something.
    Notification {
        /// What is told.
        method: String,
        /// Of what.
        params: Bytes,
    },
    /// Answers a request of ours.
    Reply {
        /// Which request; none when the id is not one of ours.
        id: Option<u64>,
        /// The result, or the error.
        result: Result<Bytes, Bytes>,
    },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Message {
    /// Reads a message from its text.
    pub fn parse(frame: &Bytes) -> Result<Self, DecodeError> {
        let Envelope { id, method, params, result, error } = serde_json::from_slice(frame)?;
        let part = |raw: &RawValue| frame.slice_ref(raw.get().as_bytes());
        if let Some(method) = method {
            let params = params.map_or(Bytes::from_static(b"[]"), part);
            let method = method.into_owned();
            return Ok(match id {
                Some(id) => Self::Request { id: part(id), method, params },
                None => Self::Notification { method, params },
            });
        }
        let result = match (result, error) {
            (_, Some(error)) => Err(part(error)),
            (Some(result), None) => Ok(part(result)),
            (None, None) => return Err(DecodeError::Shapeless),
        };
        Ok(Self::Reply { id: id.and_then(|id| id.get().parse().ok()), result })
    }
}

/// Appends a request; without an id it is a notification.
pub fn write_request<P: Serialize>(
    out: &mut BytesMut,
    id: Option<u64>,
    method: &str,
    params: &P,
) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        id: Option<u64>,
        method: &'a str,
        params: &'a P,
    }
    serde_json::to_writer(out.writer(), &Request { id, method, params })
}

/// Appends the reply to a request of the server: its own parameters, which is what `echo` wants, or an error.
pub fn write_reply(
    out: &mut BytesMut,
    id: &Bytes,
    result: Result<&Bytes, &str>,
) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct Reply<'a> {
        id: &'a RawValue,
        result: Option<&'a RawValue>,
        error: Option<&'a str>,
    }
    let id = serde_json::from_slice(id)?;
    let (result, error) = match result {
        Ok(result) => (Some(serde_json::from_slice(result)?), None),
        Err(error) => (None, Some(error)),
    };
    serde_json::to_writer(out.writer(), &Reply { id, result, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 20;

    fn frames(decoder: &mut Decoder, piece: &[u8]) -> Vec<String> {
        decoder.space().extend_from_slice(piece);
        let mut found = Vec::new();
        while let Some(frame) = decoder.next_frame().unwrap() {
            found.push(String::from_utf8(frame.to_vec()).unwrap());
        }
        found
    }

    const STREAM: &str = concat!(
        r#"{"id":null,"method":"update3","params":["m","}{][",{"T":{"é\"}":{"insert":{"a":"\\"}}}}]}"#,
        r#"{"id":2,"result":[{"uuid":["uuid","x"]}],"error":null}"#,
        "\n \t",
        r#"{"id":"echo","method":"echo","params":["\u007b"]}"#
    );

    #[test]
    fn a_stream_cut_anywhere_gives_the_same_messages() {
        let whole = frames(&mut Decoder::new(LIMIT), STREAM.as_bytes());
        assert_eq!(whole.len(), 3);
        for first in 0..STREAM.len() {
            for second in first..STREAM.len() {
                let mut decoder = Decoder::new(LIMIT);
                let (head, rest) = STREAM.as_bytes().split_at(first);
                let (middle, tail) = rest.split_at(second - first);
                let pieces = [head, middle, tail];
                let found: Vec<String> =
                    pieces.iter().flat_map(|piece| frames(&mut decoder, piece)).collect();
                assert_eq!(found, whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn byte_by_byte() {
        let mut decoder = Decoder::new(LIMIT);
        let found: Vec<String> = STREAM.bytes().flat_map(|byte| frames(&mut decoder, &[byte])).collect();
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_message_that_is_too_large_is_refused_before_it_is_complete() {
        let mut decoder = Decoder::new(10);
        decoder.space().extend_from_slice(br#"{"a":"bcdefg"#);
        assert!(matches!(decoder.next_frame(), Err(DecodeError::TooLarge { limit: 10 })));
        let mut decoder = Decoder::new(10);
        decoder.space().extend_from_slice(br#"{"a":"bc"}{"a":"bcd"}"#);
        assert!(matches!(decoder.next_frame(), Ok(Some(_))));
        assert!(matches!(decoder.next_frame(), Err(DecodeError::TooLarge { .. })));
    }

    #[test]
    fn the_room_of_a_large_message_is_given_back() {
        let mut decoder = Decoder::new(LIMIT);
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(LIMIT - 100));
        decoder.space().extend_from_slice(large.as_bytes());
        decoder.space().extend_from_slice(b"{\"b\":");
        assert_eq!(decoder.next_frame().unwrap().unwrap().len(), large.len());
        assert!(decoder.space().capacity() <= 2 * READ_SIZE);
        assert_eq!(frames(&mut decoder, b"1}"), ["{\"b\":1}"]);
    }

    #[test]
    fn what_does_not_begin_with_a_brace_is_refused() {
        let mut decoder = Decoder::new(LIMIT);
        decoder.space().extend_from_slice(b"  HTTP/1.1 400");
        assert!(matches!(decoder.next_frame(), Err(DecodeError::NotAnObject(b'H'))));
    }

    fn parse(text: &str) -> Result<Message, DecodeError> {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn tells_requests_notifications_and_replies_apart() {
        let bytes = Bytes::from_static;
        assert_eq!(
            parse(r#"{"id":"echo","method":"echo","params":[1]}"#).unwrap(),
            Message::Request { id: bytes(br#""echo""#), method: "echo".into(), params: bytes(b"[1]") }
        );
        assert_eq!(
            parse(r#"{"method":"update","params":["m",{}],"id":null}"#).unwrap(),
            Message::Notification { method: "update".into(), params: bytes(br#"["m",{}]"#) }
        );
        assert_eq!(
            parse(r#"{"id":7,"result":[],"error":null}"#).unwrap(),
            Message::Reply { id: Some(7), result: Ok(bytes(b"[]")) }
        );
        assert_eq!(
            parse(r#"{"id":8,"error":"unknown method"}"#).unwrap(),
            Message::Reply { id: Some(8), result: Err(bytes(br#""unknown method""#)) }
        );
        assert_eq!(
            parse(r#"{"id":["odd"],"result":1,"error":null}"#).unwrap(),
            Message::Reply { id: None, result: Ok(bytes(b"1")) }
        );
        assert!(matches!(parse("{}"), Err(DecodeError::Shapeless)));
        assert!(matches!(parse("{]"), Err(DecodeError::Json(_))));
    }

    #[test]
    fn what_we_write_is_what_the_protocol_wants() {
        let mut out = BytesMut::new();
        write_request(&mut out, Some(1), "get_schema", &["DB"]).unwrap();
        assert_eq!(&*out, br#"{"id":1,"method":"get_schema","params":["DB"]}"#);
        out.clear();
        write_reply(&mut out, &Bytes::from_static(br#""e""#), Ok(&Bytes::from_static(b"[ 1 ]"))).unwrap();
        assert_eq!(&*out, br#"{"id":"e","result":[ 1 ],"error":null}"#);
        out.clear();
        write_reply(&mut out, &Bytes::from_static(b"3"), Err("unknown method")).unwrap();
        assert_eq!(&*out, br#"{"id":3,"result":null,"error":"unknown method"}"#);
    }
}
