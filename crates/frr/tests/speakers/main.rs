//! The edge on real FRR, looked at with FRR's own tool, from both ends of a session.

mod calm;
mod configs;
mod kinds;
mod leaving;
mod speed;

use std::fs;
use std::time::{Duration, Instant};

use configs::{config, everything, neighbor, session, with_text};
use underlay_desired::frr::{BfdProfile, BfdSettings, Config, Password, Session, Vrf};
use underlay_frr::state::ESTABLISHED;
use underlay_frr::{Frr, Patience, Report, SessionReader, SyncError};
use underlay_testkit::{FrrHost, wait_for};

/// What nobody may touch.
const FOREIGN: &str = "\
ip prefix-list foreign seq 5 permit 192.0.2.0/24
bgp community-list standard foreign seq 5 permit 1:2
route-map foreign permit 10
 match ip address prefix-list foreign
";

/// A router at the top of the rack, as an admin would write it.
const TOR: &str = "\
router bgp 64513
 bgp router-id 10.0.0.2
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 no bgp network import-check
 bgp graceful-restart
 timers bgp 3 9
 neighbor 10.0.0.1 remote-as 64512
 neighbor 10.0.0.1 timers connect 1
 neighbor 10.0.0.1 password hunter2
 neighbor 10.0.0.1 bfd
 neighbor 10.0.1.1 remote-as 64512
 neighbor 10.0.1.1 timers connect 1
 neighbor fd00::1 remote-as 64512
 neighbor fd00::1 timers connect 1
 address-family ipv4 unicast
  network 10.99.1.0/24
  network 10.98.0.0/16
  neighbor 10.0.0.1 activate
  neighbor 10.0.1.1 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor fd00::1 activate
 exit-address-family
";

const DONE: Report = Report { commands: 0, written: false, waiting: 0 };

/// The edge to a machine's FRR.
fn edge(host: &FrrHost) -> Frr {
    Frr { sockets: host.path("/run/frr"), vtysh: host.vtysh_command(), file: host.path("/etc/frr/frr.conf") }
}

/// One look at FRR, by somebody who has waited for nobody yet.
async fn sync(frr: &Frr, config: &Config) -> Result<Report, SyncError> {
    frr.sync(config, &mut Patience::default()).await
}

fn with_profile(mut config: Config) -> Config {
    let settings = BfdSettings { transmit_interval: Some(100), ..BfdSettings::default() };
    config.bfd_profiles.insert("fast".to_owned(), BfdProfile { settings, why: configs::why() });
    config
}

/// The session that the router above expects.
fn tor() -> Session {
    Session { password: Some(Password::new("hunter2")), bfd: Some("fast".to_owned()), ..session(64513) }
}

async fn until_established(host: &FrrHost, count: usize) {
    let began = Instant::now();
    let mut reader = SessionReader::new(&edge(host).sockets);
    loop {
        let sessions = reader.read().await.expect("reading sessions");
        if sessions.iter().filter(|one| one.state == ESTABLISHED).count() == count {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{sessions:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_session_comes_up_and_is_not_disturbed_by_what_is_not_about_it() {
    let (node, router) = (FrrHost::start("node", FOREIGN), FrrHost::start("tor", TOR));
    node.connect(&router);
    let frr = edge(&node);
    let before = node.configuration();

    let prefixes = ["10.244.1.0/24"];
    let first = with_profile(config(64512, &prefixes, vec![neighbor("10.0.0.2", tor(), &prefixes)]));
    let report = sync(&frr, &first).await.expect("a first configuration");
    assert_eq!(report.waiting, 1, "BFD joins when there is something to watch");
    until_established(&node, 1).await;
    let up = node.established("10.0.0.2");
    assert_eq!(sync(&frr, &first).await.expect("BFD"), Report { commands: 2, written: true, waiting: 0 });
    router.wait_until_shows("show bfd peers json", "\"status\":\"up\"");
    router.wait_until_shows("show bgp ipv4 unicast 10.244.1.0/24 json", "\"valid\":true");
    node.wait_until_shows("show bgp ipv4 unicast 10.99.1.0/24 json", "\"valid\":true");
    assert!(
        !node.vtysh("show bgp ipv4 unicast").contains("10.98.0.0"),
        "what was not asked for does not come in"
    );
    assert_eq!(sync(&frr, &first).await.expect("the same again"), DONE, "{}", node.configuration());

    assert_eq!(node.established("10.0.0.2"), up, "the session was not touched");
    let prefixes = ["10.244.1.0/24", "10.244.2.0/24", "fd01::/64"];
    let neighbors = vec![
        neighbor("10.0.0.2", tor(), &prefixes),
        neighbor("10.0.1.2", session(64513), &prefixes[..1]),
        neighbor("fd00::2", session(64513), &prefixes),
    ];
    let second = with_profile(config(64512, &prefixes, neighbors));
    sync(&frr, &second).await.expect("more of everything");
    until_established(&node, 3).await;
    router.wait_until_shows("show bgp ipv4 unicast 10.244.2.0/24 json", "\"valid\":true");
    router.wait_until_shows("show bgp ipv6 unicast fd01::/64 json", "\"valid\":true");
    assert_eq!(node.established("10.0.0.2"), up, "the session was not touched");
    assert_eq!(sync(&frr, &second).await.expect("the same again"), DONE, "{}", node.configuration());

    let third = with_profile(config(64512, &prefixes, vec![neighbor("10.0.0.2", tor(), &prefixes[..1])]));
    sync(&frr, &third).await.expect("less of everything");
    assert_eq!(node.established("10.0.0.2"), up, "the session was not touched");
    let heard = "show bgp ipv4 unicast neighbors 10.0.0.1 routes json";
    router.wait_until_hides(Duration::from_secs(2), heard, "10.244.2.0/24");
    assert!(router.vtysh(heard).contains("10.244.1.0/24"));

    node.kill_bgpd();
    assert!(node.ip(&["route"]).contains("10.99.1.0/24"), "traffic goes on without bgpd");
    node.start_bgpd();
    let restarted = Report { waiting: 1, ..DONE };
    assert_eq!(sync(&frr, &third).await.expect("after a restart"), restarted, "the file has it all");
    until_established(&node, 1).await;
    // FRR takes its routes away for an instant here: it says that it has told all before its next hops are resolved.
    wait_for("the route that bgpd learned again", Duration::from_secs(10), || {
        let kernel = node.ip(&["route"]);
        if kernel.contains("10.99.1.0/24") { Ok(()) } else { Err(kernel) }
    });

    sync(&frr, &Config::default()).await.expect("nothing at all");
    assert_eq!(node.configuration(), before);
    assert_eq!(sync(&frr, &Config::default()).await.expect("the same again"), DONE);
}

#[tokio::test]
async fn everything_that_can_be_said_is_printed_as_we_say_it() {
    let node = FrrHost::start("node", FOREIGN);
    let frr = edge(&node);
    let before = node.configuration();
    let config = everything();
    let report = sync(&frr, &config).await.expect("everything");
    assert!(report.written && report.commands > 50, "{report:?}");
    let done = Report { waiting: 2, ..DONE };
    assert_eq!(sync(&frr, &config).await.expect("the same again"), done, "{}", node.configuration());

    let file = fs::read_to_string(&frr.file).expect("FRR's file");
    assert!(file.contains("route-map foreign permit 10"), "{file}");
    assert!(node.run("vtysh", &["-C", "-f", "/etc/frr/frr.conf"]).status.success(), "{file}");

    let mut renumbered = config.clone();
    renumbered.routers.values_mut().for_each(|router| router.asn = 64600);
    sync(&frr, &renumbered).await.expect("another number");
    assert_eq!(sync(&frr, &renumbered).await.expect("the same again"), done, "{}", node.configuration());

    // Whoever forgets is told again; whoever adds has it taken away.
    node.run(
        "vtysh",
        &[
            "-c",
            "configure",
            "-c",
            "router bgp 64600",
            "-c",
            "no neighbor 10.0.0.4",
            "-c",
            "neighbor 10.0.0.5 remote-as 1",
        ],
    );
    assert!(sync(&frr, &renumbered).await.expect("after drift").commands > 0);
    assert_eq!(sync(&frr, &renumbered).await.expect("the same again"), done);

    let mut only_vrf = config;
    only_vrf.routers.remove(&Vrf::new(""));
    sync(&frr, &only_vrf).await.expect("without the default VRF");
    assert_eq!(sync(&frr, &only_vrf).await.expect("the same again"), DONE, "{}", node.configuration());

    sync(&frr, &Config::default()).await.expect("nothing at all");
    assert_eq!(node.configuration(), before);
}

#[tokio::test]
async fn texts_of_users_come_and_go_and_garbage_changes_nothing() {
    let node = FrrHost::start("node", FOREIGN);
    let frr = edge(&node);
    let before = node.configuration();
    let prefixes = ["10.244.1.0/24"];
    let plain = config(64512, &prefixes, vec![neighbor("10.0.0.2", session(64513), &prefixes)]);
    sync(&frr, &plain).await.expect("without texts");
    let without = node.configuration();

    let text = "\
router bgp 64512
 neighbor 10.0.0.2 ebgp-multihop 255
 neighbor 10.0.0.2 description from a text
 no neighbor 10.0.0.2 timers connect
 bgp log-neighbor-changes
address-family ipv4 unicast
  neighbor 10.0.0.2 allowas-in 1
exit-address-family
exit
ip prefix-list mine permit 198.51.100.0/24
route-map mine permit 10
 match ip address prefix-list mine
exit
ip nht resolve-via-default
";
    let raw = with_text(plain.clone(), text);
    sync(&frr, &raw).await.expect("with a text");
    let with = node.configuration();
    for line in ["ebgp-multihop", "description from a text", "allowas-in 1", "route-map mine permit 10"] {
        assert!(with.contains(line), "{line}: {with}");
    }
    assert!(!with.contains("timers connect"), "{with}");
    assert_eq!(sync(&frr, &raw).await.expect("the same again"), DONE, "{with}");

    for garbage in ["router bgp 64512\n neighbor 10.0.0.2 nonsense\n", "interface eth0\n no such thing\n"] {
        let error = sync(&frr, &with_text(raw.clone(), garbage)).await.expect_err("garbage");
        assert!(matches!(&error, SyncError::Text { object, .. } if object.name == "test"), "{error:?}");
        assert_eq!(node.configuration(), with);
    }
    // In FRR's words, but not to its liking: known only when it is told.
    let refused =
        "router bgp 64512\n neighbor 10.0.0.2 description x\n neighbor 10.0.0.77 password hunter2\n";
    let error = sync(&frr, &with_text(raw.clone(), refused)).await.expect_err("refused");
    assert!(matches!(error, SyncError::Text { .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("hunter2"));
    assert_eq!(node.configuration(), with);

    // Only the one who wrote it is to blame, and without that text all goes on.
    let mut two = raw.clone();
    two.raw[0].why = configs::why_of("good");
    let error = sync(&frr, &with_text(two.clone(), refused)).await.expect_err("refused");
    assert!(matches!(&error, SyncError::Text { object, .. } if object.name == "test"), "{error:?}");
    assert_eq!(sync(&frr, &two).await.expect("without it"), DONE);

    // The user's word counts more than ours.
    let otherwise = with_text(raw.clone(), "router bgp 64512\n neighbor 10.0.0.2 timers 5 15\n");
    sync(&frr, &otherwise).await.expect("another value");
    assert!(node.configuration().contains("neighbor 10.0.0.2 timers 5 15\n"), "{}", node.configuration());
    assert_eq!(sync(&frr, &otherwise).await.expect("the same again"), DONE, "{}", node.configuration());

    sync(&frr, &plain).await.expect("without texts again");
    assert_eq!(node.configuration(), without);
    sync(&frr, &Config::default()).await.expect("nothing at all");
    assert_eq!(node.configuration(), before);
    assert!(!frr.file.with_file_name("underlay-raw.json").exists());
}

#[tokio::test]
async fn a_daemon_that_lost_everything_is_told_again() {
    let node = FrrHost::start("node", "");
    let frr = edge(&node);
    let config = everything();
    sync(&frr, &config).await.expect("everything");
    let with = node.configuration();
    fs::write(&frr.file, "frr defaults datacenter\nhostname node\n").expect("emptying FRR's file");
    node.kill_bgpd();
    node.start_bgpd();
    let report = sync(&frr, &config).await.expect("everything again");
    assert!(report.commands > 0 && report.written, "{report:?}");
    assert_eq!(node.configuration(), with);
    let mode = fs::metadata(&frr.file).expect("FRR's file");
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&mode) & 0o777, 0o640);

    fs::write(&frr.file, "frr defaults datacenter\nhostname node\n").expect("emptying FRR's file");
    assert_eq!(
        sync(&frr, &config).await.expect("only the file"),
        Report { written: true, waiting: 2, ..DONE }
    );
}

#[tokio::test]
async fn without_bgpd_it_is_said_who_is_missing() {
    let node = FrrHost::start("node", "");
    let mut frr = edge(&node);
    frr.sockets = "/nowhere".into();
    let error = sync(&frr, &Config::default()).await.expect_err("nobody is there");
    assert_eq!(error.to_string(), "bgpd cannot be talked with");
}
