//! A node that is emptied, taken out of the cluster and switched off.

use underlay_testkit::{OutputExt, wait_for};

use crate::cluster::PATIENCE;
use crate::flows::Flows;
use crate::looks::{ADVERTISED, ALL, ROUTERS, subnets_of, wait_for_routes, wait_until_all_is_well};
use crate::node::kill;
use crate::place::Place;

/// Its routes go from the routers and from other nodes' OVN while its machine still runs. Switched on again, it joins as a
/// new one.
pub fn a_node_goes(place: &Place) {
    let flows = Flows::with_outside(place, &["default", "green"]);
    let subnets = subnets_of(&place.lab, "worker2", &ADVERTISED);
    place.kubectl(&[
        "drain",
        "worker2",
        "--force",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--timeout=60s",
    ]);
    place.kubectl(&["delete", "node", "worker2"]);
    let without = |routes: &str| !subnets.iter().any(|subnet| routes.contains(subnet.as_str()));
    for (router, _) in ROUTERS {
        wait_for_routes(&place.lab, router, without);
    }
    for node in ["control", "worker1"] {
        wait_for(&format!("OVN of {node} to forget worker2"), PATIENCE, || {
            let columns = "--columns=ip_prefix";
            let routes = place
                .lab
                .exec(node, &["ovn-nbctl", "--bare", columns, "list", "Logical_Router_Static_Route"]);
            let routes = routes.result()?;
            if without(&routes) { Ok(()) } else { Err(routes) }
        });
    }
    place.lab.cli(&["cut", "fabric/worker2"]).ok();
    for name in ["most", "green"] {
        let ready = format!("routeadvertisements/{name}");
        place.kubectl(&["wait", &ready, "--for=condition=Ready", "--timeout=60s"]);
    }
    flows.wait_until_flowing();
    place.lab.cli(&["heal", "fabric/worker2"]).ok();
    kill(&place.lab, "worker2", "kubelet");
    wait_for("worker2 again", PATIENCE, || {
        place
            .lab
            .kubectl(&["wait", "node/worker2", "--for=condition=Ready", "--timeout=5s"])
            .result()
            .map(drop)
    });
    place.run_pods(&ALL);
    wait_until_all_is_well(place);
    flows.stop_without_loss(&place.lab);
}
