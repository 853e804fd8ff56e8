//! What FRR says when it is asked: its sessions, whom it told of the node's subnets, and who told it of a route.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use ipnet::IpNet;
use serde_json::Value;
use underlay_frr::SessionReader;
use underlay_frr::vty::Vty;
use underlay_runtime::report::{RouteReport, SessionReport, SpeakerReport};

/// How long FRR may think. Whoever asks us does not wait much longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks, and fills in who told of these routes.
pub async fn ask(sockets: &Path, subnets: &[IpNet], routes: &mut [RouteReport]) -> SpeakerReport {
    let mut report = SpeakerReport::default();
    let asked = tokio::time::timeout(PATIENCE, fill(sockets, subnets, routes, &mut report)).await;
    report.problem = match asked {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => Some(format!("{fault:#}")),
        Err(_) => Some("FRR takes too long to answer".to_owned()),
    };
    report
}

async fn fill(
    sockets: &Path,
    subnets: &[IpNet],
    routes: &mut [RouteReport],
    report: &mut SpeakerReport,
) -> anyhow::Result<()> {
    let sessions = SessionReader::new(sockets).read().await.context("sessions cannot be read")?;
    let session = |session: underlay_frr::Session| SessionReport {
        vrf: session.vrf,
        peer: session.peer,
        state: session.state,
    };
    report.sessions = sessions.into_iter().map(session).collect();
    let mut bgpd = Vty::connect(&sockets.join("bgpd.vty")).await.context("bgpd cannot be talked with")?;
    for subnet in subnets {
        report.told.insert(*subnet, told(&about(&mut bgpd, subnet).await?));
    }
    for route in routes {
        route.from = heard(&about(&mut bgpd, &route.destination).await?);
    }
    Ok(())
}

/// What bgpd knows of a prefix; nothing where it knows nothing.
async fn about(bgpd: &mut Vty, prefix: &IpNet) -> anyhow::Result<Value> {
    let family = if prefix.addr().is_ipv4() { "ipv4" } else { "ipv6" };
    let answer = bgpd.ask(&format!("show bgp {family} unicast {prefix} json")).await?;
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
