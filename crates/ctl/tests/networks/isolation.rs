//! What must not get through. Whoever only waits for answers does not see a packet that arrives and is ignored, so the
//! far end listens.

use underlay_testkit::{LabUnderTest, OutputExt};

use crate::cluster::{Capture, apply, authority, get, image};
use crate::tenants::{Pod, TENANTS, clusters_addresses, in_pod, pods};

/// A port where nobody listens: what arrives for it was sent by this test.
const KNOCK: u16 = 8083;

/// From every tenant, and from the default network, to every other tenant's pods on another node, by all their
/// addresses, and to services that are not theirs.
pub fn nothing_crosses(lab: &LabUnderTest) {
    let visitor = visitor(lab);
    let filter = format!("tcp dst port {KNOCK}");
    let nothing = Capture::start(lab, "worker2", "any", &filter);
    for (tenant, ..) in TENANTS {
        let own = pods(lab, tenant);
        let answers = knock(lab, &own[0], &addresses_of_others(lab, tenant, &own));
        assert_eq!(answers, "", "{tenant} was answered");
    }
    let pods_of_all = TENANTS.iter().flat_map(|(tenant, ..)| far_addresses(lab, tenant));
    let services = TENANTS.iter().flat_map(|(tenant, ..)| clusters_addresses(lab, tenant, "web"));
    let all: Vec<String> = pods_of_all.chain(services).collect();
    assert_eq!(knock(lab, &visitor, &all), "", "the default network was answered");
    // The listener gives up by itself; a packet would have ended it before.
    assert_eq!(nothing.packet(), "", "something crossed");

    let own = pods(lab, "red");
    let something = Capture::start(lab, "worker2", "any", &filter);
    assert!(knock(lab, &own[0], &own[1].addresses).contains(&own[1].name));
    assert!(!something.packet().is_empty(), "the same listener hears a tenant's own packets");
}

/// A pod of the default network.
fn visitor(lab: &LabUnderTest) -> Pod {
    let image = image();
    let manifest = format!(
        r"
apiVersion: v1
kind: Pod
metadata: {{ name: visitor }}
spec:
  nodeName: worker1
  terminationGracePeriodSeconds: 0
  containers: [{{ name: visitor, image: {image}, imagePullPolicy: Never, args: [pause] }}]
"
    );
    apply(lab, "visitor.yaml", &manifest);
    lab.kubectl(&["wait", "pod/visitor", "--for=condition=Ready", "--timeout=60s"]).ok();
    let pod = get(lab, &["pod", "visitor"]);
    let addresses = pod["status"]["podIPs"].as_array().into_iter().flatten();
    let addresses = addresses.filter_map(|ip| ip["ip"].as_str()).map(str::to_owned).collect();
    Pod { namespace: "default".to_owned(), name: "visitor".to_owned(), addresses, locked: vec![] }
}

/// All addresses of a tenant's pod on the other node.
fn far_addresses(lab: &LabUnderTest, tenant: &str) -> Vec<String> {
    let far = pods(lab, tenant).swap_remove(1);
    [far.addresses, far.locked].concat()
}

/// What a tenant must not reach. Where others have the same addresses, its own pods may answer at them.
fn addresses_of_others(lab: &LabUnderTest, tenant: &str, own: &[Pod]) -> Vec<String> {
    let is_own = |address: &String| own.iter().any(|pod| pod.addresses.contains(address));
    let others = TENANTS.iter().filter(|(other, ..)| *other != tenant);
    let pods = others.clone().flat_map(|(other, ..)| far_addresses(lab, other));
    let own_locked = own[1].locked.clone();
    let services = others.flat_map(|(other, ..)| clusters_addresses(lab, other, "web"));
    pods.filter(|address| !is_own(address)).chain(own_locked).chain(services).collect()
}

/// Tries all addresses at once: at the port where nobody listens, and where pods and services do. Returns what was said.
fn knock(lab: &LabUnderTest, from: &Pod, addresses: &[String]) -> String {
    assert!(!addresses.is_empty(), "nobody to knock at");
    let places = addresses.iter().flat_map(|address| [KNOCK, 8080, 80].map(|port| authority(address, port)));
    let tries = places.map(|place| format!("curl -s -m 2 'http://{place}/hostname' & "));
    in_pod(lab, from, &["sh", "-c", &(tries.collect::<String>() + "wait")]).unwrap_or_default()
}
