//! Whether nodes reach each other's pods in networks without overlay: somebody has to advertise them, everywhere.
//!
//! In: networks, RouteAdvertisements and what became of these. Out: the condition `TransportAccepted` of every such
//! network, and how the default network stands. Of several advertisements of one network, one that is accepted is
//! enough; but a node that none of them is for is cut off, so that is not enough.

use std::collections::{BTreeMap, BTreeSet};

use underlay_api::RouteAdvertisements;
use underlay_api::conditions::{self, Outcome};
use underlay_api::network::conditions::{
    NO_OVERLAY_ACCEPTED, NO_OVERLAY_CONFIGURED, NO_OVERLAY_MISSING, NO_OVERLAY_NOT_ACCEPTED,
    NOBODY_ADVERTISES, TRANSPORT_ACCEPTED, not_accepted,
};
use underlay_api::route_advertisements::{AdvertisementType, NetworkSelectionType};
use underlay_desired::ObjectRef;
use underlay_world::select::picks;
use underlay_world::{Definition, Key, Settings, World};

use super::advertise::labels_of;
use super::networks::{Told, outcome};
use super::verdict::nodes as named;
use super::{Verdict, fabric};

/// Reason of [`TRANSPORT_ACCEPTED`] while it is not known what is advertised.
const UNKNOWN: &str = "NoOverlayRouteAdvertisementsUnknown";

/// What is said of every RouteAdvertisements, by name.
pub type Verdicts = BTreeMap<String, Verdict>;

/// How a network without overlay stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is advertised from all nodes.
    Advertised,
    /// It is advertised, but not from these nodes.
    Partly {
        /// The advertisements.
        by: Vec<String>,
        /// The nodes.
        without: Vec<String>,
    },
    /// These advertisements select it, and none is accepted.
    NotAccepted(Vec<String>),
    /// Nobody advertises it.
    Missing,
}

impl Standing {
    /// Whether all is well.
    pub fn is_well(&self) -> bool {
        *self == Self::Advertised
    }

    /// As an event about the default network: a reason and a sentence.
    pub fn event(&self) -> (&'static str, String) {
        let needs = "transport is no-overlay, so its pods reach each other only where it is advertised";
        match self {
            Self::Advertised => (
                "NoOverlayConfigurationReady",
                "RouteAdvertisements that are accepted advertise the default network from all nodes"
                    .to_owned(),
            ),
            Self::Missing => (
                "NoRouteAdvertisements",
                format!("no RouteAdvertisements advertise the default network: {needs}; create one"),
            ),
            Self::NotAccepted(names) => (
                "RouteAdvertisementsNotAccepted",
                format!(
                    "RouteAdvertisements {} advertise the default network, but none is accepted: {needs}; their \
                     status says what is wrong",
                    names.join(", ")
                ),
            ),
            Self::Partly { by, without } => (
                "RouteAdvertisementsNotAccepted",
                format!(
                    "RouteAdvertisements {} advertise the default network, but no FRRConfiguration that they select \
                     is for {}: {needs}",
                    by.join(", "),
                    named(without)
                ),
            ),
        }
    }
}

/// Says of every network without overlay how it stands. Without verdicts it is not known what is advertised: then what
/// was said before holds.
pub fn judge(
    told: &mut BTreeMap<ObjectRef, Told>,
    world: &World,
    settings: &Settings,
    verdicts: Option<&Verdicts>,
) {
    for (object, told) in told.iter_mut().filter(|(_, told)| told.routed) {
        let Some(definition) = world.cluster_networks.get(&Key::cluster(&object.name)) else { continue };
        let Some(verdicts) = verdicts else {
            told.outcomes.push(unknown(definition));
            continue;
        };
        let standing = stand(world, verdicts, |object| selects(object, definition, settings));
        let (verdict, reason, message) = say(&standing, definition, settings);
        if !standing.is_well() {
            told.events.push((reason, message.clone()));
        }
        told.outcomes.push(outcome(TRANSPORT_ACCEPTED, verdict, reason, message));
    }
}

/// How the default network stands; nothing where it has its overlay.
pub fn of_default_network(world: &World, settings: &Settings, verdicts: &Verdicts) -> Option<Standing> {
    settings.no_overlay?;
    let selects = |object: &RouteAdvertisements| {
        let mut selectors = object.spec.network_selectors.iter();
        selectors.any(|one| one.network_selection_type == NetworkSelectionType::DefaultNetwork)
    };
    Some(stand(world, verdicts, selects))
}

fn stand(world: &World, verdicts: &Verdicts, selects: impl Fn(&RouteAdvertisements) -> bool) -> Standing {
    let (mut by, mut others) = (Vec::new(), Vec::new());
    let mut without: Option<BTreeSet<&String>> = None;
    let selecting = world
        .advertisements
        .iter()
        .filter(|(_, object)| object.spec.advertises(&AdvertisementType::PodNetwork) && selects(object));
    for (key, _) in selecting {
        if let Some(Verdict::Accepted { uncovered }) = verdicts.get(&key.name) {
            let uncovered: BTreeSet<&String> = uncovered.iter().collect();
            without = Some(match without {
                Some(without) => without.intersection(&uncovered).copied().collect(),
                None => uncovered,
            });
            by.push(key.name.clone());
        } else {
            others.push(key.name.clone());
        }
    }
    match without {
        Some(without) if without.is_empty() => Standing::Advertised,
        Some(without) => Standing::Partly { by, without: without.into_iter().cloned().collect() },
        None if others.is_empty() => Standing::Missing,
        None => Standing::NotAccepted(others),
    }
}

/// Whether an advertisement is for a network of the cluster's. One whose selector makes no sense is for none.
fn selects(object: &RouteAdvertisements, definition: &Definition, settings: &Settings) -> bool {
    let mut labels = labels_of(definition);
    fabric::put_mark(definition, settings, &mut labels);
    let selectors = object.spec.network_selectors.iter();
    let mut selectors = selectors.filter_map(|one| one.cluster_user_defined_network_selector.as_ref());
    selectors.any(|one| picks(&one.network_selector, &labels).unwrap_or(false))
}

fn say(
    standing: &Standing,
    definition: &Definition,
    settings: &Settings,
) -> (conditions::Verdict, &'static str, String) {
    let no = conditions::Verdict::False;
    match standing {
        Standing::Advertised => {
            (conditions::Verdict::True, NO_OVERLAY_ACCEPTED, NO_OVERLAY_CONFIGURED.to_owned())
        }
        Standing::Missing if fabric::asks(definition) && settings.managed.topology.is_none() => {
            let message = format!(
                "{NOBODY_ADVERTISES} Routing is Managed, and the setting topology is missing: write topology = \
                 full-mesh in [bgp.managed], or --bgp-topology=full-mesh, for the cluster manager."
            );
            (no, NO_OVERLAY_MISSING, message)
        }
        Standing::Missing => (no, NO_OVERLAY_MISSING, NOBODY_ADVERTISES.to_owned()),
        Standing::NotAccepted(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            (no, NO_OVERLAY_NOT_ACCEPTED, not_accepted(&names))
        }
        Standing::Partly { by, without } => {
            let message = format!(
                "RouteAdvertisements CR {} advertises the pod subnets, but no FRRConfiguration that it selects is for \
                 {}.",
                by.join(", "),
                named(without)
            );
            (no, NO_OVERLAY_NOT_ACCEPTED, message)
        }
    }
}

/// What was said before, or that nobody can tell yet.
fn unknown(definition: &Definition) -> Outcome {
    let Some(said) = conditions::get(&definition.conditions, TRANSPORT_ACCEPTED) else {
        let message = "waiting for RouteAdvertisements and FRRConfigurations to be known".to_owned();
        return outcome(TRANSPORT_ACCEPTED, conditions::Verdict::Unknown, UNKNOWN, message);
    };
    Outcome {
        type_: said.type_.clone(),
        verdict: conditions::Verdict::read(&said.status),
        reason: said.reason.clone(),
        message: said.message.clone(),
        observed_generation: said.observed_generation,
    }
}

#[cfg(test)]
mod tests;
