//! The lab in a Debian kernel of its own: what this machine's kernel may lack is there, and every verb works the same.

mod vrf;

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use underlay_testkit::{HostLook, LabUnderTest, OutputExt, turn, wait_for};

/// Everything is emulated there.
const PATIENCE: Duration = Duration::from_mins(3);

#[test]
fn a_lab_in_qemu_has_vrf_devices_and_the_kernel_datapath() {
    let _turn = turn();
    let before = HostLook::take();
    let lab = LabUnderTest::up("vm", &["--kernel", "vm"]);

    kernel_has_what_networks_need(&lab);
    vrf::networks_are_kept_apart(&lab);
    routers_agree(&lab);
    verbs_work_through_the_machine(&lab);
    api_answers_from_outside(&lab);

    let processes = lab.processes();
    lab.down();
    lab.assert_no_trace(&before, &processes);
}

fn kernel_has_what_networks_need(lab: &LabUnderTest) {
    lab.exec("worker1", &["ip", "link", "add", "blue", "type", "vrf", "table", "1001"]).ok();
    let link = lab.exec("worker1", &["ip", "-d", "link", "show", "blue"]).ok();
    assert!(link.contains("vrf table 1001"), "{link}");
    let datapaths = lab.exec("worker1", &["ovs-appctl", "dpctl/show"]).ok();
    assert!(datapaths.contains("system@ovs-system"), "{datapaths}");
    let tunnel = "ip link add tunnel type geneve id 7 remote 172.30.0.12";
    lab.exec("worker1", &tunnel.split(' ').collect::<Vec<_>>()).ok();
    let table = "table inet t { chain c { type nat hook postrouting priority 100; ip saddr 10.0.0.0/8 masquerade; }; }";
    lab.exec("worker1", &["nft", table]).ok();
}

/// Sessions come up, and packets cross the kernel's datapath.
fn routers_agree(lab: &LabUnderTest) {
    wait_for("every BGP session", PATIENCE, || {
        let status = lab.status();
        let sessions = status["bgp"].as_array().cloned().unwrap_or_default();
        let well = sessions.len() == 12 && sessions.iter().all(|session| session["state"] == "Established");
        if well { Ok(()) } else { Err(format!("{sessions:?}")) }
    });
    for address in ["172.30.0.11", "fd00:172:30::11"] {
        let what = format!("{address} to answer from outside");
        wait_for(&what, PATIENCE, || lab.exec("outside", &["ping", "-c1", "-W2", address]).result());
    }
}

fn verbs_work_through_the_machine(lab: &LabUnderTest) {
    assert_eq!(
        lab.exec("tor", &["sh", "-c", "exit 42"]).status.code(),
        Some(42),
        "the exit code is passed on"
    );

    let mut cat = lab.command();
    cat.args(["exec", "tor", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut cat = cat.spawn().expect("starting cat in the machine");
    cat.stdin.take().expect("a pipe").write_all(b"through the pipe\n").expect("writing to cat");
    assert_eq!(cat.wait_with_output().expect("waiting for cat").ok(), "through the pipe\n");

    let log = lab.cli(&["logs", "tor", "bgpd"]).ok();
    assert!(log.contains("BGP"), "{log}");

    lab.cli(&["cut", "uplink"]).ok();
    let ping = ["ping", "-c1", "-W2", "203.0.113.1"];
    assert!(!lab.exec("outside", &ping).status.success(), "a cut wire passes packets");
    lab.cli(&["heal", "uplink"]).ok();
    wait_for("the router to answer over the healed wire", PATIENCE, || lab.exec("outside", &ping).result());
}

fn api_answers_from_outside(lab: &LabUnderTest) {
    let version = lab.kubectl(&["get", "--raw", "/version"]).ok();
    assert!(version.contains("gitVersion"), "{version}");
}
