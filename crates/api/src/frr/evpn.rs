//! Ethernet VPN: VXLAN networks over BGP.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Unknown;
use crate::words::words;

/// What a router does with VXLAN networks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Evpn {
    /// Whether the VXLAN networks of the node are told to the EVPN neighbors of this router: `All` or `Disabled`.
    #[serde(rename = "advertiseVNIs", skip_serializing_if = "Option::is_none")]
    pub advertise_vnis: Option<AdvertisedVnis>,

    /// Tells the neighbors the node's own address and MAC in the VXLAN networks.
    #[serde(rename = "advertiseSVI", skip_serializing_if = "Option::is_none")]
    pub advertise_svi: Option<bool>,

    /// VXLAN networks that carry frames. Only for routers with EVPN neighbors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub l2vnis: Vec<L2Vni>,

    /// The VXLAN network that carries packets of this router's VRF. Only for routers without neighbors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l3vni: Option<L3Vni>,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

words! {
    /// Which VXLAN networks are told to neighbors.
    pub enum AdvertisedVnis {
        /// None.
        Disabled = "Disabled",
        /// All of them.
        All = "All",
    }
}

/// A VXLAN network that carries frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["vni"]))]
pub struct L2Vni {
    /// The network's VXLAN number.
    #[schemars(range(min = 1, max = 16_777_215))]
    pub vni: u32,

    /// The route distinguisher, like `65000:100` or `192.0.2.1:100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "distinguisher")]
    pub rd: Option<String>,

    /// Takes routes with these route targets, like `65000:100`, `192.0.2.1:100` or, from anyone, `*:100`.
    #[serde(rename = "importRTs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "import_targets")]
    pub import_rts: Vec<String>,

    /// Gives our routes these route targets, like `65000:100` or `192.0.2.1:100`.
    #[serde(rename = "exportRTs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "export_targets")]
    pub export_rts: Vec<String>,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The VXLAN network that carries packets of a VRF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["vni", "advertisePrefixes"]))]
pub struct L3Vni {
    /// The network's VXLAN number.
    #[schemars(range(min = 1, max = 16_777_215))]
    pub vni: u32,

    /// The route distinguisher, like `65000:100` or `192.0.2.1:100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "distinguisher")]
    pub rd: Option<String>,

    /// Takes routes with these route targets, like `65000:100`, `192.0.2.1:100` or, from anyone, `*:100`.
    #[serde(rename = "importRTs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "import_targets")]
    pub import_rts: Vec<String>,

    /// Gives our routes these route targets, like `65000:100` or `192.0.2.1:100`.
    #[serde(rename = "exportRTs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "export_targets")]
    pub export_rts: Vec<String>,

    /// Which prefixes are told to EVPN neighbors: `unicast` for those of the router.
    #[schemars(length(min = 1, max = 1))]
    pub advertise_prefixes: Vec<AdvertisedPrefixes>,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

words! {
    /// Which prefixes are told to EVPN neighbors.
    pub enum AdvertisedPrefixes {
        /// Those of the router.
        Unicast = "unicast",
    }
}

fn distinguisher(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 21, "x-kubernetes-validations": rules("RD", false) })
}

/// A route target that routes are taken and given with.
pub fn route_target(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 21, "x-kubernetes-validations": rules("RT", true) })
}

fn import_targets(_: &mut SchemaGenerator) -> Schema {
    targets(true)
}

fn export_targets(_: &mut SchemaGenerator) -> Schema {
    targets(false)
}

fn targets(wildcard: bool) -> Schema {
    let validations = rules("RT", wildcard);
    json_schema!({
        "type": "array",
        "maxItems": 100,
        "items": { "type": "string", "maxLength": 21, "x-kubernetes-validations": validations },
    })
}

/// Route targets and distinguishers: an administrator (an IPv4 address, or the number of an autonomous system with two
/// or four bytes) and a number of its own, six bytes together. Each rule passes what another one refuses, so that
/// there is one message.
fn rules(what: &str, wildcard: bool) -> Value {
    const NO_PAIR: &str = "self.split(':').size() != 2";
    const NO_NUMBERS: &str = "!self.matches('^[0-9]+:[0-9]+$')";
    let (any, administrators) = if wildcard {
        (" || self.startsWith('*:')", "either '*', an IPv4 address, or a number")
    } else {
        ("", "either an IPv4 address or a number")
    };
    let mut rules = vec![
        ("self.matches('^[^:]*:[^:]*$')".to_owned(), "must contain exactly one colon".to_owned()),
        (
            format!("{NO_PAIR} || self.matches('^[0-9]+:') || isIP(self.split(':')[0]){any}"),
            format!("global administrator must be {administrators}"),
        ),
        (format!("{NO_PAIR} || self.matches(':[0-9]+$')"), "local administrator must be a number".to_owned()),
        (
            "!self.matches('^[0-9]+[.][0-9.]*:[0-9]+$') || uint(self.split(':')[1]) <= 65535u".to_owned(),
            "with IPv4 global administrator must have format A.B.C.D:MN where MN <= 65535".to_owned(),
        ),
        (
            format!(
                "{NO_NUMBERS} || uint(self.split(':')[0]) <= 65535u || \
                (uint(self.split(':')[0]) <= 4294967295u && uint(self.split(':')[1]) <= 65535u)"
            ),
            "with 4-byte ASN global administrator must have format GHJK:MN where GHJK <= 4294967295 and MN <= 65535"
                .to_owned(),
        ),
        (
            format!("{NO_NUMBERS} || uint(self.split(':')[0]) > 65535u || uint(self.split(':')[1]) <= 4294967295u"),
            "with 2-byte ASN global administrator must have format EF:OPQR where EF <= 65535 and OPQR <= 4294967295"
                .to_owned(),
        ),
    ];
    if wildcard {
        rules.push((
            "!self.matches('^[*]:[0-9]+$') || uint(self.split(':')[1]) <= 4294967295u".to_owned(),
            "with wildcard global administrator must have format *:OPQR where OPQR <= 4294967295".to_owned(),
        ));
    }
    rules
        .into_iter()
        .map(|(rule, message)| json!({ "rule": rule, "message": format!("{what} {message}") }))
        .collect()
}
