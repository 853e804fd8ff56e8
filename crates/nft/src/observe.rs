//! What the table holds, as `nft -j` tells it.

use std::collections::BTreeMap;

use serde::Deserialize;
use underlay_desired::nft::Hook;

/// The table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether it is there at all.
    pub exists: bool,
    /// Its chains by name.
    pub chains: BTreeMap<String, ObservedChain>,
}

/// A chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedChain {
    /// Where packets enter it.
    pub hook: Option<Hook>,
    /// Comments of its rules, in order; nothing for a rule without one.
    pub rules: Vec<Option<String>>,
}

#[derive(Deserialize)]
struct Document {
    nftables: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
struct Item {
    table: Option<serde::de::IgnoredAny>,
    chain: Option<Chain>,
    rule: Option<Rule>,
}

#[derive(Deserialize)]
struct Chain {
    name: String,
    r#type: Option<String>,
    hook: Option<String>,
    prio: Option<i32>,
}

#[derive(Deserialize)]
struct Rule {
    chain: String,
    comment: Option<String>,
}

/// Reads the output of `nft -j list table`.
pub fn parse(text: &str) -> Result<Observed, serde_json::Error> {
    let document: Document = serde_json::from_str(text)?;
    let mut observed = Observed::default();
    for item in document.nftables {
        observed.exists |= item.table.is_some();
        if let Some(chain) = item.chain {
            let hook = match (chain.r#type, chain.hook, chain.prio) {
                (Some(kind), Some(point), Some(priority)) => Some(Hook { kind, point, priority }),
                _ => None,
            };
            observed.chains.entry(chain.name).or_default().hook = hook;
        }
        if let Some(rule) = item.rule {
            observed.chains.entry(rule.chain).or_default().rules.push(rule.comment);
        }
    }
    Ok(observed)
}
