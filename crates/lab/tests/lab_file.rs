//! Lab files: what is right becomes a topology, what is wrong is refused with its line and what to write instead.

use underlay_lab::file::{DEFAULT, parse};
use underlay_lab::topology::{Role, RouterConfig};

/// A small right file. Tests break one line of it.
const GOOD: &str = r#"kubernetes:
  podSubnets: [10.244.0.0/16, "fd00:10:244::/48"]
nodes:
  - name: control
    controlPlane: true
    gateways: [172.30.0.1]
  - name: worker
routers:
  - name: tor
    bgp:
      asn: 64513
      neighbors:
        - { address: 172.30.0.10, asn: 64512 }
hosts:
  - name: outside
segments:
  - name: fabric
    members:
      - { machine: tor, addresses: [172.30.0.1/24, "fd00:30::1/64"] }
      - { machine: control, addresses: [172.30.0.10/24] }
      - { machine: worker, addresses: [172.30.0.11/24] }
links:
  - name: uplink
    mtu: 9000
    ends:
      - { machine: tor, addresses: [203.0.113.1/24] }
      - { machine: outside, addresses: [203.0.113.10/24] }
"#;

/// One way to spoil the file.
struct Mistake {
    /// What is wrong, for the reader of a failure.
    what: &'static str,
    /// Text of [`GOOD`] that is replaced…
    right: &'static str,
    /// …by this.
    wrong: &'static str,
    /// Line that the error names.
    line: u64,
    /// What the error says: what is wrong, and what to write.
    says: &'static [&'static str],
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        what: "an unknown field",
        right: "    mtu: 9000",
        wrong: "    speed: 9000",
        line: 24,
        says: &["`speed`", "use one of name, mtu, ends"],
    },
    Mistake {
        what: "a link to a machine that is not there",
        right: "{ machine: outside, addresses: [203.0.113.10/24] }",
        wrong: "{ machine: outsied, addresses: [203.0.113.10/24] }",
        line: 27,
        says: &[r#""uplink""#, r#""outsied""#, "use one of control, worker, tor, outside, or define it"],
    },
    Mistake {
        what: "the same address twice",
        right: "[172.30.0.11/24]",
        wrong: "[172.30.0.10/24]",
        line: 21,
        says: &["172.30.0.10", r#""control""#, "on line 20", "choose another"],
    },
    Mistake {
        what: "overlapping subnets of two wires",
        right: "[203.0.113.10/24]",
        wrong: "[172.30.0.77/16]",
        line: 27,
        says: &["172.30.0.0/16", "172.30.0.0/24", r#""fabric""#, "give every wire a subnet of its own"],
    },
    Mistake {
        what: "a machine name too long for a network device",
        right: "  - name: worker\n",
        wrong: "  - name: worker-number-one\n",
        line: 7,
        says: &[r#""worker-number-one""#, "17 characters", "use at most 12"],
    },
    Mistake {
        what: "a wire name too long for a network device",
        right: "  - name: uplink",
        wrong: "  - name: uplink-to-the-world",
        line: 23,
        says: &[r#""uplink-to-the-world""#, "19 characters", "use at most 15"],
    },
    Mistake {
        what: "a name that is no host name",
        right: "  - name: worker\n",
        wrong: "  - name: Worker_1\n",
        line: 7,
        says: &[r#""Worker_1""#, "use lower-case letters, digits and dashes, starting with a letter"],
    },
    Mistake {
        what: "a wire with a name of the kernel's",
        right: "  - name: uplink",
        wrong: "  - name: lo",
        line: 23,
        says: &[r#""lo""#, "choose another"],
    },
    Mistake {
        what: "a node without an address",
        right: "{ machine: worker, addresses: [172.30.0.11/24] }",
        wrong: "{ machine: worker }",
        line: 7,
        says: &[r#""worker""#, "no address", r#""fabric""#, "add one there"],
    },
    Mistake {
        what: "a control plane without IPv4",
        right: "[172.30.0.10/24]",
        wrong: r#"["fd00:30::10/64"]"#,
        line: 4,
        says: &[r#""control""#, "no IPv4 address", r#""fabric""#, "add one there"],
    },
    Mistake {
        what: "an empty name",
        right: "  - name: worker\n",
        wrong: "  - name: ''\n",
        line: 7,
        says: &["use lower-case letters"],
    },
    Mistake {
        what: "two machines of one name",
        right: "  - name: outside",
        wrong: "  - name: tor",
        line: 15,
        says: &[r#""tor""#, "line 9", "give one another name"],
    },
    Mistake {
        what: "two wires of one name",
        right: "  - name: uplink",
        wrong: "  - name: fabric",
        line: 23,
        says: &[r#""fabric""#, "rename one"],
    },
    Mistake {
        what: "two control planes",
        right: "  - name: worker\n",
        wrong: "  - name: worker\n    controlPlane: true\n",
        line: 7,
        says: &[r#""worker""#, r#""control""#, "remove `controlPlane: true`"],
    },
    Mistake {
        what: "no control plane",
        right: "    controlPlane: true\n",
        wrong: "",
        line: 4,
        says: &["add `controlPlane: true` to one node"],
    },
    Mistake {
        what: "a link with three ends",
        right: "      - { machine: outside, addresses: [203.0.113.10/24] }",
        wrong: "      - { machine: outside }\n      - { machine: control }",
        line: 23,
        says: &[r#""uplink""#, "3 ends", "give two, or make it a segment"],
    },
    Mistake {
        what: "a link with one end",
        right: "      - { machine: outside, addresses: [203.0.113.10/24] }\n",
        wrong: "",
        line: 23,
        says: &["1 ends", "give two"],
    },
    Mistake {
        what: "an address without prefix length",
        right: "[172.30.0.11/24]",
        wrong: "[172.30.0.11]",
        line: 21,
        says: &[r#""172.30.0.11""#, "write it like 172.30.0.10/24"],
    },
    Mistake {
        what: "an address that is none",
        right: "[172.30.0.11/24]",
        wrong: "[172.30.0.256/24]",
        line: 21,
        says: &[r#""172.30.0.256/24""#, "write it like 172.30.0.10/24"],
    },
    Mistake {
        what: "a gateway on none of the machine's wires",
        right: "    gateways: [172.30.0.1]",
        wrong: "    gateways: [203.0.113.1]",
        line: 6,
        says: &["203.0.113.1", r#""control""#, "use an address inside one of 172.30.0.0/24"],
    },
    Mistake {
        what: "two gateways of one family",
        right: "    gateways: [172.30.0.1]",
        wrong: "    gateways: [172.30.0.1, 172.30.0.2]",
        line: 6,
        says: &[r#""control""#, "keep one"],
    },
    Mistake {
        what: "a router with frr and bgp both",
        right: "  - name: tor\n",
        wrong: "  - name: tor\n    frr: hostname tor\n",
        line: 10,
        says: &["either `frr`", "or `bgp`, not both"],
    },
    Mistake {
        what: "pod subnets on a wire",
        right: "[10.244.0.0/16, ",
        wrong: "[172.30.0.0/16, ",
        line: 2,
        says: &["172.30.0.0/16", "172.30.0.0/24", r#""fabric""#, "on line 19", "choose another"],
    },
    Mistake {
        what: "service subnets on a wire",
        right: "kubernetes:\n",
        wrong: "kubernetes:\n  serviceSubnets: [\"fd00:30::/112\"]\n",
        line: 2,
        says: &["fd00:30::/112", r#""fabric""#, "choose another"],
    },
    Mistake {
        what: "a wire on the service subnet that nobody chose",
        right: "[203.0.113.10/24]",
        wrong: "[10.96.1.10/24]",
        line: 27,
        says: &["10.96.1.0/24", r#""uplink""#, "10.96.0.0/16", "or set podSubnets and serviceSubnets"],
    },
    Mistake {
        what: "pods where the services are",
        right: "[10.244.0.0/16, ",
        wrong: "[10.0.0.0/8, ",
        line: 2,
        says: &["10.0.0.0/8", "10.96.0.0/16", "choose subnets that do not overlap"],
    },
    Mistake {
        what: "pod subnets too small for all nodes",
        right: "[10.244.0.0/16, ",
        wrong: "[10.244.0.0/24, ",
        line: 2,
        says: &[r#""worker""#, "widen it"],
    },
    Mistake {
        what: "two pod subnets of one family",
        right: r#""fd00:10:244::/48"]"#,
        wrong: "10.245.0.0/16]",
        line: 2,
        says: &["podSubnets", "keep one of each"],
    },
    Mistake {
        what: "a machine on no wire",
        right: "      - { machine: worker, addresses: [172.30.0.11/24] }\n",
        wrong: "",
        line: 7,
        says: &[r#""worker""#, "on no wire", "{machine: worker, addresses: [...]}"],
    },
    Mistake {
        what: "a machine twice on a wire",
        right: "machine: worker,",
        wrong: "machine: control,",
        line: 21,
        says: &[r#""control""#, r#""fabric""#, "give both addresses in one entry"],
    },
    Mistake {
        what: "an mtu too small for IPv6",
        right: "mtu: 9000",
        wrong: "mtu: 1000",
        line: 24,
        says: &["mtu 1000", "1280..=65535"],
    },
    Mistake {
        what: "text where a number belongs",
        right: "mtu: 9000",
        wrong: "mtu: jumbo",
        line: 24,
        says: &["not a number", "write a whole one"],
    },
    Mistake {
        what: "a number where a list belongs",
        right: "    gateways: [172.30.0.1]",
        wrong: "    gateways: 172.30.0.1",
        line: 6,
        says: &["a list belongs here", "[part, part]"],
    },
    Mistake {
        what: "text where fields belong",
        right: "{ address: 172.30.0.10, asn: 64512 }",
        wrong: "172.30.0.10",
        line: 13,
        says: &["write them as `field: value`"],
    },
    Mistake {
        what: "neither yes nor no",
        right: "controlPlane: true",
        wrong: "controlPlane: perhaps",
        line: 5,
        says: &["write true or false"],
    },
    Mistake {
        what: "a gateway that is no address",
        right: "    gateways: [172.30.0.1]",
        wrong: "    gateways: [172.30.0.1/24]",
        line: 6,
        says: &["not an address", "write it like 172.30.0.1"],
    },
    Mistake {
        what: "a plugin that is not known",
        right: "kubernetes:\n",
        wrong: "kubernetes:\n  cni: bridge\n",
        line: 2,
        says: &["\"bridge\" gives pods no network", "write underlay, or none"],
    },
    Mistake {
        what: "a name left out",
        right: "  - name: worker\n",
        wrong: "  - gateways: []\n",
        line: 7,
        says: &["`name` is missing", "add it"],
    },
    Mistake {
        what: "a field twice",
        right: "    mtu: 9000\n",
        wrong: "    mtu: 9000\n    mtu: 9000\n",
        line: 25,
        says: &["`mtu` is here twice", "keep one"],
    },
    Mistake {
        what: "a bracket left open",
        right: "[172.30.0.11/24] }",
        wrong: "[172.30.0.11/24 }",
        line: 21,
        says: &["bracket", "'['"],
    },
];

/// What is not as it should be with the error of a mistake.
fn complaint(mistake: &Mistake) -> Option<String> {
    let Mistake { right, wrong, line, says, .. } = mistake;
    if GOOD.matches(right).count() != 1 {
        return Some(format!("{right:?} must be in the good file once"));
    }
    let Err(error) = parse("my.yaml", &GOOD.replace(right, wrong)) else {
        return Some("it was accepted".to_owned());
    };
    let shown = error.to_string();
    if !shown.starts_with(&format!("my.yaml:{line}: ")) {
        return Some(format!("it is on line {line}: {shown}"));
    }
    if shown.lines().count() != 1 {
        return Some(format!("one line is enough: {shown}"));
    }
    let missing = says.iter().find(|part| !error.message.contains(**part))?;
    Some(format!("{missing:?} is not in: {shown}"))
}

#[test]
fn mistakes_are_refused_with_line_and_remedy() {
    let complaints: Vec<String> = MISTAKES
        .iter()
        .filter_map(|mistake| complaint(mistake).map(|text| format!("{}: {text}", mistake.what)))
        .collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// What a file says of how packets travel, before the good file.
const WITHOUT_OVERLAY: &str = "settings:
  transport: no-overlay
  noOverlay: { outboundSNAT: enable, routing: managed }
  managed: { asNumber: 64514, topology: full-mesh }
";

#[test]
fn settings_of_the_cluster_are_checked_with_the_file() {
    let with = |settings: &str| parse("my.yaml", &format!("{settings}{GOOD}"));
    let settings = with(WITHOUT_OVERLAY).unwrap().settings;
    let given: Vec<String> =
        settings.given.iter().map(|one| format!("[{}] {}={}", one.section, one.key, one.value)).collect();
    assert!(!settings.overlay);
    assert_eq!(
        given,
        [
            "[default] transport=no-overlay",
            "[no-overlay] outbound-snat=enable",
            "[no-overlay] routing=managed",
            "[bgp.managed] as-number=64514",
            "[bgp.managed] topology=full-mesh",
        ]
    );
    assert!(parse("my.yaml", GOOD).unwrap().settings.overlay);
    for (right, wrong, line, says) in [
        ("no-overlay\n", "vxlan\n", 2, "write geneve or no-overlay"),
        ("outboundSNAT: enable, ", "", 2, "add settings.noOverlay.outboundSNAT: enable or disable"),
        (", routing: managed", "", 2, "add settings.noOverlay.routing: managed or unmanaged"),
        (", topology: full-mesh", "", 3, "add settings.managed.topology: full-mesh"),
        ("full-mesh", "star", 4, "write full-mesh"),
        ("64514", "23456", 4, "asNumber 23456 is reserved"),
        ("transport:", "transports:", 2, "there is no field `transports` here"),
    ] {
        let error = with(&WITHOUT_OVERLAY.replace(right, wrong)).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
}

#[test]
fn the_good_file_is_good() {
    let topology = parse("my.yaml", GOOD).unwrap();
    let names: Vec<&str> = topology.machines.iter().map(|machine| machine.name.as_str()).collect();
    assert_eq!(names, ["control", "worker", "tor", "outside"]);
    let tor = topology.machine("tor").unwrap();
    let ends: Vec<_> =
        tor.attachments.iter().map(|a| (a.interface.as_str(), a.wire.as_str(), a.mtu)).collect();
    assert_eq!(ends, [("eth0", "fabric", 1500), ("eth1", "uplink", 9000)]);
    assert!(topology.restart, "daemons are started again unless the file says otherwise");
}

#[test]
fn the_default_file_is_good() {
    let topology = parse("default lab", DEFAULT).unwrap();
    assert_eq!(topology.nodes().count(), 3);
    assert_eq!(topology.control_plane().unwrap().name, "control");
    let tor = topology.machine("tor").unwrap();
    let Role::Router(RouterConfig::Bgp(bgp)) = &tor.role else { panic!("{:?}", tor.role) };
    for node in topology.nodes() {
        for address in node.addresses() {
            assert!(bgp.neighbors.iter().any(|neighbor| neighbor.address == address), "{address}");
        }
        assert_eq!(node.gateways, tor.addresses());
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = underlay_lab::file::read(std::path::Path::new("/nowhere/lab.yaml")).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/lab.yaml: cannot be read"), "{error}");
}

#[test]
fn a_file_without_machines_is_no_lab() {
    for text in ["", "# nothing yet\n", "nodes: []\n"] {
        let error = parse("my.yaml", text).unwrap_err();
        assert!(error.to_string().starts_with("my.yaml:1: "), "{error}");
        assert!(error.message.contains("`kubectl-underlay lab example`"), "{error}");
    }
}
