//! What is said where, and what comes of it.

use underlay_net::alloc::SubnetRange;
use underlay_world::settings::{Isolation, NoOverlay, Routing, Topology};

use super::*;

fn parse(flags: &Flags, text: &str) -> Result<Config, String> {
    let file = Ini::load_from_str(text).unwrap();
    merge(flags, Some((Path::new("/etc/x.conf"), &file))).map_err(|error| error.to_string())
}

#[test]
fn nothing_said_is_what_is_usual() {
    let config = load(&Flags::default()).unwrap();
    assert_eq!(config.settings, Settings::default());
    assert_eq!(config.config_namespace, "ovn-kubernetes");
}

#[test]
fn flags_win_over_the_file() {
    let flags = Flags { mtu: Some("9000".to_owned()), ..Flags::default() };
    let text = "[default]\nmtu = 1500\nimported-routes-limit=50\ncluster-subnets=10.244.0.0/16,fd00:10:244::/48/64\n\
                [gateway]\nv4-join-subnet=100.70.0.0/16\n[kubernetes]\nservice-cidrs=\"10.96.0.0/16\"";
    let config = parse(&flags, text).unwrap();
    assert_eq!((config.settings.mtu, config.settings.imported_routes_limit), (9000, 50));
    assert_eq!(config.settings.join.v4.to_string(), "100.70.0.0/16");
    let v4 = SubnetRange::new("10.244.0.0/16".parse().unwrap(), 24).unwrap();
    let v6 = SubnetRange::new("fd00:10:244::/48".parse().unwrap(), 64).unwrap();
    assert_eq!(config.settings.cluster_subnets, [v4, v6]);
    assert_eq!(config.settings.service_subnets, ["10.96.0.0/16".parse().unwrap()]);
    assert_eq!(config.unknown, [] as [&str; 0]);
}

#[test]
fn keys_that_nobody_reads_are_told() {
    let config = parse(&Flags::default(), "[default]\nmtu=1400\nlflow=1\n[ovnnorth]\naddress=x").unwrap();
    assert_eq!(config.unknown, ["[default] lflow", "[ovnnorth] address"]);
}

#[test]
fn wrong_values_are_told_with_their_place_and_a_right_one() {
    for (text, want) in [
        ("[default]\nmtu=big", "/etc/x.conf [default] mtu: \"big\": write a number from 576 to 65535"),
        ("[default]\nmtu=70000", "/etc/x.conf [default] mtu: \"70000\": write a number from 576 to 65535"),
        (
            "[default]\nmtu=1000\ncluster-subnets=fd01::/48",
            "/etc/x.conf [default] mtu: \"1000\": write a number from 1280 to 65535",
        ),
        (
            "[default]\nimported-routes-limit=all",
            "/etc/x.conf [default] imported-routes-limit: \"all\": write a number, like 120000",
        ),
        ("[default]\nencap-port=0", "/etc/x.conf [default] encap-port: \"0\": write a port from 1 to 65535"),
        (
            "[default]\ncluster-subnets=10.0.0.0",
            "/etc/x.conf [default] cluster-subnets: \"10.0.0.0\": write a range and the length of a node's \
             part, like 10.128.0.0/14/23 or fd01::/48/64",
        ),
        (
            "[default]\ncluster-subnets=10.0.0.0/16/8",
            "/etc/x.conf [default] cluster-subnets: \"10.0.0.0/16/8\": 10.0.0.0/16 cannot be cut into subnets \
             of length 8: use a length from 16 to 32",
        ),
        (
            "[default]\ncluster-subnets=fd01::/48/60",
            "/etc/x.conf [default] cluster-subnets: \"fd01::/48/60\": a node's part of an IPv6 range has \
             length 64",
        ),
        (
            "[gateway]\nv4-join-subnet=fd98::/64",
            "/etc/x.conf [gateway] v4-join-subnet: \"fd98::/64\": write a range like 100.64.0.0/16",
        ),
    ] {
        assert_eq!(parse(&Flags::default(), text).unwrap_err(), want);
    }
    let flags = Flags { encap_port: Some("x".to_owned()), ..Flags::default() };
    assert_eq!(
        parse(&flags, "").unwrap_err(),
        "--encap-port: \"x\": write a port from 1 to 65535",
        "a flag is told as one"
    );
}

#[test]
fn ranges_that_share_addresses_are_refused_by_name() {
    for (text, want) in [
        (
            "[default]\ncluster-subnets=10.0.0.0/8/24\n[kubernetes]\nservice-cidrs=10.96.0.0/16",
            "cluster-subnets 10.0.0.0/8 and service-cidrs 10.96.0.0/16 overlap: give each its own addresses",
        ),
        (
            "[clustermanager]\nv4-transit-subnet=100.64.8.0/24",
            "v4-join-subnet 100.64.0.0/16 and v4-transit-subnet 100.64.8.0/24 overlap: give each its own \
             addresses",
        ),
    ] {
        assert_eq!(parse(&Flags::default(), text).unwrap_err(), want);
    }
}

#[test]
fn a_broken_file_is_told_with_its_line() {
    let scratch = underlay_testkit::Scratch::new("config");
    let path = scratch.join("x.conf");
    std::fs::write(&path, "[default]\nmtu=1400\nnonsense\n").unwrap();
    let flags = Flags { config_file: Some(path.clone()), ..Flags::default() };
    let error = load(&flags).unwrap_err().to_string();
    assert!(error.starts_with(&format!("--config-file {}: line ", path.display())), "{error}");
}

/// What a seed shows for a cluster without overlay.
const MANAGED: &str = "[default]\ntransport = no-overlay\n\n[no-overlay]\noutbound-snat = enable\nrouting = managed\n\n\
                       [bgp.managed]\nas-number = 64514\ntopology = full-mesh\n";

#[test]
fn a_cluster_without_overlay_is_said_in_either_spelling() {
    let ours = parse(&Flags::default(), MANAGED).unwrap();
    let settings = &ours.settings;
    let no_overlay = NoOverlay { outbound_snat: true, routing: Routing::Managed };
    assert_eq!((settings.no_overlay, settings.mtu), (Some(no_overlay), 1500));
    assert_eq!((settings.managed.as_number, settings.managed.topology), (64514, Some(Topology::FullMesh)));
    assert_eq!(settings.managed.frr_namespace, "frr-k8s-system");
    assert_eq!((ours.unknown.as_slice(), ours.unused.as_slice()), (&[][..], &[][..]));
    let other = MANAGED.replace("bgp.managed", "bgp-managed").replace("enable", "enabled");
    assert_eq!(parse(&Flags::default(), &other).unwrap(), ours);
    let topology =
        MANAGED.replace("topology = full-mesh", "").replace("routing", "topology = full-mesh\nrouting");
    assert_eq!(
        parse(&Flags::default(), &topology).unwrap(),
        ours,
        "the topology may stand beside the routing"
    );
    let twice = format!("{MANAGED}[bgp-managed]\nas-number = 64514\n");
    assert_eq!(parse(&Flags::default(), &twice).unwrap(), ours, "the same in both spellings");
    let said = |text: &str| Some(text.to_owned());
    let flags = Flags {
        transport: said("no-overlay"),
        outbound_snat: said("enable"),
        routing: said("managed"),
        bgp_topology: said("full-mesh"),
        bgp_as_number: said("64514"),
        ..Flags::default()
    };
    assert_eq!(parse(&flags, "").unwrap(), ours);
    let mtu = Flags { mtu: said("1400"), ..flags };
    assert_eq!(parse(&mtu, "").unwrap().settings.mtu, 1400, "who gives the width is taken at his word");
}

#[test]
fn geneve_is_what_is_usual_by_any_name() {
    for text in ["", "[default]\ntransport=geneve", "[default]\ntransport=", "[bgp-managed]\ntopology="] {
        assert_eq!(parse(&Flags::default(), text).unwrap().settings, Settings::default(), "{text}");
    }
    let aside = parse(&Flags::default(), "[no-overlay]\nrouting=managed\ntopology=full-mesh").unwrap();
    assert_eq!(aside.settings.no_overlay, None);
    assert_eq!(aside.settings.managed.topology, Some(Topology::FullMesh), "networks of tenants may use it");
    assert_eq!(
        aside.unused,
        ["/etc/x.conf [no-overlay] routing counts for nothing: transport is not no-overlay"]
    );
}

#[test]
fn features_that_are_always_on_need_no_word() {
    let text = "[ovnkubernetesfeature]\nenable-multi-network=true\nenable-route-advertisements=true\n\
                advertised-udn-isolation-mode=loose\nenable-evpn=true";
    let config = parse(&Flags::default(), text).unwrap();
    assert_eq!(config.settings.isolation, Isolation::Loose);
    assert_eq!(config.unknown, ["[ovnkubernetesfeature] enable-evpn"]);
}

#[test]
fn what_is_missing_or_wrong_without_overlay_is_told_with_what_to_write() {
    let without = |line: &str| MANAGED.replace(line, "");
    let number = |text: &str| format!("[bgp-managed]\nas-number={text}");
    for (text, want) in [
        (
            without("outbound-snat = enable"),
            "outbound-snat is required when transport is no-overlay: write [no-overlay] outbound-snat = enable or \
             disable, or --outbound-snat",
        ),
        (
            without("routing = managed"),
            "routing is required when transport is no-overlay: write [no-overlay] routing = managed or unmanaged, or \
             --routing",
        ),
        (
            without("topology = full-mesh"),
            "topology is required when routing is managed: write [bgp.managed] topology = full-mesh, or --bgp-topology",
        ),
        (
            "[default]\ntransport=vxlan".to_owned(),
            "/etc/x.conf [default] transport: \"vxlan\": write geneve or no-overlay",
        ),
        (
            MANAGED.replace("enable", "maybe"),
            "/etc/x.conf [no-overlay] outbound-snat: \"maybe\": write enable or disable",
        ),
        (
            MANAGED.replace("= managed", "= automatic"),
            "/etc/x.conf [no-overlay] routing: \"automatic\": write managed or unmanaged",
        ),
        (
            MANAGED.replace("full-mesh", "star"),
            "/etc/x.conf [bgp.managed] topology: \"star\": write full-mesh",
        ),
        (
            format!("{MANAGED}frr-namespace="),
            "/etc/x.conf [bgp.managed] frr-namespace: \"\": write the name of a namespace, like frr-k8s-system",
        ),
        (
            format!("{MANAGED}[bgp-managed]\nas-number=64515"),
            "/etc/x.conf [bgp.managed] as-number and /etc/x.conf [bgp-managed] as-number are two spellings of one \
             setting and say different things: keep one of them",
        ),
        (
            number("0"),
            "/etc/x.conf [bgp-managed] as-number: \"0\": 0 is reserved: write a number from 1 to 4294967294, like \
             64512",
        ),
        (
            number("23456"),
            "/etc/x.conf [bgp-managed] as-number: \"23456\": 23456 stands for numbers that old speakers cannot \
             write: write a number from 1 to 4294967294, like 64512",
        ),
        (
            "[ovnkubernetesfeature]\nadvertised-udn-isolation-mode=lax".to_owned(),
            "/etc/x.conf [ovnkubernetesfeature] advertised-udn-isolation-mode: \"lax\": write strict or loose",
        ),
    ] {
        assert_eq!(parse(&Flags::default(), &text).unwrap_err(), want);
    }
    for reserved in ["65535", "4294967295", "4294967296", "-1", "x"] {
        let told = parse(&Flags::default(), &number(reserved)).unwrap_err();
        assert!(told.ends_with("write a number from 1 to 4294967294, like 64512"), "{told}");
    }
}
