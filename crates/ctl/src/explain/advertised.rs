//! From a RouteAdvertisements to the peers that heard of a node's pods.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use kube::ResourceExt;
use underlay_api::annotations::GeneratedFrom;
use underlay_api::conditions;
use underlay_api::frr::{AllowMode, Neighbor, SUCCESS};
use underlay_api::route_advertisements::ACCEPTED;
use underlay_api::{FRRConfiguration, RouteAdvertisements};
use underlay_runtime::report::AgentReport;
use underlay_world::{Definition, Scope};

use super::chain::{Link, Verdict};
use crate::cluster::facts::{Agent, ESTABLISHED, Facts, same_peer};
use crate::cluster::networks::title;
use crate::names::some_of;

/// What to do when nothing happens to an advertisement.
const MANAGER: &str = "underlay-cluster does that: ask again in a second; if it stays so, is it running?";

/// A peer of a node: VRF, and address or interface.
type Peer = (String, String);

/// A node's part of a network, and who asks for it to be advertised.
#[derive(Debug)]
pub struct Part<'a> {
    facts: &'a Facts,
    node: &'a str,
    /// Advertisements that ask for the network's pods.
    wanted: Vec<&'a RouteAdvertisements>,
    /// The node's subnets of it.
    subnets: &'a [IpNet],
    /// What is said of a network that nobody asks for, and what to do about it.
    unasked: (String, String),
    /// The network, by the name that nodes use; nothing for the default one.
    network: Option<String>,
}

impl<'a> Part<'a> {
    /// Of the default network.
    pub fn of_default(facts: &'a Facts, node: &'a str) -> Self {
        let unasked = "no RouteAdvertisements asks for the default network's pods";
        let hint =
            "to be reached from outside, create one with networkSelectionType DefaultNetwork and PodNetwork";
        Self {
            facts,
            node,
            wanted: facts.of_default_network().collect(),
            subnets: facts.subnets(node),
            unasked: (unasked.to_owned(), hint.to_owned()),
            network: None,
        }
    }

    /// Of a tenant's network.
    pub fn of_tenant(facts: &'a Facts, node: &'a str, definition: &'a Definition) -> Self {
        let hint = match definition.scope() {
            Scope::Cluster => {
                "to be reached from outside, create one with PodNetwork that selects the network by its labels"
            }
            Scope::Namespace => "only networks of ClusterUserDefinedNetworks can be advertised",
        };
        let network = definition.network_name();
        Self {
            facts,
            node,
            wanted: facts.advertisers(definition).collect(),
            subnets: facts.nodes.get(node).map_or(&[], |facts| facts.node.subnets_in(&network)),
            unasked: (format!("no RouteAdvertisements asks for {}", title(definition)), hint.to_owned()),
            network: Some(network),
        }
    }

    /// Adds a link for each step, and returns what follows if all of them hold.
    pub fn judge(&self, links: &mut Vec<Link>) -> String {
        let (facts, node) = (self.facts, self.node);
        links.push(self.asked());
        if self.wanted.is_empty() {
            return format!(
                "it is not advertised: it leaves with the address of {}",
                address_of(facts, node)
            );
        }
        links.push(self.configured());
        let peers = self.peers();
        if peers.is_empty() {
            return "nobody is told of it".to_owned();
        }
        let mut speaker = vec![taken(facts, node)];
        let up = sessions(facts, node, &peers, &mut speaker);
        if !up.is_empty() {
            speaker.push(self.heard(&peers, &up));
        }
        // Where the peers heard it all, what FRR could not take concerns something else.
        if speaker[1..].iter().all(|link| link.verdict == Verdict::Good)
            && speaker[0].verdict == Verdict::Broken
        {
            speaker[0].verdict = Verdict::Note;
        }
        links.extend(speaker);
        let names: Vec<String> = peers.keys().map(|(_, peer)| peer.clone()).collect();
        format!("it is advertised by {node} to {} and reached at its own addresses", some_of(&names))
    }

    /// Whether somebody asks for it, and may.
    pub fn asked(&self) -> Link {
        if self.wanted.is_empty() {
            return Link::note("Advertisement", &self.unasked.0).advise(&self.unasked.1);
        }
        accepted(&self.wanted)
    }

    /// Whether a configuration was generated that tells of the node's subnets.
    pub fn is_generated(&self) -> bool {
        self.generated().any(|(object, _)| self.subnets.iter().any(|subnet| has(object, subnet)))
    }

    /// Configurations that were generated for the node. Of the default network's, advertisements may be gone already.
    fn generated(&self) -> impl Iterator<Item = (&'a FRRConfiguration, GeneratedFrom)> {
        let asked = |origin: &GeneratedFrom| {
            self.network.is_none() || self.wanted.iter().any(|one| one.name_any() == origin.advertisements)
        };
        self.facts.generated(self.node).filter(move |(_, origin)| asked(origin))
    }

    /// Whether a configuration tells of the node's subnets.
    fn configured(&self) -> Link {
        const WHAT: &str = "FRRConfiguration";
        let node = self.node;
        let generated: Vec<&FRRConfiguration> = self.generated().map(|(object, _)| object).collect();
        if generated.is_empty() {
            return self.missing();
        }
        let lacking = |subnet: &&IpNet| !generated.iter().any(|object| has(object, subnet));
        if let Some(subnet) = self.subnets.iter().find(lacking) {
            let hint =
                "has it a neighbour that speaks this address family? else underlay-cluster's log tells more";
            return Link::broken(WHAT, format!("none that was generated for {node} has {subnet}"), hint);
        }
        let names: Vec<String> = generated.iter().map(|object| key(object)).collect();
        let from: Vec<String> = self.generated().map(|(_, origin)| origin.source).collect();
        Link::good(WHAT, format!("{} from {}", some_of(&names), some_of(&from)))
    }

    /// Why nothing was generated for a node.
    fn missing(&self) -> Link {
        const WHAT: &str = "FRRConfiguration";
        let (facts, node) = (self.facts, self.node);
        let found = facts.nodes.get(node).map(|facts| &facts.node);
        let source = self
            .wanted
            .iter()
            .zip(found.into_iter().cycle())
            .find_map(|(one, node)| facts.sources(one, node).next());
        match source {
            None => Link::broken(
                WHAT,
                format!("none that the RouteAdvertisements selects is for node {node}"),
                "create one with the node's BGP neighbours, and labels that frrConfigurationSelector asks for",
            ),
            Some(source) => Link::broken(
                WHAT,
                format!("none was generated from {} for node {node}", key(source)),
                "has it a neighbour besides the node itself? else underlay-cluster's log tells more",
            ),
        }
    }

    /// Whether the peers heard what they should.
    fn heard(&self, peers: &BTreeMap<Peer, Vec<IpNet>>, up: &[Peer]) -> Link {
        const WHAT: &str = "Peer";
        let node = self.node;
        let Some(report) = self.facts.report(node) else {
            return Link::unknown(WHAT, "only the agent can ask FRR");
        };
        if let Some(problem) = &report.speaker.problem {
            return Link::unknown(WHAT, format!("FRR on {node} could not be asked what it tells: {problem}"));
        }
        let mut heard = vec![];
        for (peer, prefixes) in peers.iter().filter(|(peer, _)| up.contains(peer)) {
            for prefix in prefixes {
                if !self.told(report, prefix).any(|one| same_peer(one, &peer.1)) {
                    let hint = format!("on {node}: vtysh -c 'show bgp {prefix}' shows whom it is told");
                    return Link::broken(WHAT, format!("{} was not told of {prefix}", peer.1), hint);
                }
                heard.push(format!("{} heard {prefix}", peer.1));
            }
        }
        Link::good(WHAT, some_of(&heard))
    }

    /// Peers of a node and what they should hear of its subnets.
    fn peers(&self) -> BTreeMap<Peer, Vec<IpNet>> {
        let mut peers: BTreeMap<Peer, Vec<IpNet>> = BTreeMap::new();
        for (configuration, _) in self.generated() {
            for router in &configuration.spec.bgp.routers {
                for neighbor in &router.neighbors {
                    let hears = |subnet: &&IpNet| names(&router.prefixes, subnet) && lets(neighbor, subnet);
                    let prefixes: Vec<IpNet> = self.subnets.iter().filter(hears).copied().collect();
                    if !prefixes.is_empty() {
                        peers.entry((router.vrf.clone(), name(neighbor))).or_default().extend(prefixes);
                    }
                }
            }
        }
        for prefixes in peers.values_mut() {
            prefixes.sort();
            prefixes.dedup();
        }
        peers
    }

    /// Peers that were told of a subnet.
    fn told<'r>(&self, report: &'r AgentReport, prefix: &'r IpNet) -> impl Iterator<Item = &'r String> {
        let network = self.network.clone();
        let default = network.is_none().then(|| report.speaker.told.get(prefix)).flatten();
        let own = report
            .advertised
            .iter()
            .filter(move |one| one.prefix == *prefix && network.is_some() && one.network == network);
        default.into_iter().flatten().chain(own.flat_map(|one| one.to.iter().flatten()))
    }
}

/// A node with its addresses to the world.
pub fn address_of(facts: &Facts, node: &str) -> String {
    let gateway = facts.nodes.get(node).and_then(|facts| facts.node.gateway.as_ref());
    let addresses = gateway.map(|gateway| gateway.addresses.as_slice()).unwrap_or_default();
    let texts: Vec<String> = addresses.iter().map(|net| net.addr().to_string()).collect();
    if texts.is_empty() { format!("node {node}") } else { format!("node {node} ({})", texts.join(", ")) }
}

/// Whether the advertisements were taken.
fn accepted(wanted: &[&RouteAdvertisements]) -> Link {
    const WHAT: &str = "Advertisement";
    for object in wanted {
        let name = object.name_any();
        let conditions =
            object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let Some(condition) = conditions::get(conditions, ACCEPTED) else {
            return Link::broken(WHAT, format!("RouteAdvertisements {name} was not looked at yet"), MANAGER);
        };
        if condition.observed_generation.is_some_and(|seen| object.metadata.generation > Some(seen)) {
            let detail = format!("RouteAdvertisements {name} was not looked at since it changed");
            return Link::broken(WHAT, detail, MANAGER);
        }
        if condition.status != "True" {
            let detail = format!("RouteAdvertisements {name} is not accepted: {}", condition.message);
            let hint = match condition.reason.as_str() {
                "ConfigurationError" => "correct it; until then, what was advertised before stays",
                _ => "bring what it waits for, or change it",
            };
            return Link::broken(WHAT, detail, hint);
        }
    }
    let names: Vec<String> = wanted.iter().map(|object| object.name_any()).collect();
    Link::good(WHAT, format!("RouteAdvertisements {}: accepted", some_of(&names)))
}

/// Whether FRR took what it was told.
fn taken(facts: &Facts, node: &str) -> Link {
    const WHAT: &str = "FRR";
    let Some(state) = facts.speakers.get(node) else {
        let hint = "the agent configures FRR and tells how it went, or frr-k8s where it is installed: is it running?";
        return Link::broken(WHAT, format!("nobody tells how FRR fares on {node}"), hint);
    };
    let results = [
        ("not all FRRConfigurations are used", &state.last_conversion_result),
        ("FRR did not take the last change", &state.last_reload_result),
    ];
    for (failed, result) in results {
        if !result.is_empty() && result != SUCCESS {
            let hint = format!("kubectl get frrnodestate {node} -o yaml tells all of it");
            return Link::broken(WHAT, format!("on {node} {failed}: {result}"), hint);
        }
    }
    Link::good(WHAT, format!("runs with it on {node}"))
}

/// Adds links for sessions, and returns the peers whose session stands.
fn sessions(
    facts: &Facts,
    node: &str,
    peers: &BTreeMap<Peer, Vec<IpNet>>,
    links: &mut Vec<Link>,
) -> Vec<Peer> {
    const WHAT: &str = "BGP session";
    let (mut up, mut down) = (vec![], vec![]);
    for (vrf, peer) in peers.keys() {
        match facts.session(node, vrf, peer) {
            Some(ESTABLISHED) => up.push((vrf.clone(), peer.clone())),
            state => down.push((peer, state)),
        }
    }
    if !up.is_empty() {
        let names: Vec<String> = up.iter().map(|(_, peer)| peer.clone()).collect();
        // States are published by the agent: they grow old with it.
        let stale = matches!(facts.agents.get(node), Some(Agent::Silent(_)));
        let when = if stale { " when the agent was last heard" } else { "" };
        links.push(Link::good(WHAT, format!("established with {}{when}", some_of(&names))));
    }
    for (peer, state) in down {
        let state = state.unwrap_or("not there");
        let hint = format!(
            "does {peer} answer, expect this node as neighbour, with the same AS numbers and password?"
        );
        links.push(Link::broken(WHAT, format!("from {node} to {peer} is {state}"), hint));
    }
    up
}

fn name(neighbor: &Neighbor) -> String {
    if neighbor.address.is_empty() { neighbor.interface.clone() } else { neighbor.address.clone() }
}

fn lets(neighbor: &Neighbor, prefix: &IpNet) -> bool {
    let allowed = &neighbor.to_advertise.allowed;
    let spoken = match neighbor.address.parse::<IpAddr>() {
        Ok(address) => neighbor.dual_stack_address_family || address.is_ipv4() == prefix.addr().is_ipv4(),
        Err(_) => true,
    };
    spoken && (allowed.mode == AllowMode::All || names(&allowed.prefixes, prefix))
}

fn has(configuration: &FRRConfiguration, prefix: &IpNet) -> bool {
    configuration.spec.bgp.routers.iter().any(|router| names(&router.prefixes, prefix))
}

fn names(texts: &[String], prefix: &IpNet) -> bool {
    texts.iter().any(|text| text.parse() == Ok(*prefix))
}

fn key(object: &FRRConfiguration) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}
