//! Which news are the node's business. Every node has FRRConfigurations of its own, and all agents hear of all of them:
//! what is told to other nodes alone needs no plan.
//!
//! In: what is new. Out: whether it is worth a turn.

use std::sync::Arc;

use underlay_api::FRRConfiguration;
use underlay_plan::node::frr;
use underlay_runtime::turn::Turn;
use underlay_world::{Kind, Node, World};

/// What the node was concerned by when it looked last.
#[derive(Debug, Default)]
pub struct Concern {
    configurations: Vec<Arc<FRRConfiguration>>,
}

impl Concern {
    /// Whether anything of this is the node's business.
    pub fn takes(&mut self, news: &Turn, node: Option<&Node>, world: &World) -> bool {
        let now: Vec<_> = node.into_iter().flat_map(|node| frr::concerning(node, world)).cloned().collect();
        let same = now.len() == self.configurations.len()
            && now.iter().zip(&self.configurations).all(|(new, old)| Arc::ptr_eq(new, old));
        self.configurations = now;
        // A list may be the last thing that the first plan waits for.
        !same || news.anywhere || news.changed.iter().ne([&FRRConfiguration::NAME])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use underlay_world::Key;

    use super::*;

    fn configuration(host: &str) -> Arc<FRRConfiguration> {
        let selector = json!({ "matchLabels": { "kubernetes.io/hostname": host } });
        let object = json!({ "metadata": { "name": host }, "spec": { "nodeSelector": selector } });
        Arc::new(serde_json::from_value(object).expect("a configuration"))
    }

    fn news(kinds: &[&'static str]) -> Turn {
        Turn { changed: kinds.iter().copied().collect(), ready: true, ..Turn::default() }
    }

    #[test]
    fn configurations_of_other_nodes_alone_are_no_news() {
        let labels = [("kubernetes.io/hostname".to_owned(), "n1".to_owned())].into();
        let node = Node { name: "n1".to_owned(), labels, ..Node::default() };
        let (mut world, mut concern) = (World::default(), Concern::default());
        let own = news(&["FRRConfiguration"]);
        world.frr_configurations.insert(Key::cluster("n1"), configuration("n1"));
        assert!(concern.takes(&own, Some(&node), &world), "its own");
        world.frr_configurations.insert(Key::cluster("n2"), configuration("n2"));
        assert!(!concern.takes(&own, Some(&node), &world), "another node's");
        assert!(
            concern.takes(&news(&["FRRConfiguration", "Pod"]), Some(&node), &world),
            "and something else"
        );
        assert!(concern.takes(&news(&[]), Some(&node), &world), "who says nothing may mean anything");
        let listed = Turn { anywhere: true, ..own.clone() };
        assert!(concern.takes(&listed, Some(&node), &world), "all of them were listed");
        world.frr_configurations.insert(Key::cluster("n1"), configuration("n1"));
        assert!(concern.takes(&own, Some(&node), &world), "its own, changed");
        world.frr_configurations.remove(&Key::cluster("n1"));
        assert!(concern.takes(&own, Some(&node), &world), "its own, gone");
    }
}
