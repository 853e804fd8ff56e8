//! VRF devices, by the edge that makes them, in a kernel that has them.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use underlay_desired::linux::{Address, Host, Link, Route, Vrf};
use underlay_desired::{ObjectRef, Why};
use underlay_linux::{Kernel, Report};
use underlay_testkit::{LabUnderTest, Netns, OutputExt};

/// Brings this very program into the lab's kernel and runs the test below there.
pub fn networks_are_kept_apart(lab: &LabUnderTest) {
    let program = std::env::current_exe().and_then(fs::read).expect("reading this program");
    let save = "cat > /tmp/inside && chmod +x /tmp/inside && \
                /tmp/inside --exact --ignored vrf::inside_the_machine";
    let mut command = lab.command();
    command.args(["exec", "worker1", "--", "sh", "-c", save]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut inside = command.spawn().expect("starting a shell in the machine");
    inside.stdin.take().expect("a pipe").write_all(&program).expect("sending the program");
    let said = inside.wait_with_output().expect("waiting for the test").ok();
    assert!(said.contains("1 passed"), "{said}");
}

/// Two networks with the same addresses, each with a VRF device, a link, and a neighbour that the other has not.
#[test]
#[ignore = "run by a_lab_in_qemu_has_vrf_devices_and_the_kernel_datapath, in its machine"]
fn inside_the_machine() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (node, red, blue) = (Netns::new(), Netns::new(), Netns::new());
    for (link, peer, address) in [("red0", &red, "10.9.0.3/24"), ("blue0", &blue, "10.9.0.4/24")] {
        let path = peer.path().display().to_string();
        node.ip(&["link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", &path]);
        peer.ip(&["link", "set", "eth0", "up"]);
        peer.ip(&["address", "add", address, "dev", "eth0"]);
    }
    node.ip(&["link", "add", "theirs", "type", "vrf", "table", "77"]);
    let sync = |want: &Host| -> Report {
        runtime.block_on(async {
            let kernel = Kernel::open_in(&node.path()).await.expect("a connection to the kernel");
            assert!(kernel.has_vrf().await.expect("a trial"), "this kernel has VRF devices");
            kernel.sync(want).await.expect("the kernel to do as it is told")
        })
    };

    let want = two_networks();
    sync(&want);
    let again = sync(&want);
    assert_eq!(again.changes, Vec::<String>::new(), "one turn is enough");
    assert!(node.ip(&["-d", "link", "show", "red"]).contains("vrf table 1001"));
    assert!(node.ip(&["link", "show", "red0"]).contains("master red"));
    assert!(node.ip(&["route", "show", "vrf", "red"]).contains("10.20.0.0/16 via 10.9.0.3"));
    for (vrf, own, other) in [("red", "10.9.0.3", "10.9.0.4"), ("blue", "10.9.0.4", "10.9.0.3")] {
        assert!(pings(&node, vrf, own), "{own} from {vrf}");
        assert!(!pings(&node, vrf, other), "{other} is not in {vrf}");
    }

    sync(&Host::default());
    let left = node.ip(&["-brief", "link", "show", "type", "vrf"]);
    let names: Vec<_> = left.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["theirs"]);
}

fn pings(node: &Netns, vrf: &str, address: &str) -> bool {
    node.run(Command::new("ping").args(["-c1", "-W2", "-I", vrf, address])).status.success()
}

fn two_networks() -> Host {
    let why = || Why::from_object(ObjectRef::cluster("Node", "one"));
    let mut want = Host::default();
    for (name, table, gateway) in [("red", 1001, "10.9.0.3"), ("blue", 1002, "10.9.0.4")] {
        let link = format!("{name}0");
        let free = Link { mtu: None, mac: None, vrf: None, why: why() };
        want.vrfs.insert(name.to_owned(), Vrf { table, why: why() });
        want.links.insert(link.clone(), Link { vrf: Some(name.to_owned()), ..free.clone() });
        want.links.insert(name.to_owned(), free);
        let net = "10.9.0.1/24".parse().expect("an address");
        want.addresses.insert(Address { link: link.clone(), net, deprecated: false }, why());
        let route = Route {
            table,
            destination: "10.20.0.0/16".parse().expect("a net"),
            link,
            gateway: Some(gateway.parse().expect("an address")),
            source: None,
            mtu: None,
        };
        want.routes.insert(route, why());
    }
    want
}
