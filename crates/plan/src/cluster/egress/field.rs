//! The nodes that can hold egress IPs.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_api::egress_ip::ASSIGNABLE_LABEL;
use underlay_world::{Node, World};

use crate::cluster::verdict::{listed, nodes};

/// The nodes as far as egress IPs are concerned.
pub struct Field<'a> {
    /// Those that can hold addresses now.
    usable: Vec<&'a Node>,
    /// Those that are meant to.
    labelled: Vec<&'a Node>,
    /// Networks of all nodes' primary interfaces.
    networks: BTreeSet<IpNet>,
}

impl<'a> Field<'a> {
    /// Looks at all nodes. Where none of them answers it is more likely that nobody hears us than that all are dead: then
    /// it does not count.
    pub fn survey(world: &'a World) -> Self {
        let all = || world.nodes.values().map(AsRef::as_ref);
        let labelled: Vec<&Node> = all().filter(|node| node.labels.contains_key(ASSIGNABLE_LABEL)).collect();
        let mut usable: Vec<&Node> = labelled.iter().copied().filter(|node| node.ready).collect();
        if usable.iter().any(|node| !world.unreachable.contains(&node.name)) {
            usable.retain(|node| !world.unreachable.contains(&node.name));
        }
        let networks = all().flat_map(primary).map(|net| net.trunc()).collect();
        Self { usable, labelled, networks }
    }

    /// Nodes that can hold an address, where this tells which of them advertise it.
    pub fn candidates(&self, address: IpAddr, advertised: impl Fn(&Node) -> bool) -> BTreeSet<&'a str> {
        let inside = self.inside(address);
        let can = |node: &&&'a Node| {
            if inside {
                primary(node).any(|net| net.contains(&address))
            } else {
                primary(node).any(|net| net.addr().is_ipv4() == address.is_ipv4()) && advertised(node)
            }
        };
        self.usable.iter().filter(can).map(|node| node.name.as_str()).collect()
    }

    /// Whether any node's network has an address.
    fn inside(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|net| net.contains(&address))
    }

    /// Why no node holds an address, though some could.
    pub fn why_not(&self, address: IpAddr, could: bool, world: &World) -> String {
        let names = |nodes: &[&Node]| nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
        if self.labelled.is_empty() {
            format!("no node has the label {ASSIGNABLE_LABEL}; label some")
        } else if self.usable.is_empty() {
            format!("{} with the label {ASSIGNABLE_LABEL} are not ready", nodes(&names(&self.labelled)))
        } else if could {
            "every node that could hold it holds another address of this EgressIP and family; label more nodes"
                .to_owned()
        } else if self.inside(address) {
            let silent: Vec<String> = world.unreachable.iter().cloned().collect();
            let silent =
                if silent.is_empty() { String::new() } else { format!("; {} do not answer", nodes(&silent)) };
            format!("it is in the network of none of {}{silent}", nodes(&names(&self.usable)))
        } else {
            let networks: Vec<String> = self.networks.iter().map(ToString::to_string).collect();
            format!(
                "it is in no node's network ({}), and no RouteAdvertisements advertises EgressIP for the networks of \
                 its namespaces from {}",
                listed(&networks),
                nodes(&names(&self.usable))
            )
        }
    }
}

/// Addresses of a node's primary interface, with their networks.
fn primary(node: &Node) -> impl Iterator<Item = IpNet> {
    node.primary.0.nets()
}
