//! ADD: a pod gets its interfaces, one in each of its networks.

use std::path::Path;

use futures::TryFutureExt;
use futures::future::try_join_all;
use underlay_cni::result::{Failure, Success, code};
use underlay_cni::verb::Attachment;
use underlay_linux::veth::configure_pod;
use underlay_linux::{Fault, PodInterface, Veth};
use underlay_ovs::pods::{add_pod_port, remove_pod_ports, wait_installed};
use underlay_plan::node::addresses::{Placed, PlacedPod};
use underlay_world::Key;

use super::cable::{Cable, cables, success};
use super::{Server, broken};

impl Server {
    /// Makes the interfaces; returns when packets flow. Doing it again does no harm.
    pub(super) async fn add(&self, attachment: &Attachment) -> Result<Success, Failure> {
        let key = Key::new(&attachment.pod.namespace, &attachment.pod.name);
        let namespace = attachment.namespace.as_deref().unwrap_or_default();
        if !Path::new(namespace).exists() {
            let problem = format!("network namespace {namespace} is not there");
            return Err(Failure::new(code::UNKNOWN_CONTAINER, problem));
        }
        let mut turn = self.turns.to_add(&attachment.container).await;
        let pod = turn.unless_removed(self.placed(&key, attachment)).await?;
        let cables = cables(attachment, &key, &pod, self.mtu);
        self.plug_in(attachment, Path::new(namespace), &cables).await?;
        for cable in &cables {
            let installed = wait_installed(&self.switch, &cable.veth.host, &pod.uid);
            turn.unless_removed(installed.map_err(|error| broken(&error))).await?;
        }
        turn.unless_removed(self.recorded(&key, &pod.uid)).await?;
        Ok(success(attachment, &cables))
    }

    /// Makes the cables, and connects both ends of each.
    async fn plug_in(
        &self,
        attachment: &Attachment,
        namespace: &Path,
        cables: &[Cable],
    ) -> Result<(), Failure> {
        let (pod_end, veths) = (namespace.to_owned(), cables.iter().map(|cable| cable.veth.clone()));
        let veths: Vec<Veth> = veths.collect();
        let made = self.hands.run(async move |kernel| {
            let mut kept = true;
            for veth in &veths {
                kept &= kernel.create_veth(veth, &pod_end).await?;
            }
            Ok(kept)
        });
        if !made.await.map_err(|error: Fault| broken(&error))? {
            // A port that an earlier link of this name had carries nothing any more, whatever it says.
            let removed = remove_pod_ports(&self.switch, &attachment.container).await;
            removed.map_err(|error| broken(&error))?;
        }
        let pod_end = namespace.to_owned();
        let interfaces: Vec<PodInterface> = cables.iter().map(|cable| cable.interface.clone()).collect();
        let configure = self.hands.run(async move |_| {
            for interface in &interfaces {
                configure_pod(&pod_end, interface).await?;
            }
            Ok(())
        });
        let attach = try_join_all(cables.iter().map(|cable| add_pod_port(&self.switch, &cable.port)));
        let (configured, attached) = tokio::join!(configure, attach);
        configured.map_err(|error: Fault| broken(&error))?;
        attached.map(drop).map_err(|error| broken(&error))
    }

    /// Waits until the pod has its addresses in all its networks.
    async fn placed(&self, key: &Key, attachment: &Attachment) -> Result<PlacedPod, Failure> {
        self.look(|pods| {
            if let Some(problem) = pods.problems.get(key) {
                return Some(Err(Failure::new(code::TRY_AGAIN, problem.clone())));
            }
            let pod = pods.pods.get(key).filter(|pod| pod.waiting.is_none())?;
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
            (None, Some(PlacedPod { waiting: Some(what), .. })) => format!("pod {key} waits for {what}"),
            (None, Some(pod)) if pod.record.is_some() => {
                format!("the addresses of pod {key} cannot be recorded")
            }
            (None, Some(_)) => format!("ovn-controller did not install the port of pod {key}: see its log"),
        };
        Failure::new(code::TRY_AGAIN, problem)
    }
}
