//! A cluster in which all is well, for tests to break: two nodes, both advertised to one peer of each family.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use underlay_api::NetworkAttachmentDefinition;
use underlay_api::frr::{BGPSessionStateStatus, FRRNodeStateStatus};
use underlay_api::network::PRIMARY_NETWORK_LABEL;
use underlay_runtime::report::{
    AdvertisedReport, AgentReport, EdgeReport, NetworkReport, PlanReport, PodReport, SessionReport,
    SpeakerReport,
};
use underlay_world::{Definition, Nad, Namespace, Node};

use super::facts::{Agent, Facts, NodeFacts, PodFacts, Readiness};

/// Peers of every node.
const PEERS: [&str; 2] = ["172.30.0.1", "fd00:172:30::1"];

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

/// Everything as it should be.
pub fn well() -> Facts {
    Facts {
        nodes: [("one".to_owned(), node("one", 2)), ("two".to_owned(), node("two", 3))].into(),
        agents: [("one".to_owned(), agent("one", 2)), ("two".to_owned(), agent("two", 3))].into(),
        advertisements: vec![object(json!({
            "metadata": { "name": "default", "generation": 1 },
            "spec": {
                "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
                "nodeSelector": {}, "frrConfigurationSelector": {}, "advertisements": ["PodNetwork"],
            },
            "status": { "status": "Accepted", "conditions": [{
                "type": "Accepted", "status": "True", "reason": "Accepted", "message": "fine",
                "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
            }] },
        }))],
        configurations: vec![peers(), generated("one", 2), generated("two", 3)]
            .into_iter()
            .map(object)
            .collect(),
        speakers: ["one", "two"].map(|node| (node.to_owned(), speaker())).into(),
        sessions: ["one", "two"].iter().flat_map(|node| PEERS.map(|peer| session(node, peer))).collect(),
        ..Facts::default()
    }
}

/// The same with network blue for namespace sea, which both nodes carry.
pub fn with_tenant() -> Facts {
    let mut facts = well();
    let config = json!({
        "cniVersion": "1.1.0", "type": "ovn-k8s-cni-overlay", "name": "cluster_udn_blue",
        "netAttachDefName": "sea/blue", "topology": "layer3", "role": "primary", "subnets": "10.200.0.0/16/24",
    });
    let attachment: NetworkAttachmentDefinition = object(json!({
        "metadata": {
            "namespace": "sea", "name": "blue", "annotations": { "k8s.ovn.org/network-id": "1" },
            "ownerReferences": [{ "apiVersion": "k8s.ovn.org/v1", "kind": "ClusterUserDefinedNetwork", "name": "blue",
                                  "uid": "u", "controller": true }],
        },
        "spec": { "config": config.to_string() },
    }));
    facts.attachments.extend(Nad::read(&attachment));
    facts.networks.push(blue());
    let labels = [("tenant", "blue"), (PRIMARY_NETWORK_LABEL, "")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    facts.namespaces.insert("sea".to_owned(), Namespace { labels, ending: false });
    for (name, id) in [("one", 2), ("two", 3)] {
        let subnets: Vec<ipnet::IpNet> = vec![format!("10.200.{id}.0/24").parse().unwrap()];
        let node = &mut facts.nodes.get_mut(name).unwrap().node;
        node.subnets.0.insert("cluster_udn_blue".to_owned(), subnets.clone());
        let plan = report(&mut facts, name).plan.as_mut().unwrap();
        let told = NetworkReport { subnets, pods: 1, ..NetworkReport::default() };
        plan.networks.insert("cluster_udn_blue".to_owned(), told);
    }
    facts
}

/// The same, and network blue is advertised by both nodes to the peer of its family, without overlay if so asked.
pub fn with_advertised_tenant(no_overlay: bool) -> Facts {
    let mut facts = with_tenant();
    facts.advertisements.push(object(json!({
        "metadata": { "name": "tenants", "generation": 1 },
        "spec": {
            "networkSelectors": [{
                "networkSelectionType": "ClusterUserDefinedNetworks",
                "clusterUserDefinedNetworkSelector": { "networkSelector": { "matchLabels": {
                    "k8s.ovn.org/metadata.name": "blue",
                } } },
            }],
            "nodeSelector": {}, "frrConfigurationSelector": {}, "advertisements": ["PodNetwork"],
        },
        "status": facts.advertisements[0].status,
    })));
    if no_overlay {
        let network = facts.networks[0].network.as_mut().expect("a network");
        let routing = Some(underlay_api::network::Routing::Unmanaged);
        network.transport = underlay_api::network::Transport::NoOverlay(underlay_api::network::NoOverlay {
            outbound_snat: false,
            routing,
        });
    }
    for (name, id) in [("one", 2), ("two", 3)] {
        let subnet = format!("10.200.{id}.0/24");
        facts.configurations.push(object(json!({
            "metadata": {
                "namespace": "frr", "name": format!("ovnk-generated-blue-{name}"),
                "labels": { "k8s.ovn.org/route-advertisements": "tenants" },
                "annotations": { "k8s.ovn.org/route-advertisements": format!("tenants/peers/{name}") },
            },
            "spec": {
                "nodeSelector": { "matchLabels": { "kubernetes.io/hostname": name } },
                "bgp": { "routers": [{ "asn": 64512, "prefixes": [subnet], "neighbors": [{
                    "address": PEERS[0], "asn": 64513, "toAdvertise": { "allowed": { "prefixes": [subnet] } },
                }] }] },
            },
        })));
        let report = report(&mut facts, name);
        let networks = &mut report.plan.as_mut().expect("a plan").networks;
        networks.get_mut("cluster_udn_blue").expect("blue").advertised = true;
        report.advertised.push(AdvertisedReport {
            prefix: subnet.parse().expect("a prefix"),
            vrf: String::new(),
            network: Some("cluster_udn_blue".to_owned()),
            by: ["tenants".to_owned()].into(),
            to: Some([PEERS[0].to_owned()].into()),
        });
    }
    facts
}

fn blue() -> Definition {
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Because", "message": "fine",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let types = ["NetworkCreated", "NetworkAllocationSucceeded", "TransportAccepted"];
    Definition::of_cluster(object(json!({
        "metadata": { "name": "blue", "annotations": { "k8s.ovn.org/network-id": "1" } },
        "spec": {
            "namespaceSelector": { "matchLabels": { "tenant": "blue" } },
            "network": { "topology": "Layer3", "layer3": {
                "role": "Primary", "subnets": [{ "cidr": "10.200.0.0/16", "hostSubnet": 24 }],
            } },
        },
        "status": { "conditions": types.map(condition) },
    })))
}

/// A pod of namespace sea on node one, on network blue.
pub fn tenant_pod() -> PodFacts {
    let part = |address: &str, role: &str| {
        json!({
            "ip_addresses": [address], "mac_address": "0a:58:0a:f4:02:05", "ip_address": address, "role": role,
        })
    };
    let networks = json!({
        "default": part("10.244.2.7/24", "infrastructure-locked"), "sea/blue": part("10.200.2.4/24", "primary"),
    });
    let pod = PodFacts::read(&object(json!({
        "metadata": {
            "namespace": "sea", "name": "ship", "uid": "uid-ship",
            "annotations": { "k8s.ovn.org/pod-networks": networks.to_string() },
        },
        "spec": { "nodeName": "one", "containers": [] },
        "status": { "phase": "Running", "podIPs": [{ "ip": "10.244.2.7" }] },
    })));
    assert_eq!(pod.pod.problem, None);
    pod
}

/// What the agent of node one tells of that pod.
pub fn tenant_pod_report() -> PodReport {
    PodReport {
        uid: "uid-ship".to_owned(),
        addresses: vec!["10.244.2.7".parse().unwrap()],
        recorded: true,
        locked: true,
        network: Some("cluster_udn_blue".to_owned()),
        own_addresses: vec!["10.200.2.4".parse().unwrap()],
        ..PodReport::default()
    }
}

fn node(name: &str, id: u8) -> NodeFacts {
    let subnets = format!(r#"{{"default":["10.244.{id}.0/24","fd00:10:244:{id}::/64"]}}"#);
    let gateway = json!({ "default": {
        "mode": "shared", "bridge-id": "br-ex", "interface-id": format!("br-ex_{name}"),
        "mac-address": "02:00:00:00:00:01", "ip-addresses": [format!("172.30.0.1{id}/24")],
        "next-hops": ["172.30.0.1"], "node-port-enable": "false",
    } });
    let node = Node::read(&object(json!({ "metadata": {
        "name": name, "labels": { "kubernetes.io/hostname": name },
        "annotations": {
            "k8s.ovn.org/node-id": id.to_string(),
            "k8s.ovn.org/node-subnets": subnets,
            "k8s.ovn.org/host-cidrs": format!(r#"["172.30.0.1{id}/24"]"#),
            "k8s.ovn.org/l3-gateway-config": gateway.to_string(),
        },
    } })));
    assert_eq!(node.problems, Vec::<String>::new());
    NodeFacts { node, readiness: Readiness::Ready }
}

fn agent(name: &str, id: u8) -> Agent {
    let edges = ["northbound", "southbound", "switch", "flows", "host", "filter", "pod-records"];
    let subnets =
        [format!("10.244.{id}.0/24"), format!("fd00:10:244:{id}::/64")].map(|net| net.parse().unwrap());
    let told: BTreeMap<_, _> =
        subnets.iter().zip(PEERS).map(|(subnet, peer)| (*subnet, [peer.to_owned()].into())).collect();
    Agent::Told(Box::new(AgentReport {
        version: "1.0.0".to_owned(),
        node: name.to_owned(),
        edges: edges.map(|edge| (edge.to_owned(), EdgeReport { begun: 3, applied: 3, error: None })).into(),
        plan: Some(PlanReport { subnets: subnets.to_vec(), advertised: true, ..PlanReport::default() }),
        pod: (name == "one").then(|| PodReport {
            uid: "uid-web".to_owned(),
            addresses: vec!["10.244.2.5".parse().unwrap()],
            recorded: true,
            ..PodReport::default()
        }),
        speaker: SpeakerReport {
            problem: None,
            sessions: PEERS
                .map(|peer| SessionReport {
                    vrf: String::new(),
                    peer: peer.to_owned(),
                    state: "Established".to_owned(),
                })
                .to_vec(),
            told,
            peers: vec![],
        },
        ..AgentReport::default()
    }))
}

fn peers() -> Value {
    json!({
        "metadata": { "namespace": "frr", "name": "peers" },
        "spec": { "bgp": { "routers": [{ "asn": 64512, "neighbors": [{ "address": PEERS[0], "asn": 64513 }] }] } },
    })
}

fn generated(node: &str, id: u8) -> Value {
    let subnets = [format!("10.244.{id}.0/24"), format!("fd00:10:244:{id}::/64")];
    let neighbor = |place: usize| {
        let allowed = json!({ "prefixes": [subnets[place]] });
        json!({ "address": PEERS[place], "asn": 64513, "toAdvertise": { "allowed": allowed } })
    };
    json!({
        "metadata": {
            "namespace": "frr", "name": format!("ovnk-generated-{node}"),
            "labels": { "k8s.ovn.org/route-advertisements": "default" },
            "annotations": { "k8s.ovn.org/route-advertisements": format!("default/peers/{node}") },
        },
        "spec": {
            "nodeSelector": { "matchLabels": { "kubernetes.io/hostname": node } },
            "bgp": { "routers": [{
                "asn": 64512, "prefixes": subnets, "neighbors": [neighbor(0), neighbor(1)],
            }] },
        },
    })
}

fn speaker() -> FRRNodeStateStatus {
    FRRNodeStateStatus {
        last_conversion_result: "success".to_owned(),
        last_reload_result: "success".to_owned(),
        ..FRRNodeStateStatus::default()
    }
}

fn session(node: &str, peer: &str) -> BGPSessionStateStatus {
    BGPSessionStateStatus {
        bgp_status: "Established".to_owned(),
        node: node.to_owned(),
        peer: peer.to_owned(),
        ..BGPSessionStateStatus::default()
    }
}

/// A pod on node one with an address.
pub fn pod() -> PodFacts {
    let networks = json!({ "default": {
        "ip_addresses": ["10.244.2.5/24"], "mac_address": "0a:58:0a:f4:02:05", "gateway_ips": ["10.244.2.1"],
        "ip_address": "10.244.2.5/24", "gateway_ip": "10.244.2.1",
    } });
    let pod = PodFacts::read(&object(json!({
        "metadata": {
            "namespace": "shop", "name": "web", "uid": "uid-web",
            "annotations": { "k8s.ovn.org/pod-networks": networks.to_string() },
        },
        "spec": { "nodeName": "one", "containers": [] },
        "status": { "phase": "Running", "podIPs": [{ "ip": "10.244.2.5" }] },
    })));
    assert_eq!(pod.pod.problem, None);
    pod
}

/// What the agent of a node told, to be changed.
pub fn report<'a>(facts: &'a mut Facts, node: &str) -> &'a mut AgentReport {
    match facts.agents.get_mut(node) {
        Some(Agent::Told(report)) => report,
        other => panic!("{other:?}"),
    }
}

/// Lets the first session of node one be in this state.
pub fn session_is(facts: &mut Facts, state: &str) {
    facts.sessions[0].bgp_status = state.to_owned();
    report(facts, "one").speaker.sessions[0].state = state.to_owned();
}
