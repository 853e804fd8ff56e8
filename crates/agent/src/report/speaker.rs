//! What FRR says when it is asked: its sessions, whom it told of the node's subnets, and who told it of a route.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use ipnet::IpNet;
use serde_json::Value;
use underlay_frr::vty::Vty;
use underlay_frr::{SessionReader, peers};
use underlay_runtime::report::{AdvertisedReport, PeerReport, RouteReport, SessionReport, SpeakerReport};

/// How long FRR may think. Whoever asks us does not wait much longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// What FRR is asked about.
#[derive(Debug)]
pub struct Concerned<'a> {
    /// Subnets of the node: whom are they told?
    pub subnets: &'a [IpNet],
    /// What is advertised: whom is it told?
    pub advertised: Vec<AdvertisedReport>,
    /// Learned routes: who told of them?
    pub routes: Vec<RouteReport>,
    /// The VRF in which that was. The default one has no name.
    pub vrf: String,
    /// Whether everything about neighbours is asked for.
    pub peers: bool,
}

/// Asks, and fills in what is advertised to whom and who told of routes.
pub async fn ask(sockets: &Path, concerned: &mut Concerned<'_>) -> SpeakerReport {
    let mut report = SpeakerReport::default();
    let asked = tokio::time::timeout(PATIENCE, fill(sockets, concerned, &mut report)).await;
    report.problem = match asked {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => Some(format!("{fault:#}")),
        Err(_) => Some("FRR takes too long to answer".to_owned()),
    };
    report
}

async fn fill(
    sockets: &Path,
    concerned: &mut Concerned<'_>,
    report: &mut SpeakerReport,
) -> anyhow::Result<()> {
    let sessions = SessionReader::new(sockets).read().await.context("sessions cannot be read")?;
    let session = |session: underlay_frr::Session| SessionReport {
        vrf: session.vrf,
        peer: session.peer,
        state: session.state,
    };
    report.sessions = sessions.into_iter().map(session).collect();
    if concerned.peers {
        let peers = peers::read(sockets).await.context("neighbours cannot be read")?;
        report.peers = peers.into_iter().map(peer).collect();
    }
    let mut bgpd = Vty::connect(&sockets.join("bgpd.vty")).await.context("bgpd cannot be talked with")?;
    for subnet in concerned.subnets {
        report.told.insert(*subnet, told(&about(&mut bgpd, "", subnet).await?));
    }
    for one in &mut concerned.advertised {
        one.to = Some(told(&about(&mut bgpd, &one.vrf, &one.prefix).await?));
    }
    for route in &mut concerned.routes {
        route.from = heard(&about(&mut bgpd, &concerned.vrf, &route.destination).await?);
    }
    Ok(())
}

fn peer(peer: peers::Peer) -> PeerReport {
    PeerReport {
        vrf: peer.vrf,
        peer: peer.peer,
        remote_as: peer.remote_as,
        local_as: peer.local_as,
        state: peer.state,
        seconds: peer.milliseconds.map(|milliseconds| milliseconds / 1000),
        received: peer.received,
        sent: peer.sent,
        bfd: peer.bfd,
        dropped: peer.dropped,
        last_reset: peer.last_reset,
    }
}

/// What bgpd knows of a prefix in a VRF; nothing where it knows nothing.
async fn about(bgpd: &mut Vty, vrf: &str, prefix: &IpNet) -> anyhow::Result<Value> {
    let family = if prefix.addr().is_ipv4() { "ipv4" } else { "ipv6" };
    let vrf = if vrf.is_empty() { String::new() } else { format!("vrf {vrf} ") };
    let answer = bgpd.ask(&format!("show bgp {vrf}{family} unicast {prefix} json")).await?;
    Ok(serde_json::from_str(&answer.text).unwrap_or_default())
}

/// Peers that were told of a prefix.
fn told(about: &Value) -> BTreeSet<String> {
    about
        .get("advertisedTo")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|peers| peers.keys().cloned())
        .collect()
}

/// Peers that told of a prefix. What FRR itself originates has a peer without an address.
fn heard(about: &Value) -> BTreeSet<String> {
    let paths = about.get("paths").and_then(Value::as_array).into_iter().flatten();
    let peer = |path: &Value| path.pointer("/peer/peerId")?.as_str().map(str::to_owned);
    paths.filter_map(peer).filter(|peer| peer != "0.0.0.0" && peer != "::").collect()
}
