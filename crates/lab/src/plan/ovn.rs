//! Open vSwitch and the node's own OVN zone: databases, northd, controller, the two bridges.

use super::network::{addresses_of, default_routes, feed_ip};
use super::{Daemon, Datapath, Place, Probe, Step, run, words, write};
use crate::topology::Machine;

/// Bridge that carries the node's address and its uplink.
const EXTERNAL_BRIDGE: &str = "br-ex";
/// Script that gives the node its addresses back; see [`addresses_script`].
const ADDRESSES: &str = "/etc/underlay-lab/addresses";

/// A daemon that the processor is given to before others, as the start scripts of Open vSwitch and OVN have it: where
/// it may not be, it still starts.
fn before_others(line: &str) -> Vec<String> {
    words(&format!("nice -n -10 {line}"))
}

/// The switch and the node's addresses on it.
pub(super) fn switch(machine: &Machine, place: &Place) -> Vec<Step> {
    let datapath = match place.datapath {
        Datapath::Userspace => "netdev",
        Datapath::Kernel => "system",
    };
    let mut steps = vec![
        run("install -d /run/openvswitch /etc/openvswitch"),
        run("ovsdb-tool create /etc/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema"),
        Step::Start(Daemon {
            name: "ovsdb-server".to_owned(),
            argv: before_others(
                "ovsdb-server /etc/openvswitch/conf.db --remote=punix:/run/openvswitch/db.sock \
                 --pidfile=/run/openvswitch/ovsdb-server.pid -vconsole:info -vsyslog:off -vfile:off",
            ),
            ready: Probe::socket("/run/openvswitch/db.sock"),
            after: vec![],
        }),
        Step::Run(init_database(machine, datapath)),
        write(ADDRESSES, addresses_script(machine)),
    ];
    // Further interfaces stay with the kernel; the first belongs to the switch.
    for attachment in machine.attachments.iter().skip(1) {
        steps.push(feed_ip(addresses_of(&attachment.interface, &attachment.addresses)));
    }
    if place.datapath == Datapath::Userspace {
        steps.extend(steal_uplink(machine));
    }
    steps.push(feed_ip(uplink_up(machine)));
    let disable = if place.datapath == Datapath::Userspace { "--disable-system" } else { "" };
    steps.push(Step::Start(Daemon {
        name: "ovs-vswitchd".to_owned(),
        argv: before_others(&format!(
            "ovs-vswitchd unix:/run/openvswitch/db.sock --pidfile=/run/openvswitch/ovs-vswitchd.pid {disable} \
             -vconsole:info -vsyslog:off -vfile:off"
        )),
        ready: Probe::command("ovs-vswitchd to answer", words("ovs-appctl -t ovs-vswitchd version")),
        // Whatever the bridges lost while the daemon was gone is put back; what is there already stays as it is.
        after: vec![add_bridges(machine, datapath), words(&format!("sh -e {ADDRESSES}"))],
    }));
    steps
}

fn init_database(machine: &Machine, datapath: &str) -> Vec<String> {
    let name = &machine.name;
    let encap = machine.addresses().first().map(ToString::to_string).unwrap_or_default();
    words(&format!(
        "ovs-vsctl --timeout=20 --no-wait init -- set Open_vSwitch . external_ids:system-id={name} \
         external_ids:hostname={name} external_ids:ovn-remote=unix:/run/ovn/ovnsb_db.sock \
         external_ids:ovn-encap-type=geneve external_ids:ovn-encap-ip={encap} \
         external_ids:ovn-bridge-mappings=physnet:{EXTERNAL_BRIDGE} external_ids:ovn-is-interconn=true \
         external_ids:ovn-bridge-datapath-type={datapath} external_ids:ovn-monitor-all=true \
         other_config:n-handler-threads=1 other_config:n-revalidator-threads=1 \
         other_config:userspace-tso-enable=true"
    ))
}

fn add_bridges(machine: &Machine, datapath: &str) -> Vec<String> {
    let uplink = machine.uplink().map(|uplink| uplink.interface.clone()).unwrap_or_default();
    words(&format!(
        "ovs-vsctl --timeout=20 --may-exist add-br br-int -- set bridge br-int datapath_type={datapath} \
         fail_mode=secure -- --may-exist add-br {EXTERNAL_BRIDGE} -- set bridge {EXTERNAL_BRIDGE} \
         datapath_type={datapath} fail_mode=standalone -- --may-exist add-port {EXTERNAL_BRIDGE} {uplink}"
    ))
}

/// A shell script, because it runs again whenever the switch comes back: the node's addresses on the external bridge and
/// its default routes.
fn addresses_script(machine: &Machine) -> String {
    let Some(uplink) = machine.uplink() else { return String::new() };
    let mut batch = format!("link set {EXTERNAL_BRIDGE} mtu {}\n", uplink.mtu);
    batch.push_str(&addresses_of(EXTERNAL_BRIDGE, &uplink.addresses));
    batch.push_str(&default_routes(machine));
    format!("ip -batch - <<'END'\n{batch}END\n")
}

fn uplink_up(machine: &Machine) -> String {
    machine.uplink().map(|uplink| format!("link set {} up\n", uplink.interface)).unwrap_or_default()
}

/// With the userspace datapath the kernel also sees every frame of the uplink, and would answer ARP with the wrong
/// address. Drop all of it at ingress: the switch reads its copy before.
fn steal_uplink(machine: &Machine) -> Vec<Step> {
    let Some(uplink) = machine.uplink() else { return vec![] };
    let interface = &uplink.interface;
    let table = format!(
        "table netdev underlay-lab {{\n  chain uplink {{\n    type filter hook ingress device \"{interface}\" \
         priority -500; policy drop;\n  }}\n}}\n"
    );
    vec![
        Step::Feed { argv: words("nft -f -"), input: table },
        run(&format!("sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1 net.ipv4.conf.all.arp_ignore=1")),
    ]
}

/// The node's own northbound and southbound databases, northd and the controller.
pub(super) fn zone() -> Vec<Step> {
    let mut steps = vec![run("install -d /run/ovn /var/lib/ovn")];
    steps.push(Step::Together(vec![database("nb"), database("sb")]));
    let northd = Daemon {
        name: "ovn-northd".to_owned(),
        argv: before_others(
            "ovn-northd --ovnnb-db=unix:/run/ovn/ovnnb_db.sock --ovnsb-db=unix:/run/ovn/ovnsb_db.sock \
             --pidfile=/run/ovn/ovn-northd.pid -vconsole:info -vsyslog:off -vfile:off",
        ),
        ready: Probe::command("ovn-northd to answer", words("ovn-appctl -t ovn-northd version")),
        // The controller may crash on a southbound database that northd has not filled yet (seen with OVN 25.03).
        after: vec![words("ovn-nbctl --timeout=60 --wait=sb sync")],
    };
    let controller = Daemon {
        name: "ovn-controller".to_owned(),
        argv: before_others(
            "ovn-controller unix:/run/openvswitch/db.sock --pidfile=/run/ovn/ovn-controller.pid \
             -vconsole:info -vsyslog:off -vfile:off",
        ),
        ready: Probe::command("ovn-controller to answer", words("ovn-appctl -t ovn-controller version")),
        after: vec![],
    };
    steps.extend([Step::Start(northd), Step::Start(controller)]);
    steps
}

fn database(which: &str) -> Vec<Step> {
    let file = format!("/var/lib/ovn/ovn{which}_db.db");
    let socket = format!("/run/ovn/ovn{which}_db.sock");
    vec![
        run(&format!("ovsdb-tool create {file} /usr/share/ovn/ovn-{which}.ovsschema")),
        Step::Start(Daemon {
            name: format!("ovn-{which}"),
            argv: before_others(&format!(
                "ovsdb-server {file} --remote=punix:{socket} --unixctl=/run/ovn/ovn{which}_db.ctl \
                 --pidfile=/run/ovn/ovn{which}_db.pid -vconsole:info -vsyslog:off -vfile:off"
            )),
            ready: Probe::socket(&socket),
            after: vec![],
        }),
    ]
}
