//! `EgressIP`: the address under which pods are seen outside the cluster.
#![expect(clippy::duplicated_attributes, reason = "several columns of one type")]

use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{is_default, schema};

/// Label of the nodes that may hold egress IPs; its value means nothing.
pub const ASSIGNABLE_LABEL: &str = "k8s.ovn.org/egress-assignable";

/// The addresses, and the pods that are seen under them.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "k8s.ovn.org",
    version = "v1",
    kind = "EgressIP",
    plural = "egressips",
    singular = "egressip",
    shortname = "eip",
    status = "EgressIPStatus",
    derive = "Default",
    derive = "PartialEq",
    // Elsewhere it can be stored without a spec, and is then read with an empty one; here it cannot.
    attr = "cfg_attr(all(), serde(default), schemars(extend(\"required\" = [\"spec\"])))",
    doc = "Gives pods an address of their own to the world outside, wherever they run.",
    printcolumn(
        name = "EgressIPs",
        type_ = "string",
        json_path = ".spec.egressIPs[*]",
        description = "The addresses that are asked for."
    ),
    printcolumn(
        name = "Assigned Node",
        type_ = "string",
        json_path = ".status.items[*].node",
        description = "The nodes that hold them."
    ),
    printcolumn(
        name = "Assigned EgressIPs",
        type_ = "string",
        json_path = ".status.items[*].egressIP",
        description = "The addresses that are in use."
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["egressIPs", "namespaceSelector"]))]
pub struct EgressIPSpec {
    /// The addresses, IPv4 and IPv6, without a prefix length. Each is held by one node with the label
    /// `k8s.ovn.org/egress-assignable`; those of one EgressIP and family by different nodes, among which the connections
    /// of a pod are spread.
    ///
    /// A node can hold an address of its primary interface's network. An address outside the networks of all nodes can
    /// be held by any of them if a RouteAdvertisements advertises `EgressIP`: then BGP leads to it.
    #[serde(rename = "egressIPs", default)]
    #[schemars(length(min = 1, max = 100), inner(length(max = 45)))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(a, isIP(a) && ip(a).isGlobalUnicast())").message(
            "egressIPs must be addresses that packets can come from, such as 192.0.2.1 or 2001:db8::1, without a \
            prefix length"
        ),
        validation = Rule::new(
            "self.all(a, !isIP(a) || self.exists_one(b, isIP(b) && ip(b) == ip(a)))"
        ).message("egressIPs must be different from each other"),
    )]
    pub egress_ips: Vec<String>,

    /// Labels of the namespaces whose pods are seen under these addresses. An empty selector is all of them.
    #[serde(default)]
    #[schemars(schema_with = "schema::label_selector")]
    pub namespace_selector: LabelSelector,

    /// Labels of the pods in those namespaces. Leave it out for all of them.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "schema::label_selector")]
    pub pod_selector: LabelSelector,
}

/// Which node holds which address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["items"]))]
pub struct EgressIPStatus {
    /// The addresses that are in use. One that is missing here could not be given to any node; events say why.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Vec<EgressIPItem>,
}

/// An address and the node that holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["egressIP", "node"]))]
pub struct EgressIPItem {
    /// The node.
    pub node: String,
    /// The address.
    #[serde(rename = "egressIP")]
    pub egress_ip: String,
}

/// Reads an address as the rules above do. Two spellings of one address are the same.
pub fn address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|_| {
        "it is no address; write one such as 192.0.2.1 or 2001:db8::1, without a prefix length".to_owned()
    })?;
    let odd = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.to_ipv4_mapped().is_some(),
    };
    if odd || address.is_unspecified() || address.is_loopback() || address.is_multicast() {
        return Err("no packet can come from it; use an address of the network outside".to_owned());
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_packets_can_come_from_are_read() {
        for good in ["192.0.2.1", "10.0.0.7", "2001:db8::1", "2001:DB8:0:0:0:0:0:1"] {
            assert!(address(good).is_ok(), "{good}");
        }
        assert_eq!(address("2001:DB8:0::1"), address("2001:db8::1"));
        for bad in [
            "",
            "web",
            "192.0.2.1/24",
            "192.0.2.256",
            "010.0.0.1",
            "0.0.0.0",
            "127.0.0.1",
            "224.0.0.1",
            "169.254.1.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "::ffff:192.0.2.1",
            "fe80::1%eth0",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
