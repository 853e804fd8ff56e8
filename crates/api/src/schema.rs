//! Schemas of Kubernetes' own types as they appear inside our resources, and the last touch on a whole definition.
//!
//! The derived schemas are right for Rust but not what the ecosystem installs: they allow `null` wherever a field is
//! optional, fill in what is required, and name number formats that Kubernetes does not know.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{Schema, SchemaGenerator, json_schema};

/// A label selector. It is one value: whoever sets it sets all of it.
pub fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels that must be there with these values.",
                "type": "object",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": {
                "description": "Conditions on labels. All of them must hold.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "description": "Name of the label.", "type": "string" },
                        "operator": {
                            "description": "In, NotIn, Exists or DoesNotExist.",
                            "type": "string",
                        },
                        "values": {
                            "description": "Values to compare with, for In and NotIn only.",
                            "type": "array",
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string" },
                        },
                    },
                },
            },
        },
    })
}

/// The conditions of a status, one of each type.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "Since when the condition has this status.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "Why, for people.",
                    "type": "string",
                    "maxLength": crate::conditions::MESSAGE_MAX,
                },
                "observedGeneration": {
                    "description": "The generation of the object that was looked at. An older one than the \
                        object's means that the last change is not judged yet.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Why, for programs: one word.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Whether the condition holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "What is judged.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                        (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
        },
    })
}

/// Brings a derived schema into the form that the ecosystem installs, from here downwards.
pub fn polish(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    if let Some(words) = &mut schema.enum_ {
        words.retain(|word| !word.0.is_null());
    }
    schema.description = schema.description.take().map(|text| reflow(&text));
    if let Some(format) = schema.format.take() {
        schema.format = number_format(&format, schema.maximum).or(Some(format));
    }
    let required = schema.required.iter().flatten().collect::<Vec<_>>();
    for (name, property) in schema.properties.iter_mut().flatten() {
        polish(property);
        // Our types read what is missing as empty; whoever writes must not leave it out.
        if required.contains(&name) {
            property.default = None;
        }
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        polish(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        polish(values);
    }
}

/// Kubernetes knows signed numbers only: the smaller one that holds them all.
fn number_format(format: &str, maximum: Option<f64>) -> Option<String> {
    let fits = maximum.is_some_and(|maximum| maximum <= f64::from(i32::MAX));
    match format {
        "uint8" | "uint16" => Some("int32".to_owned()),
        "uint32" => Some(if fits { "int32" } else { "int64" }.to_owned()),
        _ => None,
    }
}

/// Paragraphs without the line ends of our source: whoever shows them breaks lines to fit.
fn reflow(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|lines| lines.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_stay_and_lines_go() {
        assert_eq!(reflow("one\ntwo\n\nthree\n four"), "one two\n\nthree four");
    }

    #[test]
    fn number_formats_are_those_kubernetes_knows() {
        assert_eq!(number_format("uint32", Some(128.0)).as_deref(), Some("int32"));
        assert_eq!(number_format("uint32", Some(4_294_967_295.0)).as_deref(), Some("int64"));
        assert_eq!(number_format("date-time", None), None);
    }
}
