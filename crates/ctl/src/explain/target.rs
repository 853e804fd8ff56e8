//! What is meant by the word that is to be explained.

use std::net::IpAddr;

use anyhow::{Result, bail};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use underlay_net::cidr::host;
use underlay_world::Definition;

use crate::cluster::facts::{Facts, PodFacts};
use crate::cluster::networks::title;

/// What a user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A pod: namespace, if one was given, and name.
    Pod(Option<String>, String),
    /// A prefix, or an address as the prefix that is as long as can be.
    Prefix(IpNet),
    /// A network: `cudn/NAME` or `udn/NAMESPACE/NAME`.
    Network(String),
}

impl Target {
    /// Reads a word.
    pub fn parse(text: &str) -> Result<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Prefix(host(address)));
        }
        if let Ok(prefix) = text.parse::<IpNet>() {
            return Ok(Self::Prefix(prefix.trunc()));
        }
        if text.starts_with("cudn/") || text.starts_with("udn/") {
            return Ok(Self::Network(text.to_owned()));
        }
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        };
        // Names of namespaces have no dots, addresses have.
        let fits = namespace.is_none_or(|namespace| is_name(namespace) && !namespace.contains('.'));
        if !fits || !is_name(name) {
            bail!(
                "{text:?} is neither a pod nor an address: write NAMESPACE/NAME, NAME, an address like 10.244.1.5, a \
                 prefix like 10.244.1.0/24, or a network like cudn/NAME"
            );
        }
        Ok(Self::Pod(namespace.map(str::to_owned), name.to_owned()))
    }
}

/// Where a prefix is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a node's subnet of pods.
    Inside(String),
    /// It is wider than nodes' subnets.
    Across(Vec<String>),
    /// A node's own address.
    Node(String),
    /// In networks of tenants, by their titles. They may have the same addresses.
    Networks(Vec<String>),
    /// Somewhere else.
    Outside,
}

/// Finds out where a prefix is.
pub fn place(facts: &Facts, prefix: IpNet) -> Place {
    let names = || facts.nodes.keys();
    let inside = |node: &&String| facts.subnets(node).iter().any(|subnet| subnet.contains(&prefix));
    if let Some(node) = names().find(inside) {
        return Place::Inside(node.clone());
    }
    // Everything is in a default route, and that is not what who asks for it means.
    let across = |node: &&String| {
        prefix.prefix_len() > 0 && facts.subnets(node).iter().any(|subnet| prefix.contains(subnet))
    };
    let nodes: Vec<String> = names().filter(across).cloned().collect();
    if !nodes.is_empty() {
        return Place::Across(nodes);
    }
    let own = facts.nodes.iter().find(|(_, facts)| {
        let node = &facts.node;
        let mut recorded = node.host_cidrs.0.iter().map(IpNet::addr);
        recorded.any(|address| host(address) == prefix)
            || node.addresses.iter().any(|address| host(*address) == prefix)
    });
    if let Some((name, _)) = own {
        return Place::Node(name.clone());
    }
    let has = |definition: &&Definition| {
        let network = definition.network.as_ref().ok();
        network.is_some_and(|network| network.subnets().iter().any(|subnet| subnet.contains(&prefix)))
    };
    let networks: Vec<String> = facts.networks.iter().filter(has).map(title).collect();
    if networks.is_empty() { Place::Outside } else { Place::Networks(networks) }
}

/// Pods that have an address in these networks, each with the title of its network.
pub fn owners<'a>(
    facts: &Facts,
    pods: &'a [PodFacts],
    prefix: IpNet,
    titles: &[String],
) -> Vec<(String, &'a PodFacts)> {
    let owner = |pod: &'a PodFacts| {
        let (attachment, part) = pod.own().filter(|_| pod.pod.needs_port())?;
        let has = part.addresses.iter().any(|net| host(net.addr()) == prefix);
        let nad = facts.attachments.iter().find(|nad| nad.key.to_string() == attachment).filter(|_| has)?;
        let title = title(facts.definition(nad)?);
        titles.contains(&title).then_some((title, pod))
    };
    pods.iter().filter_map(owner).collect()
}

/// The Service that has an address.
pub fn service(services: &[Service], prefix: IpNet) -> Option<String> {
    let has = |service: &&Service| {
        let addresses = service.spec.iter().flat_map(|spec| spec.cluster_ips.iter().flatten());
        addresses.filter_map(|text| text.parse().ok()).any(|address| host(address) == prefix)
    };
    let service = services.iter().find(has)?;
    Some(format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_pods_addresses_and_prefixes() {
        let prefix = |text: &str| Target::Prefix(text.parse().unwrap());
        let pod =
            |namespace: Option<&str>, name: &str| Target::Pod(namespace.map(str::to_owned), name.to_owned());
        for (text, want) in [
            ("web", pod(None, "web")),
            ("web-7d.x1", pod(None, "web-7d.x1")),
            ("shop/web", pod(Some("shop"), "web")),
            ("10.244.1.5", prefix("10.244.1.5/32")),
            ("fd00::5", prefix("fd00::5/128")),
            ("10.244.1.5/24", prefix("10.244.1.0/24")),
            ("0.0.0.0/0", prefix("0.0.0.0/0")),
            ("cudn/blue", Target::Network("cudn/blue".to_owned())),
            ("udn/sea/blue", Target::Network("udn/sea/blue".to_owned())),
        ] {
            assert_eq!(Target::parse(text).expect(text), want);
        }
    }

    #[test]
    fn other_words_are_refused_with_what_to_write() {
        for text in ["", "10.244.1.0/33", "a/b/c", "/web", "shop/", "we b", "fd00::/129", "fd00::zz"] {
            let error = Target::parse(text).expect_err(text).to_string();
            assert!(error.contains("NAMESPACE/NAME") && error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
