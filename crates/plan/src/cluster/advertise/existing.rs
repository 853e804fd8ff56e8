//! What was generated before, found by the advertisement and the node it was generated for.

use std::collections::BTreeMap;
use std::sync::Arc;

use underlay_api::annotations::{Advertisers, Annotation, GeneratedFrom};
use underlay_api::{FRRConfiguration, Shared};
use underlay_world::{Key, World};

use super::is_generated;

type ByNode<'a> = BTreeMap<String, Vec<(&'a Key, &'a Arc<FRRConfiguration>)>>;

/// Generated configurations that are there.
pub struct Existing<'a> {
    world: &'a World,
    by_advertisement: BTreeMap<String, ByNode<'a>>,
}

impl<'a> Existing<'a> {
    /// Those of a world.
    pub fn of(world: &'a World) -> Self {
        let mut by_advertisement: BTreeMap<String, ByNode<'a>> = BTreeMap::new();
        for (key, object) in world.frr_configurations.iter().filter(|(key, object)| is_generated(key, object))
        {
            let Ok(Some(origin)) = GeneratedFrom::of(&object.metadata) else { continue };
            let nodes = by_advertisement.entry(origin.advertisements).or_default();
            nodes.entry(origin.node).or_default().push((key, object));
        }
        Self { world, by_advertisement }
    }

    /// All of an advertisement, with the node of each.
    pub fn all(
        &self,
        advertisements: &str,
    ) -> impl Iterator<Item = (&str, &'a Key, &'a Arc<FRRConfiguration>)> {
        let nodes = self.by_advertisement.get(advertisements).into_iter().flatten();
        nodes.flat_map(|(node, objects)| objects.iter().map(|(key, object)| (node.as_str(), *key, *object)))
    }

    /// Those of an advertisement for a node.
    pub fn on(&self, advertisements: &str, node: &str) -> &[(&'a Key, &'a Arc<FRRConfiguration>)] {
        let nodes = self.by_advertisement.get(advertisements);
        nodes.and_then(|nodes| nodes.get(node)).map_or(&[], Vec::as_slice)
    }

    /// What a node tells its peers for an advertisement, unless each of its routers tells something else.
    pub fn prefixes(&self, advertisements: &str, node: &str) -> Option<&'a Shared<String>> {
        let first =
            self.on(advertisements, node).iter().filter_map(|(_, object)| object.spec.bgp.routers.first());
        first.map(|router| &router.prefixes).find(|prefixes| !prefixes.is_empty())
    }

    /// The networks whose attachments say that an advertisement advertises them.
    pub fn networks(&self, advertisements: &str) -> impl Iterator<Item = &'a str> {
        self.world.attachments.values().filter_map(move |attachment| {
            let text = attachment.annotations.get(Advertisers::KEY)?;
            let listed = Advertisers::parse(text).is_ok_and(|listed| listed.0.contains(advertisements));
            attachment.network.as_deref().filter(|_| listed)
        })
    }
}
