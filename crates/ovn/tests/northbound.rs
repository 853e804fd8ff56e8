//! The edge on a real northbound database, looked at with OVN's own client.

use std::time::Duration;

use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_desired::{ObjectRef, Why};
use underlay_ovn::imports::{self, Place, Wanted};
use underlay_ovn::{Difference, northbound, sync};
use underlay_ovsdb::{Client, Config, open};
use underlay_testkit::{OutputExt, OvsdbServer, Schema};

fn why() -> Why {
    Why::from_object(ObjectRef::cluster("Node", "n1"))
}

/// A switch with these ports, and a router with a port and a route.
fn network(ports: &[&str]) -> Rows {
    let mut rows = Rows::default();
    let switch = rows.add(Row::new(Table::LogicalSwitch, "n1", &why()).text("name", "n1"));
    for port in ports {
        let row = Row::new(Table::LogicalSwitchPort, *port, &why())
            .text("name", *port)
            .texts("addresses", ["0a:58:0a:f4:01:05 10.244.1.5"])
            .entry("external_ids", "pod", "true");
        let port = rows.add(row);
        rows.refer(&switch, "ports", port);
    }
    let router = rows
        .add(Row::new(Table::LogicalRouter, "ovn_cluster_router", &why()).text("name", "ovn_cluster_router"));
    let port = rows.add(
        Row::new(Table::LogicalRouterPort, "rtos-n1", &why())
            .text("name", "rtos-n1")
            .text("mac", "0a:58:0a:f4:01:01")
            .texts("networks", ["10.244.1.1/24"]),
    );
    rows.refer(&router, "ports", port);
    let route = rows.add(
        Row::new(Table::LogicalRouterStaticRoute, "default", &why())
            .text("ip_prefix", "0.0.0.0/0")
            .text("nexthop", "100.64.0.2"),
    );
    rows.refer(&router, "static_routes", route);
    rows.add(
        Row::new(Table::StaticMacBinding, "rtos-n1/169.254.169.4", &why())
            .text("logical_port", "rtos-n1")
            .text("ip", "169.254.169.4")
            .text("mac", "0a:58:a9:fe:a9:04")
            .bool("override_dynamic_mac", true),
    );
    rows
}

async fn client(server: &OvsdbServer) -> Client {
    let remote = server.remote().parse().expect("a remote");
    let (client, session) = open(Config::new(remote, "OVN_Northbound", northbound()));
    tokio::spawn(session.run());
    tokio::time::timeout(Duration::from_mins(1), client.loaded())
        .await
        .expect("in time")
        .expect("a first state");
    client
}

async fn apply(client: &Client, want: &Rows) -> Difference {
    tokio::time::timeout(Duration::from_mins(1), sync(client, want))
        .await
        .expect("in time")
        .expect("a taken change")
}

fn counts(difference: &Difference) -> (usize, usize, usize) {
    (difference.inserted, difference.updated, difference.deleted)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_becomes_the_plan_and_stays_so() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let client = client(&server).await;

    let first = apply(&client, &network(&["a", "b"])).await;
    assert_eq!(counts(&first), (7, 0, 0));
    assert!(first.absent.is_empty(), "{:?}", first.absent);
    let ports = server.ctl(&["lsp-list", "n1"]).ok();
    assert!(ports.contains("(a)") && ports.contains("(b)"), "{ports}");
    assert!(server.ctl(&["lr-route-list", "ovn_cluster_router"]).ok().contains("100.64.0.2"));

    let again = apply(&client, &network(&["a", "b"])).await;
    assert_eq!(counts(&again), (0, 0, 0), "nothing changed, nothing is written");

    let less = apply(&client, &network(&["a"])).await;
    assert_eq!(counts(&less), (0, 1, 1), "the switch lets its port go");
    assert!(!server.ctl(&["lsp-list", "n1"]).ok().contains("(b)"));

    // By hand, and put right again.
    server.ctl(&["lsp-set-addresses", "a", "0a:00:00:00:00:01"]).ok();
    server.ctl(&["lr-route-del", "ovn_cluster_router"]).ok();
    synced(&client, &server).await;
    let repaired = apply(&client, &network(&["a"])).await;
    assert_eq!(counts(&repaired), (1, 2, 0), "a route comes back, a port and the router change");
    assert!(server.ctl(&["lsp-get-addresses", "a"]).ok().contains("10.244.1.5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_left_alone() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let client = client(&server).await;
    apply(&client, &network(&["a"])).await;
    // Somebody's own switch, a port of theirs on ours, a route of theirs on ours.
    server.ctl(&["ls-add", "foreign", "--", "lsp-add", "foreign", "theirs"]).ok();
    server.ctl(&["lsp-add", "n1", "guest"]).ok();
    server.ctl(&["lr-route-add", "ovn_cluster_router", "192.0.2.0/24", "100.64.0.9"]).ok();
    let before = foreign(&server);
    synced(&client, &server).await;

    apply(&client, &network(&["a", "c"])).await;
    assert_eq!(foreign(&server), before);
    assert!(server.ctl(&["lsp-list", "n1"]).ok().contains("(guest)"));
    assert!(server.ctl(&["lr-route-list", "ovn_cluster_router"]).ok().contains("192.0.2.0/24"));

    // Nothing of ours should be any more: ours goes, theirs stays as far as it can without ours.
    apply(&client, &Rows::default()).await;
    assert_eq!(server.ctl(&["ls-list"]).ok().lines().count(), 1);
    assert!(server.ctl(&["lsp-list", "foreign"]).ok().contains("(theirs)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_a_newer_ovn_is_left_out_and_told() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let client = client(&server).await;
    let mut rows = Rows::default();
    rows.add(Row::new(Table::LogicalSwitch, "n1", &why()).text("name", "n1").text("not_yet", "x"));
    let difference = apply(&client, &rows).await;
    assert_eq!(difference.absent.into_iter().collect::<Vec<_>>(), ["Logical_Switch.not_yet"]);
    assert!(server.ctl(&["ls-list"]).ok().contains("(n1)"));
    assert!(rows.get(&RowId::new(Table::LogicalSwitch, "n1")).is_some());
}

/// Waits until the client has seen what OVN's own client wrote: a row of ours comes after it.
async fn synced(client: &Client, server: &OvsdbServer) {
    server.ctl(&["set", "NB_Global", ".", "options:seen=yes"]).result().ok();
    let marker = server.ctl(&["create", "DHCP_Options", "cidr=192.0.2.0/24"]).ok();
    let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
    loop {
        let replica = client.replica();
        let seen = replica
            .table("DHCP_Options")
            .is_some_and(|table| table.iter().any(|record| record.uuid().to_string() == marker.trim()));
        if seen {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "the client never saw {marker}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Foreign rows, byte for byte.
fn foreign(server: &OvsdbServer) -> String {
    let mut text = server.ctl(&["list", "Logical_Switch", "foreign"]).ok();
    for port in ["theirs", "guest"] {
        text += &server.ctl(&["list", "Logical_Switch_Port", port]).ok();
    }
    text
}

/// Learned routes and everything else of a router are made by different hands, and neither touches the other's.
#[tokio::test]
async fn learned_routes_come_and_go_beside_the_planned_ones() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let client = client(&server).await;
    sync(&client, &network(&[])).await.unwrap();
    let wanted = |destination: &str, gateways: &[&str]| Wanted {
        place: Place { router: "ovn_cluster_router".to_owned(), destination: destination.parse().unwrap() },
        port: "rtos-n1".to_owned(),
        gateways: gateways.iter().map(|gateway| gateway.parse().unwrap()).collect(),
    };
    let write = async |wanted: &[Wanted]| {
        let transaction = imports::difference(wanted, &client.loaded().await.unwrap());
        let size = transaction.len();
        if size > 0 {
            client.transact(transaction).await.unwrap();
        }
        size
    };
    let routes = || server.ctl(&["lr-route-list", "ovn_cluster_router"]).ok();
    let both = [wanted("10.1.0.0/16", &["192.0.2.1", "192.0.2.2"]), wanted("10.2.0.0/16", &["192.0.2.1"])];
    assert!(write(&both).await > 0);
    assert_eq!(write(&both).await, 0, "nothing is written twice");
    assert!(sync(&client, &network(&[])).await.unwrap().is_empty(), "the planned rows are as they were");
    let text = routes();
    assert!(
        text.contains("192.0.2.2") && text.contains("0.0.0.0/0") && text.contains("10.2.0.0/16"),
        "{text}"
    );

    write(&[wanted("10.1.0.0/16", &["192.0.2.2"]), wanted("10.2.0.0/16", &[])]).await;
    let text = routes();
    assert!(
        !text.contains("192.0.2.1") && !text.contains("10.2.0.0/16") && text.contains("0.0.0.0/0"),
        "{text}"
    );
    let replica = client.loaded().await.unwrap();
    assert_eq!(imports::places(&replica), [both[0].place.clone()].into());
    assert_eq!(
        write(&[Wanted {
            place: Place { router: "GR_x".to_owned(), ..both[0].place.clone() },
            ..both[0].clone()
        }])
        .await,
        0,
        "there is no such router yet"
    );
}
