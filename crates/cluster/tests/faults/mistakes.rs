//! Objects that cannot be: refused at the door where that is possible, else told in a condition that names field and
//! reason; and others work.

use serde_json::{Value, json};
use underlay_testkit::wait_for;

use crate::cluster::{Cluster, PATIENCE};
use crate::common::daemon::{Daemon, apply, becomes, get, kubectl};
use crate::common::objects::{condition, message, namespace, network};

pub fn are_told_and_others_work(cluster: &Cluster, daemon: Daemon) -> Daemon {
    what_the_schema_knows_is_refused(cluster);
    let (server, scratch) = (&cluster.server, &cluster.scratch);
    let before = get(server, &["cudn"])["items"].as_array().unwrap().len();
    let mut bare = namespace("bare", "wrong-label");
    bare["metadata"]["labels"] = json!({ "team": "wrong-label" });
    apply(server, scratch, &[namespace("wrong", "wrong"), namespace("twice", "twice"), bare]);
    let mut objects: Vec<Value> = WRONG.iter().map(|(name, cidr, _)| network(name, "wrong", cidr)).collect();
    objects.extend([
        network("right", "wrong", "10.210.0.0/16"),
        network("wrong-label", "wrong-label", "10.211.0.0/16"),
    ]);
    objects.extend([own("first", "10.212.0.0/16"), own("second", "10.213.0.0/16")]);
    objects.push(network("third", "twice", "10.214.0.0/16"));
    apply(server, scratch, &objects);
    for (name, cidr, range) in WRONG {
        says(
            cluster,
            &["cudn", name],
            "NetworkAttachmentDefinitionSyncError",
            &format!(r#"user defined subnet "{cidr}" overlaps {range} (spec.network.layer3.subnets[0])"#),
        );
    }
    let label = r#"required namespace label "k8s.ovn.org/primary-user-defined-network" must both be present"#;
    says(cluster, &["cudn", "wrong-label"], "NetworkAttachmentDefinitionSyncError", label);
    let created = |object: &Value| condition(object, "NetworkCreated");
    becomes(server, &["cudn", "right"], created, &"True NetworkAttachmentDefinitionCreated".to_owned());
    one_primary_network_a_namespace(cluster);
    let wrong: Vec<&str> = WRONG.iter().map(|(name, ..)| *name).collect();
    let all =
        [&["delete", "cudn", "right", "wrong-label", "third", "--timeout=60s"], wrong.as_slice()].concat();
    let daemon = cluster.judge(daemon);
    kubectl(server, &all);
    kubectl(server, &["delete", "udn", "-n", "twice", "--all", "--timeout=60s"]);
    cluster.has_networks(before, &daemon);
    daemon
}

/// Networks in the way of the cluster's own ranges: name, subnet, and what it is in the way of.
const WRONG: [(&str, &str, &str); 5] = [
    ("wrong-cluster", "10.244.128.0/17", r#"cluster subnet "10.244.0.0/16""#),
    ("wrong-services", "10.96.0.0/20", r#"service subnet "10.96.0.0/16""#),
    ("wrong-join", "100.64.0.0/20", r#"built-in join subnet "100.64.0.0/16""#),
    ("wrong-transit", "100.88.0.0/20", r#"transit switch subnet "100.88.0.0/16""#),
    ("wrong-masquerade", "169.254.0.0/20", r#"masquerade subnet "169.254.0.0/17""#),
];

fn own(name: &str, cidr: &str) -> Value {
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": cidr, "hostSubnet": 24 }] });
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "UserDefinedNetwork",
        "metadata": { "name": name, "namespace": "twice" },
        "spec": { "topology": "Layer3", "layer3": layer3 },
    })
}

fn what_the_schema_knows_is_refused(cluster: &Cluster) {
    let server = &cluster.server;
    let path = cluster.scratch.join("refused.json");
    for (network, reason) in [
        (network("refused", "x", "10.0.0.0/33"), "CIDR is invalid"),
        (network("refused", "x", "10.0.0.0/25"), "HostSubnet must be smaller than CIDR subnet"),
    ] {
        std::fs::write(&path, network.to_string()).unwrap();
        let output = server.kubectl(&["apply", "--server-side", "-f", path.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{said}");
    }
}

/// Waits until a network says why it cannot be.
#[track_caller]
fn says(cluster: &Cluster, object: &[&str], reason: &str, text: &str) {
    wait_for(&format!("{object:?} to say {text}"), PATIENCE, || {
        let object = get(&cluster.server, object);
        let (said, why) = (message(&object), condition(&object, "NetworkCreated"));
        let ok = said.contains(text) && why == format!("False {reason}");
        ok.then_some(()).ok_or(format!("{why} {said}"))
    });
}

/// Who was first keeps it; of those that come at once, one is served and the others are told.
fn one_primary_network_a_namespace(cluster: &Cluster) {
    let objects: [(&[&str], &str); 3] = [
        (&["udn", "first", "-n", "twice"], "first"),
        (&["udn", "second", "-n", "twice"], "second"),
        (&["cudn", "third"], "third"),
    ];
    wait_for("one of three to be served", PATIENCE, || {
        let said = objects.map(|(object, _)| get(&cluster.server, object));
        let is = |object: &&Value| condition(object, "NetworkCreated").starts_with("True");
        let served: Vec<&str> =
            said.iter().zip(objects).filter(|(object, _)| is(object)).map(|(_, (_, name))| name).collect();
        let [served] = served.as_slice() else { return Err(format!("{served:?}")) };
        let told = format!(r#"primary network already exist in namespace "twice": "{served}""#);
        let others = said.iter().filter(|object| message(object) == told).count();
        if others == 2 { Ok(()) } else { Err(format!("{said:?}")) }
    });
}
