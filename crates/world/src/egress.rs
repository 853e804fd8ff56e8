//! An egress IP as we see it: the addresses that are asked for, whom they are for, and who holds them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use underlay_api::EgressIP;
use underlay_api::egress_ip::{EgressIPItem, address};

use crate::kind::key_of;
use crate::{Key, Version, World};

/// An `EgressIP`.
#[derive(Debug, Clone, PartialEq)]
pub struct EgressIp {
    /// Its name.
    pub key: Key,
    /// Its identity: another one of the same name has another one.
    pub uid: String,
    /// Which writing of it this is.
    pub version: Version,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// What is asked for, in the order of the list: addresses, and texts that are none with the reason.
    pub wanted: Vec<Result<IpAddr, (String, String)>>,
    /// The namespaces it is for, or why they cannot be told.
    pub namespaces: Result<Selector, String>,
    /// The pods in them, or why they cannot be told.
    pub pods: Result<Selector, String>,
    /// Who holds what, as it is recorded.
    pub items: Vec<Item>,
    /// Whether the record has anything that cannot be read. It is written anew then.
    pub damaged: bool,
}

/// An address and the node that holds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Item {
    /// The node.
    pub node: String,
    /// The address.
    pub address: IpAddr,
}

impl EgressIp {
    /// Reads an `EgressIP`.
    pub fn read(object: EgressIP) -> Self {
        let recorded = object.status.as_ref().map_or(&[][..], |status| &status.items);
        let items: Vec<Item> = recorded.iter().filter_map(item).collect();
        Self {
            key: key_of(&object.metadata),
            uid: object.uid().unwrap_or_default(),
            version: Version::of(&object),
            created: object.metadata.creation_timestamp.as_ref().map(|time| time.0),
            damaged: items.len() != recorded.len(),
            items,
            wanted: object
                .spec
                .egress_ips
                .into_iter()
                .map(|text| address(&text).map_err(|why| (text, why)))
                .collect(),
            namespaces: selector(object.spec.namespace_selector),
            pods: selector(object.spec.pod_selector),
        }
    }

    /// Whether a namespace with these labels is meant. A selector that makes no sense means none.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.namespaces.as_ref().is_ok_and(|selector| selector.matches(labels))
    }

    /// Whether a pod with these labels is meant, if its namespace is.
    pub fn selects_pod(&self, labels: &BTreeMap<String, String>) -> bool {
        self.pods.as_ref().is_ok_and(|selector| selector.matches(labels))
    }

    /// The namespaces it is for, by name.
    pub fn namespaces<'a>(&'a self, world: &'a World) -> impl Iterator<Item = &'a str> {
        let all = world.namespaces.iter();
        all.filter(|(_, namespace)| self.selects(&namespace.labels)).map(|(key, _)| key.name.as_str())
    }

    /// The addresses that are asked for.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.wanted.iter().filter_map(|wanted| wanted.as_ref().ok().copied())
    }

    /// Whether a node holds one of its addresses.
    pub fn is_held_by(&self, node: &str) -> bool {
        self.items.iter().any(|item| item.node == node)
    }

    /// The order in which two that want the same are served: the older first.
    pub fn rank(&self) -> (Option<Timestamp>, &str) {
        (self.created, &self.key.name)
    }
}

fn item(EgressIPItem { node, egress_ip }: &EgressIPItem) -> Option<Item> {
    let address = egress_ip.parse().ok().filter(|_| !node.is_empty())?;
    Some(Item { node: node.clone(), address })
}

fn selector(selector: LabelSelector) -> Result<Selector, String> {
    Selector::try_from(selector).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_understood_stays_with_its_reason() {
        let read = EgressIp::read(
            serde_json::from_value(json!({
                "metadata": { "name": "shop" },
                "spec": {
                    "egressIPs": ["192.0.2.7", "web"],
                    "namespaceSelector": { "matchLabels": { "team": "shop" } },
                    "podSelector": { "matchExpressions": [{ "key": "app", "operator": "Near" }] },
                },
                "status": { "items": [{ "node": "one", "egressIP": "192.0.2.7" }, { "node": "two", "egressIP": "x" }] },
            }))
            .unwrap(),
        );
        let labels = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        assert!(read.selects(&labels("team", "shop")) && !read.selects(&labels("team", "bank")));
        assert!(!read.selects_pod(&labels("app", "web")), "nobody knows who is meant");
        assert_eq!(read.addresses().collect::<Vec<_>>(), ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        assert_eq!(read.wanted[1].as_ref().unwrap_err().0, "web");
        assert!(read.is_held_by("one") && !read.is_held_by("two") && read.damaged);
    }
}
