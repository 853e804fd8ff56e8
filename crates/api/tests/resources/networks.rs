//! Networks that are taken and networks that are refused, and that our reading thinks of them what the rules do.

use serde_json::{Value, json};
use underlay_api::network::{FieldError, Network};
use underlay_api::{ClusterUserDefinedNetwork, UserDefinedNetwork};

use crate::cases::{Case, Row, Verdict, with};

/// The tables, each with what its fields are put over and what that is part of.
fn tables() -> [(&'static str, Value, Place); 6] {
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": "10.10.0.0/16", "hostSubnet": 24 }] });
    let layer2 = json!({ "role": "Primary", "subnets": ["10.20.0.0/16"] });
    let localnet =
        json!({ "role": "Secondary", "physicalNetworkName": "tenant", "subnets": ["10.30.0.0/24"] });
    let network = json!({ "topology": "Layer3", "layer3": layer3 });
    let cluster = json!({ "namespaceSelector": {}, "network": network });
    let namespaced = json!({ "topology": "Layer2", "layer2": layer2 });
    [
        (include_str!("cases/layer3.yaml"), layer3, Place::Block("Layer3")),
        (include_str!("cases/layer2.yaml"), layer2, Place::Block("Layer2")),
        (include_str!("cases/localnet.yaml"), localnet, Place::Block("Localnet")),
        (include_str!("cases/transports.yaml"), network, Place::Network),
        (include_str!("cases/cluster-networks.yaml"), cluster, Place::Cluster),
        (include_str!("cases/namespaced-networks.yaml"), namespaced, Place::Namespaced),
    ]
}

/// What fields are part of.
#[derive(Clone, Copy)]
enum Place {
    /// The block of a topology, in both resources if both have it.
    Block(&'static str),
    /// The network of a ClusterUserDefinedNetwork.
    Network,
    /// A ClusterUserDefinedNetwork.
    Cluster,
    /// A UserDefinedNetwork.
    Namespaced,
}

/// All cases. Their names begin with the place and the resource, so that no two are the same.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::from(most_subnets());
    for (table, valid, place) in tables() {
        let rows: Vec<Row> = serde_saphyr::from_str(table).unwrap();
        for row in rows {
            for resource in place.resources() {
                let manifest =
                    |name: &str, fields: &Value| place.manifest(resource, name, &with(&valid, fields));
                let mut case = row.case(manifest);
                case.name = place.name(resource, &row.name);
                cases.push(case);
            }
        }
    }
    cases
}

/// Networks with as many subnets as there may be, and with as many as are compared, each of which gets one more: the
/// API server must not tire.
fn most_subnets() -> [Case; 2] {
    let short =
        |index| json!({ "cidr": format!("10.{}.{}.0/24", index / 200, index % 200), "hostSubnet": 26 });
    let long = |index| json!({ "cidr": format!("fd00:1111:{:04x}:0000:0000:0000:0000:0000/48", index) });
    let case = |name: &str, count: u32, subnet: fn(u32) -> Value| {
        let place = Place::Block("Layer3");
        let manifest = |count| {
            let subnets: Vec<_> = (0..count).map(subnet).collect();
            place.manifest("cluster", name, &json!({ "role": "Primary", "subnets": subnets }))
        };
        Case {
            name: place.name("cluster", name),
            before: Some(manifest(count - 1)),
            manifest: manifest(count),
            verdict: Verdict::Taken,
            reading: None,
        }
    };
    [case("most-subnets", 400, short), case("most-compared", 150, long)]
}

impl Place {
    fn resources(self) -> &'static [&'static str] {
        match self {
            Self::Block("Localnet") | Self::Network | Self::Cluster => &["cluster"],
            Self::Block(_) => &["cluster", "namespaced"],
            Self::Namespaced => &["namespaced"],
        }
    }

    fn name(self, resource: &str, name: &str) -> String {
        let place = match self {
            Self::Block(topology) => topology.to_lowercase(),
            Self::Network => "network".to_owned(),
            Self::Cluster | Self::Namespaced => "spec".to_owned(),
        };
        format!("{resource}-{place}-{name}")
    }

    fn manifest(self, resource: &str, name: &str, fields: &Value) -> Value {
        let network = match self {
            Self::Block(topology) => json!({ "topology": topology, topology.to_lowercase(): fields }),
            _ => fields.clone(),
        };
        let spec = match self {
            Self::Block(_) | Self::Network if resource == "cluster" => {
                json!({ "namespaceSelector": {}, "network": network })
            }
            _ => network,
        };
        let (kind, namespace) = match resource {
            "cluster" => ("ClusterUserDefinedNetwork", Value::Null),
            _ => ("UserDefinedNetwork", json!("default")),
        };
        let metadata =
            with(&json!({ "name": self.name(resource, name) }), &json!({ "namespace": namespace }));
        json!({ "apiVersion": "k8s.ovn.org/v1", "kind": kind, "metadata": metadata, "spec": spec })
    }
}

/// Our own reading of a manifest.
pub fn reading(manifest: &Value) -> Result<Network, FieldError> {
    if manifest["kind"] == "ClusterUserDefinedNetwork" {
        serde_json::from_value::<ClusterUserDefinedNetwork>(manifest.clone()).unwrap().spec.network()
    } else {
        serde_json::from_value::<UserDefinedNetwork>(manifest.clone()).unwrap().spec.network()
    }
}

#[test]
fn are_read_as_they_are_judged() {
    for case in cases() {
        let read = reading(&case.manifest);
        let Case { name, before, verdict, reading, .. } = case;
        match (verdict, reading) {
            (Verdict::Taken, Some(says)) => {
                let error = read.expect_err(&name).to_string();
                assert!(error.contains(&says), "{name}: {error}");
            }
            (Verdict::Taken, None) => drop(read.expect(&name)),
            // What is there before is not ours to know: as such the network is in order.
            (Verdict::Rules(_), None) if before.is_some() => drop(read.expect(&name)),
            (Verdict::Rules(messages), None) => {
                let error = read.expect_err(&name);
                let told = messages.contains(&error.reason) || messages[0].starts_with("RT ");
                assert!(told, "{name}: {error}, not {messages:?}");
                assert!(error.field.starts_with("spec"), "{name}: {error}");
            }
            // The schema also counts elements, which hurts nobody here.
            (Verdict::Schema(_), None) => {}
            (_, Some(_)) => panic!("{name}: refused before it is read"),
        }
    }
}
