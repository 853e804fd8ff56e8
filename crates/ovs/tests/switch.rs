//! The edge on a real switch, looked at with the switch's own programs.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{OvsSwitch, why};
use underlay_desired::flow::{Flow, Flows};
use underlay_desired::switch::{Port, Setting, Switch};
use underlay_ovs::pods::{PodPort, add_pod_port, pod_ports, remove_pod_ports, wait_installed};
use underlay_ovs::{flows, ofport, sync};

fn plan() -> Switch {
    let setting = |value: &str| Setting { value: value.to_owned(), why: why() };
    let port = Port {
        bridge: "br-int".to_owned(),
        mac: "0a:58:0a:f4:01:02".parse().unwrap(),
        mtu: 1400,
        external_ids: [("iface-id".to_owned(), "k8s-n1".to_owned())].into(),
        why: why(),
    };
    let waiting = Port { bridge: "br-none".to_owned(), ..port.clone() };
    Switch {
        ports: [("ovn-k8s-mp0".to_owned(), port), ("waiting".to_owned(), waiting)].into(),
        settings: [
            ("ovn-encap-ip".to_owned(), setting("192.0.2.1")),
            ("ovn-bridge-mappings".to_owned(), setting("physnet:br-ex")),
        ]
        .into(),
    }
}

/// All that others have in the database.
fn foreign(switch: &OvsSwitch) -> String {
    let ids = switch.vsctl(&["get", "Open_vSwitch", ".", "external_ids:hostname"]);
    let columns = "--columns=_uuid,name,external_ids,interfaces,other_config";
    ids + &switch.vsctl(&[columns, "find", "Port", "name=theirs"]) + &switch.vsctl(&["list-ports", "br-ex"])
}

#[tokio::test]
async fn ports_and_settings_are_made_kept_and_taken_back() {
    let switch = OvsSwitch::start(&["br-int", "br-ex"]);
    switch.vsctl(&["set", "Open_vSwitch", ".", "external_ids:hostname=n1", "external_ids:ovn-encap-ip=bad"]);
    switch.vsctl(&["add-port", "br-ex", "theirs", "--", "set", "interface", "theirs", "type=internal"]);
    let before = foreign(&switch);
    let client = switch.client().await;

    let changes = sync(&client, &plan()).await.unwrap();
    assert_eq!(changes, 2, "a port and the settings; the port without a bridge waits");
    switch.vsctl(&["wait-until", "interface", "ovn-k8s-mp0", "ofport>=1", "mtu=1400"]);
    assert_eq!(switch.vsctl(&["list-ports", "br-int"]), "ovn-k8s-mp0\n");
    let link =
        switch.vsctl(&["get", "interface", "ovn-k8s-mp0", "mac_in_use", "mtu", "external_ids:iface-id"]);
    assert_eq!(link, "\"0a:58:0a:f4:01:02\"\n1400\nk8s-n1\n");
    let ids = switch.vsctl(&["get", "Open_vSwitch", ".", "external_ids:ovn-encap-ip"]);
    assert_eq!(ids, "\"192.0.2.1\"\n");
    assert!(switch.netns.ip(&["link", "show", "ovn-k8s-mp0"]).contains("0a:58:0a:f4:01:02"));
    let number = switch.vsctl(&["get", "interface", "ovn-k8s-mp0", "ofport"]);
    let mut states = client.subscribe();
    while ofport(&states.next().await.unwrap().replica, "ovn-k8s-mp0").is_none() {}
    let told = ofport(&client.replica(), "ovn-k8s-mp0").map(|number| format!("{number}\n"));
    assert_eq!(told, Some(number));

    // What OVN's agent writes is not ours to remove.
    switch.vsctl(&["set", "interface", "ovn-k8s-mp0", "external_ids:ovn-installed=true"]);
    assert_eq!(sync(&client, &plan()).await.unwrap(), 0, "a second time there is nothing to do");
    assert_eq!(sync(&switch.client().await, &plan()).await.unwrap(), 0, "nor after a restart");

    let mut smaller = plan();
    smaller.ports.get_mut("ovn-k8s-mp0").unwrap().mtu = 1300;
    assert_eq!(sync(&client, &smaller).await.unwrap(), 1);
    switch.vsctl(&["wait-until", "interface", "ovn-k8s-mp0", "mtu=1300"]);
    let ids = switch.vsctl(&["get", "interface", "ovn-k8s-mp0", "external_ids:ovn-installed"]);
    assert_eq!(ids, "\"true\"\n");

    assert_eq!(sync(&client, &Switch::default()).await.unwrap(), 1);
    assert_eq!(switch.vsctl(&["list-ports", "br-int"]), "");
    assert_eq!(foreign(&switch), before);
}

#[tokio::test]
async fn a_name_that_others_have_is_left_to_them() {
    let switch = OvsSwitch::start(&["br-int"]);
    switch.vsctl(&[
        "add-port",
        "br-int",
        "ovn-k8s-mp0",
        "--",
        "set",
        "interface",
        "ovn-k8s-mp0",
        "type=internal",
    ]);
    let client = switch.client().await;
    let mut plan = plan();
    plan.settings.clear();
    let before = switch.vsctl(&["list", "interface", "ovn-k8s-mp0"]);
    assert_eq!(sync(&client, &plan).await.unwrap(), 0);
    assert_eq!(switch.vsctl(&["list", "interface", "ovn-k8s-mp0"]), before);
}

fn pod_port(name: &str, sandbox: &str, version: &str) -> PodPort {
    let ids = [("iface-id", "default_web"), ("iface-id-ver", version), ("sandbox", sandbox)];
    let external_ids = ids.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    PodPort { bridge: "br-int".to_owned(), name: name.to_owned(), external_ids }
}

#[tokio::test]
async fn pods_get_ports_and_lose_them() {
    let switch = OvsSwitch::start(&["br-int"]);
    for pair in [["one", "one-pod"], ["two", "two-pod"]] {
        switch.netns.ip(&["link", "add", pair[0], "type", "veth", "peer", "name", pair[1]]);
    }
    let client = switch.client().await;
    for _ in 0..2 {
        add_pod_port(&client, &pod_port("one", "s1", "uid1")).await.unwrap();
    }
    assert_eq!(switch.vsctl(&["list-ports", "br-int"]), "one\n");
    assert_eq!(switch.vsctl(&["get", "port", "one", "other_config"]), "{transient=\"true\"}\n");
    switch.vsctl(&["wait-until", "interface", "one", "ofport=1"]);

    // The pod comes again in another sandbox: the port of the first goes in the same transaction.
    add_pod_port(&client, &pod_port("two", "s2", "uid2")).await.unwrap();
    assert_eq!(switch.vsctl(&["list-ports", "br-int"]), "two\n");
    let ports = pod_ports(&client.replica());
    let told: Vec<_> = ports.iter().map(|port| (&*port.name, &*port.sandbox, &*port.iface_id)).collect();
    assert_eq!(told, [("two", "s2", "default_web")]);

    let waiting = wait_installed(&client, "two", "uid2");
    let early = tokio::time::timeout(Duration::from_millis(50), waiting).await;
    assert!(early.is_err(), "OVN has not told yet");
    let (told, ()) = tokio::join!(wait_installed(&client, "two", "uid2"), async {
        switch.vsctl(&["set", "interface", "two", "external_ids:ovn-installed=true"]);
    });
    told.unwrap();
    // Repeating does not forget what OVN told; another pod does.
    add_pod_port(&client, &pod_port("two", "s2", "uid2")).await.unwrap();
    wait_installed(&client, "two", "uid2").await.unwrap();
    add_pod_port(&client, &pod_port("two", "s2", "uid3")).await.unwrap();
    let waiting = wait_installed(&client, "two", "uid3");
    assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err(), "that was another pod");

    for _ in 0..2 {
        remove_pod_ports(&client, "s2").await.unwrap();
        assert_eq!(switch.vsctl(&["list-ports", "br-int"]), "");
    }
    assert_eq!(pod_ports(&client.replica()), []);
}

fn flow_set(all: &[(u8, u16, &str, &str)]) -> Flows {
    let flow = |(table, priority, matches, actions): &(u8, u16, &str, &str)| Flow {
        table: *table,
        priority: *priority,
        matches: (*matches).to_owned(),
        actions: (*actions).to_owned(),
    };
    all.iter().map(|all| (flow(all), why())).collect()
}

#[tokio::test]
async fn flows_come_and_go_among_those_of_others() {
    let switch = OvsSwitch::start(&["br-ex"]);
    switch.ofctl(&["add-flow", "br-ex", "cookie=0x77,table=0,priority=7,ip,actions=drop"]);
    // The switch tells its flows in any order.
    let dump = || {
        let text = switch.ofctl(&["--no-stats", "dump-flows", "br-ex"]);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines.join("\n")
    };
    let before = dump();
    let words = switch.edge_ofctl();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let sync = async |want: &Flows| flows::sync_with(&words, "br-ex", want).await;

    let first = flow_set(&[
        (0, 500, "in_port=LOCAL,ip,nw_dst=10.96.0.0/16", "ct(commit,table=2,zone=64001)"),
        (0, 0x8000, "", "NORMAL"),
        (2, 100, "ipv6", "output:LOCAL"),
    ]);
    assert_eq!(sync(&first).await.unwrap(), 3);
    assert_eq!(sync(&first).await.unwrap(), 0, "a second time there is nothing to do");
    assert_eq!(dump().lines().count(), before.lines().count() + 3);

    let second = flow_set(&[
        (0, 500, "in_port=LOCAL,ip,nw_dst=10.96.0.0/16", "drop"),
        (2, 100, "ipv6", "output:LOCAL"),
    ]);
    assert_eq!(sync(&second).await.unwrap(), 3, "one goes, and one takes the place of another");
    let text = dump();
    assert!(text.contains("priority=500,ip,in_port=LOCAL,nw_dst=10.96.0.0/16 actions=drop"), "{text}");
    assert_eq!(sync(&second).await.unwrap(), 0);

    let wrong = flow_set(&[(0, 1, "", "no_such_action"), (0, 2, "", "drop")]);
    let refused = sync(&wrong).await.unwrap_err().to_string();
    assert!(refused.contains("no_such_action"), "{refused}");
    assert_eq!(dump(), text, "all or nothing");

    assert_eq!(sync(&Flows::new()).await.unwrap(), 2);
    assert_eq!(dump(), before);
    assert!(flows::sync_with(&words, "br-none", &Flows::new()).await.is_err());
}
