//! Which namespaces have which network.
//!
//! In: selectors, labels, and the attachments that are there. Out: for every network the namespaces that are to have
//! it, and those that cannot. A namespace has one primary network: who has it keeps it, and of several newcomers the
//! first by name is served.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::SelectorExt;
use underlay_api::network::conditions;
use underlay_world::{Definition, Key, Namespace, Scope, World};

use super::Tenant;

/// Chooses the namespaces of every network that stays.
pub fn choose<'a>(tenants: &mut [Tenant<'a>], world: &'a World) {
    let mut primaries = primaries(world);
    let mut names = BTreeSet::new();
    for tenant in tenants {
        let Some(network) = tenant.stays().filter(|_| tenant.number.is_some()) else { continue };
        let selected = selected(tenant.definition, world);
        if selected.is_empty() && tenant.definition.scope() == Scope::Namespace {
            let own = &tenant.definition.key.namespace;
            tenant.problems.push(format!("namespace {own:?} is on its way out"));
        }
        for (namespace, labels) in selected {
            let judged = judge(tenant, namespace, world).and_then(|()| {
                if network.is_primary() {
                    have_primary(tenant, namespace, labels, &mut primaries)
                } else {
                    Ok(())
                }
            });
            let key = (namespace, tenant.definition.key.name.as_str());
            let judged = judged.and_then(|()| {
                let first = names.insert(key);
                first.then_some(()).ok_or_else(|| conditions::foreign_attachment(namespace, key.1))
            });
            match judged {
                Ok(()) => {
                    tenant.wanted.insert(namespace);
                }
                Err(problem) => {
                    tenant.refused.insert(namespace);
                    tenant.problems.push(problem);
                }
            }
        }
    }
}

/// Namespaces that a definition is for. One on its way out takes nothing new.
fn selected<'a>(definition: &'a Definition, world: &'a World) -> Vec<(&'a str, &'a Namespace)> {
    let living = |(key, namespace): (&'a Key, &'a std::sync::Arc<Namespace>)| {
        (!namespace.ending).then_some((key.name.as_str(), namespace.as_ref()))
    };
    match &definition.namespaces {
        Some(Ok(selector)) => {
            let all = world.namespaces.iter().filter_map(living);
            all.filter(|(_, namespace)| selector.matches(&namespace.labels)).collect()
        }
        Some(Err(_)) => vec![],
        None => {
            let own = Key::cluster(&definition.key.namespace);
            world.namespaces.get_key_value(&own).and_then(living).into_iter().collect()
        }
    }
}

/// A definition of somebody else's is never written over.
fn judge(tenant: &Tenant<'_>, namespace: &str, world: &World) -> Result<(), String> {
    let name = &tenant.definition.key.name;
    match world.attachments.get(&Key::new(namespace, name)) {
        Some(there) if there.made_from() != Some((tenant.definition.scope(), name)) => {
            Err(conditions::foreign_attachment(namespace, name))
        }
        _ => Ok(()),
    }
}

/// The primary network that each namespace has already, by the name of its attachment.
fn primaries(world: &World) -> BTreeMap<&str, &str> {
    let mut primaries = BTreeMap::new();
    for (key, attachment) in &world.attachments {
        if attachment.primary {
            primaries.entry(key.namespace.as_str()).or_insert(key.name.as_str());
        }
    }
    primaries
}

fn have_primary<'a>(
    tenant: &Tenant<'a>,
    namespace: &'a str,
    labels: &Namespace,
    primaries: &mut BTreeMap<&'a str, &'a str>,
) -> Result<(), String> {
    if !labels.wants_primary() {
        return Err(conditions::namespace_without_label(namespace));
    }
    let name = tenant.definition.key.name.as_str();
    let first = primaries.entry(namespace).or_insert(name);
    if *first == name { Ok(()) } else { Err(conditions::primary_exists(namespace, first)) }
}
