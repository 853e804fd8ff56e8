//! Differences, carried out on a model of FRR.

use proptest::prelude::*;
use underlay_desired::frr::{
    BfdProfile, BfdSettings, Community, Config, Password, Peer, PrefixRange, Receive, Remote, Router, Tags,
    Vrf,
};
use underlay_desired::why::Why;

use super::*;
use crate::render::render;
use crate::render::tests::{neighbor, net, router, session};
use crate::tree::parse;

const FOREIGN: &str = "\
frr defaults traditional
hostname n1
ip prefix-list foreign seq 5 permit 1.2.3.0/24
route-map foreign permit 10
 match ip address prefix-list foreign
exit
ip route 192.0.2.0/24 blackhole
";

/// FRR as far as it matters here.
struct Model {
    running: Running,
}

impl Model {
    fn new(config: &Config) -> Self {
        let mut model = Self { running: Running::from(Daemon::ALL.map(|daemon| (daemon, parse(FOREIGN)))) };
        model.sync(config);
        model
    }

    fn sync(&mut self, config: &Config) -> Vec<Command> {
        let want = render(config).ours;
        let commands = difference(&want, &self.running, &Block::default());
        for command in &commands {
            self.take(command);
        }
        commands
    }

    fn take(&mut self, command: &Command) {
        let Target::One(daemon) = command.target else { panic!("{command:?} is for everybody") };
        let root = self.running.get_mut(&daemon).expect("a daemon");
        if command.line.starts_with("do ") {
            return;
        }
        let block = command.context.iter().fold(root, |block, line| block.open(line.clone()));
        let line = &command.line;
        if let Some(gone) = line.strip_prefix("no ").filter(|_| !line.starts_with("no bgp ")) {
            forget(block, gone);
        } else {
            block.retain(|entry| key(&entry.line) != key(line));
            block.line(line.clone());
        }
    }

    /// What is there, without what was there before us.
    fn ours(&self) -> Block {
        let mut all = Block::default();
        let foreign = parse(FOREIGN);
        for block in self.running.values() {
            let mut block = block.clone();
            block.retain(|entry| !foreign.contains(&entry.line));
            all.unite(&block);
        }
        for router in all.iter().map(|entry| entry.line.clone()).collect::<Vec<_>>() {
            all.open(router)
                .retain(|entry| !entry.line.starts_with("address-family ") || !entry.block.is_empty());
        }
        all
    }
}

/// A line goes, and with a neighbour all that is said of it.
fn forget(block: &mut Block, line: &str) {
    let known = block.contains(line);
    let peer =
        line.strip_prefix("neighbor ").filter(|rest| !rest.contains(' ') || rest.contains(" interface "));
    assert!(known || peer.is_some(), "{line:?} is not there");
    block.retain(|entry| entry.line != line);
    if let Some(peer) = peer.and_then(|rest| rest.split(' ').next()) {
        let about = |entry: &Entry| words::peer(&entry.line) == Some(peer);
        assert!(known || block.iter().any(about), "{peer} is not known");
        block.retain(|entry| !about(entry));
        let families: Vec<String> = block.iter().map(|entry| entry.line.clone()).collect();
        for family in families.into_iter().filter(|line| line.starts_with("address-family ")) {
            block.open(family).retain(|entry| words::peer(&entry.line) != Some(peer));
        }
    }
}

fn lines(commands: &[Command]) -> Vec<String> {
    commands.iter().map(|command| format!("{command:?}")).collect()
}

fn one_neighbor() -> Config {
    let mut router = router(64512);
    router.prefixes.insert(net("10.1.0.0/24"), Why::default());
    router.neighbors.insert(Peer::Address([10, 0, 0, 2].into()), neighbor(session(), &["10.1.0.0/24"]));
    Config { routers: BTreeMap::from([(Vrf::new(""), router)]), ..Config::default() }
}

#[test]
fn a_new_neighbour_is_quiet_until_all_is_said() {
    let mut model = Model::new(&one_neighbor());
    let mut config = one_neighbor();
    let router = config.routers.get_mut(&Vrf::new("")).expect("a router");
    let mut quiet = neighbor(session(), &[]);
    quiet.families.clear();
    router.neighbors.insert(Peer::Interface("eth1".to_owned()), quiet);
    assert_eq!(
        lines(&model.sync(&config)),
        [
            "route-map underlay/default/eth1/out deny 65535",
            "route-map underlay/default/eth1/in deny 65535",
            "router bgp 64512 / neighbor eth1 interface remote-as 64513",
            "router bgp 64512 / neighbor eth1 shutdown",
            "router bgp 64512 / neighbor eth1 timers 60 180",
            "router bgp 64512 / neighbor eth1 timers connect 10",
            "router bgp 64512 / no neighbor eth1 shutdown",
        ]
    );
}

#[test]
fn a_prefix_more_says_nothing_of_sessions() {
    let mut model = Model::new(&one_neighbor());
    let mut config = one_neighbor();
    let router = config.routers.get_mut(&Vrf::new("")).expect("a router");
    router.prefixes.insert(net("10.2.0.0/24"), Why::default());
    for neighbor in router.neighbors.values_mut() {
        neighbor.advertise.insert(net("10.2.0.0/24"), Tags::default());
    }
    assert_eq!(
        lines(&model.sync(&config)),
        [
            "ip prefix-list underlay/default/10.0.0.2/out seq 1526831830 permit 10.2.0.0/24",
            "router bgp 64512 / address-family ipv4 unicast / network 10.2.0.0/24",
        ]
    );
    // A route that was there before is looked at again.
    let router = config.routers.get_mut(&Vrf::new("")).expect("a router");
    for neighbor in router.neighbors.values_mut() {
        neighbor.advertise.remove(&net("10.1.0.0/24"));
    }
    assert_eq!(
        lines(&model.sync(&config)),
        [
            "no ip prefix-list underlay/default/10.0.0.2/out seq 336760977 permit 10.1.0.0/24",
            "do clear bgp vrf default ipv4 unicast 10.0.0.2 soft out",
            "do clear bgp vrf default ipv6 unicast 10.0.0.2 soft out",
        ]
    );
}

#[test]
fn what_is_said_differently_is_said_anew() {
    let mut model = Model::new(&one_neighbor());
    let mut config = one_neighbor();
    let router = config.routers.get_mut(&Vrf::new("")).expect("a router");
    for neighbor in router.neighbors.values_mut() {
        neighbor.session.connect = Some(1);
        neighbor.session.password = Some(Password::new("hunter2"));
    }
    let there = lines(&model.sync(&config));
    assert_eq!(
        there,
        [
            "router bgp 64512 / neighbor 10.0.0.2 password ***",
            "router bgp 64512 / neighbor 10.0.0.2 timers connect 1",
        ]
    );
    let back = lines(&model.sync(&one_neighbor()));
    assert_eq!(
        back,
        [
            "router bgp 64512 / no neighbor 10.0.0.2 password ***",
            "router bgp 64512 / neighbor 10.0.0.2 timers connect 10",
        ]
    );
}

#[test]
fn the_default_vrf_goes_last_and_takes_the_others_along() {
    let mut config = one_neighbor();
    config.routers.insert(Vrf::new("red"), router(64512));
    let mut model = Model::new(&config);
    config.routers.remove(&Vrf::new(""));
    let commands = lines(&model.sync(&config));
    assert_eq!(
        commands[..3],
        [
            "no router bgp 64512 vrf red",
            "router bgp 64512 / neighbor 10.0.0.2 shutdown",
            "no router bgp 64512"
        ]
    );
    assert!(commands[3].starts_with("router bgp 64512 vrf red / "), "{commands:?}");
}

#[test]
fn lists_that_another_daemon_read_from_the_file_go_too() {
    let mut model = Model::new(&Config::default());
    let stray = "ip prefix-list underlay/default/10.0.0.2/out seq 5 permit 10.9.0.0/24";
    model.running.get_mut(&Daemon::Zebra).expect("zebra").line(stray);
    assert_eq!(lines(&model.sync(&Config::default())), [format!("no {stray}")]);
}

#[test]
fn lent_lines_go_with_the_text_that_brought_them() {
    let lent = parse("ip nht resolve-via-default\nroute-map mine permit 10\n match tag 5\nexit\n");
    let mut bgpd = parse(FOREIGN);
    bgpd.unite(&parse("route-map mine permit 10\n match tag 5\nexit\nroute-map mine permit 20\n"));
    let mut zebra = parse(FOREIGN);
    zebra.line("ip nht resolve-via-default");
    let running = Running::from([(Daemon::Bgpd, bgpd), (Daemon::Zebra, zebra)]);
    let commands = difference(&Block::default(), &running, &lent);
    assert_eq!(lines(&commands), ["no route-map mine permit 10", "no ip nht resolve-via-default"]);
    assert_eq!(difference(&lent, &running, &lent), []);
}

fn a_neighbor() -> impl Strategy<Value = underlay_desired::frr::Neighbor> {
    let tags = (prop::option::of(1..3_u32), prop::collection::btree_set(1..3_u16, 0..2));
    let prefixes = prop::collection::btree_map(
        prop::sample::select(vec!["10.1.0.0/24", "10.2.0.0/24", "fd01::/64", "fd02::/64"]),
        tags,
        0..4,
    );
    let remote =
        prop_oneof![Just(Remote::Internal), Just(Remote::External), (1..3_u32).prop_map(Remote::Asn)];
    let ranges = prop::option::of(prop::collection::btree_set((0..3_u8, prop::option::of(24..26_u8)), 0..3));
    let extras = (any::<bool>(), any::<bool>(), prop::option::of(1..3_u16), any::<bool>(), any::<bool>());
    (remote, prefixes, ranges, extras).prop_map(
        |(remote, prefixes, ranges, (hidden, bfd, port, hops, grace))| {
            let mut neighbor = neighbor(session(), &[]);
            neighbor.session.remote = remote;
            neighbor.session.password = hidden.then(|| Password::new("hunter2"));
            neighbor.session.bfd = bfd.then(|| "fast".to_owned());
            neighbor.session.port = port;
            neighbor.session.multihop = hops;
            neighbor.session.graceful_restart = grace;
            for (prefix, (local_preference, communities)) in prefixes {
                let communities = communities.into_iter().map(|low| Community::Standard(1, low)).collect();
                let tags = Tags { local_preference, communities, why: Why::default() };
                neighbor.advertise.insert(net(prefix), tags);
            }
            neighbor.receive = ranges.map_or(Receive::All, |ranges| {
                let range = |(number, at_least)| {
                    let prefix = net(&format!("10.{number}.0.0/16"));
                    (PrefixRange { prefix, at_least, at_most: None }, Why::default())
                };
                Receive::Only(ranges.into_iter().map(range).collect())
            });
            neighbor
        },
    )
}

fn a_router() -> impl Strategy<Value = Router> {
    let peer = prop_oneof![
        (1..4_u8).prop_map(|number| Peer::Address([10, 0, 0, number].into())),
        Just(Peer::Address("fd00::2".parse().expect("an address"))),
        Just(Peer::Interface("eth0".to_owned())),
    ];
    let prefixes = prop::collection::btree_set(
        prop::sample::select(vec!["10.1.0.0/24", "10.2.0.0/24", "fd01::/64", "fd02::/64"]),
        0..4,
    );
    let imports = prop::collection::btree_set(prop::sample::select(vec!["x", "y"]), 0..2);
    (1..3_u32, prop::collection::btree_map(peer, a_neighbor(), 0..4), prefixes, imports).prop_map(
        |(asn, neighbors, prefixes, imports)| Router {
            neighbors,
            prefixes: prefixes.into_iter().map(|prefix| (net(prefix), Why::default())).collect(),
            imports: imports.into_iter().map(|vrf| (Vrf::new(vrf), Why::default())).collect(),
            ..router(asn)
        },
    )
}

fn a_config() -> impl Strategy<Value = Config> {
    let vrf = prop::sample::select(vec!["", "red", "blue"]).prop_map(Vrf::new);
    let profile =
        (prop::option::of(100..102_u32), any::<bool>()).prop_map(|(transmit_interval, echo_mode)| {
            let settings = BfdSettings { transmit_interval, echo_mode, ..BfdSettings::default() };
            BfdProfile { settings, why: Why::default() }
        });
    let name = prop::sample::select(vec!["fast", "slow"]).prop_map(str::to_owned);
    (prop::collection::btree_map(vrf, a_router(), 0..3), prop::collection::btree_map(name, profile, 0..2))
        .prop_map(|(routers, bfd_profiles)| Config { routers, bfd_profiles, raw: Vec::new() })
}

proptest! {
    #[test]
    fn a_difference_leads_from_anywhere_to_the_goal(from in a_config(), to in a_config()) {
        let mut model = Model::new(&from);
        prop_assert_eq!(model.ours(), render(&from).ours);
        model.sync(&to);
        prop_assert_eq!(model.ours(), render(&to).ours);
        prop_assert_eq!(lines(&model.sync(&to)), Vec::<String>::new());
        model.sync(&Config::default());
        prop_assert_eq!(model.ours(), Block::default());
        let foreign = parse(FOREIGN);
        prop_assert!(model.running.values().all(|block| *block == foreign));
    }

    #[test]
    fn any_text_against_any_other_is_no_reason_to_panic(want in ".{0,80}", have in "(?s)[a-z \\n]{0,80}") {
        let running = Running::from(Daemon::ALL.map(|daemon| (daemon, parse(&have))));
        let _ = difference(&parse(&want), &running, &parse(&have));
    }

    /// A neighbour that nothing is said of hears nothing of a change.
    #[test]
    fn others_are_left_alone(config in a_config(), more in a_neighbor()) {
        let mut model = Model::new(&config);
        let mut bigger = config.clone();
        let Some((vrf, router)) = bigger.routers.iter_mut().next() else { return Ok(()) };
        let vrf = vrf.clone();
        router.neighbors.insert(Peer::Address([10, 9, 9, 9].into()), more);
        for command in model.sync(&bigger) {
            let peer = peer(&command.line);
            prop_assert!(peer.is_none_or(|peer| peer == "10.9.9.9"), "{:?} in {}", command, vrf);
            prop_assert!(!command.line.starts_with("no router") && !command.line.starts_with("do "));
        }
    }
}
