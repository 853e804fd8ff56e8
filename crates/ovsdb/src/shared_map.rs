//! An ordered map whose copies share what they have in common.
//!
//! In: entries. Out: the same, in order. A copy costs one reference count. A change to a copy makes anew only the nodes
//! on the way to the entry, a few hundred bytes each, so a replica of a hundred thousand rows can be published at every
//! change. A map that nobody shares is changed in place.
//!
//! It is a B+ tree: leaves hold entries, branches hold children, both up to [`WIDTH`].

use std::sync::Arc;

/// How many entries or children a node has at most. Wider nodes are read faster and copied slower. Unit tests use narrow
/// ones, which make deep trees of few entries.
const WIDTH: usize = if cfg!(test) { 8 } else { 32 };
/// A node with fewer is joined with a neighbour when both fit into one.
const NARROW: usize = WIDTH / 4;

/// How many a node gets when a map is made all at once. There is room left for what comes later.
const FILL: usize = WIDTH * 3 / 4;

/// An ordered map that is cheap to copy.
#[derive(Debug, Clone)]
pub struct SharedMap<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

/// A node with its bound.
type Child<K, V> = (K, Arc<Node<K, V>>);

#[derive(Debug, Clone)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    /// Children in order, each with a bound: no key of it is smaller, and all keys of its left neighbour are. The
    /// first child takes smaller keys whatever its bound says.
    Branch(Vec<Child<K, V>>),
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// A map without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// A map of entries that are in order, each key once. It is made from the leaves up, much quicker than one by one.
    pub fn from_sorted(entries: Vec<(K, V)>) -> Self {
        let len = entries.len();
        let mut level = cut(entries, Node::Leaf);
        while level.len() > 1 {
            level = cut(level, Node::Branch);
        }
        level.pop().map_or_else(Self::new, |(_, root)| Self { root, len })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(have, _)| have.cmp(key)).ok()?;
                    return entries.get(at).map(|(_, value)| value);
                }
                Node::Branch(children) => node = &children[child_for(children, key)].1,
            }
        }
    }

    /// Puts an entry, and gives back the value it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (replaced, split) = insert_below(&mut self.root, key, value);
        if let Some(right) = split {
            // The bound of the first child is never asked for; any key will do.
            let left = (right.0.clone(), Arc::clone(&self.root));
            self.root = Arc::new(Node::Branch(vec![left, right]));
        }
        self.len += usize::from(replaced.is_none());
        replaced
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        // Looked up first, so that nothing is copied for a key that is not there.
        self.get(key)?;
        let removed = remove_below(&mut self.root, key);
        while let Node::Branch(children) = &*self.root {
            match children.as_slice() {
                [(_, only)] => self.root = Arc::clone(only),
                _ => break,
            }
        }
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// The entries in order.
    pub fn iter(&self) -> Entries<'_, K, V> {
        let mut entries = Entries { branches: Vec::new(), leaf: &[] };
        entries.descend(&self.root, None);
        entries
    }

    /// The entries in order, from the first whose key is not smaller than this one.
    pub fn iter_from(&self, key: &K) -> Entries<'_, K, V> {
        let mut entries = Entries { branches: Vec::new(), leaf: &[] };
        entries.descend(&self.root, Some(key));
        entries
    }
}

/// Puts items into nodes.
fn cut<K: Clone, T, V>(items: Vec<(K, T)>, node: impl Fn(Vec<(K, T)>) -> Node<K, V>) -> Vec<Child<K, V>> {
    let mut nodes = Vec::with_capacity(items.len().div_ceil(FILL));
    let mut items = items.into_iter();
    loop {
        let piece: Vec<(K, T)> = items.by_ref().take(FILL).collect();
        let Some((bound, _)) = piece.first() else { return nodes };
        nodes.push((bound.clone(), Arc::new(node(piece))));
    }
}

fn child_for<K: Ord, C>(children: &[(K, C)], key: &K) -> usize {
    children.partition_point(|(bound, _)| bound <= key).saturating_sub(1)
}

/// A node that was split off to the right.
type Split<K, V> = Option<Child<K, V>>;

fn insert_below<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
) -> (Option<V>, Split<K, V>) {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => match entries.binary_search_by(|(have, _)| have.cmp(&key)) {
            Ok(at) => (Some(std::mem::replace(&mut entries[at].1, value)), None),
            Err(at) => {
                entries.insert(at, (key, value));
                (None, split_off(entries, Node::Leaf))
            }
        },
        Node::Branch(children) => {
            let at = child_for(children, &key);
            let (replaced, split) = insert_below(&mut children[at].1, key, value);
            if let Some(right) = split {
                children.insert(at + 1, right);
            }
            (replaced, split_off(children, Node::Branch))
        }
    }
}

/// Moves half of a node that became too wide into a new one.
fn split_off<K: Clone, T, V>(
    items: &mut Vec<(K, T)>,
    node: impl FnOnce(Vec<(K, T)>) -> Node<K, V>,
) -> Split<K, V> {
    if items.len() <= WIDTH {
        return None;
    }
    let right = items.split_off(items.len() / 2);
    let bound = right.first()?.0.clone();
    Some((bound, Arc::new(node(right))))
}

fn remove_below<K: Ord + Clone, V: Clone>(node: &mut Arc<Node<K, V>>, key: &K) -> Option<V> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = entries.binary_search_by(|(have, _)| have.cmp(key)).ok()?;
            Some(entries.remove(at).1)
        }
        Node::Branch(children) => {
            let at = child_for(children, key);
            let removed = remove_below(&mut children[at].1, key);
            match width(&children[at].1) {
                0 => drop(children.remove(at)),
                1..NARROW => join_with_neighbour(children, at),
                _ => {}
            }
            removed
        }
    }
}

fn width<K, V>(node: &Node<K, V>) -> usize {
    match node {
        Node::Leaf(entries) => entries.len(),
        Node::Branch(children) => children.len(),
    }
}

/// Moves the content of the narrow child's right neighbour into it, or its content into the left one, where it fits.
fn join_with_neighbour<K: Clone, V: Clone>(children: &mut Vec<Child<K, V>>, at: usize) {
    let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
    let Some([(_, one), (bound, other)]) = children.get_mut(left..left + 2) else { return };
    if width(one) + width(other) > WIDTH {
        return;
    }
    match (Arc::make_mut(one), &**other) {
        (Node::Leaf(entries), Node::Leaf(more)) => entries.extend_from_slice(more),
        (Node::Branch(children), Node::Branch(more)) => {
            let at = children.len();
            children.extend_from_slice(more);
            // A first child's own bound does not count, but here it is no longer the first.
            children[at].0 = bound.clone();
        }
        // All leaves are equally deep, so neighbours are of one kind.
        _ => return,
    }
    children.remove(left + 1);
}

/// The entries of a map in order.
#[derive(Debug, Clone)]
pub struct Entries<'a, K, V> {
    /// On every level above the leaf, the children that come after it.
    branches: Vec<&'a [Child<K, V>]>,
    leaf: &'a [(K, V)],
}

impl<'a, K: Ord, V> Entries<'a, K, V> {
    fn descend(&mut self, mut node: &'a Node<K, V>, from: Option<&K>) {
        loop {
            match node {
                Node::Leaf(entries) => {
                    let skipped = from.map_or(0, |key| entries.partition_point(|(have, _)| have < key));
                    self.leaf = &entries[skipped..];
                    return;
                }
                Node::Branch(children) => {
                    let at = from.map_or(0, |key| child_for(children, key));
                    self.branches.push(&children[at + 1..]);
                    node = &children[at].1;
                }
            }
        }
    }
}

impl<'a, K: Ord, V> Iterator for Entries<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(((key, value), rest)) = self.leaf.split_first() {
                self.leaf = rest;
                return Some((key, value));
            }
            let ((_, child), rest) = loop {
                match self.branches.last()?.split_first() {
                    Some(next) => break next,
                    None => self.branches.pop(),
                };
            };
            if let Some(level) = self.branches.last_mut() {
                *level = rest;
            }
            self.descend(child, None);
        }
    }
}

impl<'a, K: Ord + Clone, V: Clone> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Entries<'a, K, V>;

    fn into_iter(self) -> Entries<'a, K, V> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    /// Checks the nodes and collects the entries; gives the depth.
    fn depth<K: Ord + Clone, V>(node: &Node<K, V>, is_root: bool, keys: &mut Vec<K>) -> usize {
        assert!(width(node) <= WIDTH && (is_root || width(node) > 0), "a node of {}", width(node));
        match node {
            Node::Leaf(entries) => {
                keys.extend(entries.iter().map(|(key, _)| key.clone()));
                0
            }
            Node::Branch(children) => {
                assert!(!is_root || children.len() > 1, "the root has one child");
                let mut depths = Vec::new();
                for (number, (bound, child)) in children.iter().enumerate() {
                    let mut below = Vec::new();
                    depths.push(depth(child, false, &mut below));
                    assert!(number == 0 || below.iter().all(|key| bound <= key), "a key below the bound");
                    assert!(number == 0 || keys.iter().all(|key| key < bound), "a key above the next bound");
                    keys.append(&mut below);
                }
                depths.dedup();
                assert_eq!(depths.len(), 1, "leaves at different depths");
                depths[0] + 1
            }
        }
    }

    fn check<K: Ord + Clone, V: Clone>(map: &SharedMap<K, V>) {
        let mut keys = Vec::new();
        depth(&map.root, true, &mut keys);
        assert_eq!(keys.len(), map.len());
        assert!(keys.is_sorted());
    }

    fn entries<K: Ord + Clone, V: Clone>(map: &SharedMap<K, V>) -> Vec<(K, V)> {
        map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Inserts and removes in any order, with copies kept from before: all as the standard library's map has it.
        #[test]
        fn same_as_the_ordinary_map(
            mut model in btree_map(0..400_u16, any::<u8>(), 0..400),
            steps in vec((any::<bool>(), 0..400_u16, any::<u8>()), 0..2000),
        ) {
            let mut map = SharedMap::from_sorted(model.clone().into_iter().collect());
            let mut kept = Vec::new();
            for (number, (put, key, value)) in steps.into_iter().enumerate() {
                if put {
                    prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                } else {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                }
                prop_assert_eq!(map.get(&key), model.get(&key));
                if number % 97 == 0 {
                    kept.push((map.clone(), model.clone()));
                }
            }
            kept.push((map, model));
            for (map, model) in kept {
                check(&map);
                prop_assert_eq!(entries(&map), model.clone().into_iter().collect::<Vec<_>>());
                for from in [0, 1, 57, 200, 399, 400] {
                    prop_assert!(map.iter_from(&from).eq(model.range(from..)));
                }
            }
        }
    }

    #[test]
    fn grows_and_shrinks_to_nothing() {
        let mut map = SharedMap::new();
        for number in 0..10_000_u32 {
            map.insert(number * 7919 % 10_000, number);
        }
        check(&map);
        assert_eq!(map.len(), 10_000);
        let copy = map.clone();
        for key in 0..10_000 {
            assert!(map.remove(&key).is_some());
            if key % 500 == 0 {
                check(&map);
            }
        }
        assert!(map.is_empty());
        assert_eq!(map.remove(&1), None);
        assert_eq!(copy.len(), 10_000);
        assert!(copy.iter().map(|(key, _)| *key).eq(0..10_000));
    }

    #[test]
    fn a_change_leaves_nearly_all_nodes_shared() {
        fn nodes<K, V>(node: &Arc<Node<K, V>>, found: &mut Vec<*const Node<K, V>>) {
            found.push(Arc::as_ptr(node));
            if let Node::Branch(children) = &**node {
                for (_, child) in children {
                    nodes(child, found);
                }
            }
        }
        let before = SharedMap::from_sorted((0..100_000).map(|number| (number, number)).collect());
        let mut after = before.clone();
        after.insert(50_000, 0);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        nodes(&before.root, &mut old);
        nodes(&after.root, &mut new);
        let made = new.iter().filter(|node| !old.contains(node)).count();
        assert!(made <= 8, "{made} of {} nodes were made anew", new.len());
    }
}
