//! Which news are the node's business. Every node has FRRConfigurations of its own, and all agents hear of all of them:
//! what is told to other nodes alone needs no plan.
//!
//! In: what is new. Out: who has something to do about it.

use std::sync::Arc;

use underlay_api::FRRConfiguration;
use underlay_plan::node::frr;
use underlay_runtime::turn::Turn;
use underlay_world::{Kind, Node, World};

/// Whom news are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// None of this node.
    Nobody,
    /// First of all the speaker; the rest may come with what follows.
    Speaker,
    /// All.
    Everybody,
}

/// What the node was concerned by when it looked last.
#[derive(Debug, Default)]
pub struct Concern {
    configurations: Vec<Arc<FRRConfiguration>>,
}

impl Concern {
    /// Whose business this is.
    pub fn of(&mut self, news: &Turn, node: Option<&Node>, world: &World) -> For {
        let now: Vec<_> = node.into_iter().flat_map(|node| frr::concerning(node, world)).cloned().collect();
        let same = now.len() == self.configurations.len()
            && now.iter().zip(&self.configurations).all(|(new, old)| Arc::ptr_eq(new, old));
        self.configurations = now;
        // A list may be the last thing that the first plan waits for.
        if news.anywhere || news.changed.iter().ne([&FRRConfiguration::NAME]) {
            For::Everybody
        } else if same {
            For::Nobody
        } else {
            For::Speaker
        }
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
        assert_eq!(concern.of(&own, Some(&node), &world), For::Speaker, "its own");
        world.frr_configurations.insert(Key::cluster("n2"), configuration("n2"));
        assert_eq!(concern.of(&own, Some(&node), &world), For::Nobody, "another node's");
        let more = news(&["FRRConfiguration", "Pod"]);
        assert_eq!(concern.of(&more, Some(&node), &world), For::Everybody, "and something else");
        let silent = news(&[]);
        assert_eq!(concern.of(&silent, Some(&node), &world), For::Everybody, "silence may mean anything");
        let listed = Turn { anywhere: true, ..own.clone() };
        assert_eq!(concern.of(&listed, Some(&node), &world), For::Everybody, "all of them were listed");
        world.frr_configurations.insert(Key::cluster("n1"), configuration("n1"));
        assert_eq!(concern.of(&own, Some(&node), &world), For::Speaker, "its own, changed");
        world.frr_configurations.remove(&Key::cluster("n1"));
        assert_eq!(concern.of(&own, Some(&node), &world), For::Speaker, "its own, gone");
    }
}
