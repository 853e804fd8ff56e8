//! ADD: a pod gets its interface.

use std::path::Path;

use futures::TryFutureExt;
use underlay_cni::result::{Failure, Success, code};
use underlay_cni::verb::Attachment;
use underlay_linux::veth::configure_pod;
use underlay_linux::{PodInterface, Veth};
use underlay_net::names::{host_interface, pod_port};
use underlay_ovs::pods::{PodPort, add_pod_port, remove_pod_ports, wait_installed};
use underlay_plan::node::addresses::{Placed, PlacedPod};
use underlay_world::Key;

use super::{Server, broken};

/// Bridge of OVN's own ports.
const INTEGRATION_BRIDGE: &str = "br-int";

impl Server {
    /// Makes the interface; returns when packets flow. Doing it again does no harm.
    pub(super) async fn add(&self, attachment: &Attachment) -> Result<Success, Failure> {
        let key = Key::new(&attachment.pod.namespace, &attachment.pod.name);
        let namespace = attachment.namespace.as_deref().unwrap_or_default();
        if !Path::new(namespace).exists() {
            let problem = format!("network namespace {namespace} is not there");
            return Err(Failure::new(code::UNKNOWN_CONTAINER, problem));
        }
        let mut turn = self.turns.to_add(&attachment.container).await;
        let pod = turn.unless_removed(self.placed(&key, attachment)).await?;
        let veth = Veth {
            host: host_interface(&attachment.container),
            pod: attachment.interface.clone(),
            mtu: self.mtu,
            mac: pod.network.mac,
        };
        let (namespace, cable) = (Path::new(namespace).to_owned(), veth.clone());
        let pod_end = namespace.clone();
        let kept = self.hands.run(async move |kernel| kernel.create_veth(&cable, &namespace).await);
        let kept = kept.await.map_err(|error| broken(&error))?;
        if !kept {
            // A port that an earlier link of this name had carries nothing any more, whatever it says.
            let removed = remove_pod_ports(&self.switch, &attachment.container).await;
            removed.map_err(|error| broken(&error))?;
        }
        let port = port(attachment, &key, &pod, &veth.host);
        let interface = interface(&veth, &pod);
        let (configured, attached) = tokio::join!(
            self.hands.run(async move |_| configure_pod(&pod_end, &interface).await),
            add_pod_port(&self.switch, &port),
        );
        configured.map_err(|error| broken(&error))?;
        attached.map_err(|error| broken(&error))?;
        let installed = wait_installed(&self.switch, &veth.host, &pod.uid);
        turn.unless_removed(installed.map_err(|error| broken(&error))).await?;
        turn.unless_removed(self.recorded(&key, &pod.uid)).await?;
        Ok(success(attachment, &veth, &pod))
    }

    /// Waits until the pod has its addresses.
    async fn placed(&self, key: &Key, attachment: &Attachment) -> Result<PlacedPod, Failure> {
        self.look(|pods| {
            if let Some(problem) = pods.problems.get(key) {
                return Some(Err(Failure::new(code::TRY_AGAIN, problem.clone())));
            }
            let pod = pods.pods.get(key)?;
            let same = attachment.pod.uid.as_ref().is_none_or(|uid| *uid == pod.uid);
            same.then(|| Ok(pod.clone()))
        })
        .await
    }

    /// Waits until the addresses are written down where others see them.
    async fn recorded(&self, key: &Key, uid: &str) -> Result<(), Failure> {
        self.look(|pods| match pods.pods.get(key) {
            Some(pod) if pod.uid == uid => pod.record.is_none().then_some(Ok(())),
            _ => Some(Err(Failure::new(code::UNKNOWN_CONTAINER, format!("pod {key} is gone")))),
        })
        .await
    }

    /// Waits until a plan has an answer.
    async fn look<T>(&self, answer: impl Fn(&Placed) -> Option<Result<T, Failure>>) -> Result<T, Failure> {
        let mut pods = self.pods.clone();
        loop {
            let found = pods.borrow_and_update().as_ref().and_then(|pods| answer(pods));
            if let Some(found) = found {
                return found;
            }
            if pods.changed().await.is_err() {
                return Err(Failure::new(code::TRY_AGAIN, "underlay-agent is stopping"));
            }
        }
    }

    /// Says how far a pod came in all the time it had.
    pub(super) fn too_late(&self, attachment: &Attachment) -> Failure {
        let key = Key::new(&attachment.pod.namespace, &attachment.pod.name);
        let waiting = self.waiting.borrow().clone();
        let placed = self.pods.borrow().as_ref().and_then(|pods| pods.pods.get(&key).cloned());
        let problem = match (waiting, placed) {
            (Some(what), _) => format!("the node waits for {what}"),
            (None, None) => format!("the API server does not tell of pod {key} on this node"),
            (None, Some(pod)) if pod.record.is_some() => {
                format!("the addresses of pod {key} cannot be recorded")
            }
            (None, Some(_)) => format!("ovn-controller did not install the port of pod {key}: see its log"),
        };
        Failure::new(code::TRY_AGAIN, problem)
    }
}

fn interface(veth: &Veth, pod: &PlacedPod) -> PodInterface {
    PodInterface {
        name: veth.pod.clone(),
        mac: veth.mac,
        mtu: veth.mtu,
        addresses: pod.network.addresses.clone(),
        gateways: pod.network.gateways.clone(),
        routes: pod.network.routes.iter().map(|route| (route.destination, route.next_hop)).collect(),
    }
}

fn port(attachment: &Attachment, key: &Key, pod: &PlacedPod, name: &str) -> PodPort {
    let addresses: Vec<String> = pod.network.addresses.iter().map(ToString::to_string).collect();
    let ids = [
        ("attached_mac", pod.network.mac.to_string()),
        ("iface-id", pod_port(&key.namespace, &key.name)),
        ("iface-id-ver", pod.uid.clone()),
        ("sandbox", attachment.container.clone()),
        ("pod-if-name", attachment.interface.clone()),
        ("ip_addresses", addresses.join(",")),
    ];
    PodPort {
        bridge: INTEGRATION_BRIDGE.to_owned(),
        name: name.to_owned(),
        external_ids: ids.map(|(key, value)| (key.to_owned(), value)).into(),
    }
}

fn success(attachment: &Attachment, veth: &Veth, pod: &PlacedPod) -> Success {
    let gateway_of = |net: &ipnet::IpNet| {
        let of_family = |gateway: &&std::net::IpAddr| gateway.is_ipv4() == net.addr().is_ipv4();
        pod.network.gateways.iter().find(of_family).map(ToString::to_string)
    };
    let defaults = pod.network.gateways.iter().map(|gateway| {
        let everything = if gateway.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        (everything.to_owned(), Some(gateway.to_string()))
    });
    let others = pod
        .network
        .routes
        .iter()
        .map(|route| (route.destination.to_string(), route.next_hop.map(|hop| hop.to_string())));
    Success {
        host_interface: veth.host.clone(),
        interface: veth.pod.clone(),
        sandbox: attachment.namespace.clone().unwrap_or_default(),
        mac: veth.mac.to_string(),
        mtu: veth.mtu,
        addresses: pod.network.addresses.iter().map(|net| (net.to_string(), gateway_of(net))).collect(),
        routes: defaults.chain(others).collect(),
    }
}
