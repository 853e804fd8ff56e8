//! What an agent tells of itself when it is asked, and how it is asked.
//!
//! In: a [`Question`] as the query of an address. Out: an [`AgentReport`] as JSON. An answer stays small however many
//! pods and routes the node has: it counts them, and shows those that were asked for. Agent and asker may be of
//! different versions: what is missing is read as nothing, what is new is passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use underlay_world::settings::NoOverlay;
use underlay_world::{Local, Settings};

/// The port that agents listen on unless told otherwise.
pub const AGENT_PORT: u16 = 9411;

/// What to look at more closely.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// A pod of the node: `NAMESPACE/NAME`.
    pub pod: Option<String>,
    /// A destination, for the learned routes that lead there.
    pub to: Option<IpNet>,
    /// What plans are made from that only the node knows.
    pub local: bool,
    /// The network that is meant, by the name that nodes use. Without it: the default one for the routes to a
    /// destination, and all of them for lists of routes.
    pub network: Option<String>,
    /// Routes that are advertised and learned, those alone that have to do with the destination if there is one.
    pub routes: Option<List>,
    /// All that FRR knows of its neighbours.
    pub peers: bool,
}

/// A list of routes. There may be very many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct List {
    /// Only learned routes that OVN does not use.
    pub refused: bool,
    /// How many learned routes are told at most.
    pub limit: Option<usize>,
    /// Only learned routes that come after this one: the next page.
    pub after: Option<IpNet>,
}

impl Question {
    /// Reads a query. What makes no sense asks for nothing.
    pub fn parse(query: &str) -> Self {
        let (mut question, mut list, mut listed) = (Self::default(), List::default(), false);
        for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match key {
                "pod" => question.pod = Some(plain(value)),
                "to" => question.to = plain(value).parse().ok(),
                "local" => question.local = value == "true",
                "network" => question.network = Some(plain(value)),
                "routes" => listed = value == "true",
                "refused" => list.refused = value == "true",
                "limit" => list.limit = value.parse().ok(),
                "after" => list.after = plain(value).parse().ok(),
                "peers" => question.peers = value == "true",
                _ => {}
            }
        }
        question.routes = listed.then_some(list);
        question
    }

    /// Writes a query; names of pods and networks, and prefixes, have no character that means something there.
    pub fn render(&self) -> String {
        let list = self.routes.unwrap_or_default();
        let values = [
            ("pod", self.pod.clone()),
            ("to", self.to.map(|to| to.to_string())),
            ("network", self.network.clone()),
            ("limit", list.limit.map(|limit| limit.to_string())),
            ("after", list.after.map(|after| after.to_string())),
        ];
        let values = values.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value?)));
        let flags = [
            ("local", self.local),
            ("routes", self.routes.is_some()),
            ("refused", list.refused),
            ("peers", self.peers),
        ];
        let flags = flags.into_iter().filter(|(_, set)| *set).map(|(key, _)| format!("{key}=true"));
        values.chain(flags).collect::<Vec<_>>().join("&")
    }
}

/// A value as it was before `kubectl get --raw` wrote these characters by their numbers.
fn plain(value: &str) -> String {
    [("%2F", "/"), ("%2f", "/"), ("%3A", ":"), ("%3a", ":")]
        .iter()
        .fold(value.to_owned(), |text, (number, character)| text.replace(number, character))
}

/// What an agent tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentReport {
    /// The agent's version.
    pub version: String,
    /// The node's name.
    pub node: String,
    /// What the node waits for before it can carry pods.
    pub waiting: Option<String>,
    /// How the default network's packets travel without overlay, if they do.
    pub no_overlay: Option<NoOverlay>,
    /// How far each edge is, by name.
    pub edges: BTreeMap<String, EdgeReport>,
    /// What is planned; nothing while the node waits for its first plan.
    pub plan: Option<PlanReport>,
    /// The pod that was asked for, if the plan has it.
    pub pod: Option<PodReport>,
    /// Learned routes to the destination that was asked for, the longest first.
    pub routes: Vec<RouteReport>,
    /// Prefixes that BGP peers are to be told, if routes were asked for.
    pub advertised: Vec<AdvertisedReport>,
    /// Routes that BGP brought each network, if routes were asked for.
    pub learned: BTreeMap<String, LearnedReport>,
    /// What FRR says.
    pub speaker: SpeakerReport,
    /// What only the node knows, if that was asked for.
    pub inputs: Option<Inputs>,
}

/// What plans of a node are made from, besides the API's objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Inputs {
    /// What the node sees of itself.
    pub local: Local,
    /// The settings that its agent was given.
    pub settings: Settings,
}

/// How far an edge is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EdgeReport {
    /// Number of the plan it last set out for.
    pub begun: u64,
    /// Number of the plan it reached last; 0 is none.
    pub applied: u64,
    /// Why the last pass failed, if it did.
    pub error: Option<String>,
}

/// What is planned for the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PlanReport {
    /// The node's subnets of the default network.
    pub subnets: Vec<IpNet>,
    /// Whether its pods are told to BGP peers, and so show their own addresses.
    pub advertised: bool,
    /// How many pods have addresses.
    pub pods: usize,
    /// How many pods have none.
    pub without_address: usize,
    /// Why one of them has none.
    pub address_problem: Option<String>,
    /// How many routes BGP brought.
    pub learned: usize,
    /// How many of them are in OVN.
    pub imported: usize,
    /// How many of them are not because the network has as many as it takes.
    pub dammed: usize,
    /// User-defined networks, by name: those that the node carries, and those that wait for something.
    pub networks: BTreeMap<String, NetworkReport>,
}

/// A user-defined network on the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkReport {
    /// The node's subnets of it.
    pub subnets: Vec<IpNet>,
    /// Whether they are told to BGP peers, and so its pods show their own addresses.
    pub advertised: bool,
    /// How many routes BGP brought it.
    pub learned: usize,
    /// How many of them are in OVN.
    pub imported: usize,
    /// How many of them are not because the network has as many as it takes.
    pub dammed: usize,
    /// How many pods of the node are in it.
    pub pods: usize,
    /// What it waits for; nothing if the node carries it.
    pub waiting: Option<String>,
}

/// A pod of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodReport {
    /// Its identity.
    pub uid: String,
    /// Its addresses in the default network.
    pub addresses: Vec<IpAddr>,
    /// Whether all its addresses are written in its object.
    pub recorded: bool,
    /// Why it has none.
    pub problem: Option<String>,
    /// Whether its addresses are for probes only, because another network carries its traffic.
    pub locked: bool,
    /// The user-defined network that carries its traffic, if one does.
    pub network: Option<String>,
    /// Its addresses there.
    pub own_addresses: Vec<IpAddr>,
    /// What it waits for before it can start.
    pub waiting: Option<String>,
}

/// A route that BGP brought into the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteReport {
    /// Where to.
    pub destination: IpNet,
    /// Through whom.
    pub next_hops: Vec<NextHop>,
    /// Why OVN does not use it; nothing if it does.
    #[serde(default)]
    pub refused: Option<String>,
    /// Peers that told it, where FRR could be asked.
    #[serde(default)]
    pub from: BTreeSet<String>,
    /// Whether it was lost while bgpd was starting, and counts for a moment nevertheless.
    #[serde(default)]
    pub kept: bool,
}

/// A prefix that BGP peers are to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdvertisedReport {
    /// What they are told.
    pub prefix: IpNet,
    /// In which VRF; empty for the default one.
    #[serde(default)]
    pub vrf: String,
    /// The network whose part it is; nothing for what is no network's part, like an egress IP.
    #[serde(default)]
    pub network: Option<String>,
    /// The `RouteAdvertisements` that ask for it.
    #[serde(default)]
    pub by: BTreeSet<String>,
    /// The peers that were told, as FRR has it; nothing if FRR could not be asked.
    #[serde(default)]
    pub to: Option<BTreeSet<String>>,
}

/// Routes that BGP brought a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LearnedReport {
    /// As many as were asked for, in order.
    pub routes: Vec<RouteReport>,
    /// How many more there are.
    pub more: usize,
}

/// A next hop in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NextHop {
    /// The gateway.
    pub gateway: IpAddr,
    /// The link it is at.
    pub link: String,
}

/// What FRR says when asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SpeakerReport {
    /// Why it could not be asked.
    pub problem: Option<String>,
    /// Its sessions.
    pub sessions: Vec<SessionReport>,
    /// For each subnet of the node: the peers that were told of it.
    pub told: BTreeMap<IpNet, BTreeSet<String>>,
    /// Its neighbours, if they were asked for.
    pub peers: Vec<PeerReport>,
}

/// A BGP neighbour, as FRR knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PeerReport {
    /// Its VRF; empty for the default one.
    pub vrf: String,
    /// Its address or interface.
    pub peer: String,
    /// Its AS; 0 while that is not known.
    pub remote_as: u32,
    /// The node's AS.
    pub local_as: u32,
    /// FRR's word for the session's state.
    pub state: String,
    /// For how many seconds it is so, if FRR tells.
    pub seconds: Option<u64>,
    /// Prefixes that were received and accepted.
    pub received: u64,
    /// Prefixes that were sent.
    pub sent: u64,
    /// FRR's word for the state of BFD, where BFD watches.
    pub bfd: Option<String>,
    /// How often the session was lost.
    pub dropped: u64,
    /// Why it was lost last, in FRR's words.
    pub last_reset: Option<String>,
}

/// A BGP session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionReport {
    /// Its VRF; empty for the default one.
    pub vrf: String,
    /// The peer's address or interface.
    pub peer: String,
    /// FRR's word for its state.
    pub state: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_come_back() {
        for (pod, to, local) in [
            (None, None, false),
            (None, None, true),
            (Some("a/b.c"), None, false),
            (None, Some("fd00::/8"), true),
            (Some("a/b"), Some("10.0.0.0/8"), false),
        ] {
            let to = to.map(|to| to.parse().expect("a prefix"));
            let question = Question { pod: pod.map(str::to_owned), to, local, ..Question::default() };
            assert_eq!(Question::parse(&question.render()), question);
            let network = Some("cluster_udn_blue".to_owned());
            let routes = Some(List { refused: local, limit: Some(7), after: question.to });
            let list = Question { network, routes, ..question };
            assert_eq!(Question::parse(&list.render()), list);
            let peers = Question { peers: true, ..Question::default() };
            assert_eq!(Question::parse(&peers.render()), peers);
        }
        let raw = Question::parse("pod=a%2Fb&to=fd00%3a%3A%2f8");
        assert_eq!(raw.render(), "pod=a/b&to=fd00::/8");
        assert_eq!(Question::parse("x=1&to=nowhere&pod&local=perhaps"), Question::default());
    }

    #[test]
    fn what_a_node_sees_of_itself_comes_back() {
        let bridge = underlay_world::local::Bridge {
            name: "br-ex".to_owned(),
            mac: "02:00:00:00:00:12".parse().expect("an address"),
            addresses: vec!["172.30.0.12/24".parse().expect("an address")],
            mtu: 1500,
            uplink: Some(1),
            patches: [("patch".to_owned(), 2)].into(),
            checks_size: true,
        };
        let local = Local { chassis: "a".to_owned(), bridge: Some(bridge), ..Local::default() };
        let report =
            AgentReport { inputs: Some(Inputs { local, ..Inputs::default() }), ..AgentReport::default() };
        let text = serde_json::to_string(&report).expect("written");
        assert_eq!(serde_json::from_str::<AgentReport>(&text).expect("read"), report);
    }

    #[test]
    fn reports_of_other_versions_are_read() {
        let report: AgentReport =
            serde_json::from_str(r#"{"node": "a", "new": 1, "plan": {}}"#).expect("read");
        assert_eq!((report.node.as_str(), report.plan), ("a", Some(PlanReport::default())));
    }
}
