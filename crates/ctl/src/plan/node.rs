//! What changes on a node: two plans of it, layer by layer. The layers have the names of the edges that carry them out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};
use underlay_desired::flow::Flow;
use underlay_desired::frr::Config;
use underlay_desired::linux;
use underlay_desired::nft::Ruleset;
use underlay_desired::ovn::{Column, Row, RowId, Rows};
use underlay_desired::{ObjectRef, Why};
use underlay_plan::node::addresses::PlacedPod;
use underlay_plan::node::frr::Conflict;
use underlay_plan::node::{NodePlan, Zone};
use underlay_world::Key;

use super::compare::{Change, Counts, Item, Ledger, names};

/// All layers, from the database down to the speaker.
pub const LAYERS: [&str; 9] =
    ["northbound", "southbound", "switch", "flows", "host", "filter", "frr", "pods", "networks"];

/// What changes on a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeDifference {
    /// The node.
    pub node: String,
    /// How much changes, by layer.
    pub counts: BTreeMap<&'static str, Counts>,
    /// What changes, or the first of it.
    pub changes: Vec<Change>,
    /// What the node waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// Configurations of its speaker that are left out from now on, and why.
    #[serde(skip)]
    pub conflicts: Vec<Conflict>,
    /// Pods that get no address from now on, and why.
    #[serde(skip)]
    pub pods: BTreeMap<Key, String>,
}

impl NodeDifference {
    /// How many items change.
    pub fn total(&self) -> usize {
        self.counts.values().map(|counts| counts.total()).sum()
    }
}

/// Compares two plans of a node and keeps so many changes.
pub fn compare(node: &str, before: &NodePlan, after: NodePlan, keep: usize) -> NodeDifference {
    let mut ledger = Ledger::new(keep);
    let (old, new) = (before.zone.as_ref(), after.zone.as_ref());
    rows(&mut ledger, "northbound", old.map(|zone| &zone.northbound), new.map(|zone| &zone.northbound));
    rows(&mut ledger, "southbound", old.map(|zone| &zone.southbound), new.map(|zone| &zone.southbound));
    switch(&mut ledger, old, new);
    flows(&mut ledger, old, new);
    host(&mut ledger, old.map(|zone| &zone.host), new.map(|zone| &zone.host));
    filter(&mut ledger, old.map(|zone| &zone.filter), new.map(|zone| &zone.filter));
    frr(&mut ledger, &before.speaker.config, &after.speaker.config);
    pods(&mut ledger, old, new);
    waiting(&mut ledger, old, new);
    NodeDifference {
        node: node.to_owned(),
        counts: ledger.counts,
        changes: ledger.changes,
        waiting: after.waiting.map(|what| what.to_string()),
        conflicts: news(&before.speaker.conflicts, after.speaker.conflicts),
        pods: pod_news(old, after.zone),
    }
}

/// Conflicts that were not there before.
fn news(old: &[Conflict], new: Vec<Conflict>) -> Vec<Conflict> {
    new.into_iter().filter(|conflict| !old.contains(conflict)).collect()
}

/// Problems of pods that they did not have before.
fn pod_news(old: Option<&Zone>, new: Option<Zone>) -> BTreeMap<Key, String> {
    let known = |key: &Key| old.and_then(|zone| zone.pods.problems.get(key));
    let problems = new.map(|zone| zone.pods.problems).unwrap_or_default();
    problems.into_iter().filter(|(key, problem)| known(key) != Some(problem)).collect()
}

fn item(name: String, fields: Value, why: &Why) -> Item {
    let mut fields = match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.remove("why");
    Item { name, fields, why: names(why) }
}

fn rows(ledger: &mut Ledger, layer: &'static str, old: Option<&Rows>, new: Option<&Rows>) {
    fn by_id(rows: Option<&Rows>) -> impl Iterator<Item = (&RowId, &Row)> {
        rows.into_iter().flat_map(Rows::iter).map(|row| (&row.id, row))
    }
    let same = |one: &&Row, other: &&Row| one.columns == other.columns;
    ledger.compare(layer, by_id(old), by_id(new), same, |id, row| {
        let columns = row.columns.iter().map(|(name, column)| ((*name).to_owned(), value(column)));
        item(format!("{} {}", id.table.name(), id.id), Value::Object(columns.collect()), &row.why)
    });
}

fn value(column: &Column) -> Value {
    match column {
        Column::Bool(value) => json!(value),
        Column::Integer(number) => json!(number),
        Column::Text(text) => json!(text),
        Column::Texts(texts) => json!(texts),
        Column::Integers(numbers) => json!(numbers),
        Column::Map(map) => json!(map),
        Column::Numbers(map) => json!(map),
        Column::Rows(rows) => {
            json!(rows.iter().map(|row| format!("{} {}", row.table.name(), row.id)).collect::<Vec<_>>())
        }
    }
}

fn switch(ledger: &mut Ledger, old: Option<&Zone>, new: Option<&Zone>) {
    fn ports(zone: Option<&Zone>) -> impl Iterator<Item = (&String, &underlay_desired::switch::Port)> {
        zone.into_iter().flat_map(|zone| &zone.switch.ports)
    }
    fn settings(zone: Option<&Zone>) -> impl Iterator<Item = (&String, &underlay_desired::switch::Setting)> {
        zone.into_iter().flat_map(|zone| &zone.switch.settings)
    }
    let same = |one: &&_, other: &&_| one == other;
    ledger.compare("switch", ports(old), ports(new), same, |name, port| {
        item(format!("port {name}"), json!(port), &port.why)
    });
    let same = |one: &&underlay_desired::switch::Setting, other: &&underlay_desired::switch::Setting| {
        one.value == other.value
    };
    ledger.compare("switch", settings(old), settings(new), same, |name, setting| {
        item(format!("setting {name}"), json!({ "value": setting.value }), &setting.why)
    });
}

/// A flow is known by its bridge, table, priority and match.
fn flows(ledger: &mut Ledger, old: Option<&Zone>, new: Option<&Zone>) {
    type Place<'a> = (&'a String, u8, u16, &'a String);
    fn by_place(zone: Option<&Zone>) -> impl Iterator<Item = (Place<'_>, (&Flow, &Why))> {
        zone.into_iter().flat_map(|zone| &zone.flows).flat_map(|(bridge, flows)| {
            flows
                .iter()
                .map(move |(flow, why)| ((bridge, flow.table, flow.priority, &flow.matches), (flow, why)))
        })
    }
    let same = |one: &(&Flow, &Why), other: &(&Flow, &Why)| one.0 == other.0;
    ledger.compare("flows", by_place(old), by_place(new), same, |(bridge, ..), (flow, why)| {
        let Flow { table, priority, matches, actions } = flow;
        let comma = if matches.is_empty() { "" } else { "," };
        let name = format!("{bridge} table={table},priority={priority}{comma}{matches}");
        item(name, json!({ "actions": actions }), why)
    });
}

fn host(ledger: &mut Ledger, old: Option<&linux::Host>, new: Option<&linux::Host>) {
    keyed(
        ledger,
        old,
        new,
        |host| &host.addresses,
        |address| {
            let deprecated = if address.deprecated { " deprecated" } else { "" };
            format!("address {} on {}{deprecated}", address.net, address.link)
        },
    );
    keyed(ledger, old, new, |host| &host.routes, route);
    keyed(
        ledger,
        old,
        new,
        |host| &host.table_ends,
        |end| format!("end of table {} for {}", end.table, family(end.family)),
    );
    keyed(ledger, old, new, |host| &host.rules, rule);
    keyed(
        ledger,
        old,
        new,
        |host| &host.neighbors,
        |one| format!("neighbour {} on {} at {}", one.address, one.link, one.mac),
    );
    let vrfs = |host: Option<&'_ linux::Host>| host.map(|host| host.vrfs.clone()).unwrap_or_default();
    let (one, other) = (vrfs(old), vrfs(new));
    let same = |one: &&linux::Vrf, other: &&linux::Vrf| one.table == other.table;
    ledger.compare("host", one.iter(), other.iter(), same, |name, vrf| {
        item(format!("VRF {name}"), json!(vrf), &vrf.why)
    });
    let part = |link: &linux::Link| (link.mtu, link.mac, link.vrf.clone());
    let same = |one: &&linux::Link, other: &&linux::Link| part(one) == part(other);
    let links = |host: Option<&'_ linux::Host>| host.map(|host| host.links.clone()).unwrap_or_default();
    let (one, other) = (links(old), links(new));
    ledger.compare("host", one.iter(), other.iter(), same, |name, link| {
        item(format!("link {name}"), json!(link), &link.why)
    });
    let sysctls = |host: Option<&'_ linux::Host>| host.map(|host| host.sysctls.clone()).unwrap_or_default();
    let (one, other) = (sysctls(old), sysctls(new));
    let same = |one: &&linux::Sysctl, other: &&linux::Sysctl| one.value == other.value;
    ledger.compare("host", one.iter(), other.iter(), same, |name, setting| {
        item(format!("setting {name}"), json!({ "value": setting.value }), &setting.why)
    });
}

/// Items that say all in their keys.
fn keyed<'a, K: Ord + 'a>(
    ledger: &mut Ledger,
    old: Option<&'a linux::Host>,
    new: Option<&'a linux::Host>,
    of: impl Fn(&'a linux::Host) -> &'a BTreeMap<K, Why>,
    name: impl Fn(&K) -> String,
) {
    let (old, new) = (old.into_iter().flat_map(&of), new.into_iter().flat_map(&of));
    ledger.compare("host", old, new, |_, _| true, |key, why| item(name(key), Value::Null, why));
}

fn family(family: underlay_net::Family) -> &'static str {
    match family {
        underlay_net::Family::V4 => "IPv4",
        underlay_net::Family::V6 => "IPv6",
    }
}

fn route(route: &linux::Route) -> String {
    let mut text = format!("route {}", route.destination);
    for (word, value) in [
        (" via ", route.gateway.map(|gateway| gateway.to_string())),
        (" dev ", Some(route.link.clone())),
        (" src ", route.source.map(|source| source.to_string())),
        (" mtu ", route.mtu.map(|mtu| mtu.to_string())),
        (" table ", (route.table != 254).then(|| route.table.to_string())),
    ] {
        text.extend(value.map(|value| format!("{word}{value}")));
    }
    text
}

fn rule(rule: &linux::Rule) -> String {
    let mut text = format!("rule {} {}", rule.priority, family(rule.family));
    for (word, value) in [
        (" fwmark ", rule.mark.map(|mark| format!("{mark:#x}"))),
        (" to ", rule.to.map(|to| to.to_string())),
        (" iif ", rule.incoming.clone()),
        (" lookup ", Some(rule.table.to_string())),
    ] {
        text.extend(value.map(|value| format!("{word}{value}")));
    }
    text
}

/// Rules by chain and text: where one stands among others follows from the plan.
fn filter(ledger: &mut Ledger, old: Option<&Ruleset>, new: Option<&Ruleset>) {
    fn by_text(rules: Option<&Ruleset>) -> BTreeMap<(&String, &String), &Why> {
        let chains = rules.into_iter().flatten();
        chains
            .flat_map(|(name, chain)| chain.rules.iter().map(move |rule| ((name, &rule.text), &rule.why)))
            .collect()
    }
    let (old, new) = (by_text(old), by_text(new));
    ledger.compare(
        "filter",
        old.into_iter(),
        new.into_iter(),
        |_, _| true,
        |(chain, text), why| item(format!("{chain}: {text}"), Value::Null, why),
    );
}

/// Lines of FRR's configuration with the lines they are under, without passwords.
fn frr(ledger: &mut Ledger, old: &Config, new: &Config) {
    let (before, after) = (lines(old), lines(new));
    let whys = |config: &Config| {
        let routers = config.routers.values().map(|router| &router.why);
        let raw = config.raw.iter().map(|text| &text.why);
        let objects: BTreeSet<ObjectRef> = routers.chain(raw).flat_map(Why::objects).cloned().collect();
        objects.into_iter().map(|object| object.to_string()).collect::<Vec<_>>()
    };
    let (old, new) = (whys(old), whys(new));
    let pairs = |lines: BTreeSet<String>, why| lines.into_iter().map(move |line| (line, why));
    ledger.compare(
        "frr",
        pairs(before, &old),
        pairs(after, &new),
        |_, _| true,
        |line, why| Item { name: line.clone(), fields: Map::new(), why: (*why).clone() },
    );
}

fn lines(config: &Config) -> BTreeSet<String> {
    let rendered = underlay_frr::render::render(config);
    let leaves = rendered.ours.leaves().into_iter().chain(rendered.raw.leaves());
    let clean = |path: Vec<String>| {
        let lines: Vec<String> = path.iter().map(|line| underlay_frr::tree::redact(line)).collect();
        lines.join(" / ")
    };
    leaves.map(clean).collect()
}

fn pods(ledger: &mut Ledger, old: Option<&Zone>, new: Option<&Zone>) {
    fn placed(zone: Option<&Zone>) -> impl Iterator<Item = (&Key, &PlacedPod)> {
        zone.into_iter().flat_map(|zone| &zone.pods.pods)
    }
    let part = |pod: &PlacedPod| {
        let own = pod.primary.as_ref().map(|own| (own.attachment.clone(), own.part.addresses.clone()));
        (pod.network.addresses.clone(), pod.locked(), own, pod.waiting.clone())
    };
    let same = |one: &&PlacedPod, other: &&PlacedPod| part(one) == part(other);
    ledger.compare("pods", placed(old), placed(new), same, |key, pod| {
        let default = if pod.locked() { "default, for probes" } else { "default" };
        let mut fields = json!({ default: pod.network.addresses });
        if let Some(own) = &pod.primary {
            fields[&own.attachment] = json!(own.part.addresses);
        }
        if let Some(what) = &pod.waiting {
            fields["waits for"] = json!(what);
        }
        item(format!("Pod {key}"), fields, &pod.why)
    });
}

/// Networks that are not on the node yet, and what each waits for.
fn waiting(ledger: &mut Ledger, old: Option<&Zone>, new: Option<&Zone>) {
    fn waits(zone: Option<&Zone>) -> impl Iterator<Item = (&String, &String)> {
        zone.into_iter().flat_map(|zone| &zone.waiting)
    }
    let same = |one: &&String, other: &&String| one == other;
    ledger.compare("networks", waits(old), waits(new), same, |network, what| {
        item((*network).clone(), json!({ "waits for": what }), &Why::default())
    });
}
