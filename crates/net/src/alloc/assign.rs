//! Subnets for many owners at once: what a [`SubnetPool`](super::SubnetPool) gives, without a name for every owner and
//! without a tree that lives longer than the answer. A large cluster asks this for every one of its networks.

use std::net::IpAddr;

use ipnet::IpNet;

use super::SubnetRange;
use crate::cidr::Family;

/// Gives every owner one subnet of a family, out of ranges that are used in this order. Owners come in order, each
/// with what is recorded of it. The first of its records that is valid stays with it, unless an earlier owner has the
/// same; who has none is given the next free one. Nothing for those that come after the last.
pub fn assign(ranges: &[SubnetRange], family: Family, recorded: &[&[IpNet]]) -> Vec<Option<IpNet>> {
    let ranges: Vec<&SubnetRange> =
        ranges.iter().filter(|range| Family::of_net(&range.net) == family).collect();
    let mut given: Vec<Option<IpNet>> = recorded
        .iter()
        .map(|subnets| subnets.iter().find(|subnet| ranges.iter().any(|range| range.holds(subnet))).copied())
        .collect();
    let taken = settle(&mut given);
    let mut free = ranges.iter().flat_map(|range| (0..range.count()).filter_map(|place| range.subnet(place)));
    for place in given.iter_mut().filter(|place| place.is_none()) {
        *place = free.find(|subnet| taken.binary_search(&bits(subnet)).is_err());
        if place.is_none() {
            break;
        }
    }
    given
}

/// Takes subnets from those who are not the first to have them. Returns what is taken, in order.
fn settle(given: &mut [Option<IpNet>]) -> Vec<u128> {
    let mut taken: Vec<(u128, usize)> = given
        .iter()
        .enumerate()
        .filter_map(|(owner, subnet)| Some((bits(subnet.as_ref()?), owner)))
        .collect();
    taken.sort_unstable();
    taken.dedup_by(|(subnet, owner), (first, _)| {
        let again = subnet == first;
        if again && let Some(given) = given.get_mut(*owner) {
            *given = None;
        }
        again
    });
    taken.into_iter().map(|(subnet, _)| subnet).collect()
}

/// Ranges do not overlap and cut to one length, so that its first address tells a subnet of a family.
fn bits(subnet: &IpNet) -> u128 {
    match subnet.network() {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::SubnetPool;
    use super::*;

    fn ranges() -> Vec<SubnetRange> {
        let range = |net: &str, length| SubnetRange::new(net.parse().unwrap(), length).unwrap();
        vec![range("10.0.0.0/22", 24), range("fd00::/62", 64), range("10.0.8.0/22", 24)]
    }

    fn any_subnet() -> impl Strategy<Value = IpNet> {
        prop_oneof![
            (0u8..14).prop_map(|number| format!("10.0.{number}.0/24").parse().unwrap()),
            (0u8..6).prop_map(|number| format!("fd00:0:0:{number}::/64").parse().unwrap()),
            Just("10.0.0.0/25".parse().unwrap()),
        ]
    }

    proptest! {
        /// Whoever asks one by one is given the same.
        #[test]
        fn it_is_what_a_pool_gives(
            recorded in prop::collection::vec(prop::collection::vec(any_subnet(), 0..3), 0..14)
        ) {
            let slices: Vec<&[IpNet]> = recorded.iter().map(Vec::as_slice).collect();
            for family in Family::ALL {
                let mut pool = SubnetPool::new(ranges());
                for (owner, subnets) in recorded.iter().enumerate() {
                    // Only the first that is valid counts, whether or not somebody has it.
                    let of_family = |subnet: &&IpNet| Family::of_net(subnet) == family;
                    let valid = subnets.iter().filter(of_family).find(|subnet| {
                        SubnetPool::new(ranges()).record("", **subnet).is_ok()
                    });
                    if let Some(subnet) = valid {
                        let _ = pool.record(&owner.to_string(), *subnet);
                    }
                }
                let want: Vec<Option<IpNet>> = (0..recorded.len())
                    .map(|owner| pool.allocate(&owner.to_string(), family).ok().map(super::super::Allocation::into_inner))
                    .collect();
                prop_assert_eq!(assign(&ranges(), family, &slices), want);
            }
        }

        /// Nobody shares, and asking again with the answer gives the answer.
        #[test]
        fn it_holds(recorded in prop::collection::vec(prop::collection::vec(any_subnet(), 0..3), 0..14)) {
            let slices: Vec<&[IpNet]> = recorded.iter().map(Vec::as_slice).collect();
            let given = assign(&ranges(), Family::V4, &slices);
            let mut all: Vec<IpNet> = given.iter().flatten().copied().collect();
            let count = all.len();
            prop_assert_eq!(count, recorded.len().min(8));
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), count);
            let again: Vec<&[IpNet]> = given.iter().map(Option::as_slice).collect();
            prop_assert_eq!(assign(&ranges(), Family::V4, &again), given);
        }
    }
}
