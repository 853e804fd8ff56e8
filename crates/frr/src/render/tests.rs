//! Configurations and the texts that they are.

use super::*;
use underlay_desired::frr::{BfdProfile, Password, RawText, Remote, Tags, Timers};
use underlay_desired::why::Why;

pub(crate) fn session() -> Session {
    Session {
        remote: Remote::Asn(64513),
        local_asn: None,
        source: None,
        port: None,
        password: None,
        timers: Timers { keepalive: 60, hold: 180 },
        connect: None,
        multihop: false,
        bfd: None,
        graceful_restart: false,
        passive: false,
    }
}

pub(crate) fn router(asn: u32) -> Router {
    Router {
        asn,
        id: None,
        neighbors: BTreeMap::new(),
        prefixes: BTreeMap::new(),
        imports: BTreeMap::new(),
        why: Why::default(),
    }
}

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

pub(crate) fn neighbor(session: Session, prefixes: &[&str]) -> Neighbor {
    Neighbor {
        session,
        families: Family::ALL.into(),
        advertise: prefixes.iter().map(|prefix| (net(prefix), Tags::default())).collect(),
        next_hop: NextHop::default(),
        receive: Receive::Only(BTreeMap::new()),
        why: Why::default(),
    }
}

fn small() -> Config {
    let mut router = router(64512);
    router.id = Some([10, 0, 0, 1].into());
    router.prefixes = [net("10.244.1.0/24"), net("fd01::/64")].map(|prefix| (prefix, Why::default())).into();
    router.imports.insert(Vrf::new("red"), Why::default());
    let mut session = session();
    session.password = Some(Password::new("hunter2"));
    session.bfd = Some("fast".to_owned());
    let mut peer = neighbor(session, &["10.244.1.0/24"]);
    peer.families = BTreeSet::from([Family::V4]);
    if let Some(tags) = peer.advertise.get_mut(&net("10.244.1.0/24")) {
        tags.communities.insert(Community::Standard(65535, 65281));
    }
    let range = PrefixRange { prefix: net("10.244.0.0/16"), at_least: Some(24), at_most: Some(28) };
    peer.receive = Receive::Only(BTreeMap::from([(range, Why::default())]));
    router.neighbors.insert(Peer::Address([10, 0, 0, 2].into()), peer);
    let settings =
        BfdSettings { transmit_interval: Some(100), receive_interval: Some(300), ..Default::default() };
    let profile = BfdProfile { settings, why: Why::default() };
    Config {
        routers: BTreeMap::from([(Vrf::new(""), router)]),
        bfd_profiles: BTreeMap::from([("fast".to_owned(), profile)]),
        raw: Vec::new(),
    }
}

#[test]
fn a_configuration_reads_as_frr_prints_it() {
    let text = "\
bfd
 profile fast
  transmit-interval 100
 exit
exit
ip prefix-list underlay/default/10.0.0.2/out/c/65535:65281 seq 3018078233 permit 10.244.1.0/24
route-map underlay/default/10.0.0.2/out permit 30812
 match ip address prefix-list underlay/default/10.0.0.2/out/c/65535:65281
 on-match next
 set community no-export additive
exit
ip prefix-list underlay/default/10.0.0.2/out seq 3018078233 permit 10.244.1.0/24
route-map underlay/default/10.0.0.2/out permit 65533
 match ip address prefix-list underlay/default/10.0.0.2/out
exit
route-map underlay/default/10.0.0.2/out deny 65535
exit
ip prefix-list underlay/default/10.0.0.2/in seq 1468043694 permit 10.244.0.0/16 ge 24 le 28
route-map underlay/default/10.0.0.2/in permit 65533
 match ip address prefix-list underlay/default/10.0.0.2/in
exit
route-map underlay/default/10.0.0.2/in deny 65535
exit
router bgp 64512
 bgp router-id 10.0.0.1
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 coalesce-time 0
 no bgp network import-check
 neighbor 10.0.0.2 remote-as 64513
 neighbor 10.0.0.2 bfd
 neighbor 10.0.0.2 bfd profile fast
 neighbor 10.0.0.2 password hunter2
 neighbor 10.0.0.2 timers 60 180
 neighbor 10.0.0.2 timers connect 10
 address-family ipv4 unicast
  network 10.244.1.0/24
  neighbor 10.0.0.2 activate
  neighbor 10.0.0.2 route-map underlay/default/10.0.0.2/in in
  neighbor 10.0.0.2 route-map underlay/default/10.0.0.2/out out
  import vrf red
 exit-address-family
 address-family ipv6 unicast
  network fd01::/64
  import vrf red
 exit-address-family
exit
";
    let rendered = render(&small());
    assert_eq!(rendered.ours.text(), text);
    assert_eq!(parse(text), rendered.ours);
    assert!(!format!("{rendered:?}").contains("hunter2"));
}

#[test]
fn one_more_prefix_is_one_more_line_a_list() {
    let before = render(&small()).ours;
    let mut config = small();
    let router = config.routers.get_mut(&Vrf::new("")).expect("a router");
    router.prefixes.insert(net("10.200.0.0/24"), Why::default());
    for neighbor in router.neighbors.values_mut() {
        neighbor.advertise.insert(net("10.200.0.0/24"), Tags::default());
    }
    let after = render(&config).ours;
    let new: Vec<String> = after
        .leaves()
        .into_iter()
        .filter(|path| !before.contains_path(path))
        .map(|path| path.join(" / "))
        .collect();
    assert_eq!(new.len(), 2, "{new:?}");
    assert!(before.leaves().iter().all(|path| after.contains_path(path)));
}

#[test]
fn a_text_of_a_user_has_the_last_word() {
    let mut config = small();
    let text = "router bgp 64512\n no neighbor 10.0.0.2 timers\n neighbor 10.0.0.2 description x\n";
    config.raw.push(RawText { text: text.to_owned(), why: Why::default() });
    let rendered = render(&config);
    let router = rendered.ours.get("router bgp 64512").expect("a router");
    assert!(!router.iter().any(|entry| entry.line.contains("timers")));
    assert!(router.contains("neighbor 10.0.0.2 remote-as 64513"));
    assert_eq!(rendered.raw.leaves().len(), 2);
}

#[test]
fn places_are_never_shared() {
    let mut places = Places::new(8);
    let all: BTreeSet<u32> = (0..7).map(|number| places.of(&number.to_string())).collect();
    assert_eq!(all, (1..8).collect());
}
