//! What is taken, and what is refused and why. The tables are in `cases/`.

use serde::Deserialize;
use serde_json::{Value, json};

/// An object, and what is said about it.
pub struct Case {
    /// The name of the case.
    pub name: String,
    /// What is stored before, where the object is a change of that.
    pub before: Option<Value>,
    /// The object.
    pub manifest: Value,
    /// Whether it is taken.
    pub verdict: Verdict,
    /// Part of what our own reading says about it where the API server takes it.
    pub reading: Option<String>,
}

/// Who refuses an object, and what they say.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Taken,
    /// Rules of ours: these are their messages.
    Rules(Vec<String>),
    /// The schema: this is part of what the API server says.
    Schema(String),
}

/// A row of a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    before: Option<Value>,
    #[serde(default)]
    fields: Value,
    rule: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
    schema: Option<String>,
    reading: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    texts: Vec<String>,
    rule: Option<String>,
}

pub fn route_advertisements() -> Vec<Case> {
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("cases/route-advertisements.yaml")).unwrap();
    let valid = json!({
        "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
        "nodeSelector": {},
        "frrConfigurationSelector": {},
        "advertisements": ["PodNetwork"],
    });
    let manifest = |name: &str, spec: Value| {
        let (version, kind) = ("k8s.ovn.org/v1", "RouteAdvertisements");
        json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name }, "spec": spec })
    };
    rows.into_iter().map(|row| row.case(|name, fields| manifest(name, with(&valid, fields)))).collect()
}

pub fn egress_ips() -> Vec<Case> {
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("cases/egress-ips.yaml")).unwrap();
    let valid = json!({ "egressIPs": ["172.30.0.100"], "namespaceSelector": {} });
    let manifest = |name: &str, spec: Value| json!({ "apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP", "metadata": { "name": name }, "spec": spec });
    rows.into_iter().map(|row| row.case(|name, fields| manifest(name, with(&valid, fields)))).collect()
}

pub fn frr_configurations() -> Vec<Case> {
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("cases/frr-configurations.yaml")).unwrap();
    let rows = rows.into_iter().chain(target_rows());
    rows.map(|row| row.case(|name, fields| configuration(name, &with(&json!({ "asn": 64512 }), fields))))
        .collect()
}

fn configuration(name: &str, router: &Value) -> Value {
    json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "bgp": { "routers": [router] } },
    })
}

/// Every text in each of the three fields that share their rules.
fn target_rows() -> Vec<Row> {
    let tables: Vec<Targets> = serde_saphyr::from_str(include_str!("cases/targets.yaml")).unwrap();
    let mut rows = vec![];
    for (field, what) in [("rd", "RD"), ("importRTs", "RT"), ("exportRTs", "RT")] {
        for (text, rule) in tables.iter().flat_map(|table| table.texts.iter().map(|text| (text, &table.rule)))
        {
            let value = if field == "rd" { json!(text) } else { json!([text]) };
            let rule = rule.as_ref().map(|rule| {
                match (field, rule.strip_suffix("either an IPv4 address or a number")) {
                    // Only here anyone may be the administrator.
                    ("importRTs", Some(rule)) => {
                        format!("{what} {rule}either '*', an IPv4 address, or a number")
                    }
                    _ => format!("{what} {rule}"),
                }
            });
            rows.push(Row {
                name: format!("target-{}", rows.len()),
                before: None,
                fields: json!({ "evpn": { "l2vnis": [{ "vni": 100, field: value }] } }),
                rule,
                rules: vec![],
                schema: None,
                reading: None,
            });
        }
    }
    rows
}

impl Row {
    /// The case, if this makes an object from a name and fields.
    pub fn case(&self, manifest: impl Fn(&str, &Value) -> Value) -> Case {
        let rules: Vec<_> = self.rule.iter().chain(&self.rules).cloned().collect();
        let verdict = match &self.schema {
            None if rules.is_empty() => Verdict::Taken,
            None => Verdict::Rules(rules),
            Some(text) if rules.is_empty() => Verdict::Schema(text.clone()),
            Some(_) => panic!("{}: rules or the schema", self.name),
        };
        let manifest = |fields| manifest(&self.name, fields);
        Case {
            before: self.before.as_ref().map(manifest),
            manifest: manifest(&self.fields),
            verdict,
            reading: self.reading.clone(),
            name: self.name.clone(),
        }
    }
}

/// A value with some fields replaced; null takes a field out.
pub fn with(valid: &Value, fields: &Value) -> Value {
    let mut value = valid.as_object().unwrap().clone();
    value.extend(fields.as_object().cloned().unwrap_or_default());
    value.retain(|_, field| !field.is_null());
    value.into()
}
