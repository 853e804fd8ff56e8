//! Routes that are advertised in another VRF than their own: each of the two takes over the other's.
//!
//! In: what is asked of all nodes, and which networks a node has a part of. Out: routers for the networks' VRFs, and
//! what the router of the target takes over. Nodes differ in neither, mostly: whatever is the same is made once and
//! shared, or there would be as many of them as nodes times networks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use underlay_api::Shared;
use underlay_api::frr::{Import, Router};

use super::DEFAULT_VRF;

/// What nodes share.
pub struct Leaks<'a> {
    /// The VRF that is told, and those whose routes are, with the place of the network of each.
    into: Option<&'a str>,
    from: Vec<(&'a str, usize)>,
    /// What the target takes over on a node that has a part of every network.
    imports: Shared<Import>,
    /// Routers of the VRFs, by number and ID of the target's.
    routers: BTreeMap<(u32, String), Vec<Arc<Router>>>,
}

impl<'a> Leaks<'a> {
    /// Into this VRF, if into any, from the others of these.
    pub fn new(into: Option<&'a str>, vrfs: &BTreeMap<&'a str, usize>) -> Self {
        let others = vrfs.iter().filter(|(vrf, _)| into.is_some_and(|into| into != **vrf));
        let from: Vec<(&str, usize)> = others.map(|(vrf, place)| (*vrf, *place)).collect();
        let imports = from.iter().map(|(vrf, _)| import(vrf)).collect();
        Self { into, from, imports, routers: BTreeMap::new() }
    }

    /// Has a node's routers of the target take over the routes of the networks that the node has a part of. Returns
    /// routers for the VRFs of those.
    pub fn leak(&mut self, routers: &mut [Router], has_part: impl Fn(usize) -> bool) -> Vec<Arc<Router>> {
        let (Some(into), [first, ..]) = (self.into, &*routers) else { return Vec::new() };
        let from = &self.from;
        let made = self.routers.entry((first.asn, first.id.clone())).or_insert_with_key(|(asn, id)| {
            from.iter().map(|(vrf, _)| Arc::new(router(*asn, id, vrf, into))).collect()
        });
        let there = |(_, place): &&(&str, usize)| has_part(*place);
        let imports = if from.iter().all(|one| there(&one)) {
            Arc::clone(&self.imports)
        } else {
            from.iter().filter(there).map(|(vrf, _)| import(vrf)).collect()
        };
        for router in routers {
            take_over(router, &imports);
        }
        let pairs = from.iter().zip(made).filter(|(one, _)| there(one));
        pairs.map(|(_, router)| Arc::clone(router)).collect()
    }
}

/// The router of a VRF that takes over the routes of the target.
fn router(asn: u32, id: &str, vrf: &str, target: &str) -> Router {
    let vrf = if vrf == DEFAULT_VRF { String::new() } else { vrf.to_owned() };
    Router { asn, id: id.to_owned(), vrf, imports: [import(target)].into(), ..Router::default() }
}

fn import(vrf: &str) -> Import {
    Import { vrf: vrf.to_owned(), ..Import::default() }
}

/// Takes over these routes too.
fn take_over(router: &mut Router, imports: &Shared<Import>) {
    if router.imports.is_empty() {
        router.imports = Arc::clone(imports);
        return;
    }
    let there: BTreeSet<&str> = router.imports.iter().map(|import| import.vrf.as_str()).collect();
    let new = imports.iter().filter(|import| !there.contains(import.vrf.as_str()));
    router.imports = router.imports.iter().chain(new).cloned().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vrfs(imports: &[Import]) -> Vec<&str> {
        imports.iter().map(|import| import.vrf.as_str()).collect()
    }

    fn leaks() -> Leaks<'static> {
        Leaks::new(Some(DEFAULT_VRF), &BTreeMap::from([("blue", 1), (DEFAULT_VRF, 0), ("red", 2)]))
    }

    #[test]
    fn nodes_share_routers_and_each_has_those_of_its_own_parts() {
        let mut leaks = leaks();
        let mut speak = |parts: &[usize]| {
            let mut own = [Router { asn: 64512, ..Router::default() }];
            let leaked = leaks.leak(&mut own, |place| parts.contains(&place));
            (own, leaked)
        };
        let ([own], all) = speak(&[0, 1, 2]);
        assert_eq!(vrfs(&own.imports), ["blue", "red"]);
        let ([own], some) = speak(&[0, 2]);
        assert_eq!(vrfs(&own.imports), ["red"]);
        assert_eq!((some.len(), some[0].vrf.as_str(), some[0].asn), (1, "red", 64512));
        assert_eq!(vrfs(&some[0].imports), [DEFAULT_VRF]);
        assert!(Arc::ptr_eq(&some[0], &all[1]), "there is one of them, whatever the number of nodes");
    }

    #[test]
    fn what_a_router_takes_over_anyway_stays() {
        let imports = ["green", "red"].map(import).into();
        let mut own = [Router { asn: 64512, imports, ..Router::default() }];
        leaks().leak(&mut own, |_| true);
        assert_eq!(vrfs(&own[0].imports), ["green", "red", "blue"]);
    }

    #[test]
    fn routers_of_another_number_are_others() {
        let mut leaks = leaks();
        for asn in [64512, 64513] {
            let leaked = leaks.leak(&mut [Router { asn, ..Router::default() }], |_| true);
            assert!(leaked.iter().all(|router| router.asn == asn));
        }
    }
}
