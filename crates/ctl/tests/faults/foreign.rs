//! Things of others, on our own rows and bridges and beside them, stay as they are, byte for byte.

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt};

use crate::ADVERTISEMENT;
use crate::cluster::{apply, get};
use crate::node::{kill, sh, wait_until_advertised, wait_until_back, wait_until_well, wait_until_withdrawn};
use crate::traffic::Background;

/// Makes one of each.
const MAKE: &str = "\
ovn-nbctl ls-add theirs -- lsp-add theirs their-port -- lsp-set-addresses their-port '02:00:00:00:00:07 192.0.2.7'
ovn-nbctl lr-route-add GR_worker1 192.0.2.0/24 172.30.0.1
ovn-nbctl lr-nat-add GR_worker1 dnat_and_snat 172.30.0.77 192.0.2.7
ovn-nbctl acl-add worker1 to-lport 1 'ip4.src == 192.0.2.9' drop
ovs-vsctl add-port br-int their-port -- set Interface their-port type=internal external_ids:owner=them
ovs-ofctl add-flow br-ex cookie=0x7,priority=3,udp,tp_dst=7777,actions=drop
ip rule add to 192.0.2.0/24 priority 7777 table 77
ip route add 192.0.2.64/26 via 172.30.0.1 table 77
ip route add 192.0.2.0/26 via 172.30.0.1
ip address add 192.0.2.200/32 dev br-ex
ip neighbor add 172.30.0.78 lladdr 02:00:00:00:00:78 dev br-ex nud permanent
nft add table inet theirs
nft add chain inet theirs input '{ type filter hook input priority 0; }'
nft add rule inet theirs input udp dport 7777 drop
vtysh -c 'configure terminal' -c 'ip prefix-list theirs seq 5 permit 192.0.2.0/24' \
    -c 'route-map theirs permit 10' -c 'match ip address prefix-list theirs' > /dev/null";

/// Looks at all of them.
const LOOK: &str = "\
ovn-nbctl list Logical_Switch theirs; ovn-nbctl list Logical_Switch_Port their-port | grep -v ^up
ovn-nbctl find Logical_Router_Static_Route 'ip_prefix=\"192.0.2.0/24\"'
ovn-nbctl find NAT 'external_ip=172.30.0.77'; ovn-nbctl find ACL 'priority=1'
ovn-nbctl lr-route-list GR_worker1 | grep 192.0.2.0; ovn-nbctl lr-nat-list GR_worker1 | grep .77
ovn-nbctl acl-list worker1 | grep 192.0.2.9
ovs-vsctl --columns=_uuid,name,type,external_ids list Interface their-port
ovs-vsctl --columns=_uuid,name,interfaces list Port their-port; ovs-vsctl port-to-br their-port
ovs-ofctl --no-stats dump-flows br-ex cookie=0x7/-1
ip rule show priority 7777; ip route show table 77; ip route show 192.0.2.0/26; ip address show to 192.0.2.200
ip neighbor show 172.30.0.78
nft --handle list table inet theirs
vtysh -c 'show running-config' | grep -A2 theirs";

/// Takes them away again.
const TAKE_AWAY: &str = "\
ovn-nbctl ls-del theirs -- lr-route-del GR_worker1 192.0.2.0/24 172.30.0.1
ovn-nbctl lr-nat-del GR_worker1 dnat_and_snat 172.30.0.77 -- acl-del worker1
ovs-vsctl del-port their-port
ovs-ofctl del-flows br-ex cookie=0x7/-1
ip rule del priority 7777
ip route flush table 77
ip route del 192.0.2.0/26
ip address del 192.0.2.200/32 dev br-ex
ip neighbor del 172.30.0.78 dev br-ex
nft delete table inet theirs
vtysh -c 'configure terminal' -c 'no route-map theirs' -c 'no ip prefix-list theirs seq 5 permit 192.0.2.0/24'";

/// A configuration of a user, for a VRF that no node has.
const CONFIGURATION: &str = "
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: { name: theirs, namespace: frr-k8s-system, labels: { owner: them } }
spec:
  nodeSelector: { matchLabels: { kubernetes.io/hostname: nosuch } }
  bgp: { routers: [{ asn: 64999 }] }
";

/// Through a restart of the agent, and an advertisement that goes and comes.
pub fn is_left_alone(lab: &LabUnderTest) {
    sh(lab, "worker1", MAKE);
    apply(lab, "theirs.yaml", CONFIGURATION);
    let look = || sh(lab, "worker1", &format!("( {LOOK} )"));
    let configuration = || -> Value {
        get(lab, &["frrconfiguration", "theirs", "--namespace=frr-k8s-system", "--show-managed-fields"])
    };
    wait_until_well(lab, "worker1");
    let (before, object) = (look(), configuration());
    let agent = kill(lab, "worker1", "underlay-agent");
    wait_until_back(lab, "worker1", "underlay-agent", &agent);
    wait_until_well(lab, "worker1");
    let routes = Background::start(lab, "tor", "ip monitor route");
    lab.kubectl(&["delete", "routeadvertisements", "default"]).ok();
    wait_until_withdrawn(lab);
    apply(lab, "advertisement.yaml", ADVERTISEMENT);
    wait_until_advertised(lab);
    assert!(routes.stop(lab).contains("Deleted 10.244."), "the advertisement went and came");
    wait_until_well(lab, "worker1");
    assert_eq!(look(), before);
    assert_eq!(configuration(), object);
    sh(lab, "worker1", TAKE_AWAY);
    lab.kubectl(&["delete", "frrconfiguration", "theirs", "--namespace=frr-k8s-system"]).ok();
}
