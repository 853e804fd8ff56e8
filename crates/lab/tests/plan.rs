//! Plans: the same file makes the same plan, and a machine gets the daemons and files it should.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use underlay_lab::file::{DEFAULT, parse};
use underlay_lab::pki::Pki;
use underlay_lab::plan::{Daemon, Datapath, LabPlan, Place, Step, plan};

/// The top-of-rack router of the default lab.
const TOR: &str = "\
frr defaults datacenter
hostname tor
!
router bgp 64513
 bgp router-id 172.30.0.1
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 no bgp network import-check
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 timers bgp 3 9
 neighbor 172.30.0.10 remote-as 64512
 neighbor 172.30.0.10 timers connect 1
 neighbor 172.30.0.11 remote-as 64512
 neighbor 172.30.0.11 timers connect 1
 neighbor 172.30.0.12 remote-as 64512
 neighbor 172.30.0.12 timers connect 1
 neighbor fd00:172:30::10 remote-as 64512
 neighbor fd00:172:30::10 timers connect 1
 neighbor fd00:172:30::11 remote-as 64512
 neighbor fd00:172:30::11 timers connect 1
 neighbor fd00:172:30::12 remote-as 64512
 neighbor fd00:172:30::12 timers connect 1
 !
 address-family ipv4 unicast
  network 203.0.113.0/24
  neighbor 172.30.0.10 activate
  neighbor 172.30.0.11 activate
  neighbor 172.30.0.12 activate
 exit-address-family
 !
 address-family ipv6 unicast
  network 2001:db8:113::/64
  neighbor fd00:172:30::10 activate
  neighbor fd00:172:30::11 activate
  neighbor fd00:172:30::12 activate
 exit-address-family
exit
";

/// Bridges first, then the cables of every machine in the order of the wires.
const WIRES: &str = "\
link add name fabric mtu 1500 type bridge mcast_snooping 0
link set dev fabric addrgenmode none up
link add name uplink mtu 1500 type bridge mcast_snooping 0
link set dev uplink addrgenmode none up
link add control.0 mtu 1500 type veth peer name eth0 mtu 1500 netns control
link set control.0 master fabric addrgenmode none up
link add worker1.0 mtu 1500 type veth peer name eth0 mtu 1500 netns worker1
link set worker1.0 master fabric addrgenmode none up
link add worker2.0 mtu 1500 type veth peer name eth0 mtu 1500 netns worker2
link set worker2.0 master fabric addrgenmode none up
link add tor.0 mtu 1500 type veth peer name eth0 mtu 1500 netns tor
link set tor.0 master fabric addrgenmode none up
link add tor.1 mtu 1500 type veth peer name eth1 mtu 1500 netns tor
link set tor.1 master uplink addrgenmode none up
link add outside.0 mtu 1500 type veth peer name eth0 mtu 1500 netns outside
link set outside.0 master uplink addrgenmode none up
";

const SWITCH: [&str; 2] = ["ovsdb-server", "ovs-vswitchd"];
const ZONE: [&str; 4] = ["ovn-nb", "ovn-sb", "ovn-northd", "ovn-controller"];
const FRR: [&str; 4] = ["mgmtd", "zebra", "bgpd", "bfdd"];
const WORKER: [&str; 3] = ["containerd", "kubelet", "underlay-agent"];
const CONTROL_PLANE: [&str; 5] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "underlay-cluster"];
/// What a control plane has without anything of ours.
const BARE_CONTROL_PLANE: usize = 4;

/// Plans a file as it would be planned on the running kernel.
fn planned(text: &str) -> LabPlan {
    planned_in(text, Datapath::Userspace, 1)
}

fn planned_in(text: &str, datapath: Datapath, slowness: u32) -> LabPlan {
    // Keys are made at random: a plan is the same only for the same keys.
    static PKI: OnceLock<Pki> = OnceLock::new();
    let topology = parse("test.yaml", text).expect("a right file");
    let pki = PKI.get_or_init(|| {
        let default = parse("default lab", DEFAULT).expect("a right file");
        Pki::generate(&default).expect("making keys")
    });
    let place = Place {
        lab: "test".to_owned(),
        datapath,
        sandbox_image: "pause:1".to_owned(),
        dns_image: "dns:1".to_owned(),
        slowness,
    };
    plan(&topology, pki, &place)
}

/// All steps of a machine, also those that run side by side.
fn steps<'a>(plan: &'a LabPlan, machine: &str) -> Vec<&'a Step> {
    fn flatten<'a>(steps: &'a [Step], all: &mut Vec<&'a Step>) {
        for step in steps {
            all.push(step);
            if let Step::Together(chains) = step {
                for chain in chains {
                    flatten(chain, all);
                }
            }
        }
    }
    let machine =
        plan.machines.iter().find(|planned| planned.name == machine).expect("a machine of the plan");
    let mut all = Vec::new();
    flatten(&machine.steps, &mut all);
    all
}

fn daemons<'a>(plan: &'a LabPlan, machine: &str) -> BTreeMap<&'a str, &'a Daemon> {
    let starts = steps(plan, machine).into_iter().filter_map(|step| match step {
        Step::Start(daemon) => Some((daemon.name.as_str(), daemon)),
        _ => None,
    });
    starts.collect()
}

fn file<'a>(plan: &'a LabPlan, machine: &str, wanted: &str) -> &'a str {
    let content = steps(plan, machine).into_iter().find_map(|step| match step {
        Step::Write { path, content, .. } if path == wanted => Some(content.as_str()),
        _ => None,
    });
    content.expect("a file of the machine")
}

/// The first object of this kind that the control plane's node hands to the API server as JSON.
fn fed(plan: &LabPlan, kind: &str) -> Option<Value> {
    steps(plan, "control").into_iter().find_map(|step| {
        let Step::Feed { input, .. } = step else { return None };
        let list: Value = serde_json::from_str(input).ok()?;
        list["items"].as_array()?.iter().find(|item| item["kind"] == kind).cloned()
    })
}

#[test]
fn the_same_file_makes_the_same_plan() {
    let text = |plan: &LabPlan| serde_json::to_string(plan).unwrap();
    let first = text(&planned(DEFAULT));
    assert_eq!(first, text(&planned(DEFAULT)));
    // A machine reads its part from JSON: nothing may get lost on the way.
    let read: LabPlan = serde_json::from_str(&first).unwrap();
    assert_eq!(first, text(&read));
}

#[test]
fn the_default_router_speaks_both_families() {
    assert_eq!(file(&planned(DEFAULT), "tor", "/etc/frr/frr.conf"), TOR);
}

#[test]
fn options_of_a_neighbour_become_lines() {
    let text = DEFAULT.replace(
        "- { address: 172.30.0.11, asn: 64512 }",
        "- { address: 172.30.0.11, asn: 64512, reflectorClient: true, bfd: true, password: secret }",
    );
    let plan = planned(&text);
    let lines: Vec<&str> = file(&plan, "tor", "/etc/frr/frr.conf").lines().collect();
    let more: Vec<&str> = lines.iter().copied().filter(|line| !TOR.lines().any(|old| old == *line)).collect();
    assert_eq!(
        more,
        [
            " neighbor 172.30.0.11 bfd",
            " neighbor 172.30.0.11 password secret",
            "  neighbor 172.30.0.11 route-reflector-client"
        ]
    );
    // Reflection belongs to the family, behind the line that activates the neighbour.
    let place = |wanted: &str| lines.iter().position(|line| *line == wanted).unwrap();
    assert_eq!(
        place("  neighbor 172.30.0.11 activate") + 1,
        place("  neighbor 172.30.0.11 route-reflector-client")
    );
}

#[test]
fn a_whole_configuration_is_left_alone() {
    let text = DEFAULT.split("    bgp:\n      asn: 64513").next().unwrap().to_owned()
        + "    frr: |\n      hostname mine\n      ! and nothing else\n"
        + &DEFAULT[DEFAULT.find("\nhosts:").unwrap()..];
    assert_eq!(file(&planned(&text), "tor", "/etc/frr/frr.conf"), "hostname mine\n! and nothing else\n");
}

#[test]
fn cables_are_one_batch() {
    let plan = planned(DEFAULT);
    assert_eq!(plan.wires, WIRES);
    assert_eq!(plan.namespaces, ["wires.", "control", "worker1", "worker2", "tor", "outside"]);
}

#[test]
fn every_machine_has_its_daemons() {
    let plan = planned(DEFAULT);
    let names = |machine: &str| daemons(&plan, machine).into_keys().collect::<Vec<_>>();
    let sorted = |groups: &[&[&'static str]]| {
        let mut all = groups.concat();
        all.sort_unstable();
        all
    };
    let node: [&[&str]; 4] = [&SWITCH, &ZONE, &FRR, &WORKER];
    assert_eq!(names("worker1"), sorted(&node));
    assert_eq!(names("worker2"), sorted(&node));
    assert_eq!(names("control"), sorted(&[node.as_slice(), &[&CONTROL_PLANE]].concat()));
    assert_eq!(names("tor"), sorted(&[&FRR]));
    assert_eq!(names("outside"), sorted(&[]));
    assert_eq!(plan.daemons(), 3 * 13 + 5 + 4);
}

#[test]
fn without_kubelets_the_rest_stays() {
    let plan = planned(&DEFAULT.replace("kubernetes:\n", "kubernetes:\n  kubelets: false\n"));
    assert!(!daemons(&plan, "worker1").keys().any(|name| WORKER.contains(name)));
    assert!(daemons(&plan, "worker1").contains_key("ovn-controller"));
    assert!(daemons(&plan, "control").contains_key("kube-apiserver"));
    assert_eq!(plan.daemons(), 3 * 10 + BARE_CONTROL_PLANE + 4);
}

#[test]
fn without_a_network_for_pods_nothing_of_ours_runs_and_nobody_waits_for_it() {
    let plan = planned(&DEFAULT.replace("kubernetes:\n", "kubernetes:\n  cni: none\n"));
    for node in ["control", "worker1"] {
        assert!(!daemons(&plan, node).keys().any(|name| name.starts_with("underlay-")));
        assert!(daemons(&plan, node).contains_key("kubelet"));
    }
    assert!(fed(&plan, "Deployment").is_none());
    let steps = format!("{:?}", plan.machines.iter().map(|machine| &machine.steps).collect::<Vec<_>>());
    assert!(!steps.contains("rollout"));
    assert!(steps.contains("--for=create") && !steps.contains("--for=condition=Ready"));
    assert!(file(&plan, "worker1", "/etc/frr/frr.conf").contains("router bgp 64512"));
}

#[test]
fn names_are_served_where_the_kubelets_say() {
    for (subnets, families, policy) in [
        ("[10.96.0.0/16, \"fd00:10:96::/112\"]", json!(["IPv4", "IPv6"]), "RequireDualStack"),
        ("[10.96.0.0/16]", json!(["IPv4"]), "SingleStack"),
        ("[\"fd00:10:96::/112\"]", json!(["IPv6"]), "SingleStack"),
    ] {
        let text: Vec<String> = DEFAULT
            .lines()
            .map(|line| match line.split_once("serviceSubnets:") {
                Some((indent, _)) => format!("{indent}serviceSubnets: {subnets}"),
                None => line.to_owned(),
            })
            .collect();
        let plan = planned(&text.join("\n"));
        let kubelet: Value =
            serde_json::from_str(file(&plan, "worker1", "/etc/kubernetes/kubelet.yaml")).unwrap();
        let service = fed(&plan, "Service").expect("a service");
        assert_eq!(service["metadata"]["name"], "kube-dns");
        assert_eq!(service["spec"]["clusterIPs"], kubelet["clusterDNS"]);
        assert_eq!(service["spec"]["ipFamilies"], families);
        assert_eq!(service["spec"]["ipFamilyPolicy"], policy);
    }
}

#[test]
fn the_name_server_is_one_pod_of_an_image_that_is_there() {
    let plan = planned(DEFAULT);
    let (deployment, service) = (fed(&plan, "Deployment").unwrap(), fed(&plan, "Service").unwrap());
    let pod = &deployment["spec"]["template"];
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(pod["metadata"]["labels"], service["spec"]["selector"]);
    assert_eq!(pod["spec"]["containers"][0]["image"], "dns:1");
    assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "Never");
    let corefile = fed(&plan, "ConfigMap").unwrap()["data"]["Corefile"].as_str().unwrap().to_owned();
    let kubelet: Value =
        serde_json::from_str(file(&plan, "worker1", "/etc/kubernetes/kubelet.yaml")).unwrap();
    assert!(corefile.contains(kubelet["clusterDomain"].as_str().unwrap()));
}

#[test]
fn restarting_is_up_to_the_file() {
    assert!(planned(DEFAULT).machines.iter().all(|machine| machine.restart));
    assert!(planned(&format!("restart: false\n{DEFAULT}")).machines.iter().all(|machine| !machine.restart));
}

#[test]
fn a_switch_that_comes_back_gets_its_addresses_back() {
    let plan = planned(DEFAULT);
    let switch = daemons(&plan, "worker1")["ovs-vswitchd"];
    let script = switch.after.last().and_then(|argv| argv.last()).unwrap();
    let lines: Vec<&str> = file(&plan, "worker1", script).lines().collect();
    for wanted in [
        "address replace 172.30.0.11/24 dev br-ex",
        "address replace fd00:172:30::11/64 dev br-ex nodad",
        "route replace default via 172.30.0.1",
        "route replace default via fd00:172:30::1",
    ] {
        assert!(lines.contains(&wanted), "{wanted:?} is not in {lines:#?}");
    }
}

#[test]
fn secrets_are_for_root_alone() {
    let plan = planned(DEFAULT);
    for machine in &plan.machines {
        for step in steps(&plan, &machine.name) {
            let Step::Write { path, mode, content } = step else { continue };
            let secret = content.contains("PRIVATE KEY") || content.contains("client-key-data");
            assert!(!secret || *mode == 0o600, "{path} on {} has mode {mode:o}", machine.name);
        }
    }
}

#[test]
fn the_kernels_datapath_is_a_choice() {
    let switch = |plan: &LabPlan| daemons(plan, "worker1")["ovs-vswitchd"].clone();
    let userspace = switch(&planned_in(DEFAULT, Datapath::Userspace, 1));
    assert!(userspace.argv.iter().any(|word| word == "--disable-system"));
    assert!(userspace.after.concat().iter().any(|word| word == "datapath_type=netdev"));
    let kernel = switch(&planned_in(DEFAULT, Datapath::Kernel, 1));
    assert!(!kernel.argv.iter().any(|word| word == "--disable-system"));
    assert!(kernel.after.concat().iter().any(|word| word == "datapath_type=system"));
}

#[test]
fn a_slow_place_gets_more_patience_everywhere() {
    let patience = |slowness| -> Vec<Duration> {
        let plan = planned_in(DEFAULT, Datapath::Kernel, slowness);
        let machines = plan.machines.iter().flat_map(|machine| steps(&plan, &machine.name));
        machines
            .filter_map(|step| match step {
                Step::Start(daemon) => Some(daemon.ready.patience),
                Step::Wait(probe) => Some(probe.patience),
                _ => None,
            })
            .collect()
    };
    let (normal, slow) = (patience(1), patience(5));
    assert!(normal.len() > 40, "{normal:?}");
    assert_eq!(normal.iter().map(|patience| *patience * 5).collect::<Vec<_>>(), slow);
}

#[test]
fn a_cluster_without_overlay_is_told_so_and_gives_pods_all_of_the_wire() {
    let settings_of = |text: &str| file(&planned(text), "worker1", "/etc/underlay/underlay.conf").to_owned();
    let usual = settings_of(DEFAULT);
    assert_eq!(
        usual,
        "[default]\ncluster-subnets=10.244.0.0/16/24,fd00:10:244::/48/64\nmtu=1400\n\n[kubernetes]\n\
         service-cidrs=10.96.0.0/16,fd00:10:96::/112\n"
    );
    let settings = "settings:\n  transport: no-overlay\n  noOverlay: { outboundSNAT: enable, routing: managed }\n  \
                    managed: { topology: full-mesh }\n  isolation: loose\n  importedRoutesLimit: 50\n";
    let without = settings_of(&format!("{settings}{DEFAULT}"));
    assert_eq!(
        without,
        "[bgp.managed]\ntopology=full-mesh\n\n[default]\ncluster-subnets=10.244.0.0/16/24,fd00:10:244::/48/64\n\
         mtu=1500\ntransport=no-overlay\nimported-routes-limit=50\n\n[kubernetes]\nservice-cidrs=10.96.0.0/16,fd00:10:96::/112\n\n[no-overlay]\n\
         outbound-snat=enable\nrouting=managed\n\n[ovnkubernetesfeature]\nadvertised-udn-isolation-mode=loose\n"
    );
}
