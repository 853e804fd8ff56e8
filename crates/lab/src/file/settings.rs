//! What a lab file tells the cluster manager and the agents: how packets travel between nodes.
//!
//! In: the section as written. Out: keys for their configuration file, in its words. Values that they would refuse are
//! refused here, with their line.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::check::Problem;
use crate::topology::{Setting, Settings};

/// The section `settings`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SettingsSection {
    /// How packets of the default network travel between nodes.
    pub transport: Option<Spanned<String>>,
    pub no_overlay: NoOverlaySection,
    pub managed: ManagedSection,
    /// What keeps advertised networks apart.
    pub isolation: Option<Spanned<String>>,
    /// How many learned routes a network takes.
    pub imported_routes_limit: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct NoOverlaySection {
    #[serde(rename = "outboundSNAT")]
    pub outbound_snat: Option<Spanned<String>>,
    pub routing: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ManagedSection {
    pub as_number: Option<Spanned<u32>>,
    pub topology: Option<Spanned<String>>,
    pub frr_namespace: Option<Spanned<String>>,
}

const NO_OVERLAY: &str = "no-overlay";
/// AS numbers that mean something else to every speaker of BGP.
const RESERVED: [u32; 4] = [0, 23456, 65535, u32::MAX];

/// The settings of a section.
pub(super) fn check(section: &SettingsSection) -> Result<Settings, Problem> {
    let SettingsSection { transport, no_overlay, managed, isolation, imported_routes_limit } = section;
    let transport = word("transport", transport.as_ref(), &["geneve", NO_OVERLAY])?;
    let snat = word("outboundSNAT", no_overlay.outbound_snat.as_ref(), &["enable", "disable"])?;
    let routing = word("routing", no_overlay.routing.as_ref(), &["managed", "unmanaged"])?;
    let topology = word("topology", managed.topology.as_ref(), &["full-mesh"])?;
    let isolation = word("isolation", isolation.as_ref(), &["strict", "loose"])?;
    let without_overlay = transport.filter(|word| word.value == NO_OVERLAY);
    if let Some(at) = without_overlay {
        needs(at, snat, "settings.noOverlay.outboundSNAT: enable or disable")?;
        needs(at, routing, "settings.noOverlay.routing: managed or unmanaged")?;
    }
    if let Some(at) = routing.filter(|word| word.value == "managed") {
        needs(at, topology, "settings.managed.topology: full-mesh")?;
    }
    if let Some(number) = managed.as_number.as_ref().filter(|number| RESERVED.contains(&number.value)) {
        let message = format!("asNumber {} is reserved: write another, like 64512", number.value);
        return Err(Problem { line: number.referenced.line(), message });
    }
    let number = managed.as_number.as_ref().map(|number| number.value.to_string());
    let said = |text: Option<&Spanned<String>>| text.map(|text| text.value.clone());
    let keys = [
        ("default", "transport", said(transport)),
        ("default", "imported-routes-limit", imported_routes_limit.map(|number| number.to_string())),
        (NO_OVERLAY, "outbound-snat", said(snat)),
        (NO_OVERLAY, "routing", said(routing)),
        ("bgp.managed", "as-number", number),
        ("bgp.managed", "topology", said(topology)),
        ("bgp.managed", "frr-namespace", said(managed.frr_namespace.as_ref())),
        ("ovnkubernetesfeature", "advertised-udn-isolation-mode", said(isolation)),
    ];
    let given = keys.into_iter().filter_map(|(section, key, value)| {
        Some(Setting { section: section.to_owned(), key: key.to_owned(), value: value? })
    });
    Ok(Settings { overlay: without_overlay.is_none(), given: given.collect() })
}

fn word<'a>(
    field: &str,
    given: Option<&'a Spanned<String>>,
    words: &[&str],
) -> Result<Option<&'a Spanned<String>>, Problem> {
    match given {
        Some(text) if !words.contains(&text.value.as_str()) => {
            let message = format!("{field} {:?} is not known: write {}", text.value, words.join(" or "));
            Err(Problem { line: text.referenced.line(), message })
        }
        given => Ok(given),
    }
}

fn needs(at: &Spanned<String>, given: Option<&Spanned<String>>, write: &str) -> Result<(), Problem> {
    if given.is_some() {
        return Ok(());
    }
    let message = format!("{:?} needs more: add {write}", at.value);
    Err(Problem { line: at.referenced.line(), message })
}
