//! The cables of a pod: one to each of its networks, with both ends and the switch port as they should be.

use std::net::IpAddr;

use ipnet::IpNet;
use underlay_api::annotations::PodNetwork;
use underlay_cni::result::{Interface, Success};
use underlay_cni::verb::Attachment;
use underlay_linux::{PodInterface, Veth};
use underlay_net::names::{attached_pod_port, host_interface, pod_port, primary_host_interface};
use underlay_ovs::pods::PodPort;
use underlay_plan::node::addresses::PlacedPod;
use underlay_world::Key;

/// Bridge of OVN's own ports.
const INTEGRATION_BRIDGE: &str = "br-int";
/// The pod's interface in a primary network of its own; the one in the default network keeps the name that the runtime
/// gave it.
const PRIMARY_INTERFACE: &str = "ovn-udn1";

/// A cable between a pod and one of its networks.
#[derive(Debug, Clone)]
pub(super) struct Cable {
    /// Both ends.
    pub veth: Veth,
    /// The node's end on the switch.
    pub port: PodPort,
    /// The pod's end.
    pub interface: PodInterface,
}

/// The cables of a pod. That to the default network comes first.
pub(super) fn cables(attachment: &Attachment, key: &Key, pod: &PlacedPod, mtu: u32) -> Vec<Cable> {
    let end = |host: String, inside: &str, part: &PodNetwork, mtu: u32| {
        let veth = Veth { host, pod: inside.to_owned(), mtu, mac: part.mac };
        let interface = interface(&veth, part);
        (veth, interface)
    };
    let (veth, interface) =
        end(host_interface(&attachment.container), &attachment.interface, &pod.network, mtu);
    let logical = pod_port(&key.namespace, &key.name);
    let mut cables =
        vec![Cable { port: port(attachment, &veth, logical, pod, &pod.network), veth, interface }];
    if let Some(own) = &pod.primary {
        let host = primary_host_interface(&attachment.container);
        let (veth, interface) = end(host, PRIMARY_INTERFACE, &own.part, own.mtu);
        let logical = attached_pod_port(&own.attachment, &key.namespace, &key.name);
        let mut port = port(attachment, &veth, logical, pod, &own.part);
        let network = [("k8s.ovn.org/network", &own.network), ("k8s.ovn.org/nad", &own.attachment)];
        port.external_ids.extend(network.map(|(key, value)| (key.to_owned(), value.clone())));
        cables.push(Cable { veth, port, interface });
    }
    cables
}

fn interface(veth: &Veth, part: &PodNetwork) -> PodInterface {
    PodInterface {
        name: veth.pod.clone(),
        mac: veth.mac,
        mtu: veth.mtu,
        addresses: part.addresses.clone(),
        gateways: part.gateways.clone(),
        routes: part.routes.iter().map(|route| (route.destination, route.next_hop)).collect(),
    }
}

fn port(
    attachment: &Attachment,
    veth: &Veth,
    logical: String,
    pod: &PlacedPod,
    part: &PodNetwork,
) -> PodPort {
    let addresses: Vec<String> = part.addresses.iter().map(ToString::to_string).collect();
    let ids = [
        ("attached_mac", part.mac.to_string()),
        ("iface-id", logical),
        ("iface-id-ver", pod.uid.clone()),
        ("sandbox", attachment.container.clone()),
        ("pod-if-name", veth.pod.clone()),
        ("ip_addresses", addresses.join(",")),
    ];
    PodPort {
        bridge: INTEGRATION_BRIDGE.to_owned(),
        name: veth.host.clone(),
        external_ids: ids.map(|(key, value)| (key.to_owned(), value)).into(),
    }
}

/// What the runtime is told.
pub(super) fn success(attachment: &Attachment, cables: &[Cable]) -> Success {
    Success {
        sandbox: attachment.namespace.clone().unwrap_or_default(),
        interfaces: cables.iter().map(|cable| told(&cable.veth, &cable.interface)).collect(),
    }
}

fn told(veth: &Veth, interface: &PodInterface) -> Interface {
    let gateway_of = |net: &IpNet| {
        let of_family = |gateway: &&IpAddr| gateway.is_ipv4() == net.addr().is_ipv4();
        interface.gateways.iter().find(of_family).map(ToString::to_string)
    };
    let defaults = interface.gateways.iter().map(|gateway| {
        let everything = if gateway.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        (everything.to_owned(), Some(gateway.to_string()))
    });
    let others =
        interface.routes.iter().map(|(net, gateway)| (net.to_string(), gateway.map(|hop| hop.to_string())));
    Interface {
        host: veth.host.clone(),
        name: veth.pod.clone(),
        mac: veth.mac.to_string(),
        mtu: veth.mtu,
        addresses: interface.addresses.iter().map(|net| (net.to_string(), gateway_of(net))).collect(),
        routes: defaults.chain(others).collect(),
    }
}

#[cfg(test)]
mod tests {
    use underlay_api::annotations::Role;
    use underlay_cni::verb::Pod;
    use underlay_desired::Why;
    use underlay_net::Mac;
    use underlay_plan::node::addresses::Attached;

    use super::*;

    fn part(address: &str, role: Role) -> PodNetwork {
        let net: IpNet = address.parse().unwrap();
        let gateway = net.hosts().next().unwrap();
        PodNetwork {
            addresses: vec![net],
            mac: Mac::of(net.addr()),
            gateways: if role == Role::Primary { vec![gateway] } else { vec![] },
            routes: vec![],
            link_local_gateway: None,
            tunnel_id: None,
            role: Some(role),
            other: underlay_api::Unknown::default(),
        }
    }

    fn pod(primary: Option<Attached>) -> PlacedPod {
        let role = if primary.is_some() { Role::InfrastructureLocked } else { Role::Primary };
        PlacedPod {
            uid: "uid".to_owned(),
            network: part("10.244.1.3/24", role),
            primary,
            waiting: None,
            record: None,
            why: Why::default(),
        }
    }

    fn attachment() -> Attachment {
        Attachment {
            container: "0123456789abcdef0123".to_owned(),
            namespace: Some("/run/netns/x".to_owned()),
            interface: "eth0".to_owned(),
            pod: Pod::default(),
        }
    }

    #[test]
    fn a_pod_without_a_network_of_its_own_has_one_cable() {
        let cables = cables(&attachment(), &Key::new("shop", "web"), &pod(None), 1400);
        assert_eq!(cables.len(), 1);
        assert_eq!(cables[0].port.external_ids["iface-id"], "shop_web");
        assert_eq!(cables[0].interface.gateways.len(), 1);
    }

    #[test]
    fn only_the_primary_network_leads_everywhere() {
        let own = Attached {
            attachment: "shop/blue-net".to_owned(),
            network: "shop_blue-net".to_owned(),
            part: part("10.10.1.3/24", Role::Primary),
            mtu: 1300,
        };
        let cables = cables(&attachment(), &Key::new("shop", "web"), &pod(Some(own)), 1400);
        let names: Vec<&str> = cables.iter().map(|cable| cable.veth.pod.as_str()).collect();
        assert_eq!(names, ["eth0", "ovn-udn1"]);
        assert_eq!(cables[1].port.external_ids["iface-id"], "shop.blue.net_shop_web");
        assert!(cables.iter().all(|cable| cable.port.external_ids["sandbox"] == attachment().container));
        assert_ne!(cables[0].veth.host, cables[1].veth.host);
        let told = success(&attachment(), &cables);
        let defaults = |interface: &Interface| interface.routes.iter().any(|(net, _)| net == "0.0.0.0/0");
        assert_eq!(told.interfaces.iter().map(defaults).collect::<Vec<_>>(), [false, true]);
        assert_eq!(told.interfaces[1].mtu, 1300);
    }
}
