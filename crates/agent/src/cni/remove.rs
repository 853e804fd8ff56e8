//! DEL and GC: interfaces go. What is not there any more is gone already, and that is a success.

use std::collections::BTreeSet;

use underlay_cni::result::Failure;
use underlay_cni::verb::{Attachment, ValidAttachment};
use underlay_net::names::host_interface;
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
        let link = host_interface(sandbox);
        let (ports, link) = tokio::join!(
            remove_pod_ports(&self.switch, sandbox),
            self.hands.run(async move |kernel| kernel.delete_link(&link).await),
        );
        ports.map_err(|error| broken(&error))?;
        link.map_err(|error| broken(&error))
    }
}
