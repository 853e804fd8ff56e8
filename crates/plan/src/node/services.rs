//! Services: load balancers on the pods' switch, and on the gateway router for what the node itself sends.
//!
//! A service is in the network of its namespace and in no other. Two of the default network are for everybody: pods of
//! other networks reach them through their node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_desired::{ObjectRef, Why};
use underlay_net::Family;
use underlay_world::service::{Protocol, ServicePort};
use underlay_world::{EndpointSlice, Key, Service, World};

use super::site::{Site, masquerade};
use super::topology::{StaticRoute, add_route};

/// Services of the default network that pods of all networks may use: the API server and DNS.
const FOR_ALL: [(&str, &str); 2] = [("default", "kubernetes"), ("kube-system", "kube-dns")];

/// Frontends with their endpoints, as OVN writes them.
type Frontends = BTreeMap<String, String>;

/// The services for pods of all networks: names, and addresses of one family.
pub fn for_all(world: &World, family: Family) -> impl Iterator<Item = (&Key, IpAddr)> {
    FOR_ALL.into_iter().filter_map(move |(namespace, name)| {
        let service = world.services.get(&Key::new(namespace, name))?;
        let address = service.addresses.iter().find(|address| Family::of(**address) == family)?;
        Some((&service.key, *address))
    })
}

/// Leads pods of a user-defined network to the services for all, past their gateway router and through their node.
pub fn plan_ways(site: &Site<'_>, rows: &mut Rows) {
    let router = RowId::new(Table::LogicalRouter, site.names.cluster_router());
    for side in site.families.iter().filter(|side| side.stand.is_some()) {
        for (service, address) in for_all(site.world, side.family) {
            let route = StaticRoute::to(&address.to_string(), &side.management.to_string())
                .id("k8s.ovn.org/udn-enabled-default-service", &service.to_string());
            add_route(site, rows, &router, route);
        }
    }
}

/// Adds the load balancers of the network's services.
pub fn plan(site: &Site<'_>, rows: &mut Rows) {
    let mut slices: BTreeMap<&Key, Vec<&EndpointSlice>> = BTreeMap::new();
    let own = (!site.network.is_default()).then_some(&site.network.name);
    for slice in site.world.slices.values().filter(|slice| slice.network.as_ref() == own) {
        slices.entry(&slice.service).or_default().push(slice);
    }
    let switch = RowId::new(Table::LogicalSwitch, site.names.node_switch(site.name()));
    let router = RowId::new(Table::LogicalRouter, site.names.gateway_router(site.name()));
    let services = site.world.services.values();
    for service in services.filter(|service| site.network.carries(&service.key.namespace)) {
        let slices = slices.get(&service.key).map_or(&[][..], Vec::as_slice);
        let protocols: BTreeSet<Protocol> = service.ports.iter().map(|port| port.protocol).collect();
        for protocol in protocols {
            let seen_by_pods = frontends(site, service, slices, protocol, |address| address);
            let seen_by_node = frontends(site, service, slices, protocol, |address| as_node(site, address));
            if seen_by_pods == seen_by_node {
                let both = rows.add(balancer(site, service, protocol, "cluster", seen_by_pods));
                rows.refer(&switch, "load_balancer", both.clone());
                rows.refer(&router, "load_balancer", both);
                continue;
            }
            let name = |kind: &str| format!("node_{kind}_{}", site.name());
            let of_switch = rows.add(balancer(site, service, protocol, &name("switch"), seen_by_pods));
            let of_router = rows.add(balancer(site, service, protocol, &name("router"), seen_by_node));
            rows.refer(&switch, "load_balancer", of_switch);
            rows.refer(&router, "load_balancer", of_router);
        }
    }
}

/// The node's own address behind a service, as the gateway router must see it: it has the same address itself.
fn as_node(site: &Site<'_>, address: IpAddr) -> IpAddr {
    let own = site.families.iter().any(|side| side.external.is_some_and(|net| net.addr() == address));
    let host = site.masquerade(Family::of(address), masquerade::HOST).filter(|_| own);
    host.unwrap_or(address)
}

fn frontends(
    site: &Site<'_>,
    service: &Service,
    slices: &[&EndpointSlice],
    protocol: Protocol,
    seen: impl Fn(IpAddr) -> IpAddr,
) -> Frontends {
    let mut frontends = Frontends::new();
    for address in &service.addresses {
        for port in service.ports.iter().filter(|port| port.protocol == protocol) {
            let backends = backends(site, service, slices, port, Family::of(*address));
            let backends: Vec<String> = backends
                .into_iter()
                .map(|(address, port)| SocketAddr::new(seen(address), port).to_string())
                .collect();
            frontends.insert(SocketAddr::new(*address, port.port).to_string(), backends.join(","));
        }
    }
    frontends
}

/// Endpoints of a port: those that are ready; if there are none, those that still answer.
fn backends(
    site: &Site<'_>,
    service: &Service,
    slices: &[&EndpointSlice],
    port: &ServicePort,
    family: Family,
) -> BTreeSet<(IpAddr, u16)> {
    let (mut ready, mut serving) = (BTreeSet::new(), BTreeSet::new());
    for slice in slices {
        let same = |target: &&ServicePort| target.name == port.name && target.protocol == port.protocol;
        for target in slice.ports.iter().filter(same) {
            for endpoint in &slice.endpoints {
                let near = !service.node_local || endpoint.node.as_deref() == Some(site.name());
                if !near || Family::of(endpoint.address) != family {
                    continue;
                }
                let chosen = (endpoint.address, target.port);
                if endpoint.ready {
                    ready.insert(chosen);
                } else if endpoint.serving {
                    serving.insert(chosen);
                }
            }
        }
    }
    if ready.is_empty() { serving } else { ready }
}

fn balancer(site: &Site<'_>, service: &Service, protocol: Protocol, kind: &str, frontends: Frontends) -> Row {
    let Key { namespace, name } = &service.key;
    let upper = protocol.ovn().to_uppercase();
    let title = site.names.load_balancer(&format!("Service_{namespace}/{name}_{upper}_{kind}"));
    let why = Why::from_object(ObjectRef::namespaced("Service", namespace, name));
    let hairpin: Vec<String> = Family::ALL
        .into_iter()
        .filter_map(|family| site.masquerade(family, masquerade::HAIRPIN))
        .map(|address| address.to_string())
        .collect();
    let mut row = Row::new(Table::LoadBalancer, &title, &why)
        .text("name", &title)
        .texts("protocol", [protocol.ovn()])
        .map("vips")
        // A service without endpoints says so at once instead of letting clients wait.
        .entry("options", "reject", "true")
        .entry("options", "event", "false")
        .entry("options", "skip_snat", "false")
        .entry("options", "neighbor_responder", "none")
        .entry("options", "hairpin_snat_ip", hairpin.join(" "))
        .entry("external_ids", "k8s.ovn.org/kind", "Service")
        .entry("external_ids", "k8s.ovn.org/owner", format!("{namespace}/{name}"));
    if let Some(seconds) = service.affinity {
        row = row.entry("options", "affinity_timeout", seconds.to_string());
    }
    for (frontend, backends) in frontends {
        row = row.entry("vips", frontend, backends);
    }
    site.mark_with_role(row)
}
