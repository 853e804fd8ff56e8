//! From documents to objects that are wished for, and from a wish to the object that the API server would then hold.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use underlay_world::Key;

use super::files::{Document, Origin};
use super::kinds::{self, Found, Known};

/// Annotation in which kubectl remembers what was applied before.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object that is wished for, or wished away.
#[derive(Debug)]
pub struct Wish<'a> {
    /// Where it is written.
    pub origin: Origin,
    /// Its kind.
    pub known: &'a Known,
    /// Its namespace and name.
    pub key: Key,
    /// The object as it is written.
    pub value: Value,
}

/// All wishes.
#[derive(Debug, Default)]
pub struct Wishes<'a> {
    /// Objects that have a part in plans, each once.
    pub objects: Vec<Wish<'a>>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// Sorts documents out. What is wrong is told, document by document. `namespace` is for objects that name none.
pub fn sort_out<'a>(
    documents: Vec<Document>,
    known: &'a [Known],
    namespace: &str,
) -> Result<Wishes<'a>, Vec<String>> {
    let (mut wishes, mut problems) = (Wishes::default(), vec![]);
    let mut elsewhere: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen: BTreeMap<(String, Key), usize> = BTreeMap::new();
    for Document { origin, value } in documents {
        match wish(origin.clone(), value, known, namespace) {
            Err(problem) => problems.push(format!("{origin}: {problem}")),
            Ok(Read::Elsewhere(kind)) => *elsewhere.entry(kind).or_default() += 1,
            Ok(Read::Wish(wish)) => {
                let place = (wish.known.kind.clone().into_owned(), wish.key.clone());
                match seen.get(&place).copied() {
                    None => {
                        seen.insert(place, wishes.objects.len());
                        wishes.objects.push(*wish);
                    }
                    Some(index) => {
                        let earlier = std::mem::replace(&mut wishes.objects[index], *wish);
                        wishes.notes.push(format!(
                            "{} {} is written twice, the second time in {origin}: that counts, {} does not",
                            place.0, place.1, earlier.origin
                        ));
                    }
                }
            }
        }
    }
    if !elsewhere.is_empty() {
        let kinds: Vec<String> = elsewhere.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        wishes.notes.push(format!("left out, since they have no part in networks: {}", kinds.join(", ")));
    }
    if problems.is_empty() { Ok(wishes) } else { Err(problems) }
}

enum Read<'a> {
    Wish(Box<Wish<'a>>),
    Elsewhere(String),
}

fn wish<'a>(
    origin: Origin,
    mut value: Value,
    known: &'a [Known],
    namespace: &str,
) -> Result<Read<'a>, String> {
    let text = |value: &Value, field: &str| match value.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        _ => Err(format!("{field}: it is missing; write it")),
    };
    if !value.is_object() {
        return Err("this is no object: write apiVersion, kind, metadata and spec".to_owned());
    }
    let (version, kind) = (text(&value, "apiVersion")?, text(&value, "kind")?);
    let known = match kinds::find(known, &version, &kind) {
        Found::Known(known) => known,
        Found::Elsewhere => return Ok(Read::Elsewhere(kind)),
        Found::Wrong(why) => return Err(why),
    };
    let name = value.get("metadata").and_then(|metadata| text(metadata, "name").ok());
    let name = name.ok_or_else(|| format!("{kind}: metadata.name: it is missing; write it"))?;
    let in_kind = |problem: String| format!("{kind} {name}: {problem}");
    known.schema().check(&value).map_err(|wrong| in_kind(wrong.to_string()))?;
    let metadata = &mut value["metadata"];
    if known.namespaced && text(metadata, "namespace").is_err() {
        metadata["namespace"] = namespace.into();
    }
    let namespace = text(metadata, "namespace").ok().filter(|_| known.namespaced).unwrap_or_default();
    if let Some(metadata) = metadata.as_object_mut().filter(|_| !known.namespaced) {
        metadata.remove("namespace");
    }
    Ok(Read::Wish(Box::new(Wish { origin, known, key: Key { namespace, name }, value })))
}

/// The object that the API server holds once a manifest was applied over what it holds now: labels and annotations of
/// others stay, what an earlier manifest said and this one does not goes, and so does all of the old `spec`.
pub fn applied(live: Option<&Value>, manifest: &Value) -> Value {
    let Some(live) = live else { return manifest.clone() };
    let mut object = live.clone();
    let remembered = live.pointer("/metadata/annotations").and_then(|all| all.get(LAST_APPLIED));
    let remembered: Value = remembered
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    for (field, value) in manifest.as_object().into_iter().flatten() {
        if field != "metadata" {
            object[field] = value.clone();
        }
    }
    for field in ["labels", "annotations"] {
        let of = |object: &Value| object["metadata"][field].as_object().cloned().unwrap_or_default();
        let (new, old) = (of(manifest), of(&remembered));
        let mut merged = of(live);
        merged.retain(|key, _| new.contains_key(key) || !old.contains_key(key));
        merged.extend(new);
        object["metadata"][field] = Value::Object(merged);
    }
    object
}

/// Whether an object says the same as before, to those who plan.
pub fn says_the_same(one: &Value, other: &Value) -> bool {
    let silent = |value: &Value| value.as_object().is_some_and(Map::is_empty) || value.is_null();
    let fields = ["/spec", "/status", "/metadata/labels", "/metadata/annotations", "/endpoints", "/ports"];
    fields.iter().all(|field| {
        let of = |object: &Value| object.pointer(field).filter(|value| !silent(value)).cloned();
        of(one) == of(other)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn documents(values: &[Value]) -> Vec<Document> {
        let document = |(index, value): (usize, &Value)| Document {
            origin: Origin { file: "x.yaml".to_owned(), document: index + 1 },
            value: value.clone(),
        };
        values.iter().enumerate().map(document).collect()
    }

    fn problems(value: Value) -> Vec<String> {
        sort_out(documents(&[value]), &kinds::all(), "shop").expect_err("a problem")
    }

    #[test]
    fn wishes_have_a_place_and_others_are_counted() {
        let known = kinds::all();
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "red" } });
        let labelled =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "red", "labels": {} } });
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" },
                          "spec": { "containers": [] } });
        let deployment =
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" } });
        let wishes = sort_out(documents(&[namespace, deployment, pod, labelled]), &known, "shop").unwrap();
        let keys: Vec<String> = wishes.objects.iter().map(|wish| wish.key.to_string()).collect();
        assert_eq!(keys, ["red", "shop/web"]);
        assert_eq!(
            wishes.notes,
            [
                "Namespace red is written twice, the second time in x.yaml, document 4: that counts, x.yaml, document 1 \
                 does not",
                "left out, since they have no part in networks: 1 Deployment",
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_with_file_document_and_field() {
        for (value, want) in [
            (
                json!("text"),
                "x.yaml, document 1: this is no object: write apiVersion, kind, metadata and spec",
            ),
            (json!({ "kind": "Node" }), "x.yaml, document 1: apiVersion: it is missing; write it"),
            (
                json!({ "apiVersion": "v1", "kind": "Node", "metadata": {} }),
                "x.yaml, document 1: Node: metadata.name: it is missing; write it",
            ),
            (
                json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a" }, "spek": {} }),
                "x.yaml, document 1: Node a: spek: there is no such field; is spec meant?",
            ),
        ] {
            assert_eq!(problems(value), [want]);
        }
    }

    #[test]
    fn applying_keeps_what_is_others_and_drops_what_is_no_longer_said() {
        let before = json!({ "metadata": { "labels": { "team": "red", "old": "" } }, "spec": { "a": 1 } });
        let live = json!({
            "metadata": {
                "uid": "u", "finalizers": ["held"], "labels": { "team": "red", "old": "", "theirs": "1" },
                "annotations": { LAST_APPLIED: before.to_string() },
            },
            "spec": { "a": 1, "b": 2 }, "status": { "ready": true },
        });
        let object = applied(
            Some(&live),
            &json!({ "metadata": { "labels": { "team": "blue" } }, "spec": { "a": 3 } }),
        );
        assert_eq!(object["metadata"]["labels"], json!({ "team": "blue", "theirs": "1" }));
        assert_eq!((&object["spec"], &object["metadata"]["uid"]), (&json!({ "a": 3 }), &json!("u")));
        assert_eq!(object["status"], live["status"]);
        assert!(!says_the_same(&live, &object));
        let again = json!({ "metadata": before["metadata"], "spec": live["spec"] });
        assert!(says_the_same(&live, &applied(Some(&live), &again)));
    }
}
