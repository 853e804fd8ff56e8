//! Sessions stay up through every change that is not about them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use underlay_desired::frr::{
    BfdProfile, BfdSettings, Community, Config, Neighbor, NextHop, Password, Peer, PrefixRange, Receive,
    Session, Tags, Vrf,
};
use underlay_frr::state::ESTABLISHED;
use underlay_frr::{Frr, Patience, SessionReader};
use underlay_testkit::{FrrHost, OutputExt};

use crate::configs::{config, neighbor, session, why, with_text};
use crate::{DONE, edge, sync, until_established};

/// A router that a node talks with on two addresses.
const TOR: &str = "\
router bgp 64513
 bgp router-id 10.0.0.2
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 neighbor 10.0.0.1 remote-as 64700
 neighbor 10.0.0.1 timers connect 1
 neighbor 10.0.0.1 password hunter2
 neighbor 10.0.0.1 bfd
 neighbor 10.0.1.1 remote-as 64512
 neighbor 10.0.1.1 timers connect 1
 address-family ipv4 unicast
  neighbor 10.0.0.1 activate
  neighbor 10.0.1.1 activate
 exit-address-family
";

const PEERS: [&str; 2] = ["10.0.0.2", "10.0.1.2"];

fn router(config: &mut Config) -> &mut underlay_desired::frr::Router {
    config.routers.get_mut(&Vrf::new("")).expect("the default router")
}

fn each_neighbor(config: &mut Config, change: impl Fn(&mut Neighbor)) {
    router(config).neighbors.values_mut().for_each(change);
}

fn profile(config: &mut Config, name: &str, settings: BfdSettings) {
    config.bfd_profiles.insert(name.to_owned(), BfdProfile { settings, why: why() });
}

fn base() -> Config {
    let prefixes = ["10.244.1.0/24"];
    let watched = Session {
        local_asn: Some(64700),
        password: Some(Password::new("hunter2")),
        bfd: Some("fast".to_owned()),
        ..session(64513)
    };
    // The usual TTL of several hops is where reload scripts stumble.
    let far = Session { multihop: true, graceful_restart: true, ..session(64513) };
    let neighbors = vec![neighbor(PEERS[0], watched, &prefixes), neighbor(PEERS[1], far, &prefixes)];
    let mut config = config(64512, &prefixes, neighbors);
    profile(&mut config, "fast", BfdSettings { transmit_interval: Some(300), ..BfdSettings::default() });
    config
}

/// What a change is called, and what it does.
type Change = (&'static str, Box<dyn Fn(&mut Config)>);

/// Changes, each on top of the one before.
fn changes() -> Vec<Change> {
    vec![
        (
            "lines of a BFD profile",
            Box::new(|config| {
                let settings = BfdSettings {
                    transmit_interval: Some(200),
                    receive_interval: Some(200),
                    detect_multiplier: Some(7),
                    minimum_ttl: Some(20),
                    ..BfdSettings::default()
                };
                profile(config, "fast", settings);
                profile(config, "other", BfdSettings { echo_mode: true, ..BfdSettings::default() });
            }),
        ),
        (
            "prefix lists that grow",
            Box::new(|config| {
                for number in 0..50 {
                    let prefix = format!("10.245.{number}.0/24").parse().expect("a prefix");
                    router(config).prefixes.insert(prefix, why());
                    each_neighbor(config, |neighbor| {
                        neighbor.advertise.insert(prefix, Tags::default());
                    });
                }
            }),
        ),
        (
            "what is taken",
            Box::new(|config| {
                each_neighbor(config, |neighbor| {
                    let prefix = "10.96.0.0/16".parse().expect("a prefix");
                    let range = PrefixRange { prefix, at_least: Some(24), at_most: Some(28) };
                    neighbor.receive = Receive::Only(BTreeMap::from([(range, why())]));
                });
            }),
        ),
        (
            "communities and next hops",
            Box::new(|config| {
                each_neighbor(config, |neighbor| {
                    neighbor.next_hop = NextHop { ipv4: Some([10, 0, 0, 77].into()), ipv6: None };
                    let communities =
                        BTreeSet::from([Community::Standard(64512, 100), Community::Large(64512, 1, 7)]);
                    for tags in neighbor.advertise.values_mut() {
                        tags.communities.clone_from(&communities);
                    }
                });
            }),
        ),
        (
            "another neighbour",
            Box::new(|config| {
                let (peer, other) = neighbor("10.0.0.9", session(64999), &["10.244.1.0/24"]);
                router(config).neighbors.insert(peer, other);
            }),
        ),
        (
            "a VRF and lines of links in it",
            Box::new(|config| {
                let mut other = router(config).clone();
                other.neighbors.retain(|peer, _| *peer != Peer::Address([10, 0, 0, 9].into()));
                let (_, unnumbered) = neighbor("10.0.0.9", session(64999), &[]);
                other.neighbors = BTreeMap::from([(Peer::Interface("vlan7".to_owned()), unnumbered)]);
                config.routers.insert(Vrf::new("red"), other);
                let text = "vrf red\n ip route 192.0.2.0/24 blackhole\nexit-vrf\n\
                        interface vlan7\n description in a VRF\nexit\n";
                *config = with_text(config.clone(), text);
            }),
        ),
        (
            "neither of these",
            Box::new(|config| {
                config.raw.clear();
                config.routers.remove(&Vrf::new("red"));
                router(config).neighbors.remove(&Peer::Address([10, 0, 0, 9].into()));
            }),
        ),
        (
            "fewer prefixes",
            Box::new(|config| {
                let kept: ipnet::IpNet = "10.244.1.0/24".parse().expect("a prefix");
                router(config).prefixes.retain(|prefix, _| *prefix == kept);
                each_neighbor(config, |neighbor| neighbor.advertise.retain(|prefix, _| *prefix == kept));
            }),
        ),
    ]
}

#[tokio::test]
async fn no_change_of_something_else_resets_a_session() {
    let (node, tor) = (FrrHost::start("node", ""), FrrHost::start("tor", TOR));
    node.connect(&tor);
    let mut config = base();
    sync(&edge(&node), &config).await.expect("a first configuration");
    until_established(&node, 2).await;
    sync(&edge(&node), &config).await.expect("BFD");
    tor.wait_until_shows("show bfd peers json", "\"status\":\"up\"");
    let ups = || PEERS.map(|peer| node.established(peer));
    let before = ups();
    assert_eq!(sync(&edge(&node), &config).await.expect("a restart of the agent"), DONE);
    for (what, change) in changes() {
        change(&mut config);
        let report = sync(&edge(&node), &config).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(report.commands > 0, "{what}");
        let again = sync(&edge(&node), &config).await.expect("a restart of the agent");
        assert_eq!(again, DONE, "{what}: {}", node.configuration());
        assert_eq!(ups(), before, "{what}");
    }
    let about = "show bgp ipv4 unicast 10.244.1.0/24 json";
    for words in ["64512:100", "64512:1:7", "10.0.0.77", "64700"] {
        tor.wait_until_shows(about, words);
    }
    tor.wait_until_hides(Duration::from_secs(5), "show bgp ipv4 unicast", "10.245.");
    assert_eq!(ups(), before);
    let there = tor.vtysh("show bfd peers json");
    assert!(there.contains("\"remote-detect-multiplier\":7"), "{there}");
}

/// A router that BFD watched for, and that saw us go, waits for BFD when we come back; one that nobody told of BFD waits
/// for us. Both get their session.
#[tokio::test]
async fn neighbors_that_wait_for_bfd_and_such_without_it_come_back() {
    let (node, tor) = (FrrHost::start("node", ""), FrrHost::start("tor", TOR));
    node.connect(&tor);
    let (frr, config) = (edge(&node), base());
    let mut patience = Patience::default();
    until_up(&frr, &config, &mut patience, PEERS.len()).await;
    tor.wait_until_shows("show bfd peers json", "\"status\":\"up\"");

    // The router notices by itself: nobody takes leave.
    let silence = "table inet silence { chain out { type filter hook output priority 0; oifname eth0 drop; }; \
                   chain in { type filter hook input priority 0; iifname eth0 drop; }; }";
    node.run("nft", &[silence]).ok();
    tor.wait_until_shows("show bfd peers json", "\"status\":\"down\"");
    tor.wait_until_hides(
        Duration::from_secs(10),
        "show bgp neighbors 10.0.0.1 json",
        "\"bgpState\":\"Established\"",
    );
    frr.sync(&Config::default(), &mut patience).await.expect("nobody to talk with");
    node.run("nft", &["delete table inet silence"]).ok();
    until_up(&frr, &config, &mut patience, PEERS.len()).await;

    frr.sync(&Config::default(), &mut patience).await.expect("nobody to talk with");
    tor.vtysh("configure terminal\nrouter bgp 64513\nno neighbor 10.0.0.1 bfd");
    until_up(&frr, &config, &mut patience, PEERS.len()).await;
}

/// Looks at FRR again and again, as the agent does, until so many sessions stand.
async fn until_up(frr: &Frr, config: &Config, patience: &mut Patience, count: usize) {
    let began = Instant::now();
    loop {
        frr.sync(config, patience).await.expect("FRR takes it");
        let sessions = SessionReader::new(&frr.sockets).read().await.expect("sessions");
        if sessions.iter().filter(|one| one.state == ESTABLISHED).count() == count {
            frr.sync(config, patience).await.expect("BFD for all of them");
            println!("{count} sessions after {:?}", began.elapsed());
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(40), "{sessions:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
