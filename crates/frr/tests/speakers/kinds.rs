//! Neighbours of every kind: on a link without addresses, of our own system, far away, reflected.

use underlay_desired::frr::{Peer, Receive, Remote, Session, Tags};
use underlay_net::Family;
use underlay_testkit::FrrHost;

use crate::configs::{config, neighbor, session, with_text};
use crate::{DONE, edge, sync, until_established};

/// A peer of our own autonomous system, on the link and, from another address, far away.
const PEER: &str = "\
router bgp 64512
 bgp router-id 10.0.0.2
 no bgp default ipv4-unicast
 no bgp network import-check
 neighbor eth0 interface remote-as internal
 neighbor eth0 timers connect 1
 neighbor 10.1.0.1 remote-as internal
 neighbor 10.1.0.1 update-source 10.1.0.2
 neighbor 10.1.0.1 timers connect 1
 address-family ipv4 unicast
  network 10.99.1.0/24
  neighbor eth0 activate
  neighbor 10.1.0.1 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor eth0 activate
 exit-address-family
";

/// What the schema has no field for.
const REFLECTOR: &str = "\
router bgp 64512
 bgp cluster-id 10.0.0.1
 neighbor racks peer-group
 neighbor racks remote-as internal
 bgp listen range 10.2.0.0/24 peer-group racks
 address-family ipv4 unicast
  neighbor eth0 route-reflector-client
 exit-address-family
";

#[tokio::test]
async fn neighbours_of_every_kind_talk() {
    let (node, peer) = (FrrHost::start("node", ""), FrrHost::start("peer", PEER));
    node.connect(&peer);
    for (host, own, other, via) in
        [(&node, "10.1.0.1/32", "10.1.0.2", "10.0.0.2"), (&peer, "10.1.0.2/32", "10.1.0.1", "10.0.0.1")]
    {
        host.ip(&["address", "add", own, "dev", "lo"]);
        host.ip(&["route", "add", other, "via", via]);
    }
    let prefixes = ["10.244.1.0/24", "fd01::/64"];
    let inside = || Session { remote: Remote::Internal, ..session(0) };
    let (_, mut on_link) = neighbor("10.0.0.9", inside(), &prefixes);
    on_link.families = Family::ALL.into();
    on_link.receive = Receive::All;
    on_link.advertise.insert("fd01::/64".parse().expect("a prefix"), Tags::default());
    on_link.advertise.values_mut().for_each(|tags| tags.local_preference = Some(321));
    let far = neighbor("10.1.0.2", Session { source: Some("10.1.0.1".to_owned()), ..inside() }, &prefixes);
    let plain = config(64512, &prefixes, vec![(Peer::Interface("eth0".to_owned()), on_link), far]);
    let config = with_text(plain, REFLECTOR);
    let frr = edge(&node);
    sync(&frr, &config).await.expect("neighbours");
    until_established(&node, 2).await;
    assert_eq!(sync(&frr, &config).await.expect("the same again"), DONE, "{}", node.configuration());
    peer.wait_until_shows("show bgp ipv4 unicast 10.244.1.0/24 json", "\"locPrf\":321");
    peer.wait_until_shows("show bgp ipv6 unicast fd01::/64 json", "\"valid\":true");
    node.wait_until_shows("show bgp ipv4 unicast 10.99.1.0/24 json", "\"valid\":true");
    let about = node.vtysh("show bgp neighbors eth0 json");
    assert!(about.contains("\"routeReflectorClient\":true"), "{about}");
    let groups = node.vtysh("show bgp peer-group");
    assert!(groups.contains("10.2.0.0/24"), "{groups}");
}
