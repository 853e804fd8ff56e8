//! Whether an object says only what its kind may say, as the API server would ask.
//!
//! In: a schema with the rules in it, and an object. Out: the first field that is wrong, or the rules that it breaks.
//! Constructs that none of our kinds uses are passed over: what they would refuse, the API server refuses.

use std::cell::OnceCell;
use std::fmt;

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::{Map, Value};

/// What objects of a kind may say.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    /// Its rules, once somebody asks for them.
    rules: OnceCell<CompiledSchema>,
}

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The field, from the top of the object.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return formatter.write_str(&self.problem);
        }
        write!(formatter, "{}: {}", self.field, self.problem)
    }
}

/// Types that are written in more ways than their schema says.
const LOOSE: [&str; 2] = ["Quantity", "IntOrString"];
/// Fields that every object has.
const COMMON: [&str; 2] = ["apiVersion", "kind"];

impl Schema {
    /// A schema, with `$defs` at its root if it refers to others.
    pub fn new(root: Value) -> Self {
        Self { root, rules: OnceCell::new() }
    }

    /// Checks names and types of all fields.
    pub fn check(&self, object: &Value) -> Result<(), Wrong> {
        let mut without = object.clone();
        if let Some(fields) = without.as_object_mut() {
            fields.retain(|name, _| !COMMON.contains(&name.as_str()));
        }
        self.walk(&self.root, &without, "")
    }

    /// Rules that an object breaks; `before` is what it replaces.
    pub fn broken_rules(&self, object: &Value, before: Option<&Value>) -> Vec<Wrong> {
        let rules = self.rules.get_or_init(|| compile_schema(&self.root));
        match Validator::new().validate_compiled(rules, object, before) {
            Ok(()) => vec![],
            Err(errors) => errors
                .into_vec()
                .into_iter()
                .map(|error| Wrong { field: error.field_path, problem: error.message })
                .collect(),
        }
    }

    fn walk(&self, schema: &Value, value: &Value, at: &str) -> Result<(), Wrong> {
        let schema = match schema.get("$ref").and_then(Value::as_str) {
            Some(name) if LOOSE.iter().any(|loose| name.ends_with(loose)) => return Ok(()),
            Some(name) => self.root.pointer(name.trim_start_matches('#')).unwrap_or(&Value::Null),
            None => schema,
        };
        let wrong = |problem: String| Err(Wrong { field: at.to_owned(), problem });
        let words = schema.get("enum").and_then(Value::as_array);
        if let Some(words) = words.filter(|words| !words.contains(value)) {
            let words: Vec<String> = words.iter().map(plain).collect();
            return wrong(format!("{} is none of {}", plain(value), words.join(", ")));
        }
        match (schema.get("type").and_then(Value::as_str), value) {
            // What is null counts as absent.
            (None, _) | (_, Value::Null) | (Some("boolean"), Value::Bool(_)) => Ok(()),
            (Some("object"), Value::Object(fields)) => self.walk_object(schema, fields, at),
            (Some("array"), Value::Array(items)) => {
                within(schema, "Items", items.len()).or_else(wrong)?;
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, item)| {
                    self.walk(&schema["items"], item, &format!("{at}[{index}]"))
                })
            }
            (Some("string"), Value::String(text)) => {
                within(schema, "Length", text.chars().count()).or_else(wrong)
            }
            (Some("integer"), Value::Number(number)) if number.is_i64() || number.is_u64() => {
                within_bounds(schema, number.as_f64()).or_else(wrong)
            }
            (Some("number"), Value::Number(number)) => within_bounds(schema, number.as_f64()).or_else(wrong),
            (Some(wanted), _) => wrong(format!("{} is no {}", plain(value), word(wanted))),
        }
    }

    fn walk_object(&self, schema: &Value, fields: &Map<String, Value>, at: &str) -> Result<(), Wrong> {
        let inside = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        let known = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        let open = known.is_none() || schema.get("x-kubernetes-preserve-unknown-fields").is_some();
        for (name, field) in fields {
            match (known.and_then(|known| known.get(name)), others) {
                (Some(schema), _) | (None, Some(schema)) => self.walk(schema, field, &inside(name))?,
                (None, None) if open => {}
                (None, None) => {
                    let problem = unknown(name, known.into_iter().flat_map(Map::keys));
                    return Err(Wrong { field: inside(name), problem });
                }
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            if fields.get(name).is_none_or(Value::is_null) {
                return Err(Wrong { field: inside(name), problem: "it is missing; write it".to_owned() });
            }
        }
        Ok(())
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<&str> = known.map(String::as_str).collect();
    let alike = |one: &&str| one.eq_ignore_ascii_case(name) || distance(one, name) <= 2;
    if let Some(alike) = names.iter().copied().find(alike) {
        return format!("there is no such field; is {alike} meant?");
    }
    names.sort_unstable();
    format!("there is no such field; there are {}", names.join(", "))
}

/// How many letters have to be put, taken away or exchanged to make one word another.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut corner = line;
        row[0] = line + 1;
        for column in 0..other.len() {
            let exchanged = corner + usize::from(letter != other[column]);
            corner = row[column + 1];
            row[column + 1] = exchanged.min(row[column] + 1).min(corner + 1);
        }
    }
    row[other.len()]
}

fn within(schema: &Value, what: &str, count: usize) -> Result<(), String> {
    let bound = |side: &str| schema.get(format!("{side}{what}")).and_then(Value::as_u64);
    let unit = if what == "Items" { "entries" } else { "characters" };
    match (bound("min"), bound("max")) {
        (Some(least), _) if (count as u64) < least => Err(format!("it has {count} {unit} and needs {least}")),
        (_, Some(most)) if count as u64 > most => Err(format!("it has {count} {unit} and may have {most}")),
        _ => Ok(()),
    }
}

fn within_bounds(schema: &Value, number: Option<f64>) -> Result<(), String> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    match (number, bound("minimum"), bound("maximum")) {
        (Some(number), Some(least), _) if number < least => Err(format!("{number} is less than {least}")),
        (Some(number), _, Some(most)) if number > most => Err(format!("{number} is more than {most}")),
        _ => Ok(()),
    }
}

fn word(wanted: &str) -> &str {
    match wanted {
        "string" => "text: put it in quotes",
        "array" => "list",
        "object" => "map of fields",
        "boolean" => "true or false",
        other => other,
    }
}

/// A value as it would be written, in short.
fn plain(value: &Value) -> String {
    match value {
        Value::Object(_) => "a map of fields".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::kinds;
    use super::*;

    fn known(kind: &str) -> kinds::Known {
        kinds::all().into_iter().find(|known| known.kind == kind).expect(kind)
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        let known = known("ClusterUserDefinedNetwork");
        let schema = known.schema();
        let network = |network: Value| {
            json!({
                "apiVersion": "k8s.ovn.org/v1", "kind": "ClusterUserDefinedNetwork",
                "metadata": { "name": "blue" },
                "spec": { "namespaceSelector": {}, "network": network },
            })
        };
        let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": "10.0.0.0/16", "hostSubnet": 24 }] });
        let good = network(json!({ "topology": "Layer3", "layer3": layer3 }));
        assert_eq!(schema.check(&good), Ok(()));
        assert_eq!(schema.broken_rules(&good, None), []);
        for (wrong, want) in [
            (network(json!({ "topology": "Layer4" })), "spec.network.topology: \"Layer4\" is none of "),
            (
                network(json!({ "topologie": "Layer3" })),
                "spec.network.topologie: there is no such field; is topology meant?",
            ),
            (
                network(json!({ "topology": "Layer3", "layer3": { "role": "Primary", "subnet": [] } })),
                "spec.network.layer3.subnet: there is no such field; is subnets meant?",
            ),
            (
                network(json!({ "topology": "Layer3", "layer3": { "role": "Primary", "subnets": "all" } })),
                "spec.network.layer3.subnets: \"all\" is no list",
            ),
            (
                json!({ "metadata": { "name": "blue", "label": {} }, "spec": good["spec"] }),
                "metadata.label: there is no such field; is labels meant?",
            ),
            (json!({ "metadata": { "name": "blue" } }), "spec: it is missing; write it"),
        ] {
            let found = schema.check(&wrong).expect_err(want).to_string();
            assert!(found.starts_with(want), "{found}");
        }
    }

    #[test]
    fn rules_are_asked_as_the_api_server_asks_them() {
        let known = known("ClusterUserDefinedNetwork");
        let schema = known.schema();
        let network = json!({
            "metadata": { "name": "blue" },
            "spec": { "namespaceSelector": {}, "network": { "topology": "Layer3" } },
        });
        assert_eq!(schema.check(&network), Ok(()), "fields and types are right");
        let broken = schema.broken_rules(&network, None);
        assert!(broken.iter().any(|one| one.field.starts_with("spec.network")), "{broken:?}");
    }

    #[test]
    fn objects_of_kubernetes_are_checked_too() {
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a", "annotations": { "x": 1 } } });
        let found = known("Node").schema().check(&node).expect_err("a number is no text").to_string();
        assert_eq!(found, "metadata.annotations.x: 1 is no text: put it in quotes");
        let pod = json!({ "metadata": {}, "spec": { "containers": [
            { "name": "a", "resources": { "requests": { "cpu": 1 } } },
        ] } });
        assert_eq!(known("Pod").schema().check(&pod), Ok(()), "quantities may be numbers");
    }
}
