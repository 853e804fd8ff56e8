//! Where the node stands: its own addresses and ways out, besides what is ours.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::route::{RouteHeader, RouteProtocol, RouteType};
use underlay_desired::owner::PROTOCOL;
use underlay_net::Family;

use super::route::{dump_request, read_held};
use super::{HeldAddress, Link, Names, names};
use crate::fault::Fault;
use crate::kernel::Kernel;

/// What the node has, whoever gave it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Links by name.
    pub links: BTreeMap<String, Link>,
    /// Addresses, ours among them.
    pub addresses: Vec<HeldAddress>,
    /// Gateways and links of the main table's default routes, except those of BGP and ours.
    pub default_gateways: Vec<(IpAddr, String)>,
}

impl Kernel {
    /// Looks around.
    pub async fn surroundings(&self) -> Result<Surroundings, Fault> {
        let links = self.links().await?;
        let names = names(&links);
        let mut gateways = Vec::new();
        for family in Family::ALL {
            let routes = self.dump(dump_request(family, None), |answer| find(answer, &names)).await;
            gateways.extend(routes.map_err(Fault::read("routes"))?.into_iter().flatten());
        }
        let addresses = self.addresses(&names).await?;
        Ok(Surroundings { links, addresses, default_gateways: gateways })
    }
}

fn find(message: RouteNetlinkMessage, names: &Names) -> Option<Vec<(IpAddr, String)>> {
    let RouteNetlinkMessage::NewRoute(route) = message else { return None };
    match route.header.protocol {
        RouteProtocol::Other(PROTOCOL) | RouteProtocol::Bgp => None,
        _ if route.header.destination_prefix_length == 0 && route.header.kind == RouteType::Unicast => {
            let route = read_held(route, names)?;
            let hops = route.hops.into_iter().filter_map(|hop| Some((hop.gateway?, hop.link)));
            (route.table == u32::from(RouteHeader::RT_TABLE_MAIN)).then(|| hops.collect())
        }
        _ => None,
    }
}
