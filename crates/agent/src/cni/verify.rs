//! CHECK: whether a pod's interfaces are still as they were made.

use std::path::Path;

use underlay_cni::result::{Failure, code};
use underlay_cni::verb::Attachment;
use underlay_linux::PodInterface;
use underlay_ovs::pods::{HeldPort, pod_ports};
use underlay_world::Key;

use super::cable::cables;
use super::{Server, broken};

impl Server {
    /// Compares the interfaces with the plan.
    pub(super) async fn verify(&self, attachment: &Attachment) -> Result<(), Failure> {
        let key = Key::new(&attachment.pod.namespace, &attachment.pod.name);
        let Some(pods) = self.pods.borrow().clone() else {
            return Err(Failure::new(code::TRY_AGAIN, "the node is not ready yet"));
        };
        let Some(pod) = pods.pods.get(&key) else {
            return Err(wrong(format!("pod {key} is not known on this node")));
        };
        if let Some(what) = &pod.waiting {
            return Err(wrong(format!("pod {key} waits for {what}")));
        }
        let replica = self.switch.loaded().await.map_err(|error| broken(&error))?;
        let namespace = Path::new(attachment.namespace.as_deref().unwrap_or_default());
        for cable in cables(attachment, &key, pod, self.mtu) {
            interface(namespace, &cable.interface).await?;
            let logical = cable.port.external_ids.get("iface-id");
            let carries =
                |port: &HeldPort| port.sandbox == attachment.container && Some(&port.iface_id) == logical;
            if !pod_ports(&replica).iter().any(carries) {
                return Err(wrong(format!("Open vSwitch has no port for {}", cable.interface.name)));
            }
        }
        Ok(())
    }
}

/// Compares one of a pod's interfaces with what it should be.
async fn interface(namespace: &Path, want: &PodInterface) -> Result<(), Failure> {
    let PodInterface { name, mac, addresses, .. } = want;
    let state = underlay_linux::veth::read_pod(namespace, name).await;
    let Some(state) = state.map_err(|error| broken(&error))? else {
        return Err(wrong(format!("{name} is not in {}", namespace.display())));
    };
    if state.link.mac != Some(*mac) {
        return Err(wrong(format!("{name} has not MAC address {mac}")));
    }
    match addresses.iter().find(|net| !state.addresses.contains(net)) {
        Some(missing) => Err(wrong(format!("{name} lacks address {missing}"))),
        None => Ok(()),
    }
}

fn wrong(problem: String) -> Failure {
    Failure::new(code::NOT_AS_IT_SHOULD_BE, problem)
}
