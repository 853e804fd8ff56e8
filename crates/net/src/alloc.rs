//! Allocators of node subnets, addresses and ids.
//!
//! Each is rebuilt from what is recorded (annotations, statuses) and never remembers anything else: a restart is the
//! normal path. What was recorded and what is new are different answers, so that a failed write frees only the new.

mod assign;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::cidr::{Family, nth, offset};

pub use assign::assign;

/// What an allocator gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation<T> {
    /// The owner has had it before.
    Owned(T),
    /// The owner has it from now on; it must be recorded.
    New(T),
}

impl<T> Allocation<T> {
    /// The thing itself.
    pub fn into_inner(self) -> T {
        match self {
            Self::Owned(thing) | Self::New(thing) => thing,
        }
    }
}

/// Why a recorded thing cannot stay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// It is in no range, or of another size.
    #[error("{0} is outside the configured ranges")]
    Outside(String),
    /// Somebody else has it.
    #[error("{thing} belongs to {owner}")]
    Taken {
        /// What.
        thing: String,
        /// Whose.
        owner: String,
    },
}

/// Nothing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing is left in the configured ranges")]
pub struct Full;

/// A range that is cut into subnets of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct SubnetRange {
    net: IpNet,
    length: u8,
}

/// A range as somebody wrote it.
#[derive(Deserialize)]
struct Unchecked {
    net: IpNet,
    length: u8,
}

impl TryFrom<Unchecked> for SubnetRange {
    type Error = BadRange;

    fn try_from(Unchecked { net, length }: Unchecked) -> Result<Self, BadRange> {
        Self::new(net, length)
    }
}

/// A range that cannot be cut as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{net} cannot be cut into subnets of length {length}: use a length from {} to {}", .net.prefix_len(), Family::of_net(.net).bits())]
pub struct BadRange {
    net: IpNet,
    length: u8,
}

impl SubnetRange {
    /// A range and the length of the subnets it is cut into.
    pub fn new(net: IpNet, length: u8) -> Result<Self, BadRange> {
        let net = net.trunc();
        if length < net.prefix_len() || length > Family::of_net(&net).bits() {
            return Err(BadRange { net, length });
        }
        Ok(Self { net, length })
    }

    /// The range itself.
    pub fn net(&self) -> IpNet {
        self.net
    }

    /// The length of the subnets it is cut into.
    pub fn length(&self) -> u8 {
        self.length
    }

    fn holds(&self, subnet: &IpNet) -> bool {
        subnet.prefix_len() == self.length && self.net.contains(subnet)
    }

    /// Number of subnets, as far as anybody could use them.
    fn count(&self) -> u64 {
        1u64 << u32::from(self.length - self.net.prefix_len()).min(32)
    }

    /// The subnet with this place in the order of allocation, unless the order leaves it out.
    fn subnet(&self, place: u64) -> Option<IpNet> {
        let bits = u32::from(self.length - self.net.prefix_len());
        match self.net {
            IpNet::V4(net) => {
                let host_bits = 32 - u32::from(self.length);
                let number = u32::try_from(rotate(place, bits, host_bits)).ok()?;
                let shifted = number.checked_shl(host_bits).unwrap_or(0);
                Some(Ipv4Net::new((u32::from(net.network()) | shifted).into(), self.length).ok()?.into())
            }
            IpNet::V6(net) => {
                // A subnet whose last written group is zero reads like the range itself: left out where there are plenty.
                if bits >= 16 && place.is_multiple_of(1 << 16) {
                    return None;
                }
                let shifted = u128::from(place).checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                Some(Ipv6Net::new((u128::from(net.network()) | shifted).into(), self.length).ok()?.into())
            }
        }
    }
}

/// Subnets that start at a zero octet come first, since people read them more easily: the number's low bits are moved
/// past the octet's border, if it crosses one.
fn rotate(place: u64, bits: u32, host_bits: u32) -> u64 {
    let crosses = !host_bits.is_multiple_of(8) && (host_bits - 1) / 8 != (host_bits + bits - 1) / 8;
    if !crosses {
        return place;
    }
    let shift = 8 - host_bits % 8;
    ((place << shift) | (place >> (bits - shift))) & ((1 << bits) - 1)
}

/// Gives every node a subnet of every family.
#[derive(Debug, Clone)]
pub struct SubnetPool {
    ranges: Vec<SubnetRange>,
    owners: BTreeMap<IpNet, String>,
    subnets: BTreeMap<String, BTreeSet<IpNet>>,
    /// Place in each range before which all is taken.
    cursors: Vec<u64>,
}

impl SubnetPool {
    /// An empty pool; ranges are used in this order.
    pub fn new(ranges: Vec<SubnetRange>) -> Self {
        let cursors = vec![0; ranges.len()];
        Self { ranges, owners: BTreeMap::new(), subnets: BTreeMap::new(), cursors }
    }

    /// Takes over what is recorded. A conflict leaves the pool as it was.
    pub fn record(&mut self, owner: &str, subnet: IpNet) -> Result<(), Conflict> {
        if !self.ranges.iter().any(|range| range.holds(&subnet)) {
            return Err(Conflict::Outside(subnet.to_string()));
        }
        match self.owners.get(&subnet) {
            Some(other) if other != owner => {
                Err(Conflict::Taken { thing: subnet.to_string(), owner: other.clone() })
            }
            _ => {
                self.take(owner, subnet);
                Ok(())
            }
        }
    }

    /// The owner's subnet of that family, or a new one.
    pub fn allocate(&mut self, owner: &str, family: Family) -> Result<Allocation<IpNet>, Full> {
        if let Some(subnet) = self.of(owner, family) {
            return Ok(Allocation::Owned(subnet));
        }
        let subnet = self.next_free(family).ok_or(Full)?;
        self.take(owner, subnet);
        Ok(Allocation::New(subnet))
    }

    /// Whether there is a subnet of that family for an owner, be it one that it has. Nothing is taken.
    pub fn has_for(&mut self, owner: &str, family: Family) -> bool {
        self.of(owner, family).is_some() || self.next_free(family).is_some()
    }

    fn of(&self, owner: &str, family: Family) -> Option<IpNet> {
        let mut had = self.subnets.get(owner).into_iter().flatten();
        had.find(|subnet| Family::of_net(subnet) == family).copied()
    }

    /// The next that nobody has. The cursor stays on it until somebody does.
    fn next_free(&mut self, family: Family) -> Option<IpNet> {
        for (range, cursor) in self.ranges.iter().zip(&mut self.cursors) {
            if Family::of_net(&range.net) != family {
                continue;
            }
            while *cursor < range.count() {
                let subnet = range.subnet(*cursor);
                if let Some(free) = subnet.filter(|subnet| !self.owners.contains_key(subnet)) {
                    return Some(free);
                }
                *cursor += 1;
            }
        }
        None
    }

    fn take(&mut self, owner: &str, subnet: IpNet) {
        self.owners.insert(subnet, owner.to_owned());
        self.subnets.entry(owner.to_owned()).or_default().insert(subnet);
    }
}

/// Gives small numbers: node ids, network ids.
#[derive(Debug, Clone)]
pub struct IdPool {
    range: std::ops::RangeInclusive<u32>,
    owners: BTreeMap<u32, String>,
    ids: BTreeMap<String, u32>,
    cursor: u32,
}

impl IdPool {
    /// An empty pool.
    pub fn new(range: std::ops::RangeInclusive<u32>) -> Self {
        let cursor = *range.start();
        Self { range, owners: BTreeMap::new(), ids: BTreeMap::new(), cursor }
    }

    /// Takes over what is recorded. A conflict leaves the pool as it was.
    pub fn record(&mut self, owner: &str, id: u32) -> Result<(), Conflict> {
        if !self.range.contains(&id) {
            return Err(Conflict::Outside(id.to_string()));
        }
        match self.owners.get(&id) {
            Some(other) if other != owner => {
                Err(Conflict::Taken { thing: id.to_string(), owner: other.clone() })
            }
            _ => {
                self.owners.insert(id, owner.to_owned());
                self.ids.insert(owner.to_owned(), id);
                Ok(())
            }
        }
    }

    /// The number that an owner has.
    pub fn of(&self, owner: &str) -> Option<u32> {
        self.ids.get(owner).copied()
    }

    /// The owner's number, or the lowest free one.
    pub fn allocate(&mut self, owner: &str) -> Result<Allocation<u32>, Full> {
        if let Some(id) = self.ids.get(owner) {
            return Ok(Allocation::Owned(*id));
        }
        while self.owners.contains_key(&self.cursor) {
            self.cursor += 1;
        }
        if !self.range.contains(&self.cursor) {
            return Err(Full);
        }
        self.owners.insert(self.cursor, owner.to_owned());
        self.ids.insert(owner.to_owned(), self.cursor);
        Ok(Allocation::New(self.cursor))
    }
}

/// Gives the addresses of one subnet. Released ones are used again only after all others, so that a new pod does not
/// get the address that somebody's cache still holds for an old one.
#[derive(Debug, Clone)]
pub struct AddressPool {
    net: IpNet,
    taken: BTreeSet<u128>,
    cursor: u128,
}

impl AddressPool {
    /// A pool of the addresses of a subnet, without its first (the network), its last in IPv4 (the broadcast address)
    /// and those reserved.
    pub fn new(net: IpNet, reserved: &[IpAddr]) -> Self {
        let net = net.trunc();
        let mut taken: BTreeSet<u128> =
            reserved.iter().filter_map(|address| offset(&net, *address)).collect();
        taken.insert(0);
        if let IpNet::V4(v4) = net {
            taken.extend(offset(&net, v4.broadcast().into()));
        }
        Self { net, taken, cursor: 1 }
    }

    /// The subnet.
    pub fn net(&self) -> IpNet {
        self.net
    }

    /// Takes one certain address. False if it is outside, reserved or taken.
    pub fn take(&mut self, address: IpAddr) -> bool {
        offset(&self.net, address).is_some_and(|place| {
            self.cursor = self.cursor.max(place + 1);
            self.taken.insert(place)
        })
    }

    /// Takes any free address.
    pub fn take_any(&mut self) -> Result<IpAddr, Full> {
        let found = self.search_from(self.cursor).or_else(|| self.search_from(1)).ok_or(Full)?;
        self.taken.insert(found.0);
        self.cursor = found.0 + 1;
        Ok(found.1)
    }

    /// Gives an address back.
    pub fn release(&mut self, address: IpAddr) {
        if let Some(place) = offset(&self.net, address) {
            self.taken.remove(&place);
        }
    }

    fn search_from(&self, start: u128) -> Option<(u128, IpAddr)> {
        let mut place = start;
        // What is taken comes in order, so the first gap is found in one walk.
        for taken in self.taken.range(start..) {
            if *taken != place {
                break;
            }
            place += 1;
        }
        nth(&self.net, place).map(|address| (place, address))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pool(range: &str, length: u8) -> SubnetPool {
        SubnetPool::new(vec![SubnetRange::new(range.parse().unwrap(), length).unwrap()])
    }

    fn first(range: &str, length: u8, count: usize) -> Vec<String> {
        let mut pool = pool(range, length);
        let family = Family::of_net(&range.parse().unwrap());
        let allocate =
            |number| pool.allocate(&format!("n{number}"), family).unwrap().into_inner().to_string();
        (0..count).map(allocate).collect()
    }

    #[test]
    fn whole_octets_come_first() {
        assert_eq!(first("10.1.0.0/16", 26, 3), ["10.1.0.0/26", "10.1.1.0/26", "10.1.2.0/26"]);
        assert_eq!(first("10.1.0.0/16", 26, 257)[255..], ["10.1.255.0/26", "10.1.0.64/26"]);
        let want = ["10.0.0.0/22", "10.1.0.0/22", "10.2.0.0/22", "10.3.0.0/22", "10.0.4.0/22"];
        assert_eq!(first("10.0.0.0/14", 22, 5), want);
        assert_eq!(first("10.1.0.0/16", 22, 2), ["10.1.0.0/22", "10.1.4.0/22"]);
        assert_eq!(first("10.244.0.0/16", 24, 2), ["10.244.0.0/24", "10.244.1.0/24"]);
    }

    #[test]
    fn zero_is_left_out_where_there_are_plenty() {
        assert_eq!(first("fd01::/48", 64, 1), ["fd01:0:0:1::/64"]);
        assert_eq!(first("2001:db2::/56", 64, 1), ["2001:db2::/64"]);
        assert_eq!(first("fd01::/48", 60, 1), ["fd01::/60"]);
    }

    #[test]
    fn what_is_recorded_stays_and_is_not_new() {
        let mut pool = pool("10.244.0.0/16", 24);
        let subnet: IpNet = "10.244.0.0/24".parse().unwrap();
        pool.record("a", subnet).unwrap();
        assert_eq!(pool.allocate("a", Family::V4), Ok(Allocation::Owned(subnet)));
        assert_eq!(pool.allocate("b", Family::V4).unwrap().into_inner().to_string(), "10.244.1.0/24");
        let taken = pool.record("c", subnet).unwrap_err();
        assert_eq!(taken.to_string(), "10.244.0.0/24 belongs to a");
        let outside = pool.record("c", "10.1.0.0/24".parse().unwrap()).unwrap_err();
        assert_eq!(outside.to_string(), "10.1.0.0/24 is outside the configured ranges");
    }

    #[test]
    fn a_full_pool_says_so_and_a_second_range_helps() {
        let mut small = pool("10.0.0.0/24", 25);
        for owner in ["a", "b"] {
            small.allocate(owner, Family::V4).unwrap();
        }
        assert_eq!(small.allocate("c", Family::V4), Err(Full));
        assert_eq!(small.allocate("c", Family::V6), Err(Full));
    }

    #[test]
    fn a_released_address_is_used_last() {
        let gateway: IpAddr = "10.0.0.1".parse().unwrap();
        let mut pool = AddressPool::new("10.0.0.0/29".parse().unwrap(), &[gateway]);
        let all: Vec<String> = (0..5).map(|_| pool.take_any().unwrap().to_string()).collect();
        assert_eq!(all, ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]);
        assert_eq!(pool.take_any(), Err(Full));
        pool.release("10.0.0.3".parse().unwrap());
        assert_eq!(pool.take_any().unwrap().to_string(), "10.0.0.3");
        assert!(!pool.take(gateway));
    }

    #[test]
    fn ids_are_the_lowest_free() {
        let mut pool = IdPool::new(2..=4);
        pool.record("b", 3).unwrap();
        assert_eq!(pool.allocate("a"), Ok(Allocation::New(2)));
        assert_eq!(pool.allocate("b"), Ok(Allocation::Owned(3)));
        assert_eq!(pool.allocate("c"), Ok(Allocation::New(4)));
        assert_eq!(pool.allocate("d"), Err(Full));
        assert!(pool.record("e", 1).is_err());
    }

    proptest! {
        /// However owners come and whatever was recorded, nobody shares a subnet.
        #[test]
        fn no_subnet_twice(recorded in prop::collection::vec((0u8..20, 0u8..16), 0..12), asking in prop::collection::vec(0u8..20, 0..16)) {
            let mut pool = pool("10.0.0.0/20", 24);
            for (owner, number) in recorded {
                let subnet = format!("10.0.{number}.0/24").parse().unwrap();
                let _ = pool.record(&owner.to_string(), subnet);
            }
            let mut given: BTreeMap<IpNet, u8> = BTreeMap::new();
            for owner in asking {
                if let Ok(allocation) = pool.allocate(&owner.to_string(), Family::V4) {
                    let holder = *given.entry(allocation.into_inner()).or_insert(owner);
                    prop_assert_eq!(holder, owner);
                }
            }
        }

        /// Every place in the order is another subnet inside the range.
        #[test]
        fn the_order_is_a_permutation(length in 17u8..=30) {
            let range = SubnetRange::new("10.1.0.0/16".parse().unwrap(), length).unwrap();
            let all: BTreeSet<IpNet> = (0..range.count()).filter_map(|place| range.subnet(place)).collect();
            prop_assert_eq!(all.len() as u64, range.count());
            prop_assert!(all.iter().all(|subnet| range.holds(subnet)));
        }
    }
}
