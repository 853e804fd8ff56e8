//! FRRConfigurations as anybody may have written them, one a line: merged, left out one by one, and put in FRR's words.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use underlay_api::FRRConfiguration;
use underlay_frr::render::render;
use underlay_frr::tree::parse;
use underlay_plan::node::frr::merge;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let objects: Vec<FRRConfiguration> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), "n1".to_owned())]);
    let mut merged = merge(&labels, &objects, &BTreeMap::new());
    assert_eq!(merge(&labels, &objects, &BTreeMap::new()), merged);
    loop {
        let rendered = render(&merged.config);
        assert_eq!(parse(&rendered.ours.text()), rendered.ours, "every value is fit for a line of FRR's");
        let last = merged.config.raw.last().and_then(|raw| raw.why.objects().next()).cloned();
        let Some(object) = last else { break };
        merged = merged.without(&object, "spec.raw.rawConfig", "refused");
    }
});
