//! Which network has which addresses in which VRF: two with the same would take each other's traffic.
//!
//! In: advertisements with the networks they select, the oldest first. Out: whether one has its place beside those
//! before it. Networks in different VRFs may have what addresses they like.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use underlay_api::route_advertisements::TargetVrf;
use underlay_net::cidr::overlap;

use super::networks::Known;
use crate::cluster::speaker::DEFAULT_VRF;

/// The ranges that are taken in each VRF, by their first address. Those of different networks are apart, so whatever
/// overlaps a range is the one before it or the first one in it.
#[derive(Debug, Default)]
pub struct Claims<'a>(BTreeMap<&'a str, BTreeMap<IpAddr, Claim<'a>>>);

#[derive(Debug, Clone)]
struct Claim<'a> {
    net: IpNet,
    network: &'a Arc<str>,
    by: &'a str,
}

impl<'a> Claims<'a> {
    /// Takes the ranges of networks for an advertisement. The error names who is in the way, and then nothing is taken.
    pub fn take(&mut self, by: &'a str, target: TargetVrf<'a>, networks: &[&'a Known]) -> Result<(), String> {
        let mut own = Claims::default();
        for known in networks {
            let vrf = match target {
                TargetVrf::Default => DEFAULT_VRF,
                TargetVrf::Auto => &known.vrf,
                TargetVrf::Named(vrf) => vrf,
            };
            for net in &known.subnets {
                let claim = Claim { net: *net, network: &known.name, by };
                if let Some(other) = own.against(vrf, &claim).or_else(|| self.against(vrf, &claim)) {
                    return Err(clash(vrf, &claim, other));
                }
                own.0.entry(vrf).or_default().insert(net.network(), claim);
            }
        }
        for (vrf, claims) in own.0 {
            let taken = self.0.entry(vrf).or_default();
            for (first, claim) in claims {
                // Of several advertisements of one network, the oldest is named.
                taken.entry(first).or_insert(claim);
            }
        }
        Ok(())
    }

    /// The claim of another network that overlaps one.
    fn against(&self, vrf: &str, claim: &Claim<'_>) -> Option<&Claim<'a>> {
        let taken = self.0.get(vrf)?;
        let before = taken.range(..=claim.net.network()).next_back();
        let within = taken.range(claim.net.network()..=claim.net.broadcast()).next();
        let mut near = before.into_iter().chain(within).map(|(_, other)| other);
        near.find(|other| other.network != claim.network && overlap(&other.net, &claim.net))
    }
}

fn clash(vrf: &str, claim: &Claim<'_>, other: &Claim<'_>) -> String {
    let Claim { net, network, by } = claim;
    let Claim { net: other_net, network: other_network, by: other_by } = other;
    if by == other_by {
        return format!(
            "networks {other_network:?} ({other_net}) and {network:?} ({net}) overlap and cannot both be advertised in \
             VRF {vrf:?}"
        );
    }
    format!(
        "network {network:?} ({net}) overlaps network {other_network:?} ({other_net}), which RouteAdvertisements \
         {other_by:?} advertises in VRF {vrf:?}"
    )
}
