//! Label selectors.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

/// Whether a selector picks an object with these labels. An empty selector picks all; one that makes no sense (the API
/// server lets some through) picks none and is the error.
pub fn picks(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> Result<bool, String> {
    let selector = Selector::try_from(selector.clone()).map_err(|error| error.to_string())?;
    Ok(selector.matches(labels))
}
