//! The kinds of objects a world is made of: how each enters and leaves it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::{core, discovery};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use underlay_api::{
    BGPSessionState, ClusterUserDefinedNetwork, EgressIP, FRRConfiguration, FRRNodeState,
    NetworkAttachmentDefinition, RouteAdvertisements, UserDefinedNetwork,
};

use crate::{
    AnyAttachment, AnySlice, Attached, Attachment, Definition, EgressIp, EndpointSlice, Key, Nad, Namespace,
    Node, Pod, Secret, Service, Session, Slice, Speaker, World,
};

/// A kind of object.
pub trait Kind: Sized + 'static {
    /// What the world keeps of an object. Two that are equal mean the same to every plan.
    type Record: PartialEq;

    /// Its name, for people.
    const NAME: &'static str;

    /// Reads an object; nothing if the world has no use for this one.
    fn read(self) -> Option<Self::Record>;

    /// Where the world keeps them.
    fn store(world: &mut World) -> &mut BTreeMap<Key, Self::Record>;
}

/// Key of an object with this metadata.
pub fn key_of(metadata: &ObjectMeta) -> Key {
    Key {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}

/// Makes a wrapper the resource that it wraps, for those who read the same objects in another way.
macro_rules! wraps {
    ($wrapper:ty, $object:ty) => {
        impl kube::Resource for $wrapper {
            type DynamicType = ();
            type Scope = k8s_openapi::NamespaceResourceScope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                <$object as kube::Resource>::kind(&())
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                <$object as kube::Resource>::group(&())
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                <$object as kube::Resource>::version(&())
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                <$object as kube::Resource>::plural(&())
            }

            fn meta(&self) -> &ObjectMeta {
                &self.0.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.0.metadata
            }
        }
    };
}

wraps!(AnyAttachment, NetworkAttachmentDefinition);
wraps!(AnySlice, discovery::v1::EndpointSlice);

/// Implements a kind that is kept behind an [`Arc`].
macro_rules! kind {
    ($object:ty, $record:ty, $name:literal, $store:ident, $read:expr) => {
        impl Kind for $object {
            type Record = $record;
            const NAME: &'static str = $name;

            fn read(self) -> Option<Self::Record> {
                #[allow(clippy::redundant_closure_call, reason = "one shape for all kinds")]
                ($read)(self)
            }

            fn store(world: &mut World) -> &mut BTreeMap<Key, Self::Record> {
                &mut world.$store
            }
        }
    };
}

kind!(core::v1::Node, Arc<Node>, "Node", nodes, |node| Some(Arc::new(Node::read(&node))));
kind!(core::v1::Pod, Arc<Pod>, "Pod", pods, |pod| Some(Arc::new(Pod::read(&pod))));
kind!(core::v1::Service, Arc<Service>, "Service", services, |service| Service::read(&service).map(Arc::new));
kind!(discovery::v1::EndpointSlice, Arc<EndpointSlice>, "EndpointSlice", slices, |slice| {
    EndpointSlice::read(&slice).map(Arc::new)
});
kind!(NetworkAttachmentDefinition, Arc<Nad>, "NetworkAttachmentDefinition", nads, |nad| {
    Nad::read(&nad).map(Arc::new)
});
kind!(AnyAttachment, Arc<Attachment>, "NetworkAttachmentDefinition", attachments, |any: AnyAttachment| {
    Some(Arc::new(Attachment::read(any.0)))
});
kind!(ClusterUserDefinedNetwork, Arc<Definition>, "ClusterUserDefinedNetwork", cluster_networks, |object| {
    Some(Arc::new(Definition::of_cluster(object)))
});
kind!(UserDefinedNetwork, Arc<Definition>, "UserDefinedNetwork", networks, |object| {
    Some(Arc::new(Definition::of_namespace(object)))
});
kind!(core::v1::Namespace, Arc<Namespace>, "Namespace", namespaces, |object| {
    Some(Arc::new(Namespace::read(object)))
});
kind!(AnySlice, Arc<Slice>, "EndpointSlice", any_slices, |any: AnySlice| Slice::read(any.0).map(Arc::new));
kind!(PartialObjectMeta<core::v1::Pod>, Arc<Attached>, "Pod", attached, |pod: PartialObjectMeta<
    core::v1::Pod,
>| {
    Attached::read(&pod.metadata).map(Arc::new)
});
kind!(RouteAdvertisements, Arc<RouteAdvertisements>, "RouteAdvertisements", advertisements, |object| {
    Some(Arc::new(without_bookkeeping(object)))
});
kind!(EgressIP, Arc<EgressIp>, "EgressIP", egress_ips, |object| Some(Arc::new(EgressIp::read(object))));
kind!(FRRConfiguration, Arc<FRRConfiguration>, "FRRConfiguration", frr_configurations, |object| {
    Some(Arc::new(without_bookkeeping(object)))
});
kind!(FRRNodeState, Speaker, "FRRNodeState", speakers, Speaker::read);
kind!(BGPSessionState, Session, "BGPSessionState", sessions, Session::read);
kind!(core::v1::Secret, Secret, "Secret", secrets, |secret| Some(Secret::read(secret)));

/// Field ownership is the larger part of many objects, and nobody reads it here.
fn without_bookkeeping<K: kube::Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}
