//! Rules of a network as a whole.

use serde_json::Value;

use super::super::says;
use super::{Rule, rule, rules, stays};

const LAYER3_PRIMARY: &str = "self.topology == 'Layer3' && has(self.layer3) && self.layer3.role == 'Primary'";
const LAYER2_PRIMARY: &str = "self.topology == 'Layer2' && has(self.layer2) && self.layer2.role == 'Primary'";
const NO_OVERLAY: &str = "has(self.transport) && self.transport == 'NoOverlay'";
const EVPN: &str = "has(self.transport) && self.transport == 'EVPN'";

/// The rule that a topology's block is there if and only if the topology is.
fn block(name: &str, topology: &str, message: &'static str) -> Rule {
    rule(format!("has(self.{name}) == (self.topology == '{topology}')"), message)
}

/// Rules of the network in a ClusterUserDefinedNetwork.
pub fn network() -> Value {
    let blocks = [
        block("layer3", "Layer3", says::LAYER3_BLOCK),
        block("layer2", "Layer2", says::LAYER2_BLOCK),
        block("localnet", "Localnet", says::LOCALNET_BLOCK),
    ];
    rules(blocks.into_iter().chain(no_overlay()).chain(evpn_blocks()).chain(changes()))
}

fn no_overlay() -> [Rule; 5] {
    let differ = "!has(self.noOverlay) || !has(self.noOverlayOptions) || \
        self.noOverlay.routing == self.noOverlayOptions.routing && \
        self.noOverlay.outboundSNAT.startsWith('Enable') == \
        self.noOverlayOptions.outboundSNAT.startsWith('Enable')";
    [
        rule(format!("!({NO_OVERLAY}) || ({LAYER3_PRIMARY})"), says::NO_OVERLAY_LAYER3),
        // Who leaves it out reads of both spellings.
        rule(
            format!("!({NO_OVERLAY}) || has(self.noOverlay) || has(self.noOverlayOptions)"),
            says::NO_OVERLAY_REQUIRED,
        ),
        rule(
            format!(
                "({NO_OVERLAY}) ? has(self.noOverlay) || has(self.noOverlayOptions) : !has(self.noOverlayOptions)"
            ),
            says::NO_OVERLAY_OPTIONS,
        ),
        rule(format!("{NO_OVERLAY} || !has(self.noOverlay)"), says::NO_OVERLAY_FORBIDDEN),
        rule(differ, says::NO_OVERLAY_SPELLINGS),
    ]
}

fn evpn_blocks() -> [Rule; 6] {
    let without = |topology: &str, block: &str| {
        format!("!({EVPN}) || self.topology != '{topology}' || !has(self.evpn) || {block}")
    };
    [
        rule(format!("!({EVPN}) || ({LAYER2_PRIMARY}) || ({LAYER3_PRIMARY})"), says::EVPN_PRIMARY),
        rule(format!("!({EVPN}) || has(self.evpn)"), says::EVPN_REQUIRED),
        rule(format!("{EVPN} || !has(self.evpn)"), says::EVPN_FORBIDDEN),
        rule(without("Layer2", "has(self.evpn.macVRF)"), says::EVPN_MAC_VRF_REQUIRED),
        rule(without("Layer3", "has(self.evpn.ipVRF)"), says::EVPN_IP_VRF_REQUIRED),
        rule(without("Layer3", "!has(self.evpn.macVRF)"), says::EVPN_MAC_VRF_FORBIDDEN),
    ]
}

/// A transport stays what it is, in whichever spelling.
fn changes() -> [Rule; 2] {
    let transport = |of: &str| format!("(has({of}.transport) ? {of}.transport : 'Geneve')");
    let option = |of: &str, read: &str, otherwise: &str| {
        format!(
            "(has({of}.noOverlay) ? {of}.noOverlay.{read} : \
            has({of}.noOverlayOptions) ? {of}.noOverlayOptions.{read} : {otherwise})"
        )
    };
    let same = |value: &dyn Fn(&str) -> String| format!("{} == {}", value("self"), value("oldSelf"));
    let routing = same(&|of| option(of, "routing", "''"));
    let snat = same(&|of| option(of, "outboundSNAT.startsWith('Enable')", "false"));
    let transports = same(&transport);
    [
        rule(transports.clone(), says::TRANSPORT_IMMUTABLE),
        rule(format!("!({transports}) || {routing} && {snat}"), says::NO_OVERLAY_IMMUTABLE),
    ]
}

/// Rules of the spec of a ClusterUserDefinedNetwork.
pub fn cluster() -> Value {
    let inner = |rule: &str| rule.replace("self.", "self.network.");
    rules([
        rule(
            format!("!has(self.uplinks) || ({}) || ({})", inner(LAYER2_PRIMARY), inner(LAYER3_PRIMARY)),
            says::UPLINKS_PRIMARY,
        ),
        rule(format!("!has(self.uplinks) || !({})", inner(EVPN)), says::UPLINKS_EVPN),
        stays("uplinks", says::UPLINKS_IMMUTABLE),
    ])
}

/// Rules of the spec of a UserDefinedNetwork.
pub fn namespaced() -> Value {
    let same = |block: &str| {
        format!(
            "(!has(self.{block}) || !has(self.{block}.joinSubnets) || self.{block}.joinSubnets == self.joinSubnets)"
        )
    };
    rules([
        block("layer3", "Layer3", says::LAYER3_BLOCK),
        block("layer2", "Layer2", says::LAYER2_BLOCK),
        rule(
            format!("!has(self.joinSubnets) || ({LAYER2_PRIMARY}) || ({LAYER3_PRIMARY})"),
            says::JOIN_PRIMARY,
        ),
        rule(
            format!("!has(self.joinSubnets) || {} && {}", same("layer3"), same("layer2")),
            says::JOIN_SPELLINGS,
        ),
        stays("joinSubnets", says::JOIN_IMMUTABLE),
    ])
}

/// Rules of the VXLAN networks of a network.
pub fn evpn() -> Value {
    rules([
        rule("has(self.macVRF) || has(self.ipVRF)", says::EVPN_NO_VRF),
        rule(
            "!has(self.macVRF) || !has(self.ipVRF) || self.macVRF.vni != self.ipVRF.vni",
            says::EVPN_SAME_VNI,
        ),
    ])
}
