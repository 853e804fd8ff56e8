//! What a turn of the watches means: whether everything is planned again, only endpoints, or nothing.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Pod};
use underlay_runtime::turn::Turn;
use underlay_world::{AnySlice, Kind};

/// What is new.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// Endpoints in these namespaces may be others now, and nothing else.
    Endpoints(BTreeSet<String>),
    /// Anything may be another now.
    Anything,
}

impl News {
    /// What a turn of the watches means in which no node is another. Pods matter to other plans only where a network waits
    /// for them to end.
    pub fn of(mut turn: Turn, waits_for_pods: bool) -> Option<Self> {
        let only_nodes = turn.changed.remove(Node::NAME) && turn.changed.is_empty();
        let small = |kind: &&str| *kind == AnySlice::NAME || (*kind == Pod::NAME && !waits_for_pods);
        if only_nodes {
            None
        } else if turn.changed.is_empty() || turn.anywhere || !turn.changed.iter().all(small) {
            Some(Self::Anything)
        } else {
            Some(Self::Endpoints(turn.namespaces))
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;

    use super::*;

    #[test]
    fn pods_and_slices_alone_are_no_reason_to_plan_everything() {
        let turn = |kinds: &[&'static str], anywhere| Turn {
            changed: kinds.iter().copied().collect(),
            namespaces: BTreeSet::from(["red".to_owned()]),
            anywhere,
            ready: true,
        };
        let small = Some(News::Endpoints(BTreeSet::from(["red".to_owned()])));
        assert_eq!(News::of(turn(&[Pod::NAME, AnySlice::NAME], false), false), small);
        assert_eq!(News::of(turn(&[Pod::NAME, Node::NAME], false), false), small, "an echo beside them");
        assert_eq!(News::of(turn(&[AnySlice::NAME], false), true), small);
        let all = Some(News::Anything);
        assert_eq!(News::of(turn(&[Pod::NAME], false), true), all, "a network waits for them");
        assert_eq!(News::of(turn(&[Pod::NAME, Namespace::NAME], false), false), all);
        assert_eq!(News::of(turn(&[Pod::NAME], true), false), all, "it may be anywhere");
        assert_eq!(News::of(turn(&[], false), false), all, "a kind was listed for the first time");
        assert_eq!(News::of(turn(&[Node::NAME], false), false), None, "an echo alone");
    }
}
