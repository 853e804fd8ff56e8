//! Waits until bgpd has taken back the routes of a router that is about to go.
//!
//! In: the line that ends a BGP router. Out: nothing but time. bgpd hands routes to zebra, and takes them back, a while
//! after what makes it do so; of a router that goes it forgets what it has not handed over yet. Then zebra and the
//! kernel keep routes that nobody takes back ever again.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::diff::{Daemon, words};
use crate::observe::socket;
use crate::vty::{Vty, VtyError};

/// How often zebra is asked.
const LOOK: Duration = Duration::from_millis(10);
/// How long nothing may change before no more is waited for: routes from other VRFs stay until the router goes.
const PATIENCE: Duration = Duration::from_secs(2);
/// What zebra calls routes of BGP.
const BGP: [&str; 2] = ["ebgp", "ibgp"];

/// The VRF whose router a line ends.
pub(crate) fn ending(line: &str) -> Option<&str> {
    let router = line.strip_prefix("no ").filter(|line| line.starts_with("router bgp "))?;
    Some(words::vrf(router).unwrap_or("default"))
}

/// Waits until zebra has no route of BGP in a VRF, or as long as that comes nearer.
pub(crate) async fn settled(sockets: &Path, vrf: &str) -> Result<(), VtyError> {
    let mut zebra = match Vty::connect(&socket(sockets, Daemon::Zebra)).await {
        Err(VtyError::Gone(_)) => return Ok(()),
        zebra => zebra?,
    };
    let (mut least, mut since) = (u64::MAX, Instant::now());
    loop {
        let routes = count(&mut zebra, vrf).await?;
        if routes == 0 {
            return Ok(());
        }
        if routes < least {
            (least, since) = (routes, Instant::now());
        } else if since.elapsed() > PATIENCE {
            tracing::debug!(vrf, routes, "routes stay until the router goes");
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn count(zebra: &mut Vty, vrf: &str) -> Result<u64, VtyError> {
    let mut all = 0;
    for family in ["ip", "ipv6"] {
        let answer = zebra.ask(&format!("show {family} route vrf {vrf} summary json")).await?;
        all += of_bgp(&answer.text);
    }
    Ok(all)
}

/// Routes of BGP in a summary. There are none in a VRF that zebra does not know.
fn of_bgp(summary: &str) -> u64 {
    let summary: Value = serde_json::from_str(summary).unwrap_or_default();
    let routes = summary.get("routes").and_then(Value::as_array);
    let of = |entry: &Value| {
        let kind = entry.get("type").and_then(Value::as_str)?;
        entry.get("rib").and_then(Value::as_u64).filter(|_| BGP.contains(&kind))
    };
    routes.into_iter().flatten().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_that_goes_is_known_by_its_line() {
        assert_eq!(ending("no router bgp 64512"), Some("default"));
        assert_eq!(ending("no router bgp 64512 vrf red"), Some("red"));
        assert_eq!(ending("router bgp 64512"), None);
        assert_eq!(ending("no neighbor 10.0.0.2"), None);
    }

    #[test]
    fn only_routes_of_bgp_count() {
        let summary = r#"{ "routes": [{ "fib": 5, "rib": 5, "type": "kernel" }, { "fib": 1, "rib": 2, "type": "ebgp" },
            { "rib": 3, "type": "ibgp" }, { "rib": "many", "type": "ibgp" }, {}], "routesTotal": 10 }"#;
        assert_eq!(of_bgp(summary), 5);
        for nothing in ["", "% VRF red not found", "{}", "{ \"routes\": 7 }"] {
            assert_eq!(of_bgp(nothing), 0, "{nothing}");
        }
    }
}
