//! Names of OVN rows, interfaces and VRFs, each made in one place.

/// Longest name of a network device.
pub const INTERFACE_NAME_MAX: usize = 15;

/// Names of one network on one node. The default network has no prefix, every other has its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkNames {
    prefix: String,
}

impl NetworkNames {
    /// Names of the default network.
    pub fn default_network() -> Self {
        Self { prefix: String::new() }
    }

    /// Names of a user-defined network: its name with `-` and `/` as dots, then an underscore.
    pub fn of(network: &str) -> Self {
        Self { prefix: format!("{}_", network.replace(['-', '/'], ".")) }
    }

    /// The router that joins the node switches.
    pub fn cluster_router(&self) -> String {
        format!("{}ovn_cluster_router", self.prefix)
    }

    /// The switch of a node's pods.
    pub fn node_switch(&self, node: &str) -> String {
        format!("{}{node}", self.prefix)
    }

    /// The switch between cluster router and gateway router.
    pub fn join_switch(&self) -> String {
        format!("{}join", self.prefix)
    }

    /// The switch between zones.
    pub fn transit_switch(&self) -> String {
        format!("{}transit_switch", self.prefix)
    }

    /// The router to the world.
    pub fn gateway_router(&self, node: &str) -> String {
        format!("GR_{}{node}", self.prefix)
    }

    /// The switch that touches the node's external bridge.
    pub fn external_switch(&self, node: &str) -> String {
        format!("ext_{}{node}", self.prefix)
    }

    /// Cluster router's port to the node switch, and the switch's port to it.
    pub fn router_to_switch(&self, node: &str) -> (String, String) {
        let switch = self.node_switch(node);
        (format!("rtos-{switch}"), format!("stor-{switch}"))
    }

    /// A router's port to the join switch, and the switch's port to it.
    pub fn router_to_join(router: &str) -> (String, String) {
        (format!("rtoj-{router}"), format!("jtor-{router}"))
    }

    /// Gateway router's port to the external switch, and the switch's port to it.
    pub fn router_to_external(&self, node: &str) -> (String, String) {
        let router = self.gateway_router(node);
        (format!("rtoe-{router}"), format!("etor-{router}"))
    }

    /// Cluster router's port to the transit switch, and the switch's port to it. The prefix comes first here.
    pub fn router_to_transit(&self, node: &str) -> (String, String) {
        (format!("{}rtots-{node}", self.prefix), format!("{}tstor-{node}", self.prefix))
    }

    /// The external switch's port onto a bridge.
    pub fn localnet_port(&self, bridge: &str, node: &str) -> String {
        format!("{bridge}_{}{node}", self.prefix)
    }

    /// The patch port that ovn-controller makes for it on the bridge.
    pub fn patch_port(&self, bridge: &str, node: &str) -> String {
        format!("patch-{}-to-br-int", self.localnet_port(bridge, node))
    }

    /// The switch port of the node's own management interface.
    pub fn management_port(&self, node: &str) -> String {
        format!("k8s-{}", self.node_switch(node))
    }

    /// The load balancer of this title.
    pub fn load_balancer(&self, title: &str) -> String {
        format!("{}{title}", self.prefix)
    }
}

/// The management interface of the network with this id.
pub fn management_interface(network: u16) -> String {
    format!("ovn-k8s-mp{network}")
}

/// How the names of networks begin that belong to no namespace.
pub const CLUSTER_NETWORK: &str = "cluster_udn_";

/// The VRF device of a network on a node. A network that is a cluster's own gives it its name, if that can be a link's;
/// a dot would be taken for a part of a kernel setting's name.
pub fn vrf(network: &str, id: u16) -> String {
    let fits = |name: &&str| name.len() <= INTERFACE_NAME_MAX && *name != "default" && !name.contains('.');
    let name = network.strip_prefix(CLUSTER_NETWORK).filter(fits);
    name.map_or_else(|| format!("mp{id}-udn-vrf"), str::to_owned)
}

/// The switch port of a pod in the default network.
pub fn pod_port(namespace: &str, pod: &str) -> String {
    format!("{namespace}_{pod}")
}

/// The switch port of a pod in the network of an attachment definition.
pub fn attached_pod_port(attachment: &str, namespace: &str, pod: &str) -> String {
    format!("{}{}", NetworkNames::of(attachment).prefix, pod_port(namespace, pod))
}

/// The host's end of a pod's cable: the container id, as far as it fits.
pub fn host_interface(container: &str) -> String {
    container.chars().take(INTERFACE_NAME_MAX).collect()
}

/// The host's end of the cable to a pod's own primary network: less of the container id, and a mark behind it.
pub fn primary_host_interface(container: &str) -> String {
    let room = INTERFACE_NAME_MAX - PRIMARY_CABLE.len();
    container.chars().take(room).chain(PRIMARY_CABLE.chars()).collect()
}

/// What the second cable of a pod has at the end of its name.
const PRIMARY_CABLE: &str = "_1";

/// Whether a link has a name as [`host_interface`] or [`primary_host_interface`] gives it: runtimes number containers in
/// hexadecimal.
pub fn is_host_interface(link: &str) -> bool {
    let container = link.strip_suffix(PRIMARY_CABLE).unwrap_or(link);
    link.len() == INTERFACE_NAME_MAX
        && container.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_network_has_no_prefix() {
        let names = NetworkNames::default_network();
        assert_eq!(names.gateway_router("n1"), "GR_n1");
        assert_eq!(names.router_to_switch("n1"), ("rtos-n1".to_owned(), "stor-n1".to_owned()));
        assert_eq!(names.patch_port("br-ex", "n1"), "patch-br-ex_n1-to-br-int");
    }

    #[test]
    fn a_vrf_is_named_after_its_network_where_that_fits() {
        assert_eq!(vrf("cluster_udn_red", 3), "red");
        assert_eq!(vrf("cluster_udn_fifteen-letters", 3), "fifteen-letters");
        for other in ["cluster_udn_sixteen--letters", "cluster_udn_default", "cluster_udn_a.b", "team_red"] {
            assert_eq!(vrf(other, 3), "mp3-udn-vrf", "{other}");
        }
    }

    #[test]
    fn other_networks_carry_theirs_where_the_ecosystem_puts_it() {
        let names = NetworkNames::of("cluster_udn_blue-net");
        assert_eq!(names.cluster_router(), "cluster_udn_blue.net_ovn_cluster_router");
        assert_eq!(names.gateway_router("n1"), "GR_cluster_udn_blue.net_n1");
        assert_eq!(names.router_to_transit("n1").0, "cluster_udn_blue.net_rtots-n1");
        assert_eq!(names.management_port("n1"), "k8s-cluster_udn_blue.net_n1");
    }

    #[test]
    fn pods_of_other_networks_carry_their_attachment() {
        assert_eq!(attached_pod_port("shop/blue-net", "shop", "web"), "shop.blue.net_shop_web");
    }

    #[test]
    fn host_interface_fits_a_netdev() {
        let name = host_interface("0123456789abcdef0123");
        assert_eq!(name.len(), INTERFACE_NAME_MAX);
        assert!(is_host_interface(&name));
        let second = primary_host_interface("0123456789abcdef0123");
        assert_eq!(second, "0123456789abc_1");
        assert!(is_host_interface(&second));
        assert!(
            !["br-ex", "eth0", "enp0s31f6-longer", "0123456789abcd", "ovn-k8s-mp00000"]
                .map(is_host_interface)
                .contains(&true)
        );
    }
}
