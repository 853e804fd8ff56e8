//! Where the node stands: its own addresses and ways out, besides what is ours.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::route::{RouteHeader, RouteProtocol, RouteType};
use underlay_desired::owner::PROTOCOL;
use underlay_net::Family;

use super::route::{Kept, bgp_routes, dump_request, read_held, read_route};
use super::{BgpRoute, HeldAddress, Link, Names, names};
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
    /// The routes that BGP brought into any table.
    pub bgp: Vec<BgpRoute>,
}

enum Found {
    Gateways(Vec<(IpAddr, String)>),
    Bgp(BgpRoute),
}

impl Kernel {
    /// Looks around.
    pub async fn surroundings(&self) -> Result<Surroundings, Fault> {
        let links = self.links().await?;
        let names = names(&links);
        let (mut gateways, mut bgp) = (Vec::new(), Vec::new());
        for family in Family::ALL {
            let routes = self.dump(dump_request(family, None), |answer| find(answer, &names)).await;
            for found in routes.map_err(Fault::read("routes"))? {
                match found {
                    Found::Gateways(mut more) => gateways.append(&mut more),
                    Found::Bgp(route) => bgp.push(route),
                }
            }
        }
        let addresses = self.addresses(&names).await?;
        Ok(Surroundings { links, addresses, default_gateways: gateways, bgp: bgp_routes(bgp) })
    }
}

fn find(message: RouteNetlinkMessage, names: &Names) -> Option<Found> {
    let RouteNetlinkMessage::NewRoute(route) = message else { return None };
    match route.header.protocol {
        RouteProtocol::Other(PROTOCOL) => None,
        RouteProtocol::Bgp => match read_route(RouteNetlinkMessage::NewRoute(route), names)? {
            Kept::Bgp(route) => Some(Found::Bgp(route)),
            _ => None,
        },
        _ if route.header.destination_prefix_length == 0 && route.header.kind == RouteType::Unicast => {
            let route = read_held(route, names)?;
            let hops = route.hops.into_iter().filter_map(|hop| Some((hop.gateway?, hop.link)));
            (route.table == u32::from(RouteHeader::RT_TABLE_MAIN)).then(|| Found::Gateways(hops.collect()))
        }
        _ => None,
    }
}
