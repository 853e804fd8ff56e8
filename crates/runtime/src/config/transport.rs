//! How packets travel between nodes: the default network's transport, and the sessions that the cluster sees to.

use underlay_world::Settings;
use underlay_world::settings::{NoOverlay, Routing};

use super::layers::{Layers, flag};
use super::values::{as_number, enabled, isolation, namespace, routing, topology, transport};
use super::{ConfigError, Place};

/// Largest packet of a pod where nothing is put around it, on a network of usual width.
const MTU_WITHOUT_OVERLAY: u32 = 1500;

/// Sets all of it. Returns what was said and counts for nothing.
pub fn set(layers: &Layers<'_>, settings: &mut Settings) -> Result<Vec<String>, ConfigError> {
    let managed = &mut settings.managed;
    layers.set("as-number", &mut managed.as_number, as_number)?;
    layers.set("frr-namespace", &mut managed.frr_namespace, namespace)?;
    managed.topology = layers.get("topology", topology)?.flatten();
    layers.set("advertised-udn-isolation-mode", &mut settings.isolation, isolation)?;
    let without_overlay = layers.get("transport", transport)?.unwrap_or_default();
    let (snat, routing) = (layers.get("outbound-snat", enabled)?, layers.get("routing", routing)?);
    if !without_overlay {
        let said = ["outbound-snat", "routing"].into_iter().filter_map(|key| layers.place(key));
        return Ok(said.map(|place| unused(&place)).collect());
    }
    let no_overlay = NoOverlay {
        outbound_snat: snat
            .ok_or_else(|| missing("outbound-snat", "[no-overlay]", WITHOUT, "enable or disable"))?,
        routing: routing
            .ok_or_else(|| missing("routing", "[no-overlay]", WITHOUT, "managed or unmanaged"))?,
    };
    if no_overlay.routing == Routing::Managed && settings.managed.topology.is_none() {
        return Err(missing("topology", "[bgp.managed]", "routing is managed", "full-mesh"));
    }
    settings.no_overlay = Some(no_overlay);
    settings.mtu = MTU_WITHOUT_OVERLAY;
    Ok(vec![])
}

const WITHOUT: &str = "transport is no-overlay";

fn missing(key: &'static str, section: &'static str, why: &'static str, write: &'static str) -> ConfigError {
    ConfigError::Missing { key, section, flag: flag(key), why, write }
}

fn unused(place: &Place) -> String {
    format!("{place} counts for nothing: transport is not no-overlay")
}
