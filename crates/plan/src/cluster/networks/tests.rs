mod life;
mod mistakes;
mod properties;
pub mod server;

use serde_json::{Value, json};

use super::{NetworksPlan, Numbers, Told};

/// A network in which nodes have parts of this.
fn layer3(cidr: &str, length: u8) -> Value {
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": cidr, "hostSubnet": length }] });
    json!({ "topology": "Layer3", "layer3": layer3 })
}

/// A network with one switch for all nodes.
fn layer2(cidr: &str) -> Value {
    json!({ "topology": "Layer2", "layer2": { "role": "Primary", "subnets": [cidr] } })
}

fn told<'a>(plan: &'a NetworksPlan, object: &str) -> &'a Told {
    plan.told.iter().find(|(told, _)| told.to_string() == object).unwrap().1
}

/// A condition as `status reason message`.
fn condition(plan: &NetworksPlan, object: &str, type_: &str) -> String {
    let outcome = told(plan, object).outcomes.iter().find(|outcome| outcome.type_ == type_);
    outcome.map_or_else(String::new, |outcome| {
        format!("{} {} {}", outcome.verdict.as_str(), outcome.reason, outcome.message)
    })
}
