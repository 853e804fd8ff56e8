//! Who asked for what to be advertised, from all that was found out.

use kube::ResourceExt;
use underlay_api::RouteAdvertisements;
use underlay_api::conditions::is_true;
use underlay_api::route_advertisements::{
    ACCEPTED, AdvertisementType, NetworkSelectionType, NetworkSelector,
};
use underlay_plan::cluster::advertise::labels_of;
use underlay_world::select::picks;
use underlay_world::{Definition, Scope};

use super::facts::Facts;

impl Facts {
    /// Advertisements that ask for pods, of whatever network.
    pub fn of_pods(&self) -> impl Iterator<Item = &RouteAdvertisements> {
        self.advertisements.iter().filter(|object| object.spec.advertises(&AdvertisementType::PodNetwork))
    }

    /// Advertisements that ask for the pods of a tenant's network.
    pub fn advertisers<'a>(
        &'a self,
        definition: &'a Definition,
    ) -> impl Iterator<Item = &'a RouteAdvertisements> {
        let labels = labels_of(definition);
        self.of_pods().filter(move |object| {
            let picked = |selector: &NetworkSelector| {
                let cluster = selector.cluster_user_defined_network_selector.as_ref();
                selector.network_selection_type == NetworkSelectionType::ClusterUserDefinedNetworks
                    && definition.scope() == Scope::Cluster
                    && cluster.is_some_and(|one| picks(&one.network_selector, &labels).unwrap_or(false))
            };
            object.spec.network_selectors.iter().any(picked)
        })
    }
}

/// Names of advertisements: those that are accepted, and the others.
pub fn by_verdict<'a>(objects: impl Iterator<Item = &'a RouteAdvertisements>) -> (Vec<String>, Vec<String>) {
    let accepted = |object: &&RouteAdvertisements| {
        object.status.as_ref().is_some_and(|status| is_true(&status.conditions, ACCEPTED))
    };
    let (yes, no): (Vec<_>, Vec<_>) = objects.partition(accepted);
    let names = |objects: Vec<&RouteAdvertisements>| objects.iter().map(|one| one.name_any()).collect();
    (names(yes), names(no))
}
