//! Everything that an admin wants to know of FRR's neighbours.
//!
//! In: what bgpd and bfdd say when asked for JSON. Out: one [`Peer`] a neighbour. The answer is long where there are many
//! neighbours, so it is asked for when somebody wants to read it, and not again and again as [`crate::state`] is. Of what
//! bgpd tells, only what is named here is taken: no password is.

use std::path::Path;

use serde_json::Value;
use underlay_desired::frr::Vrf;

use crate::diff::Daemon;
use crate::observe::socket;
use crate::state::{ASK_BFD, BfdPeer, StateError, bfd_peers};
use crate::vty::{Vty, VtyError};

const ASK: &str = "show bgp vrf all neighbors json";

/// A neighbour and how it fares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peer {
    /// The VRF it is in; empty for the default one.
    pub vrf: String,
    /// Its address or interface.
    pub peer: String,
    /// Its AS, as far as that is known.
    pub remote_as: u32,
    /// Our AS.
    pub local_as: u32,
    /// FRR's word for the session's state.
    pub state: String,
    /// For how long it is in that state, in milliseconds, if FRR tells.
    pub milliseconds: Option<u64>,
    /// Prefixes that it told and that were accepted.
    pub received: u64,
    /// Prefixes that it was told.
    pub sent: u64,
    /// FRR's word for the state of BFD, where BFD watches.
    pub bfd: Option<String>,
    /// How often the session was lost.
    pub dropped: u64,
    /// Why it was lost last, in FRR's words.
    pub last_reset: Option<String>,
}

/// Reads all neighbours, by VRF and name. BFD is left out while bfdd is not there.
pub async fn read(sockets: &Path) -> Result<Vec<Peer>, StateError> {
    let bgp = ask(sockets, Daemon::Bgpd, ASK).await?;
    let bfd = match ask(sockets, Daemon::Bfdd, ASK_BFD).await {
        Ok(bfd) => bfd,
        Err(VtyError::Gone(_)) => "[]".to_owned(),
        Err(error) => return Err(StateError::Unreachable(Daemon::Bfdd, error)),
    };
    parse(&bgp, &bfd)
}

async fn ask(sockets: &Path, daemon: Daemon, question: &str) -> Result<String, VtyError> {
    Ok(Vty::connect(&socket(sockets, daemon)).await?.ask(question).await?.text)
}

/// Puts together what bgpd says of neighbours and what bfdd says of those it watches.
pub fn parse(bgp: &str, bfd: &str) -> Result<Vec<Peer>, StateError> {
    let bgp: Value = serde_json::from_str(bgp).map_err(|error| StateError::NotJson(Daemon::Bgpd, error))?;
    let bfd = bfd_peers(bfd)?;
    let mut all = vec![];
    for (vrf, about) in bgp.as_object().into_iter().flatten() {
        // Among the neighbours are facts about the VRF.
        for (name, about) in about.as_object().into_iter().flatten() {
            if let Some(state) = about.get("bgpState").and_then(Value::as_str) {
                all.push(peer(vrf, name, state, about, &bfd));
            }
        }
    }
    all.sort_by(|one, other| (&one.vrf, &one.peer).cmp(&(&other.vrf, &other.peer)));
    Ok(all)
}

fn peer(vrf: &str, name: &str, state: &str, about: &Value, bfd: &[BfdPeer]) -> Peer {
    let number = |key: &str| about.get(key).and_then(Value::as_u64);
    let short = |key: &str| number(key).and_then(|number| u32::try_from(number).ok()).unwrap_or_default();
    let families = || about.get("addressFamilyInfo").and_then(Value::as_object).into_iter().flatten();
    let sum = |key: &str| families().filter_map(|(_, family)| family.get(key)?.as_u64()).sum();
    Peer {
        vrf: Vrf::new(vrf).short().to_owned(),
        peer: name.to_owned(),
        remote_as: short("remoteAs"),
        local_as: short("localAs"),
        state: state.to_owned(),
        milliseconds: number("bgpTimerUpMsec").or_else(|| number("lastResetTimerMsecs")),
        received: sum("acceptedPrefixCounter"),
        sent: sum("sentPrefixCounter"),
        bfd: bfd.iter().find(|one| one.watches(vrf, name)).map(|one| one.status.clone()),
        dropped: number("connectionsDropped").unwrap_or_default(),
        last_reset: last_reset(about),
    }
}

/// Why a session was lost, with what one end told the other.
fn last_reset(about: &Value) -> Option<String> {
    let text = |key: &str| about.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let reason = text("lastResetDueTo")?;
    Some(match text("lastNotificationReason") {
        Some(told) => format!("{reason}: {told}"),
        None => reason.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_an_admin_wants_to_know_is_taken_and_no_more() {
        let bgp = r#"{
            "default": {
                "vrfId": 0, "vrfName": "default",
                "eth0": {
                    "remoteAs": 64513, "localAs": 64512, "bgpState": "Established", "bgpTimerUpMsec": 5000,
                    "password": "secret", "connectionsDropped": 1,
                    "addressFamilyInfo": {
                        "ipv4Unicast": {"acceptedPrefixCounter": 3, "sentPrefixCounter": 2},
                        "ipv6Unicast": {"acceptedPrefixCounter": 1, "sentPrefixCounter": 1}
                    },
                    "lastResetDueTo": "BGP Notification received", "lastNotificationReason": "Cease/Peer Unconfigured"
                }
            },
            "red": {"vrfId": 7, "10.0.0.2": {"bgpState": "Active", "lastResetTimerMsecs": 7, "lastResetDueTo": ""}}
        }"#;
        let bfd = r#"[{"peer": "fe80::1", "interface": "eth0", "vrf": "default", "status": "up"}]"#;
        let eth0 = Peer {
            peer: "eth0".to_owned(),
            remote_as: 64513,
            local_as: 64512,
            state: "Established".to_owned(),
            milliseconds: Some(5000),
            received: 4,
            sent: 3,
            bfd: Some("up".to_owned()),
            dropped: 1,
            last_reset: Some("BGP Notification received: Cease/Peer Unconfigured".to_owned()),
            ..Peer::default()
        };
        let red = Peer {
            vrf: "red".to_owned(),
            peer: "10.0.0.2".to_owned(),
            state: "Active".to_owned(),
            milliseconds: Some(7),
            ..Peer::default()
        };
        let found = parse(bgp, bfd).expect("JSON");
        assert_eq!(found, [eth0, red]);
        assert!(!format!("{found:?}").contains("secret"));
        assert_eq!(parse("{\n}\n", "[]").expect("JSON"), []);
    }

    proptest! {
        #[test]
        fn no_answer_makes_us_panic(text in any::<String>()) {
            let _ = parse(&text, "[]");
            let _ = parse("{}", &text);
        }
    }
}
