//! The difference between the chains that should be and those that are, as one script. Pure.

use std::fmt::Write;

use underlay_desired::nft::{Chain, Rule, Ruleset};
use underlay_desired::owner::NFT_TABLE;
use underlay_net::hash::fnv1a64;

use crate::observe::{Observed, ObservedChain};

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Input of `nft -f -`.
    pub script: String,
    /// How many chains come, change or go.
    pub changes: usize,
}

/// The comment by which a rule is recognised.
pub fn mark(rule: &Rule) -> String {
    format!("u:{:016x}", fnv1a64(&rule.text))
}

/// Compares. A chain that differs is emptied and filled again, in the same transaction.
pub fn difference(want: &Ruleset, have: &Observed) -> Difference {
    let mut result = Difference::default();
    if want.is_empty() {
        if have.exists {
            result.changes = have.chains.len().max(1);
            let _ = writeln!(result.script, "delete table inet {NFT_TABLE}");
        }
        return result;
    }
    if !have.exists {
        let _ = writeln!(result.script, "add table inet {NFT_TABLE}");
    }
    // Chains first and rules then: a rule may jump to any chain.
    let mut rules = String::new();
    for (name, chain) in want {
        let old = have.chains.get(name);
        if old.is_some_and(|old| is_same(chain, old)) {
            continue;
        }
        result.changes += 1;
        make_room(&mut result.script, name, chain, old);
        for rule in &chain.rules {
            let mark = mark(rule);
            let _ = writeln!(rules, "add rule inet {NFT_TABLE} {name} {} comment \"{mark}\"", rule.text);
        }
    }
    result.script.push_str(&rules);
    let surplus = have.chains.keys().filter(|name| !want.contains_key(*name));
    let surplus: Vec<&String> = surplus.collect();
    for verb in ["flush", "delete"] {
        for name in &surplus {
            let _ = writeln!(result.script, "{verb} chain inet {NFT_TABLE} {name}");
        }
    }
    result.changes += surplus.len();
    result
}

fn is_same(want: &Chain, have: &ObservedChain) -> bool {
    want.hook == have.hook
        && want.rules.len() == have.rules.len()
        && want.rules.iter().zip(&have.rules).all(|(rule, comment)| comment.as_deref() == Some(&mark(rule)))
}

/// An empty chain with the right hook. A hook cannot be changed, only made anew.
fn make_room(script: &mut String, name: &str, want: &Chain, have: Option<&ObservedChain>) {
    let keeps = have.is_some_and(|have| have.hook == want.hook);
    if have.is_some() {
        let _ = writeln!(script, "flush chain inet {NFT_TABLE} {name}");
    }
    if have.is_some() && !keeps {
        let _ = writeln!(script, "delete chain inet {NFT_TABLE} {name}");
    }
    if !keeps {
        let hook = want
            .hook
            .as_ref()
            .map(|hook| format!(" {{ type {} hook {} priority {}; }}", hook.kind, hook.point, hook.priority));
        let _ = writeln!(script, "add chain inet {NFT_TABLE} {name}{}", hook.unwrap_or_default());
    }
}
