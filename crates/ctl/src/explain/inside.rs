//! The way between the world and what is inside: a pod, or a node's subnet of pods.

use ipnet::IpNet;
use underlay_net::names::pod_port;
use underlay_runtime::report::AgentReport;

use super::advertised::Part;
use super::chain::{Chain, Link, agent, edges};
use super::tenant;
use crate::cluster::facts::{Facts, PodFacts};
use crate::names::short;

/// Explains a pod.
pub fn pod(facts: &Facts, pod: &PodFacts) -> Chain {
    let key = &pod.pod.key;
    let subject = format!("pod {key}");
    let object = object(pod);
    if pod.pod.node.is_empty() {
        return Chain::new(subject, vec![object], "");
    }
    if pod.pod.host_network {
        let detail = format!("it lives in the network of node {} and has its addresses", pod.pod.node);
        let conclusion = "it is reached at its node's addresses; nothing of the pods' network concerns it";
        return Chain::new(subject, vec![object, Link::note("Network", detail)], conclusion);
    }
    if !pod.pod.needs_port() {
        let detail = format!("it ended ({}): its addresses are free for others", pod.phase);
        return Chain::new(
            subject,
            vec![object, Link::note("Network", detail)],
            "it is not on the network any more",
        );
    }
    if tenant::is_tenants(facts, pod) {
        return tenant::pod(facts, pod);
    }
    let node = &pod.pod.node;
    let mut links = vec![object];
    links.extend(tenant::earlier(facts, pod));
    links.extend([placed(facts, node), agent(facts, node), addresses(facts, pod)]);
    links.push(port(facts, pod, &pod_port(&key.namespace, &key.name), node));
    let conclusion = outwards(facts, node, &mut links);
    Chain::new(subject, links, conclusion)
}

/// Explains a prefix in a node's subnet that is no pod's.
pub fn subnet(facts: &Facts, node: &str, prefix: IpNet) -> Chain {
    let mut links = vec![placed(facts, node), agent(facts, node)];
    if prefix.prefix_len() == prefix.max_prefix_len() {
        links.insert(0, Link::note("Pod", format!("no pod has the address {}", prefix.addr())));
    }
    let conclusion = outwards(facts, node, &mut links);
    Chain::new(format!("{}, in the subnet of node {node}", short(prefix)), links, conclusion)
}

/// Whether a pod is on a node.
pub fn object(pod: &PodFacts) -> Link {
    const WHAT: &str = "Pod";
    let key = &pod.pod.key;
    if pod.pod.node.is_empty() {
        let why = pod.unscheduled.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let hint =
            format!("kubectl describe pod -n {} {} tells what the scheduler misses", key.namespace, key.name);
        return Link::broken(WHAT, format!("it is on no node yet{why}"), hint);
    }
    Link::good(WHAT, format!("{} on node {}", pod.phase, pod.pod.node))
}

/// Whether a node has its part of the pods' network.
pub fn placed(facts: &Facts, node: &str) -> Link {
    const WHAT: &str = "Node";
    let hint =
        "underlay-cluster gives nodes their numbers and subnets: is it running, and what does its log say?";
    let Some(found) = facts.nodes.get(node) else {
        return Link::broken(
            WHAT,
            format!("there is no node {node}"),
            "its kubelet registers it: is it running?",
        );
    };
    let subnets: Vec<String> = facts.subnets(node).iter().map(ToString::to_string).collect();
    match (&found.node.id, found.node.problems.first()) {
        (_, Some(problem)) => Link::broken(WHAT, format!("node {node}: {problem}"), hint),
        (Some(id), _) if !subnets.is_empty() => {
            Link::good(WHAT, format!("{node}, number {}, subnets {}", id.0, subnets.join(", ")))
        }
        _ => Link::broken(WHAT, format!("node {node} has no subnet for pods yet"), hint),
    }
}

/// Whether a pod has addresses, and everybody agrees on them.
fn addresses(facts: &Facts, pod: &PodFacts) -> Link {
    const WHAT: &str = "Addresses";
    let (node, recorded) = (&pod.pod.node, pod.recorded());
    let report = facts.report(node);
    let told = report.and_then(|report| report.pod.as_ref());
    if let Some(problem) = told.and_then(|told| told.problem.as_ref()) {
        return Link::broken(
            WHAT,
            problem,
            "free addresses on the node, or let the pod be scheduled elsewhere",
        );
    }
    if recorded.is_empty() {
        let failure = report.and_then(|report| report.edges.get("pod-records")?.error.as_ref());
        let detail = match (failure, &pod.pod.problem) {
            (Some(error), _) => format!("they could not be recorded: {error}"),
            (_, Some(problem)) => problem.clone(),
            _ => "none is recorded yet".to_owned(),
        };
        return Link::broken(WHAT, detail, format!("the agent of {node} records them; its log tells more"));
    }
    let text = recorded.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(strange) = pod.addresses.iter().find(|address| !recorded.contains(address)) {
        let detail = format!("{text} are recorded, but its container was given {strange}");
        return Link::broken(WHAT, detail, "delete the pod: its successor is connected as recorded");
    }
    if let Some(strange) =
        recorded.iter().find(|one| !facts.subnets(node).iter().any(|net| net.contains(*one)))
    {
        let detail = format!("{strange} is recorded, which is in no subnet of node {node}");
        return Link::broken(WHAT, detail, "delete the pod: its successor is given an address of the node");
    }
    Link::good(WHAT, format!("{text}, recorded"))
}

/// Whether OVN has a port for it, by this name on this switch.
pub fn port(facts: &Facts, pod: &PodFacts, name: &str, switch: &str) -> Link {
    const WHAT: &str = "OVN port";
    let Some(report) = facts.report(&pod.pod.node) else {
        return Link::unknown(WHAT, "only the agent can tell");
    };
    match &report.pod {
        None => {
            let hint =
                "the agent hears of pods from the API server: ask again in a second, then look at its log";
            Link::broken(WHAT, format!("the agent of {} has not planned for it", report.node), hint)
        }
        Some(told) if told.uid != pod.pod.uid && told.problem.is_none() => {
            let hint = "ask again in a second: the agent has not heard of the new one yet";
            Link::broken(WHAT, "the agent knows another pod of this name", hint)
        }
        Some(_) => edges(WHAT, report, &["northbound", "switch"], &format!("{name} on switch {switch}")),
    }
}

/// The way from a node's pods to the world and back. Returns what follows if all of it holds.
fn outwards(facts: &Facts, node: &str, links: &mut Vec<Link>) -> String {
    links.push(match facts.report(node) {
        None => Link::unknown("Kernel", "only the agent can tell"),
        Some(report) => {
            edges("Kernel", report, &["host", "filter"], "routes, rules and packet filter are as planned")
        }
    });
    let part = Part::of_default(facts, node);
    let conclusion = part.judge(links);
    let advertised = |report: &AgentReport| Some(report.plan.as_ref()?.advertised);
    links.push(bridge(facts, node, part.is_generated(), advertised, sends_own(facts, node)));
    conclusion
}

/// Whether pods of the default network show their own addresses where they are advertised.
fn sends_own(facts: &Facts, node: &str) -> bool {
    let no_overlay = facts.report(node).and_then(|report| report.no_overlay);
    !no_overlay.is_some_and(|no_overlay| no_overlay.outbound_snat)
}

/// Whether the way in and out of the node is as the advertisements ask: whether it is `generated` that the pods are told,
/// whether they are by the agent's plan, and whether they then show their own addresses.
pub fn bridge(
    facts: &Facts,
    node: &str,
    generated: bool,
    advertised: impl Fn(&AgentReport) -> Option<bool>,
    sends_own: bool,
) -> Link {
    const WHAT: &str = "Gateway";
    let Some(report) = facts.report(node) else { return Link::unknown(WHAT, "only the agent can tell") };
    let Some(advertised) = advertised(report) else {
        return Link::unknown(WHAT, format!("the agent of {node} has no plan for it yet"));
    };
    if advertised != generated {
        let (is, should) = if generated { ("still", "no longer") } else { ("no longer", "still") };
        let detail = format!("pods of {node} are {is} hidden behind its address, and should {should} be");
        return Link::broken(
            WHAT,
            detail,
            "ask again in a second; if it stays so, the agent's log tells more",
        );
    }
    let detail = match (advertised, sends_own) {
        (true, true) => "pods keep their addresses on the way out, and br-ex lets the world in to them",
        (true, false) => {
            "pods show the node's address on the way out, as outboundSNAT asks, and br-ex lets the world in to them"
        }
        (false, _) => "pods show the node's address on the way out, and the world is not let in",
    };
    edges(WHAT, report, &["northbound", "flows"], detail)
}
