use underlay_linux::BgpRoute;

use super::*;

fn route(destination: &str, gateways: &[&str]) -> BgpRoute {
    let hop = |gateway: &&str| NextHop { gateway: gateway.parse().unwrap(), link: "br-ex".to_owned() };
    BgpRoute {
        table: 254,
        destination: destination.parse().unwrap(),
        priority: 20,
        next_hops: gateways.iter().map(hop).collect(),
    }
}

fn policy(limit: usize) -> Policy {
    Policy {
        network: "default".to_owned(),
        router: "GR_one".to_owned(),
        port: "rtoe-GR_one".to_owned(),
        table: Some(254),
        limit,
        families: Family::ALL.to_vec(),
        link: "br-ex".to_owned(),
        own: vec![],
        connected: BTreeSet::new(),
        known: BTreeSet::new(),
        others: Arc::default(),
    }
}

fn shares(limit: usize, routes: Vec<BgpRoute>) -> Shares {
    let mut shares = Shares::default();
    shares.set_policies(&[policy(limit)]);
    shares.look(BgpTable::new(routes), false, Instant::now());
    shares
}

/// What has to be written, in words.
fn taken(shares: &mut Shares) -> Vec<String> {
    let words = |wanted: Wanted| {
        let gateways: Vec<String> = wanted.gateways.iter().map(ToString::to_string).collect();
        format!("{} -> {}", wanted.place.destination, gateways.join(" "))
    };
    shares.take(usize::MAX).into_iter().map(words).collect()
}

#[test]
fn only_what_changed_is_told() {
    let (one, two) =
        (route("10.1.0.0/16", &["192.0.2.1"]), route("10.2.0.0/16", &["192.0.2.1", "192.0.2.2"]));
    let mut shares = shares(9, vec![one.clone(), two.clone()]);
    assert_eq!(taken(&mut shares), ["10.1.0.0/16 -> 192.0.2.1", "10.2.0.0/16 -> 192.0.2.1 192.0.2.2"]);
    assert_eq!(taken(&mut shares), [] as [&str; 0]);
    shares.look(BgpTable::new([one.clone()]), false, Instant::now());
    assert_eq!(taken(&mut shares), ["10.2.0.0/16 -> "]);
    shares.set_policies(&[policy(9)]);
    assert_eq!(taken(&mut shares), [] as [&str; 0], "the same policy");
    shares.set_policies(&[]);
    assert_eq!(taken(&mut shares), ["10.1.0.0/16 -> "], "the network is gone");
}

#[test]
fn the_widest_routes_stay_when_there_are_too_many() {
    let all = [
        route("10.1.0.0/24", &["192.0.2.1"]),
        route("10.0.0.0/8", &["192.0.2.1"]),
        route("10.2.0.0/16", &["192.0.2.1"]),
    ];
    let mut shares = shares(2, all.to_vec());
    let told = taken(&mut shares);
    assert!(
        told.contains(&"10.1.0.0/24 -> ".to_owned()) || !told.iter().any(|text| text.starts_with("10.1")),
        "{told:?}"
    );
    let count = shares.counts()["default"];
    assert_eq!((count.learned, count.imported, count.dammed), (3, 2, 1));
    let refused = shares.learned("default", |_| true).filter_map(|route| route.refused);
    assert_eq!(refused.collect::<Vec<_>>(), [Refusal::Flood(2)]);

    shares.look(BgpTable::new(vec![all[0].clone(), all[1].clone()]), false, Instant::now());
    assert_eq!(taken(&mut shares), ["10.1.0.0/24 -> 192.0.2.1", "10.2.0.0/16 -> "], "there is room again");
}

#[test]
fn lost_routes_are_kept_for_a_moment_while_bgpd_settles() {
    let mut shares =
        shares(9, vec![route("10.1.0.0/16", &["192.0.2.1"]), route("10.2.0.0/16", &["192.0.2.1"])]);
    taken(&mut shares);
    let start = Instant::now();
    shares.look(BgpTable::default(), true, start);
    assert_eq!(taken(&mut shares), [] as [&str; 0]);
    shares.look(BgpTable::new([route("10.1.0.0/16", &["192.0.2.9"])]), true, start);
    assert_eq!(taken(&mut shares), ["10.1.0.0/16 -> 192.0.2.9"], "this one is back");
    let kept: Vec<bool> = shares.learned("default", |_| true).map(|route| route.kept).collect();
    assert_eq!(kept, [false, true], "and who asks is told so");
    let end = shares.deadline().unwrap();
    shares.give_up(end);
    assert_eq!(taken(&mut shares), ["10.2.0.0/16 -> "], "that one is not coming back");
    assert_eq!(shares.deadline(), None);

    shares.look(BgpTable::default(), false, end);
    assert_eq!(taken(&mut shares), ["10.1.0.0/16 -> "], "at other times a lost route is gone");
}

proptest::proptest! {
    /// Whatever the order of what happens, what is written in the end follows from what is there.
    #[test]
    fn what_is_written_follows_from_what_is_there(
        steps in proptest::collection::vec((0..12_u8, proptest::bool::ANY, 1..4_u8), 1..40),
        limit in 1..8_usize,
    ) {
        let mut shares = shares(limit, vec![]);
        let (mut there, mut written) = (BTreeMap::new(), BTreeMap::new());
        for (number, gone, gateway) in steps {
            let destination = format!("10.{number}.0.0/{}", 16 + number % 4);
            if gone { there.remove(&destination); } else {
                there.insert(destination.clone(), route(&destination, &[&format!("192.0.2.{gateway}")]));
            }
            shares.look(BgpTable::new(there.values().cloned()), false, Instant::now());
            for wanted in shares.take(usize::MAX) {
                if wanted.gateways.is_empty() { written.remove(&wanted.place); } else {
                    written.insert(wanted.place, wanted.gateways);
                }
            }
        }
        let mut fresh = self::shares(limit, there.into_values().collect());
        let fresh = fresh.take(usize::MAX).into_iter().filter(|wanted| !wanted.gateways.is_empty());
        let fresh: BTreeMap<Place, Vec<IpAddr>> = fresh.map(|wanted| (wanted.place, wanted.gateways)).collect();
        proptest::prop_assert_eq!(written, fresh);
    }
}
