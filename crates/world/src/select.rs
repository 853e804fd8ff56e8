//! Label selectors.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

/// Whether a selector picks an object with these labels. An empty selector picks all; one that makes no sense (the API
/// server lets some through) picks none and is the error.
pub fn picks(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> Result<bool, String> {
    Ok(parse(selector)?.matches(labels))
}

/// A selector for those who ask it of many objects. The error is as that of [`picks`].
pub fn parse(selector: &LabelSelector) -> Result<Selector, String> {
    Selector::try_from(selector.clone()).map_err(|error| error.to_string())
}
