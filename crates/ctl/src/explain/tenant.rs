//! A pod, an address or a node's subnet in a network of a tenant's, and such a network as a whole.

use std::net::IpAddr;

use ipnet::IpNet;
use underlay_api::network::{Network, NoOverlay, Transport};
use underlay_net::NetworkNames;
use underlay_net::names::attached_pod_port;
use underlay_runtime::report::AgentReport;
use underlay_world::{Definition, Nad};

use super::advertised::{Part, address_of};
use super::chain::{Chain, Link, agent, edges};
use super::{inside, routed};
use crate::cluster::facts::{Facts, PodFacts};
use crate::cluster::networks::{State, network_name, title};
use crate::names::{count, short, some_of};

const NETWORK: &str = "Network";

/// Whether a network of a tenant's carries, or is to carry, the traffic of a pod.
pub fn is_tenants(facts: &Facts, pod: &PodFacts) -> bool {
    pod.locked()
        || pod.own().is_some()
        || (pod.recorded().is_empty() && facts.is_tenant(&pod.pod.key.namespace))
}

/// Says of a pod of the default network that it will be in another one when it is made again.
pub fn earlier(facts: &Facts, pod: &PodFacts) -> Option<Link> {
    let namespace = &pod.pod.key.namespace;
    let attachment = facts.primary(namespace)?;
    let detail = format!("it was there before {} came to namespace {namespace}", attachment.key.name);
    Some(
        Link::note(NETWORK, detail)
            .advise("it stays in the default network; made again, it is in the other one"),
    )
}

/// Explains a pod on its network.
pub fn pod(facts: &Facts, pod: &PodFacts) -> Chain {
    let (key, node) = (&pod.pod.key, &pod.pod.node);
    let attachment = match pod.own() {
        Some((name, _)) => facts.attachments.iter().find(|nad| nad.key.to_string() == name),
        None => facts.primary(&key.namespace),
    };
    let network = attachment.and_then(network_name);
    let mut links = vec![
        inside::object(pod),
        of_namespace(facts, &key.namespace, attachment),
        inside::placed(facts, node),
    ];
    if let Some(network) = network {
        links.push(part(facts, node, network));
    }
    links.push(agent(facts, node));
    links.extend(network.and_then(|network| carried(facts, node, network)));
    links.extend(addresses(facts, pod, network));
    links.push(port(facts, pod, attachment));
    let definition = attachment.and_then(|nad| facts.definition(nad));
    let leaves = outwards(facts, node, definition, &mut links);
    let own = pod.own().map(|(_, part)| texts(part.addresses.iter().map(IpNet::addr))).unwrap_or_default();
    let who = reached_by(facts, attachment);
    Chain::new(format!("pod {key}"), links, format!("{who} reach it at {own}; {leaves}"))
}

/// Explains a prefix in a network that is no pod's.
pub fn subnet(facts: &Facts, definition: &Definition, prefix: IpNet) -> Chain {
    let network = definition.network_name();
    let inside = |node: &&String| {
        let node = &facts.nodes[*node].node;
        node.subnets_in(&network).iter().any(|subnet| subnet.contains(&prefix))
    };
    let mut links = vec![state(facts, definition)];
    if prefix.prefix_len() == prefix.max_prefix_len() {
        links.insert(
            0,
            Link::note("Pod", format!("no pod of this network has the address {}", prefix.addr())),
        );
    }
    let subject = format!("{}, in network {}", short(prefix), title(definition));
    let Some(node) = facts.nodes.keys().find(inside) else {
        return Chain::new(subject, links, "no node has it in its part of the network");
    };
    links.push(part(facts, node, &network));
    links.push(agent(facts, node));
    links.extend(carried(facts, node, &network));
    Chain::new(subject, links, format!("pods of this network on node {node} get their addresses there"))
}

/// Explains a network as a whole.
pub fn network(facts: &Facts, definition: &Definition) -> Chain {
    let name = definition.network_name();
    let mut links = vec![state(facts, definition)];
    links.push(match definition.id {
        Some(id) => Link::good("Number", format!("{}; nodes call it {name}", id.0)),
        None => Link::unknown("Number", "it has none yet"),
    });
    let attachments: Vec<String> = facts.attachments_of(definition).map(|nad| nad.key.to_string()).collect();
    links.push(if attachments.is_empty() {
        Link::note("Attachments", "no namespace has it")
    } else {
        Link::good("Attachments", some_of(&attachments))
    });
    for namespace in facts.unlabelled(definition) {
        let detail = format!("namespace {namespace} is selected and lacks the label for a primary network");
        links.push(Link::note("Namespace", detail));
    }
    let parts = facts.nodes.iter().map(|(node, facts)| (node, facts.node.subnets_in(&name)));
    let parts: Vec<String> = parts
        .filter(|(_, subnets)| !subnets.is_empty())
        .map(|(node, subnets)| format!("{node} {}", nets(subnets)))
        .collect();
    if !parts.is_empty() {
        links.push(Link::good("Subnets", some_of(&parts)));
    }
    links.extend(on_nodes(facts, definition));
    links.extend(routed::links(facts, definition));
    let carried = facts.carried(definition);
    let pods: usize = carried.values().flatten().map(|told| told.pods).sum();
    let conclusion = format!("it has {} in {}", count(pods, "pod"), count(attachments.len(), "namespace"));
    Chain::new(format!("network {}", title(definition)), links, conclusion)
}

/// Who carries a network, and who waits for what.
fn on_nodes(facts: &Facts, definition: &Definition) -> Vec<Link> {
    const WHAT: &str = "Nodes";
    let told = facts.carried(definition);
    if told.is_empty() {
        return vec![Link::unknown(WHAT, "no agent could tell")];
    }
    let ready = told.iter().filter(|(_, told)| told.is_some_and(|told| told.waiting.is_none()));
    let ready: Vec<String> = ready.map(|(node, _)| (*node).to_owned()).collect();
    let mut links = vec![];
    if !ready.is_empty() {
        links.push(Link::good(WHAT, format!("{} carry it", some_of(&ready))));
    }
    if let State::Waiting(nodes) = facts.state(definition) {
        for (node, what) in nodes {
            let hint = "ask again in a second; if it stays so, bring what it waits for";
            links.push(Link::broken(WHAT, format!("{node} waits for {what}"), hint));
        }
    }
    links
}

/// The network of a namespace.
fn of_namespace(facts: &Facts, namespace: &str, attachment: Option<&Nad>) -> Link {
    let Some(attachment) = attachment else {
        let detail = format!("namespace {namespace} is labelled for a network of its own and has none");
        let hint = "create a UserDefinedNetwork in it, or a ClusterUserDefinedNetwork that selects it";
        return Link::broken(NETWORK, detail, hint);
    };
    let made = format!("NetworkAttachmentDefinition {}", attachment.key);
    match facts.definition(attachment) {
        None => Link::good(NETWORK, format!("{} of {made}", network_name(attachment).unwrap_or_default())),
        Some(definition) => {
            let mut link = state(facts, definition);
            link.detail = format!("{}; {made}", link.detail);
            link
        }
    }
}

/// What is said of a network.
fn state(facts: &Facts, definition: &Definition) -> Link {
    let name = title(definition);
    match facts.state(definition) {
        // Who waits is told of the node in question.
        State::Ready | State::Waiting(_) | State::Unused => {
            let subnets =
                definition.network.as_ref().map(|network| nets(&network.subnets())).unwrap_or_default();
            Link::good(NETWORK, format!("{name}, {subnets}"))
        }
        State::Leaving => Link::note(NETWORK, format!("{name} is deleted and goes once no pod uses it")),
        State::Unseen => {
            let hint = "underlay-cluster does that: is it running?";
            Link::broken(NETWORK, format!("{name} was not looked at yet"), hint)
        }
        State::Refused(_, message) => {
            let hint = "correct it; until then, what was made of it before stays";
            Link::broken(NETWORK, format!("{name} is refused: {message}"), hint)
        }
        State::Short(_, message) => {
            Link::note(NETWORK, format!("{name}: {message}")).advise("add a subnet to the network")
        }
        State::NotCarried(_, message) => Link::broken(
            NETWORK,
            format!("{name}: {message}"),
            "change it to what nodes carry, or do without",
        ),
    }
}

/// Whether a node has its part of a network.
fn part(facts: &Facts, node: &str, network: &str) -> Link {
    const WHAT: &str = "Subnet";
    let subnets = facts.nodes.get(node).map_or(&[][..], |facts| facts.node.subnets_in(network));
    if subnets.is_empty() {
        let hint = "underlay-cluster gives it: is it running, and has the network a subnet left?";
        return Link::broken(WHAT, format!("node {node} has no subnet of {network} yet"), hint);
    }
    Link::good(WHAT, format!("{} of {network} on {node}", nets(subnets)))
}

/// Whether a node carries a network, where its agent tells.
fn carried(facts: &Facts, node: &str, network: &str) -> Option<Link> {
    const WHAT: &str = "Carried";
    let plan = facts.report(node)?.plan.as_ref()?;
    let hint = "ask again in a second; if it stays so, bring what it waits for";
    Some(match plan.networks.get(network).map(|told| &told.waiting) {
        Some(None) => Link::good(WHAT, format!("{node} carries {network}")),
        Some(Some(what)) => Link::broken(WHAT, format!("{network} waits on {node} for {what}"), hint),
        None => Link::broken(WHAT, format!("the agent of {node} has not heard of {network}"), hint),
    })
}

/// Whether a pod has addresses on its network, and for what the others are.
fn addresses(facts: &Facts, pod: &PodFacts, network: Option<&str>) -> Vec<Link> {
    const WHAT: &str = "Addresses";
    let node = &pod.pod.node;
    let told = facts.report(node).and_then(|report| report.pod.as_ref());
    let mut links = vec![];
    if let Some(problem) = told.and_then(|told| told.problem.as_ref()) {
        let hint = "correct the network, free addresses on the node, or let the pod be scheduled elsewhere";
        links.push(Link::broken(WHAT, problem, hint));
    } else if let Some(what) = told.and_then(|told| told.waiting.as_ref()) {
        links.push(Link::broken(
            WHAT,
            format!("it waits for {what}"),
            "bring that; the pod starts by itself then",
        ));
    } else {
        links.push(match pod.own() {
            None => {
                let hint = format!("the agent of {node} records them; its log tells more");
                Link::broken(WHAT, "none is recorded yet", hint)
            }
            Some((_, part)) => {
                recorded(facts, node, network.unwrap_or_default(), part.addresses.iter().map(IpNet::addr))
            }
        });
    }
    if !pod.recorded().is_empty() {
        let detail = format!("{}, for probes of its node only", texts(pod.recorded().into_iter()));
        links.push(Link::note("Default network", detail));
    }
    links
}

fn recorded(
    facts: &Facts,
    node: &str,
    network: &str,
    addresses: impl Iterator<Item = IpAddr> + Clone,
) -> Link {
    const WHAT: &str = "Addresses";
    let subnets = facts.nodes.get(node).map_or(&[][..], |facts| facts.node.subnets_in(network));
    let strange = addresses.clone().find(|address| !subnets.iter().any(|net| net.contains(address)));
    match strange {
        Some(strange) => {
            let detail = format!("{strange} is recorded, which is in no subnet of {network} on {node}");
            Link::broken(WHAT, detail, "delete the pod: its successor is given an address of the node")
        }
        None => Link::good(WHAT, format!("{} on {network}, recorded", texts(addresses))),
    }
}

/// Whether OVN has a port for it.
fn port(facts: &Facts, pod: &PodFacts, attachment: Option<&Nad>) -> Link {
    let key = &pod.pod.key;
    let name = attachment.map(|nad| attached_pod_port(&nad.key.to_string(), &key.namespace, &key.name));
    let network = attachment.and_then(network_name).unwrap_or_default();
    let switch = NetworkNames::of(network).node_switch(&pod.pod.node);
    inside::port(facts, pod, &name.unwrap_or_default(), &switch)
}

/// The way from a node's pods of a network to the world and back. Returns what follows if all of it holds.
fn outwards(facts: &Facts, node: &str, definition: Option<&Definition>, links: &mut Vec<Link>) -> String {
    links.push(match facts.report(node) {
        None => Link::unknown("Kernel", "only the agent can tell"),
        Some(report) => {
            edges("Kernel", report, &["host", "filter"], "routes, rules and packet filter are as planned")
        }
    });
    let Some(definition) = definition else {
        return format!("it leaves with the address of {}", address_of(facts, node));
    };
    let part = Part::of_tenant(facts, node, definition);
    let conclusion = part.judge(links);
    let name = definition.network_name();
    let advertised = |report: &AgentReport| Some(report.plan.as_ref()?.networks.get(&name)?.advertised);
    let sends_own = !definition.network.as_ref().is_ok_and(snats);
    links.push(inside::bridge(facts, node, part.is_generated(), advertised, sends_own));
    conclusion
}

/// Whether pods of a network show their node's address to the world although it is advertised.
fn snats(network: &Network) -> bool {
    matches!(network.transport, Transport::NoOverlay(NoOverlay { outbound_snat: true, .. }))
}

/// Whose pods share a network.
fn reached_by(facts: &Facts, attachment: Option<&Nad>) -> String {
    let Some(definition) = attachment.and_then(|nad| facts.definition(nad)) else {
        return "pods of its network".to_owned();
    };
    let namespaces: Vec<String> =
        facts.attachments_of(definition).map(|nad| nad.key.namespace.clone()).collect();
    format!("pods of {}", some_of(&namespaces))
}

fn nets(nets: &[IpNet]) -> String {
    nets.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn texts(addresses: impl Iterator<Item = IpAddr>) -> String {
    addresses.map(|address| address.to_string()).collect::<Vec<_>>().join(", ")
}
