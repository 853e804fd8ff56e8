//! The CNI plugin is killed while it gives pods their interfaces.

use std::collections::BTreeSet;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, wait_for};

use crate::cluster::{PATIENCE, get};
use crate::node::{delete_pods, sh, start_pods, wait_until_running};
use crate::traffic::Background;

/// Kills the first plugins that give an interface, and says in the end how many.
const KILLER: &str = r#"sh -c 'killed=0
trap "echo \$killed; exit" INT
while [ $killed -lt 3 ]; do
    for number in $(pgrep -f ^/opt/cni/bin/ovn-k8s-cni-overlay); do
        if tr "\0" "\n" 2> /dev/null < /proc/$number/environ | grep -qx CNI_COMMAND=ADD; then
            kill -9 $number 2> /dev/null && killed=$((killed + 1))
        fi
    done
done
while :; do sleep 0.2; done'"#;

pub fn a_killed_plugin_leaves_nothing_behind(lab: &LabUnderTest) {
    let names: Vec<String> = (0..8).map(|number| format!("burst-{number}")).collect();
    let watcher = Background::start(lab, "worker1", KILLER);
    start_pods(lab, &names);
    wait_until_running(lab, &names);
    let said = watcher.stop(lab);
    let killed: u32 = said.trim().parse().unwrap_or_else(|error| panic!("{error}: {said}"));
    println!("      plugins killed: {killed}");
    assert!(killed > 0, "no plugin was caught at work");
    nothing_is_left_over(lab);
    delete_pods(lab, &names, true);
    nothing_is_left_over(lab);
}

/// Waits until worker1 has ports and links for its pods, and for nobody else.
pub fn nothing_is_left_over(lab: &LabUnderTest) {
    wait_for("ports and links of pods and no others", PATIENCE, || {
        let pods = pods_of_worker1(lab);
        let northbound =
            lines(lab, "ovn-nbctl --bare --columns=name find Logical_Switch_Port external_ids:pod=true");
        let ports = lines(
            lab,
            "ovs-vsctl -f csv --no-headings --columns=name,external_ids list Interface | grep sandbox= \
             | sed -E 's/.*iface-id=\"*([^,\"]*).*/\\1/'",
        );
        let names = lines(
            lab,
            "ovs-vsctl -f csv --no-headings --columns=name,external_ids list Interface | grep sandbox= | cut -d, -f1 \
             | tr -d '\"'",
        );
        let links = lines(lab, "ip -br link show type veth | grep -v ^eth | sed 's/@.*//'");
        if pods == northbound && pods == ports && names == links {
            return Ok(());
        }
        Err(format!("pods {pods:?}, northbound {northbound:?}, switch {ports:?} {names:?}, links {links:?}"))
    });
}

fn pods_of_worker1(lab: &LabUnderTest) -> BTreeSet<String> {
    let list = get(lab, &["pods", "--all-namespaces", "--field-selector=spec.nodeName=worker1"]);
    let port = |pod: &Value| {
        let part = |name: &str| pod["metadata"][name].as_str().unwrap_or_default().to_owned();
        format!("{}_{}", part("namespace"), part("name"))
    };
    list["items"].as_array().into_iter().flatten().map(port).collect()
}

fn lines(lab: &LabUnderTest, script: &str) -> BTreeSet<String> {
    // A filter that finds nothing is no failure.
    let text = sh(lab, "worker1", &format!("{{ {script}; }} || true"));
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}
