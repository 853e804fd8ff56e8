//! How FRR's sessions fare.
//!
//! In: what bgpd and bfdd say when asked for JSON. Out: one [`Session`] a neighbour. FRR has no way to tell of a change
//! by itself, so it is asked again and again; over sockets that stay open one question takes it and us a fraction of a
//! millisecond.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use underlay_desired::frr::Vrf;

use crate::diff::Daemon;
use crate::observe::socket;
use crate::vty::{Vty, VtyError};

/// The state of a session over which routes are exchanged.
pub const ESTABLISHED: &str = "Established";

const ASK_BGP: &str = "show bgp vrf all summary json";
pub(crate) const ASK_BFD: &str = "show bfd peers json";

/// A session with a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session {
    /// The VRF it is in; empty for the default one.
    pub vrf: String,
    /// The neighbour's address or interface.
    pub peer: String,
    /// FRR's word for its state, like `Established` or `Active`.
    pub state: String,
    /// FRR's word for the state of BFD, like `up`, where BFD watches.
    pub bfd: Option<String>,
}

/// Sessions could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A daemon cannot be talked with.
    #[error("{} cannot be talked with", .0.name())]
    Unreachable(Daemon, #[source] VtyError),
    /// A daemon said something else than JSON.
    #[error("{} did not answer in JSON", .0.name())]
    NotJson(Daemon, #[source] serde_json::Error),
}

/// Reads sessions over connections that stay open between two looks.
#[derive(Debug)]
pub struct SessionReader {
    sockets: PathBuf,
    open: BTreeMap<Daemon, Vty>,
}

impl SessionReader {
    /// A reader of the daemons whose sockets are in this directory.
    pub fn new(sockets: &Path) -> Self {
        Self { sockets: sockets.to_owned(), open: BTreeMap::new() }
    }

    /// All sessions, by VRF and peer. BFD is left out while bfdd is not there.
    pub async fn read(&mut self) -> Result<Vec<Session>, StateError> {
        let bgp = self.ask(Daemon::Bgpd, ASK_BGP).await?;
        let bfd = match self.ask(Daemon::Bfdd, ASK_BFD).await {
            Ok(bfd) => bfd,
            Err(VtyError::Gone(_)) => "[]".to_owned(),
            Err(error) => return Err(StateError::Unreachable(Daemon::Bfdd, error)),
        };
        parse(&bgp, &bfd)
    }

    async fn ask(&mut self, daemon: Daemon, question: &str) -> Result<String, VtyError> {
        // A daemon may have been restarted since the last look: then the connection is dead, and a new one is not.
        if let Some(mut vty) = self.open.remove(&daemon)
            && let Ok(answer) = vty.ask(question).await
        {
            self.open.insert(daemon, vty);
            return Ok(answer.text);
        }
        let mut vty = Vty::connect(&socket(&self.sockets, daemon)).await?;
        let answer = vty.ask(question).await?;
        self.open.insert(daemon, vty);
        Ok(answer.text)
    }
}

impl From<VtyError> for StateError {
    fn from(error: VtyError) -> Self {
        Self::Unreachable(Daemon::Bgpd, error)
    }
}

/// One BFD session of bfdd's answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BfdPeer {
    peer: String,
    interface: String,
    vrf: String,
    pub(crate) status: String,
}

impl BfdPeer {
    /// Whether it is about a neighbour, by bgpd's names.
    pub(crate) fn watches(&self, vrf: &str, peer: &str) -> bool {
        self.vrf == vrf && (self.peer == peer || self.interface == peer)
    }
}

/// The BFD sessions of bfdd's answer. What cannot be read is left out.
pub(crate) fn bfd_peers(bfd: &str) -> Result<Vec<BfdPeer>, StateError> {
    let bfd: Vec<Value> =
        serde_json::from_str(bfd).map_err(|error| StateError::NotJson(Daemon::Bfdd, error))?;
    Ok(bfd.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

/// Puts together what bgpd says of sessions and what bfdd says of those it watches.
pub fn parse(bgp: &str, bfd: &str) -> Result<Vec<Session>, StateError> {
    let bgp: Value = serde_json::from_str(bgp).map_err(|error| StateError::NotJson(Daemon::Bgpd, error))?;
    let bfd = bfd_peers(bfd)?;
    let mut sessions = BTreeMap::new();
    for (name, vrf) in bgp.as_object().into_iter().flatten() {
        // The same peer is there once for each address family, in the same state.
        for (peer, about) in vrf.as_object().into_iter().flatten().flat_map(|(_, family)| peers(family)) {
            let state = about.get("state").and_then(Value::as_str).unwrap_or("Unknown").to_owned();
            let watched = bfd.iter().find(|one| one.watches(name, peer));
            let vrf = Vrf::new(name).short().to_owned();
            let bfd = watched.map(|one| one.status.clone());
            let key = (vrf.clone(), peer.clone());
            sessions.insert(key, Session { vrf, peer: peer.clone(), state, bfd });
        }
    }
    Ok(sessions.into_values().collect())
}

fn peers(family: &Value) -> impl Iterator<Item = (&String, &Value)> {
    family.get("peers").and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_peer_of_two_families_is_one_session() {
        let bgp = r#"{
            "default": {
                "ipv4Unicast": {"as": 64512, "peers": {"eth0": {"state": "Established", "pfxRcd": 3}}},
                "ipv6Unicast": {"peers": {"eth0": {"state": "Established"}, "fd00::2": {"state": "Active"}}}
            },
            "red": {"ipv4Unicast": {"peers": {"10.0.0.2": {"state": "Idle (Admin)"}}}},
            "blue": {}
        }"#;
        let bfd = r#"[
            {"multihop": false, "peer": "fe80::1", "interface": "eth0", "vrf": "default", "status": "up"},
            {"peer": "10.0.0.2", "vrf": "default", "status": "up"}
        ]"#;
        let session = |vrf: &str, peer: &str, state: &str, bfd: Option<&str>| Session {
            vrf: vrf.to_owned(),
            peer: peer.to_owned(),
            state: state.to_owned(),
            bfd: bfd.map(str::to_owned),
        };
        let want = [
            session("", "eth0", ESTABLISHED, Some("up")),
            session("", "fd00::2", "Active", None),
            session("red", "10.0.0.2", "Idle (Admin)", None),
        ];
        assert_eq!(parse(bgp, bfd).expect("JSON"), want);
    }

    #[test]
    fn no_router_is_no_session() {
        assert_eq!(parse("{\n}\n", "[]").expect("JSON"), []);
    }

    /// JSON of any shape, with the words that we look for in it.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[a-z]{0,4}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            let key =
                prop::sample::select(vec!["default", "ipv4Unicast", "peers", "state", "peer", "vrf", "x"]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_answer_makes_us_panic(bgp in json(), bfd in json(), text in any::<String>()) {
            let _ = parse(&bgp.to_string(), &bfd.to_string());
            let _ = parse(&text, "[]");
        }
    }
}
