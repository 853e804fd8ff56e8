//! Numbers of networks, and keys of their routers between nodes.
//!
//! In: what is recorded on definitions and attachments. Out: one number for every network that stays, the lowest that
//! is free for one that has none. A number is recorded twice, on the definition and on every attachment: an attachment
//! that somebody edits is put right, and one that somebody deletes comes back with the same number.

use std::collections::BTreeMap;

use underlay_api::annotations::{NetworkId, TunnelKeys};
use underlay_api::network::{Network, Topology};
use underlay_net::alloc::{Allocation, IdPool};
use underlay_world::Attachment;

use super::Tenant;

/// The numbers that a plan gave, by network, each with the identity of the definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers(BTreeMap<String, (String, u16)>);

impl Numbers {
    /// The number of a network.
    pub fn of(&self, network: &str) -> Option<u16> {
        self.0.get(network).map(|(_, number)| *number)
    }
}

type ByNetwork<'a> = BTreeMap<&'a str, Vec<&'a Attachment>>;

/// Gives every network that stays its number and, where it has a router between nodes, the key of that.
pub fn assign(tenants: &mut [Tenant<'_>], by_network: &ByNetwork<'_>, known: &Numbers) -> Numbers {
    let mut ids = recorded(tenants, by_network, known);
    for tenant in tenants.iter_mut() {
        let had = ids.of(&tenant.name);
        let id =
            had.or_else(|| tenant.stays().and_then(|_| Some(ids.allocate(&tenant.name).ok()?.into_inner())));
        tenant.number = id.and_then(|id| u16::try_from(id).ok());
        if tenant.number.is_none() && tenant.stays().is_some() {
            tenant.problems.push(format!("all {} network numbers are taken", NetworkId::LAST));
        }
    }
    assign_routers(tenants, by_network);
    let number = |tenant: &Tenant<'_>| {
        Some((tenant.name.to_string(), (tenant.definition.uid.clone(), tenant.number?)))
    };
    Numbers(tenants.iter().filter_map(number).collect())
}

/// What is recorded, the best founded first: of two networks with one number, the first keeps it.
fn recorded(tenants: &[Tenant<'_>], by_network: &ByNetwork<'_>, known: &Numbers) -> IdPool {
    let mut ids = IdPool::new(1..=u32::from(NetworkId::LAST));
    let mut record = |network: &str, id: u16| {
        if ids.of(network).is_none() {
            // What is taken or no number at all is as good as not recorded.
            let _ = ids.record(network, id.into());
        }
    };
    for tenant in tenants {
        match known.0.get(tenant.name.as_ref()) {
            Some((uid, id)) if *uid == tenant.definition.uid => record(&tenant.name, *id),
            _ => {}
        }
    }
    let attached = |network: &str| by_network.get(network).into_iter().flatten();
    for tenant in tenants {
        let Some(NetworkId(id)) = tenant.definition.id else { continue };
        if attached(&tenant.name).any(|attachment| attachment.id == Some(NetworkId(id))) {
            record(&tenant.name, id);
        }
    }
    for tenant in tenants {
        if let Some(NetworkId(id)) = tenant.definition.id {
            record(&tenant.name, id);
        }
    }
    for (network, attachments) in by_network {
        for NetworkId(id) in attachments.iter().filter_map(|attachment| attachment.id) {
            record(network, id);
        }
    }
    ids
}

/// Primary networks with one switch for all nodes have a router between nodes, which needs a key of its own.
fn assign_routers(tenants: &mut [Tenant<'_>], by_network: &ByNetwork<'_>) {
    let mut keys = IdPool::new(TunnelKeys::FIRST_ROUTER..=TunnelKeys::LAST);
    for (network, attachments) in by_network {
        for attachment in attachments {
            if let Some(TunnelKeys(recorded)) = &attachment.tunnel_keys
                && let [_, router] = recorded.as_slice()
                && keys.of(network).is_none()
            {
                // What is taken is as good as not recorded.
                let _ = keys.record(network, *router);
            }
        }
    }
    for tenant in tenants {
        let has_router =
            |network: &Network| network.is_primary() && matches!(network.topology, Topology::Layer2(_));
        if tenant.number.is_some() && tenant.stays().is_some_and(has_router) {
            tenant.router = keys.allocate(&tenant.name).ok().map(Allocation::into_inner);
        }
    }
}

/// The tunnel keys of a network.
pub fn tunnel_keys(tenant: &Tenant<'_>) -> TunnelKeys {
    match (tenant.number, tenant.router) {
        (Some(number), Some(router)) => TunnelKeys(vec![TunnelKeys::SWITCHES + u32::from(number), router]),
        _ => TunnelKeys::default(),
    }
}
