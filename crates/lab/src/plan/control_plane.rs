//! etcd, API server, controller manager and scheduler on the node that hosts them, and the rights of our own actors.

use std::net::IpAddr;

use super::{Daemon, Place, Probe, Step, dns, underlay, words, write, write_secret};
use crate::pki::{Actor, Pki};
use crate::topology::{Machine, Topology};

/// Where the API server listens.
pub const API_PORT: u16 = 6443;
/// Directory of keys and kubeconfigs on a node.
pub(super) const DIRECTORY: &str = "/etc/kubernetes";

/// What the cluster manager and the agents may do, as objects of the API.
pub const RBAC: &str = include_str!("rbac.yaml");

/// Keys, etcd, the API server and its two companions.
pub(super) fn steps(topology: &Topology, machine: &Machine, pki: &Pki, place: &Place) -> Vec<Step> {
    let mut steps = keys(pki);
    let local = format!("https://127.0.0.1:{API_PORT}");
    for actor in [Actor::Admin, Actor::ClusterManager, Actor::ControllerManager, Actor::Scheduler] {
        steps.push(write_secret(&kubeconfig_path(actor), pki.kubeconfig(actor, &local)));
    }
    steps.push(Step::Start(etcd()));
    steps.push(Step::Start(api_server(topology, machine)));
    let admin = kubeconfig_path(Actor::Admin);
    steps.push(Step::Feed {
        argv: words(&format!("kubectl --kubeconfig {admin} create --validate=false -f -")),
        input: RBAC.to_owned(),
    });
    let mut chains = vec![vec![Step::Start(controller_manager())], vec![Step::Start(scheduler())]];
    if topology.kubernetes.runs_underlay() {
        steps.push(underlay::definitions(&admin));
        steps.push(underlay::settings(topology));
        chains.push(vec![Step::Start(underlay::manager())]);
        chains.push(underlay::peers(topology, &admin));
        chains.push(vec![dns::create(&topology.kubernetes, place, &admin)]);
    }
    steps.push(Step::Together(chains));
    steps
}

/// Waits until every node has registered and, if there is somebody to give pods their network, is ready for them and
/// names are answered.
pub(super) fn final_steps(topology: &Topology, machine: &Machine) -> Vec<Step> {
    if !topology.kubernetes.kubelets {
        return vec![];
    }
    let nodes: Vec<String> = topology.nodes().map(|node| format!("node/{}", node.name)).collect();
    let kubectl = format!("kubectl --kubeconfig {}", kubeconfig_path(Actor::Admin));
    let wait = format!("{kubectl} wait --timeout=120s");
    let role = format!("node/{} node-role.kubernetes.io/control-plane=", machine.name);
    // One by one: kubectl gives up at once when two of several objects are missing. Without its service account no pod
    // can be made.
    let awaited = nodes.iter().map(String::as_str).chain(["serviceaccount/default"]);
    let mut steps: Vec<Step> =
        awaited.map(|object| Step::Run(words(&format!("{wait} {object} --for=create")))).collect();
    // A kubelet may not give its own node a role.
    steps.push(Step::Run(words(&format!("{kubectl} label {role}"))));
    if topology.kubernetes.runs_underlay() {
        let ready = Step::Run(words(&format!("{wait} {} --for=condition=Ready", nodes.join(" "))));
        steps.push(Step::Together(vec![vec![ready], vec![dns::wait()]]));
    }
    steps
}

/// Path of an actor's kubeconfig on its node.
pub fn kubeconfig_path(actor: Actor<'_>) -> String {
    format!("{DIRECTORY}/{}.kubeconfig", actor.slug())
}

fn keys(pki: &Pki) -> Vec<Step> {
    let mut steps = vec![
        write(&format!("{DIRECTORY}/pki/ca.crt"), &pki.authority.certificate),
        write_secret(&format!("{DIRECTORY}/pki/ca.key"), &pki.authority.key),
        write(&format!("{DIRECTORY}/pki/sa.pub"), &pki.service_accounts.certificate),
        write_secret(&format!("{DIRECTORY}/pki/sa.key"), &pki.service_accounts.key),
    ];
    for actor in [Actor::ApiServer, Actor::ApiServerToKubelets, Actor::ApiServerToExtensions] {
        let identity = pki.of(actor);
        steps.push(write(&format!("{DIRECTORY}/pki/{}.crt", actor.slug()), &identity.certificate));
        steps.push(write_secret(&format!("{DIRECTORY}/pki/{}.key", actor.slug()), &identity.key));
    }
    steps
}

fn etcd() -> Daemon {
    Daemon {
        name: "etcd".to_owned(),
        // Plain HTTP on the loopback of this machine's own namespace; nothing survives the lab, so nothing is synced.
        argv: words(
            "etcd --name=lab --data-dir=/var/lib/etcd --listen-client-urls=http://127.0.0.1:2379 \
             --advertise-client-urls=http://127.0.0.1:2379 --listen-peer-urls=http://127.0.0.1:2380 \
             --initial-advertise-peer-urls=http://127.0.0.1:2380 --initial-cluster=lab=http://127.0.0.1:2380 \
             --unsafe-no-fsync --log-level=warn",
        ),
        ready: Probe::tcp("127.0.0.1:2379"),
        after: vec![],
    }
}

fn api_server(topology: &Topology, machine: &Machine) -> Daemon {
    let services = join(topology.kubernetes.service_subnets.iter());
    let advertise = topology.cluster_addresses(machine).first().map(IpAddr::to_string).unwrap_or_default();
    let pki = format!("{DIRECTORY}/pki");
    let argv = words(&format!(
        "kube-apiserver --etcd-servers=http://127.0.0.1:2379 --secure-port={API_PORT} --bind-address=:: \
         --advertise-address={advertise} --service-cluster-ip-range={services} --authorization-mode=Node,RBAC \
         --enable-admission-plugins=NodeRestriction --allow-privileged=true --client-ca-file={pki}/ca.crt \
         --tls-cert-file={pki}/apiserver.crt --tls-private-key-file={pki}/apiserver.key \
         --kubelet-certificate-authority={pki}/ca.crt \
         --kubelet-client-certificate={pki}/apiserver-kubelet-client.crt \
         --kubelet-client-key={pki}/apiserver-kubelet-client.key --kubelet-preferred-address-types=InternalIP \
         --service-account-issuer=https://kubernetes.default.svc.cluster.local \
         --service-account-key-file={pki}/sa.pub --service-account-signing-key-file={pki}/sa.key \
         --requestheader-client-ca-file={pki}/ca.crt --requestheader-allowed-names=front-proxy-client \
         --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
         --requestheader-extra-headers-prefix=X-Remote-Extra- \
         --proxy-client-cert-file={pki}/front-proxy-client.crt --proxy-client-key-file={pki}/front-proxy-client.key \
         --enable-aggregator-routing=true --profiling=false"
    ));
    // Everyone may ask whether it is ready, once it has made its own roles. curl starts faster than kubectl by far, and
    // this runs over and over while the API server needs the processor.
    let probe = format!("curl -sf --max-time 5 --cacert {pki}/ca.crt https://127.0.0.1:{API_PORT}/readyz");
    Daemon {
        name: "kube-apiserver".to_owned(),
        argv,
        ready: Probe::command("the API server to be ready", words(&probe)),
        after: vec![],
    }
}

fn controller_manager() -> Daemon {
    let config = kubeconfig_path(Actor::ControllerManager);
    let pki = format!("{DIRECTORY}/pki");
    Daemon {
        name: "kube-controller-manager".to_owned(),
        argv: words(&format!(
            "kube-controller-manager --kubeconfig={config} --authentication-kubeconfig={config} \
             --authorization-kubeconfig={config} --bind-address=127.0.0.1 --leader-elect=false \
             --use-service-account-credentials=true --service-account-private-key-file={pki}/sa.key \
             --root-ca-file={pki}/ca.crt --cluster-signing-cert-file={pki}/ca.crt \
             --cluster-signing-key-file={pki}/ca.key --profiling=false"
        )),
        ready: Probe::tcp("127.0.0.1:10257"),
        after: vec![],
    }
}

fn scheduler() -> Daemon {
    let config = kubeconfig_path(Actor::Scheduler);
    Daemon {
        name: "kube-scheduler".to_owned(),
        argv: words(&format!(
            "kube-scheduler --kubeconfig={config} --authentication-kubeconfig={config} \
             --authorization-kubeconfig={config} --bind-address=127.0.0.1 --leader-elect=false --profiling=false"
        )),
        ready: Probe::tcp("127.0.0.1:10259"),
        after: vec![],
    }
}

/// Joins with commas.
pub(super) fn join<T: ToString>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}
