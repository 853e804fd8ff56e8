//! The rules of the resources, for the API server: what is in a schema beside the types of its fields.
//!
//! Each rule passes what it cannot judge (a text that is no subnet, a field that is not there), because another one
//! refuses that: who makes one mistake reads one sentence. A rule about change stands where the field is optional, not
//! at the field: there the API server would not ask it when the field comes or goes.

mod layer2;
mod layer3;
mod localnet;
mod network;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

pub use layer2::{ipam, layer2};
pub use layer3::{layer3, subnet};
pub use localnet::{localnet, physical_network_name, vlan};
pub use network::{cluster, evpn, namespaced, network};

use super::says;

/// The longest text of a subnet.
const CIDR_LENGTH: u32 = 43;
/// The longest text of an address.
const IP_LENGTH: u32 = 45;

/// A rule, and what is said when it does not hold.
struct Rule {
    must_hold: String,
    message: &'static str,
    /// The field that it is about, where that is not the object that has the rule.
    field: Option<String>,
}

/// A rule of an object as a whole.
fn rule(must_hold: impl Into<String>, message: &'static str) -> Rule {
    Rule { must_hold: must_hold.into(), message, field: None }
}

impl Rule {
    /// The same rule, said about one field.
    fn about(self, field: &str) -> Self {
        Self { field: Some(format!(".{field}")), ..self }
    }
}

/// The rules as a schema has them.
fn rules(rules: impl IntoIterator<Item = Rule>) -> Value {
    let rule = |rule: Rule| {
        let mut value = json!({ "rule": rule.must_hold, "message": rule.message });
        if let Some(field) = rule.field {
            value["fieldPath"] = field.into();
        }
        value
    };
    rules.into_iter().map(rule).collect()
}

/// A field that must always be there, and stays as it is.
pub fn immutable(message: &'static str) -> Value {
    rules([rule("self == oldSelf", message)])
}

/// A rule of the object that has it: an optional field neither changes nor comes nor goes.
fn stays(field: &str, message: &'static str) -> Rule {
    let same = format!(
        "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    );
    rule(same, message).about(field)
}

/// A rule of the object that has both: parts lie in the subnets, of which `subnet` is the text.
fn inside(parts: &str, subnet: &str, message: &'static str) -> Rule {
    let inside = format!(
        "!has(self.{parts}) || !has(self.subnets) || self.{parts}.all(p, !isCIDR(p) || \
        self.subnets.exists(s, !isCIDR({subnet}) || cidr({subnet}).containsCIDR(p)))"
    );
    rule(inside, message).about(parts)
}

/// A rule of a network: packets are large enough for IPv6 if it has a subnet of that family.
fn ipv6_fits(subnet: &str, message: &'static str) -> Rule {
    let fits = format!(
        "!has(self.mtu) || self.mtu >= 1280 || !has(self.subnets) || \
        !self.subnets.exists(s, isCIDR({subnet}) && cidr({subnet}).ip().family() == 6)"
    );
    rule(fits, message)
}

/// The schema of a subnet.
pub fn cidr(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": CIDR_LENGTH,
        "x-kubernetes-validations": rules([rule("isCIDR(self)", says::CIDR_INVALID)]),
    })
}

/// The schema of a list of one subnet, or one of each family.
pub fn cidr_of_each_family(generator: &mut SchemaGenerator) -> Schema {
    let families = "size(self) != 2 || !isCIDR(self[0]) || !isCIDR(self[1]) || \
        cidr(self[0]).ip().family() != cidr(self[1]).ip().family()";
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 2,
        "items": cidr(generator),
        "x-kubernetes-validations": rules([rule(families, says::CIDR_FAMILIES)]),
    })
}

/// The schema of a list of one address, or one of each family.
pub fn ip_of_each_family(_: &mut SchemaGenerator) -> Schema {
    let families = "size(self) != 2 || !isIP(self[0]) || !isIP(self[1]) || \
        ip(self[0]).family() != ip(self[1]).family()";
    let valid = rules([rule("isIP(self)", says::IP_INVALID)]);
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 2,
        "items": { "type": "string", "maxLength": IP_LENGTH, "x-kubernetes-validations": valid },
        "x-kubernetes-validations": rules([rule(families, says::IP_FAMILIES)]),
    })
}

/// The schema of parts that are kept from pods.
pub fn kept_cidrs(generator: &mut SchemaGenerator) -> Schema {
    cidrs(generator, 25)
}

/// The schema of parts that the network needs itself.
pub fn infrastructure_cidrs(generator: &mut SchemaGenerator) -> Schema {
    cidrs(generator, 4)
}

fn cidrs(generator: &mut SchemaGenerator, most: u32) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": most,
        "items": cidr(generator),
        "x-kubernetes-list-type": "atomic",
    })
}
