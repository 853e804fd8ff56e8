#[path = "../speakers/configs.rs"] mod configs;
#[path = "../speakers/speaker.rs"] mod speaker;
use configs::*; use speaker::Speaker; use std::time::*;
use underlay_desired::frr::*;
use underlay_frr::SessionReader;
#[tokio::test]
async fn t() {
    let tor = std::fs::read_to_string("/tmp/tor.conf").unwrap();
    let (node, router) = (Speaker::start("node", "debug bgp neighbor-events\ndebug bgp bfd\n"), Speaker::start("tor", &tor));
    node.connect(&router);
    std::thread::sleep(Duration::from_millis(std::env::var("WAIT").unwrap().parse().unwrap()));
    let frr = node.frr();
    let prefixes = ["10.244.1.0/24"];
    let mut s = session(64513);
    if std::env::var("PW").is_ok() { s.password = Some(Password::new("hunter2")); }
    if std::env::var("SRC").is_ok() { s.source = Some("10.0.0.1".into()); } if std::env::var("BFD").is_ok() { s.bfd = Some("fast".into()); }
    let mut c = config(64512, &prefixes, vec![neighbor("10.0.0.2", s, &prefixes)]);
    c.bfd_profiles.insert("fast".into(), BfdProfile { settings: BfdSettings { transmit_interval: Some(100), ..Default::default() }, why: why() });
    let t = Instant::now();
    frr.sync(&c).await.unwrap();
    let d = t.elapsed();
    let mut r = SessionReader::new(&frr.sockets);
    let mut last = String::new();
    while t.elapsed() < Duration::from_millis(6000) {
        let x = format!("{:?}", r.read().await.unwrap().iter().map(|s| (s.state.clone(), s.bfd.clone())).collect::<Vec<_>>());
        if x != last { println!("{:?} {x}", t.elapsed()); last = x; }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("sync {d:?}");
    if std::env::var("LOG").is_ok() { println!("{}", String::from_utf8_lossy(&node.run("cat", &["/run/frr/bgpd.log"]).stdout)); println!("{}", String::from_utf8_lossy(&router.run("cat", &["/run/frr/bgpd.log"]).stdout));
     println!("{}", node.configuration()); }
}
