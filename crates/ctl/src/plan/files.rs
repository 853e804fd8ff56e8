//! Reading manifests: files, the manifests of a directory, or what comes in by a pipe.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Endings of files that are manifests; others in a directory are none.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Where an object is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The file.
    pub file: String,
    /// Which document in it, from 1.
    pub document: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, document {}", self.file, self.document)
    }
}

/// An object as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Where.
    pub origin: Origin,
    /// The object.
    pub value: Value,
}

/// Reads all documents of these files, directories and pipes (`-`). What cannot be read is told, file by file.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Vec<String>> {
    let (mut documents, mut problems) = (vec![], vec![]);
    for path in paths {
        match texts(path) {
            Err(problem) => problems.push(problem),
            Ok(texts) => {
                for (file, text) in texts {
                    match parse(&file, &text) {
                        Ok(found) => documents.extend(found),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
        }
    }
    if documents.is_empty() && problems.is_empty() {
        problems.push("there is no object in these files: write manifests as for kubectl apply".to_owned());
    }
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

/// Texts by the names of their files.
fn texts(path: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |name: &str, error: std::io::Error| format!("{name}: {error}");
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| failed("standard input", error))?;
        return Ok(vec![("standard input".to_owned(), text)]);
    }
    let name = path.display().to_string();
    let files = if path.is_dir() {
        manifests(path).map_err(|error| failed(&name, error))?
    } else {
        vec![path.to_owned()]
    };
    if files.is_empty() {
        return Err(format!("{name}: no file in it ends with .{}", ENDINGS.join(", .")));
    }
    let text = |path: &PathBuf| {
        let name = path.display().to_string();
        std::fs::read_to_string(path).map_err(|error| failed(&name, error)).map(|text| (name, text))
    };
    files.iter().map(text).collect()
}

/// The manifests of a directory, by name.
fn manifests(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = vec![];
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_file() && ENDINGS.contains(&ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The objects of a text. A list of objects, as `kubectl get` prints it, counts as its members.
fn parse(file: &str, text: &str) -> Result<Vec<Document>, String> {
    let values: Vec<Value> = if Path::new(file).extension().is_some_and(|ending| ending == "json") {
        vec![serde_json::from_str(text).map_err(|error| format!("{file}: {error}"))?]
    } else {
        serde_saphyr::from_multiple(text).map_err(|error| format!("{file}: {error}"))?
    };
    let mut documents = vec![];
    for (index, mut value) in values.into_iter().enumerate() {
        let origin = Origin { file: file.to_owned(), document: index + 1 };
        let list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
        let items = value.get_mut("items").filter(|_| list).map(Value::take);
        match items {
            Some(Value::Array(items)) => {
                let item = |value| Document { origin: origin.clone(), value };
                documents.extend(items.into_iter().map(item));
            }
            _ if value.is_null() => {}
            _ => documents.push(Document { origin, value }),
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_counted_and_lists_are_their_members() {
        let text = "kind: A\n---\n---\nkind: BList\nitems: [{kind: B, name: one}, {kind: B, name: two}]\n";
        let found = parse("x.yaml", text).unwrap();
        let kinds: Vec<&str> = found.iter().map(|one| one.value["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["A", "B", "B"]);
        assert_eq!(found[0].origin.to_string(), "x.yaml, document 1");
    }

    #[test]
    fn what_is_no_yaml_is_told_with_file_and_line() {
        let problem = parse("x.yaml", "kind: A\nspec: [1, 2\n").unwrap_err();
        assert!(problem.starts_with("x.yaml: ") && problem.contains("line"), "{problem}");
    }
}
