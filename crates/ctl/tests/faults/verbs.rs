//! Calls of the plugin as a container runtime makes them, also such as no runtime should make.

use serde_json::{Value, json};
use underlay_testkit::LabUnderTest;

use crate::cluster::pods_on;
use crate::node::sh;
use crate::plugin::nothing_is_left_over;
use crate::snapshot::Snapshot;
use crate::traffic::Traffic;

/// A pod's sandbox, as the runtime remembers it.
struct Sandbox {
    id: String,
    netns: String,
    arguments: String,
    result: Value,
}

impl Sandbox {
    /// The sandbox of the first pod of the deployment on worker1.
    fn of_a_pod(lab: &LabUnderTest) -> Self {
        let pod = &pods_on(lab, "worker1")[0];
        let script = format!("cat $(grep -l '\"{}\"' /var/lib/cni/results/ovn-kubernetes-*-eth0)", pod.name);
        let memory: Value =
            serde_json::from_str(&sh(lab, "worker1", &script)).expect("what libcni remembers");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let pair = |pair: &Value| format!("{}={}", text(&pair[0]), text(&pair[1]));
        Self {
            id: text(&memory["containerId"]),
            netns: text(&memory["netns"]),
            arguments: memory["cniArgs"]
                .as_array()
                .into_iter()
                .flatten()
                .map(pair)
                .collect::<Vec<_>>()
                .join(";"),
            result: memory["result"].clone(),
        }
    }

    fn call(&self, lab: &LabUnderTest, verb: &str) -> Answer {
        let variables = [
            ("CNI_COMMAND", verb),
            ("CNI_CONTAINERID", &self.id),
            ("CNI_NETNS", &self.netns),
            ("CNI_IFNAME", "eth0"),
            ("CNI_ARGS", &self.arguments),
        ];
        call(lab, &variables, &config(&json!({})))
    }
}

/// What the plugin says and whether it succeeds.
#[derive(Debug)]
pub struct Answer {
    success: bool,
    text: String,
}

impl Answer {
    #[track_caller]
    fn document(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a failure.
    #[track_caller]
    pub fn code(&self) -> u64 {
        assert!(!self.success, "{self:?}");
        let document = self.document();
        assert!(document["msg"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        document["code"].as_u64().expect("a code")
    }

    #[track_caller]
    fn must_be_silent_success(&self) {
        assert!(self.success && self.text.is_empty(), "{self:?}");
    }
}

/// Runs the plugin in worker1.
pub fn call(lab: &LabUnderTest, variables: &[(&str, &str)], input: &str) -> Answer {
    let variables: Vec<String> = variables.iter().map(|(name, value)| format!("{name}='{value}'")).collect();
    let variables = variables.join(" ");
    let script = format!(
        "printf '%s' '{input}' | env {variables} CNI_PATH=/opt/cni/bin timeout 30 /opt/cni/bin/ovn-k8s-cni-overlay"
    );
    let output = lab.exec("worker1", &["sh", "-c", &script]);
    Answer { success: output.status.success(), text: String::from_utf8_lossy(&output.stdout).into_owned() }
}

/// The network configuration with more in it.
pub fn config(more: &Value) -> String {
    let mut config =
        json!({ "cniVersion": "1.1.0", "name": "ovn-kubernetes", "type": "ovn-k8s-cni-overlay" });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    config.to_string()
}

pub fn as_prescribed(lab: &LabUnderTest) {
    let sandbox = Sandbox::of_a_pod(lab);
    a_second_addition_disturbs_nobody(lab, &sandbox);
    checks_see_what_is_missing(lab, &sandbox);
    collection_takes_only_what_is_left_over(lab);
    mistakes_get_their_codes(lab, &sandbox);
    nothing_is_left_over(lab);
}

fn a_second_addition_disturbs_nobody(lab: &LabUnderTest, sandbox: &Sandbox) {
    let before = Snapshot::of(lab, "worker1");
    let traffic = Traffic::start(lab);
    let answer = sandbox.call(lab, "ADD");
    assert!(answer.success, "{answer:?}");
    // libcni keeps the order of keys, not their absence: what is empty is left out.
    assert_eq!(answer.document()["ips"], sandbox.result["ips"]);
    assert_eq!(answer.document()["interfaces"], sandbox.result["interfaces"]);
    assert_eq!(answer.document()["routes"], sandbox.result["routes"]);
    traffic.wait_until_flowing();
    let lost: Vec<String> =
        traffic.stop(lab).iter().filter(|gap| gap.lost > 0).map(ToString::to_string).collect();
    assert_eq!(lost, [] as [&str; 0], "a second addition disturbs the pod");
    assert_eq!(Snapshot::of(lab, "worker1").since(&before), [] as [&str; 0]);
}

fn checks_see_what_is_missing(lab: &LabUnderTest, sandbox: &Sandbox) {
    sandbox.call(lab, "CHECK").must_be_silent_success();
    let address = sandbox.result["ips"][0]["address"].as_str().expect("an address");
    sh(lab, "worker1", &format!("nsenter --net={} ip address del {address} dev eth0", sandbox.netns));
    let answer = sandbox.call(lab, "CHECK");
    assert!(answer.code() >= 100 && answer.text.contains(address), "{answer:?}");
    // An addition makes right what is not.
    assert!(sandbox.call(lab, "ADD").success);
    sandbox.call(lab, "CHECK").must_be_silent_success();
}

fn collection_takes_only_what_is_left_over(lab: &LabUnderTest) {
    let sandboxes =
        "ovs-vsctl --bare --columns=external_ids list Interface | grep -o 'sandbox=[0-9a-f]*' | cut -d= -f2";
    let valid: Vec<Value> = sh(lab, "worker1", sandboxes)
        .lines()
        .map(|sandbox| json!({ "containerID": sandbox, "ifname": "eth0" }))
        .collect();
    assert!(valid.len() >= 2, "{valid:?}");
    let before = Snapshot::of(lab, "worker1");
    sh(
        lab,
        "worker1",
        "ovs-vsctl add-port br-int stale0 -- set Interface stale0 type=internal external_ids:sandbox=deadbeef \
         external_ids:iface-id=default_nobody",
    );
    let variables = [("CNI_COMMAND", "GC")];
    // Without the list nobody would be valid.
    assert_eq!(call(lab, &variables, &config(&json!({}))).code(), 7);
    call(lab, &variables, &config(&json!({ "cni.dev/valid-attachments": valid }))).must_be_silent_success();
    assert_eq!(Snapshot::of(lab, "worker1").since(&before), [] as [&str; 0]);
}

fn mistakes_get_their_codes(lab: &LabUnderTest, sandbox: &Sandbox) {
    let unknown = |netns: &str| Sandbox {
        id: "f".repeat(64),
        netns: netns.to_owned(),
        arguments: sandbox.arguments.clone(),
        result: Value::Null,
    };
    unknown("/var/run/netns/there-is-none").call(lab, "DEL").must_be_silent_success();
    unknown("").call(lab, "DEL").must_be_silent_success();
    assert_eq!(unknown("/var/run/netns/there-is-none").call(lab, "ADD").code(), 3);
    assert_eq!(unknown("").call(lab, "ADD").code(), 4);
    let status = [("CNI_COMMAND", "STATUS")];
    call(lab, &status, &config(&json!({}))).must_be_silent_success();
    assert_eq!(call(lab, &status, "{ this is no JSON").code(), 6);
    assert_eq!(call(lab, &status, &config(&json!({ "cniVersion": "9.9.9" }))).code(), 1);
    assert_eq!(call(lab, &[("CNI_COMMAND", "DANCE")], &config(&json!({}))).code(), 4);
    let version = call(lab, &[("CNI_COMMAND", "VERSION")], &config(&json!({})));
    let versions = version.document()["supportedVersions"].clone();
    assert!(versions.as_array().is_some_and(|all| all.contains(&json!("1.1.0"))), "{version:?}");
}
