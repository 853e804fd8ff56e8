//! CHECK: whether a pod's interface is still as it was made.

use std::path::Path;

use underlay_cni::result::{Failure, code};
use underlay_cni::verb::Attachment;
use underlay_ovs::pods::pod_ports;
use underlay_world::Key;

use super::{Server, broken};

impl Server {
    /// Compares the interface with the plan.
    pub(super) async fn verify(&self, attachment: &Attachment) -> Result<(), Failure> {
        let key = Key::new(&attachment.pod.namespace, &attachment.pod.name);
        let Some(pods) = self.pods.borrow().clone() else {
            return Err(Failure::new(code::TRY_AGAIN, "the node is not ready yet"));
        };
        let Some(pod) = pods.pods.get(&key) else {
            return Err(wrong(format!("pod {key} is not known on this node")));
        };
        let namespace = Path::new(attachment.namespace.as_deref().unwrap_or_default());
        let state = underlay_linux::veth::read_pod(namespace, &attachment.interface).await;
        let Some(state) = state.map_err(|error| broken(&error))? else {
            return Err(wrong(format!("{} is not in {}", attachment.interface, namespace.display())));
        };
        if state.link.mac != Some(pod.network.mac) {
            return Err(wrong(format!("{} has not MAC address {}", attachment.interface, pod.network.mac)));
        }
        if let Some(missing) = pod.network.addresses.iter().find(|net| !state.addresses.contains(net)) {
            return Err(wrong(format!("{} lacks address {missing}", attachment.interface)));
        }
        let replica = self.switch.loaded().await.map_err(|error| broken(&error))?;
        if pod_ports(&replica).iter().any(|port| port.sandbox == attachment.container) {
            return Ok(());
        }
        Err(wrong(format!("Open vSwitch has no port for {}", attachment.interface)))
    }
}

fn wrong(problem: String) -> Failure {
    Failure::new(code::NOT_AS_IT_SHOULD_BE, problem)
}
