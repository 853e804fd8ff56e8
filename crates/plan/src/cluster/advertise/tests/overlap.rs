//! Two networks with the same addresses cannot both be told in one VRF.

use super::*;

const BLUE: (&str, &str) = ("blue", "10.1.0.0/16");

fn selects(network: &str, target: &str) -> Value {
    let mut spec = Scene::new().spec;
    spec["networkSelectors"] = tenants(&json!({ "matchLabels": { "network": network } }));
    spec["targetVRF"] = target.into();
    spec
}

/// Blue, and red with this range.
fn scene(red: &str) -> Scene {
    Scene::of_tenants(&[(BLUE.0, layer3(BLUE.1)), ("red", layer3(red))])
}

#[test]
fn one_advertisement_of_both_is_refused_and_names_them() {
    for red in ["10.1.0.0/16", "10.1.0.0/18", "10.0.0.0/12"] {
        scene(red).says(&format!(
            "configuration error: networks \"cluster_udn_blue\" (10.1.0.0/16) and \"cluster_udn_red\" ({red}) overlap \
             and cannot both be advertised in VRF \"default\""
        ));
    }
    scene("10.2.0.0/16").says(FINE);
}

#[test]
fn of_two_advertisements_the_newer_one_yields() {
    let mut scene = scene("10.1.0.0/18");
    scene.spec = selects("red", "");
    scene.others.push(("a-newer-one", selects("blue", "default")));
    scene.says(FINE);
    scene.says_of(
        "a-newer-one",
        "configuration error: network \"cluster_udn_blue\" (10.1.0.0/16) overlaps network \"cluster_udn_red\" \
         (10.1.0.0/18), which RouteAdvertisements \"ra\" advertises in VRF \"default\"",
    );
    scene.others[0].1 = selects("red", "");
    scene.says_of("a-newer-one", FINE);
}

#[test]
fn in_vrfs_of_their_own_they_do_not_meet() {
    let vrf = |name: &str| {
        let mut router = router(&json!([peer("192.0.2.1")]));
        router["vrf"] = name.into();
        router
    };
    let own = scene("10.1.0.0/16").routers(&json!([vrf("blue"), vrf("red")]));
    own.clone().with("targetVRF", json!("auto")).says(FINE);
    own.clone().with("targetVRF", json!("red")).says(
        "configuration error: networks \"cluster_udn_blue\" (10.1.0.0/16) and \"cluster_udn_red\" (10.1.0.0/16) overlap \
         and cannot both be advertised in VRF \"red\"",
    );
    // Another that brings blue into the VRF that red has for itself.
    let mut both = own;
    both.spec = selects("red", "auto");
    both.sources[0]["spec"]["bgp"]["routers"] = json!([vrf("red")]);
    both.others.push(("leak", selects("blue", "red")));
    both.says(FINE);
    both.says_of(
        "leak",
        "configuration error: network \"cluster_udn_blue\" (10.1.0.0/16) overlaps network \"cluster_udn_red\" \
         (10.1.0.0/16), which RouteAdvertisements \"ra\" advertises in VRF \"red\"",
    );
}

#[test]
fn egress_addresses_of_such_networks_may_be_told() {
    scene("10.1.0.0/16").with("advertisements", json!(["EgressIP"])).says(FINE);
}
