//! DEL and GC: interfaces go. What is not there any more is gone already, and that is a success.

use std::collections::BTreeSet;

use underlay_cni::result::Failure;
use underlay_cni::verb::{Attachment, ValidAttachment};
use underlay_linux::Fault;
use underlay_net::names::{host_interface, is_host_interface};
use underlay_ovs::pods::{pod_ports, remove_pod_ports};

use super::{Server, broken};

impl Server {
    /// Takes a container's interface away.
    pub(super) async fn remove(&self, attachment: &Attachment) -> Result<(), Failure> {
        self.remove_sandbox(&attachment.container).await
    }

    /// Takes away the interfaces of all containers that the runtime does not know any more.
    pub(super) async fn collect(&self, valid: &[ValidAttachment]) -> Result<(), Failure> {
        let valid: BTreeSet<&str> = valid.iter().map(|attachment| attachment.container.as_str()).collect();
        let replica = self.switch.loaded().await.map_err(|error| broken(&error))?;
        let gone: BTreeSet<String> = pod_ports(&replica)
            .into_iter()
            .map(|port| port.sandbox)
            .filter(|sandbox| !valid.contains(sandbox.as_str()))
            .collect();
        for sandbox in gone {
            self.remove_sandbox(&sandbox).await?;
        }
        Ok(())
    }

    async fn remove_sandbox(&self, sandbox: &str) -> Result<(), Failure> {
        let _turn = self.turns.to_remove(sandbox).await;
        let links = self.links_of(sandbox).await?;
        let (ports, links) = tokio::join!(
            remove_pod_ports(&self.switch, sandbox),
            self.hands.run(async move |kernel| {
                for link in &links {
                    kernel.delete_link(link).await?;
                }
                Ok(())
            }),
        );
        ports.map_err(|error| broken(&error))?;
        links.map_err(|error: Fault| broken(&error))
    }

    /// The node's ends of a container's cables: the one that every container has, whether it is on the switch or not,
    /// and those that are.
    async fn links_of(&self, sandbox: &str) -> Result<BTreeSet<String>, Failure> {
        let replica = self.switch.loaded().await.map_err(|error| broken(&error))?;
        let ports = pod_ports(&replica).into_iter().filter(|port| port.sandbox == sandbox);
        let known = ports.map(|port| port.name).filter(|name| is_host_interface(name));
        Ok(known.chain([host_interface(sandbox)]).collect())
    }
}
