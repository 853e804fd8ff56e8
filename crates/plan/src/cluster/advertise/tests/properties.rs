//! What holds for whatever advertisements there are.

use proptest::prelude::*;
use underlay_net::cidr::overlap;

use super::*;

/// A network, an advertisement's selection and target, and whether it is in the world from the start.
#[derive(Debug, Clone)]
struct Case {
    ranges: Vec<u8>,
    selections: Vec<(u8, u8)>,
}

fn any_case() -> impl Strategy<Value = Case> {
    (prop::collection::vec(0u8..6, 1..5), prop::collection::vec((0u8..32, 0u8..4), 1..5))
        .prop_map(|(ranges, selections)| Case { ranges, selections })
}

fn scene(case: &Case) -> Scene {
    let ranges = ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", "10.1.0.0/18", "10.2.0.0/17", "10.0.0.0/12"];
    let names = ["n0", "n1", "n2", "n3"];
    let networks: Vec<(&str, Value)> = names
        .into_iter()
        .zip(&case.ranges)
        .map(|(name, range)| (name, layer3(ranges[usize::from(*range)])))
        .collect();
    let mut scene = Scene::of_tenants(&networks);
    let mut routers = vec![router(&json!([peer("192.0.2.1")]))];
    for name in names {
        let mut router = router(&json!([peer("192.0.2.1")]));
        router["vrf"] = name.into();
        routers.push(router);
    }
    scene.sources = vec![source("peers", &json!(routers))];
    let spec = |(mask, target): &(u8, u8)| {
        let picked: Vec<&str> = names
            .into_iter()
            .enumerate()
            .filter(|(bit, _)| mask & (1 << bit) != 0)
            .map(|(_, name)| name)
            .collect();
        let labels =
            json!({ "matchExpressions": [{ "key": "network", "operator": "In", "values": picked }] });
        let mut spec = scene.spec.clone();
        spec["networkSelectors"] =
            tenants(&if picked.is_empty() { json!({ "matchLabels": { "none": "" } }) } else { labels });
        if mask & 16 != 0 {
            spec["networkSelectors"]
                .as_array_mut()
                .unwrap()
                .push(json!({ "networkSelectionType": "DefaultNetwork" }));
        }
        spec["targetVRF"] = ["", "auto", "n0", "default"][usize::from(*target)].into();
        spec
    };
    let mut specs: Vec<Value> = case.selections.iter().map(spec).collect();
    scene.spec = specs.remove(0);
    scene.others = ["z", "b", "m", "k"].into_iter().zip(specs).collect();
    scene
}

/// A world that heard of everything in another order.
fn shuffled(scene: &Scene) -> Scene {
    let mut scene = scene.clone();
    scene.nodes.reverse();
    scene.sources.reverse();
    scene.networks.reverse();
    scene
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The plan does not depend on the order of hearing, nor on what it brought about itself; and no two networks with
    /// the same addresses are told in one VRF of a node by advertisements that are accepted.
    #[test]
    fn advertisements_hold(case in any_case()) {
        let scene = scene(&case);
        let plan = scene.plan();
        prop_assert_eq!(&shuffled(&scene).plan(), &plan);
        let mut world = scene.world();
        for generated in plan.configurations.values() {
            put(&mut world, generated.object.as_ref().clone());
        }
        let again = super::plan(&world);
        prop_assert_eq!(again.configurations.keys().collect::<Vec<_>>(), plan.configurations.keys().collect::<Vec<_>>());
        for (key, generated) in &again.configurations {
            prop_assert_eq!(&generated.object.spec, &plan.configurations[key].object.spec);
        }
        prop_assert_eq!(&again.verdicts, &plan.verdicts);
        check_apart(&scene, &plan)?;
    }
}

/// Ranges of networks that are told in one VRF by whom is accepted are apart.
fn check_apart(scene: &Scene, plan: &Advertised) -> Result<(), TestCaseError> {
    let range = |network: &str| {
        let name = network.strip_prefix("cluster_udn_")?;
        let found = scene.networks.iter().find(|object| object["metadata"]["name"] == name)?;
        found["spec"]["network"]["layer3"]["subnets"][0]["cidr"].as_str()?.parse::<ipnet::IpNet>().ok()
    };
    let specs: BTreeMap<&str, &Value> = [("ra", &scene.spec)]
        .into_iter()
        .chain(scene.others.iter().map(|(name, spec)| (*name, spec)))
        .collect();
    let mut told: BTreeMap<String, BTreeMap<String, ipnet::IpNet>> = BTreeMap::new();
    for (network, names) in &plan.advertisers {
        for name in names.iter().filter(|name| matches!(plan.verdicts[*name], Verdict::Accepted { .. })) {
            let vrf = match specs[name.as_str()]["targetVRF"].as_str() {
                Some("auto") => network.strip_prefix("cluster_udn_").unwrap_or("default"),
                Some("" | "default") | None => "default",
                Some(other) => other,
            };
            if let Some(range) = range(network) {
                told.entry(vrf.to_owned()).or_default().insert(network.to_string(), range);
            }
        }
    }
    for (vrf, ranges) in told {
        let ranges: Vec<_> = ranges.into_iter().collect();
        for (place, (one, net)) in ranges.iter().enumerate() {
            for (other, other_net) in &ranges[place + 1..] {
                prop_assert!(!overlap(net, other_net), "{one} and {other} in {vrf}");
            }
        }
    }
    Ok(())
}
