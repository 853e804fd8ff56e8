//! A pod as we see it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use underlay_api::annotations::{Annotation, PodNetworks};

use crate::Key;
use crate::kind::key_of;

/// A pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Pod {
    /// Namespace and name.
    pub key: Key,
    /// Its identity: another pod of the same name has another one.
    pub uid: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The node it runs on; empty before it is scheduled.
    pub node: String,
    /// Whether it lives in the node's own network.
    pub host_network: bool,
    /// How far it is.
    pub state: PodState,
    /// What its networks have given it, if that was recorded.
    pub networks: Option<PodNetworks>,
    /// What is wrong with that record.
    pub problem: Option<String>,
}

/// How far a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodState {
    /// It runs or will.
    Living,
    /// It ended and will not run again: its addresses are free.
    Ended,
}

impl Pod {
    /// Reads a pod.
    pub fn read(object: &v1::Pod) -> Self {
        let spec = object.spec.as_ref();
        let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
        let (networks, problem) = match PodNetworks::of(&object.metadata) {
            Ok(networks) => (networks, None),
            Err(problem) => (None, Some(problem.to_string())),
        };
        Self {
            key: key_of(&object.metadata),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            labels: object.metadata.labels.clone().unwrap_or_default(),
            node: spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            host_network: spec.and_then(|spec| spec.host_network).unwrap_or(false),
            state: match phase {
                Some("Succeeded" | "Failed") => PodState::Ended,
                _ => PodState::Living,
            },
            networks,
            problem,
        }
    }

    /// Whether it needs a port on this node.
    pub fn needs_port(&self) -> bool {
        !self.host_network && self.state == PodState::Living
    }
}
