//! Underlay itself: its resources, the cluster manager, the agents, and the BGP peers of the nodes as it is told them.

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::control_plane::{join, kubeconfig_path};
use super::{Daemon, Probe, Step, words, write};
use crate::pki::Actor;
use crate::topology::{Bgp, Machine, Role, Topology};

/// Where a machine finds our programs.
pub(crate) const PROGRAMS: &str = "/opt/underlay/bin";
/// The programs of a cluster, besides the one at the admin's desk.
pub(crate) const NAMES: [&str; 3] = ["underlay-agent", "underlay-cluster", "underlay-cni"];
/// Settings that manager and agents share.
const SETTINGS: &str = "/etc/underlay/underlay.conf";
/// Where the nodes' BGP peers are written down.
const SPEAKER_NAMESPACE: &str = "frr-k8s-system";

/// The definitions of the resources, as the API server takes them, and the speakers' namespace. The manager makes that
/// namespace itself where it sees to a mesh, so that it must be there before the manager is.
pub(super) fn definitions(admin: &str) -> Step {
    let mut items: Vec<Value> =
        underlay_api::crds::all().iter().map(|definition| json!(definition)).collect();
    items.push(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": SPEAKER_NAMESPACE },
    }));
    items.extend(may_read_passwords());
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    Step::Feed {
        argv: words(&format!("kubectl --kubeconfig {admin} create --validate=false -f -")),
        input: list.to_string(),
    }
}

/// The peers of the nodes, once the API server knows what they are.
pub(super) fn peers(topology: &Topology, admin: &str) -> Vec<Step> {
    let kubectl = format!("kubectl --kubeconfig {admin}");
    let definition = "crd/frrconfigurations.frrk8s.metallb.io";
    let wait =
        Step::Run(words(&format!("{kubectl} wait --timeout=60s {definition} --for=condition=Established")));
    let items = configurations(topology);
    if items.is_empty() {
        // kubectl takes a list without items for a mistake.
        return vec![wait];
    }
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    let create = Step::Feed {
        argv: words(&format!("{kubectl} create --validate=false -f -")),
        input: list.to_string(),
    };
    vec![wait, create]
}

/// The agents' right to read the secrets beside the configurations that name them, and no others.
fn may_read_passwords() -> [Value; 2] {
    let metadata = json!({ "name": "underlay-agent", "namespace": SPEAKER_NAMESPACE });
    let group = "rbac.authorization.k8s.io";
    [
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"] }],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": "Role", "name": "underlay-agent" },
            "subjects": [{ "apiGroup": group, "kind": "Group", "name": "underlay:agents" }],
        }),
    ]
}

/// One object if all nodes have the same peers, else one for each node.
fn configurations(topology: &Topology) -> Vec<Value> {
    let speakers: Vec<(&str, &Bgp)> = topology.nodes().filter_map(speaker).collect();
    let same = |(_, bgp): &(&str, &Bgp)| speakers.first().is_some_and(|(_, first)| first == bgp);
    if speakers.len() == topology.nodes().count() && speakers.iter().all(same) {
        return speakers
            .first()
            .map(|(_, bgp)| configuration("peers", &json!({}), bgp))
            .into_iter()
            .collect();
    }
    let own = |(node, bgp): &(&str, &Bgp)| {
        let selector = json!({ "matchLabels": { "kubernetes.io/hostname": node } });
        configuration(&format!("peers-of-{node}"), &selector, bgp)
    };
    speakers.iter().map(own).collect()
}

fn speaker(machine: &Machine) -> Option<(&str, &Bgp)> {
    match &machine.role {
        Role::Node { bgp: Some(bgp), .. } => Some((machine.name.as_str(), bgp)),
        _ => None,
    }
}

fn configuration(name: &str, selector: &Value, bgp: &Bgp) -> Value {
    let neighbors: Vec<Value> = bgp
        .neighbors
        .iter()
        .map(|neighbor| {
            let mut value = json!({
                "address": neighbor.address,
                "asn": neighbor.asn,
                "holdTime": "9s",
                "keepaliveTime": "3s",
                "connectTime": "1s",
                "enableGracefulRestart": true,
                "toReceive": { "allowed": { "mode": "all" } },
            });
            if let (Some(password), Some(map)) = (&neighbor.password, value.as_object_mut()) {
                map.insert("password".to_owned(), password.clone().into());
            }
            if let (true, Some(map)) = (neighbor.bfd, value.as_object_mut()) {
                map.insert("bfdProfile".to_owned(), "lab".into());
            }
            value
        })
        .collect();
    let profiles = if bgp.neighbors.iter().any(|neighbor| neighbor.bfd) {
        json!([{ "name": "lab" }])
    } else {
        json!([])
    };
    json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": { "name": name, "namespace": SPEAKER_NAMESPACE },
        "spec": {
            "nodeSelector": selector,
            "bgp": {
                "bfdProfiles": profiles,
                "routers": [{ "asn": bgp.asn, "neighbors": neighbors, "prefixes": bgp.networks }],
            },
        },
    })
}

/// The cluster manager.
pub(super) fn manager() -> Daemon {
    let config = kubeconfig_path(Actor::ClusterManager);
    Daemon {
        name: "underlay-cluster".to_owned(),
        argv: words(&format!("{PROGRAMS}/underlay-cluster --kubeconfig {config} --config-file {SETTINGS}")),
        ready: Probe::tcp("127.0.0.1:9410"),
        after: vec![],
    }
}

/// The agent of a node.
pub(super) fn agent(machine: &Machine) -> Daemon {
    let name = &machine.name;
    let config = kubeconfig_path(Actor::Agent(name));
    Daemon {
        name: "underlay-agent".to_owned(),
        argv: words(&format!(
            "{PROGRAMS}/underlay-agent --node-name {name} --kubeconfig {config} --config-file {SETTINGS} \
             --cni-plugin {PROGRAMS}/underlay-cni"
        )),
        ready: Probe::tcp("127.0.0.1:9411"),
        after: vec![],
    }
}

/// The settings that manager and agents share.
pub(super) fn settings(topology: &Topology) -> Step {
    let pods = topology.kubernetes.pod_subnets.iter().map(|net| {
        let length = match net {
            IpNet::V4(net) => net.prefix_len().max(24),
            IpNet::V6(net) => net.prefix_len().max(64),
        };
        format!("{net}/{length}")
    });
    let services = join(topology.kubernetes.service_subnets.iter());
    // What the narrowest uplink takes, or what is left of that in a tunnel.
    let narrowest = topology.nodes().filter_map(|node| Some(node.uplink()?.mtu)).min().unwrap_or(1500);
    let around = if topology.settings.overlay { 100 } else { 0 };
    let mtu = narrowest.saturating_sub(around);
    let own = [
        ("default", "cluster-subnets", join(pods)),
        ("default", "mtu", mtu.to_string()),
        ("kubernetes", "service-cidrs", services),
    ];
    let given = topology.settings.given.iter();
    let given = given.map(|one| (one.section.as_str(), one.key.as_str(), one.value.clone()));
    let mut sections: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (section, key, value) in own.into_iter().chain(given) {
        sections.entry(section).or_default().push(format!("{key}={value}\n"));
    }
    let text: Vec<String> =
        sections.iter().map(|(section, lines)| format!("[{section}]\n{}", lines.concat())).collect();
    write(SETTINGS, text.join("\n"))
}
