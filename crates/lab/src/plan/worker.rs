//! containerd, the agent and the kubelet of a node.

use serde_json::json;

use super::control_plane::{API_PORT, DIRECTORY, join, kubeconfig_path};
use super::{Daemon, Place, Probe, Step, dns, underlay, words, write, write_secret};
use crate::pki::{Actor, Pki};
use crate::topology::{Machine, Topology};

const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// Parent of all control groups of a lab's containers.
pub fn cgroup_of(lab: &str) -> String {
    format!("underlay-lab-{lab}")
}

/// Control group of a node's containers.
fn node_group(place: &Place, node: &str) -> String {
    format!("{}/{node}", cgroup_of(&place.lab))
}

/// Makes a control group for the kubelet to begin from: in every hierarchy where there are many; where there is one,
/// with the controllers passed down that let themselves be. The kubelet says so if it misses one.
fn groups_script(group: &str) -> String {
    let parent = group.split('/').next().unwrap_or_default();
    format!(
        "cd /sys/fs/cgroup
if [ -e cgroup.controllers ]; then
    mkdir -p {group}
    for above in . {parent}; do
        for controller in $(cat $above/cgroup.controllers); do
            echo +$controller > $above/cgroup.subtree_control || true
        done
    done
else
    for hierarchy in */; do mkdir -p $hierarchy/{group}; done
fi"
    )
}

/// containerd. It has no network until the agent installs the plugin.
pub(super) fn runtime(place: &Place) -> Vec<Step> {
    vec![
        write("/etc/containerd/config.toml", containerd_config(&place.sandbox_image)),
        Step::Run(words("install -d /etc/cni/net.d /opt/cni/bin")),
        Step::Start(Daemon {
            name: "containerd".to_owned(),
            argv: words("containerd --config /etc/containerd/config.toml --log-level warn"),
            ready: Probe::socket(CONTAINERD_SOCKET),
            after: vec![],
        }),
    ]
}

/// The agent and the kubelet, once the API server answers.
pub(super) fn kubelet(
    topology: &Topology,
    machine: &Machine,
    control_plane: bool,
    pki: &Pki,
    place: &Place,
) -> Vec<Step> {
    let name = &machine.name;
    let Some(server) =
        topology.control_plane().and_then(|node| topology.cluster_addresses(node).first().copied())
    else {
        return vec![];
    };
    let server = std::net::SocketAddr::new(server, API_PORT);
    let (me, agent) = (Actor::Kubelet(name), Actor::Agent(name));
    let identity = pki.of(me);
    let node_ip = join(topology.cluster_addresses(machine).iter());
    let mut argv = words(&format!(
        "kubelet --config={DIRECTORY}/kubelet.yaml --kubeconfig={} --hostname-override={name} --node-ip={node_ip} \
         --root-dir=/var/lib/kubelet",
        kubeconfig_path(me)
    ));
    if control_plane {
        argv.extend(words(
            "--register-with-taints=node-role.kubernetes.io/control-plane=:NoSchedule \
             --node-labels=node.kubernetes.io/exclude-from-external-load-balancers=",
        ));
    }
    let kubelet =
        Daemon { name: "kubelet".to_owned(), argv, ready: Probe::tcp("127.0.0.1:10248"), after: vec![] };
    let mut chains = vec![vec![Step::Start(kubelet)]];
    if topology.kubernetes.runs_underlay() {
        chains.push(vec![Step::Start(underlay::agent(machine))]);
    }
    vec![
        write(&format!("{DIRECTORY}/pki/ca.crt"), &pki.authority.certificate),
        write(&format!("{DIRECTORY}/pki/kubelet.crt"), &identity.certificate),
        write_secret(&format!("{DIRECTORY}/pki/kubelet.key"), &identity.key),
        write_secret(&kubeconfig_path(me), pki.kubeconfig(me, &format!("https://{server}"))),
        write_secret(&kubeconfig_path(agent), pki.kubeconfig(agent, &format!("https://{server}"))),
        write(&format!("{DIRECTORY}/kubelet.yaml"), kubelet_config(topology, name, place)),
        Step::Run(vec!["sh".to_owned(), "-ec".to_owned(), groups_script(&node_group(place, name))]),
        underlay::settings(topology),
        Step::Wait(Probe::tcp(&server.to_string())),
        Step::Together(chains),
    ]
}

fn containerd_config(sandbox_image: &str) -> String {
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{sandbox_image}"
[plugins.'io.containerd.cri.v1.runtime']
  # A machine's root may lack CAP_SYS_RESOURCE: then scores are kept where they may be.
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/opt/cni/bin", "/usr/lib/cni"]
  conf_dir = "/etc/cni/net.d"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
"#
    )
}

fn kubelet_config(topology: &Topology, node: &str, place: &Place) -> String {
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": format!("{DIRECTORY}/pki/ca.crt") },
        },
        "authorization": { "mode": "Webhook" },
        "tlsCertFile": format!("{DIRECTORY}/pki/kubelet.crt"),
        "tlsPrivateKeyFile": format!("{DIRECTORY}/pki/kubelet.key"),
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "clusterDNS": dns::addresses(&topology.kubernetes),
        "clusterDomain": dns::DOMAIN,
        "resolvConf": "/etc/resolv.conf",
        // Nodes share one kernel: no node owns the machine's resources, and cgroup v1 will do. Without groups of its own
        // the kubelet would let containers have theirs beside everybody else's, where no one finds them any more.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", node_group(place, node)),
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        // A full disk of the developer must not evict pods.
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 250,
        "serializeImagePulls": false,
    });
    format!("{config:#}\n")
}
