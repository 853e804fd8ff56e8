//! The node's own ports on the switch, and settings of the switch itself.

use std::collections::{BTreeMap, BTreeSet};

use underlay_desired::owner::ROW_MARK;
use underlay_desired::switch::{Port, Switch};
use underlay_ovsdb::{
    Atom, Client, Condition, Datum, Index, Mutation, Record, Replica, Selection, Transaction, Uuid, columns,
    string_map,
};

use crate::SwitchError;

/// What we look at. Statistics are left out: they change all the time.
pub fn selection() -> Selection {
    Selection::new()
        .columns("Open_vSwitch", &["external_ids"])
        .columns("Bridge", &["name", "ports", "datapath_type"])
        .columns("Port", &["name", "interfaces", "other_config"])
        .columns("Interface", &["name", "type", "ofport", "mac", "mtu_request", "external_ids"])
        .index("Bridge", Index::column("name"))
        .index("Port", Index::column("name"))
        .index("Interface", Index::column("name"))
        .index("Interface", Index::map_key("external_ids", "iface-id"))
        .index("Interface", Index::map_key("external_ids", "sandbox"))
        .index("Interface", Index::map_key("external_ids", ROW_MARK))
}

/// Makes ports and settings what they should be. Returns how many changed.
pub async fn sync(client: &Client, want: &Switch) -> Result<usize, SwitchError> {
    let replica = client.loaded().await?;
    let (transaction, changes) = difference(want, &replica);
    if changes > 0 {
        client.transact(transaction).await?;
    }
    Ok(changes)
}

/// Compares. Pure.
pub fn difference(want: &Switch, have: &Replica) -> (Transaction, usize) {
    let (mut transaction, mut changes) = (Transaction::new(), 0);
    for (name, port) in &want.ports {
        changes += usize::from(make_port(&mut transaction, have, name, port));
    }
    for interface in all(have, "Interface").filter(|interface| is_surplus(want, interface)) {
        for port in ports_of(have, interface.uuid()) {
            remove_port(&mut transaction, have, port);
            changes += 1;
        }
    }
    changes += usize::from(set_settings(&mut transaction, have, want));
    (transaction, changes)
}

fn is_surplus(want: &Switch, interface: &Record) -> bool {
    let mark = ids(interface).get(ROW_MARK).cloned();
    mark.is_some_and(|name| !want.ports.contains_key(&name))
}

fn make_port(transaction: &mut Transaction, have: &Replica, name: &str, want: &Port) -> bool {
    let wanted_ids = || {
        let own = want.external_ids.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        own.chain([(ROW_MARK, name)])
    };
    let plain = [
        ("mac", Datum::one(want.mac.to_string().as_str().into())),
        ("mtu_request", Datum::one(Atom::Integer(want.mtu.into()))),
    ];
    if let Some(interface) = all(have, "Interface").find(|interface| is_named(interface, name)) {
        let mut news: Vec<(&str, Datum)> =
            plain.into_iter().filter(|(column, value)| interface.get(column) != Some(value)).collect();
        let old = ids(interface);
        if !old.contains_key(ROW_MARK) {
            // Somebody else's, under the name that ours should have: it is left alone.
            return false;
        }
        // OVN writes into the same map: only our own keys are compared and set.
        if wanted_ids().any(|(key, value)| old.get(key).is_none_or(|old| old != value)) {
            let mut all: BTreeMap<&str, &str> =
                old.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            all.extend(wanted_ids());
            news.push(("external_ids", string_map(all)));
        }
        if news.is_empty() {
            return false;
        }
        transaction.update("Interface", [Condition::uuid(interface.uuid())], columns(news));
        return true;
    }
    if !all(have, "Bridge").any(|bridge| is_named(bridge, &want.bridge)) {
        // It waits for its bridge: rows that no bridge refers to would be gone at once.
        return false;
    }
    let values = plain.into_iter().chain([
        ("name", name.into()),
        ("type", "internal".into()),
        ("external_ids", string_map(wanted_ids())),
    ]);
    let interface = transaction.insert("Interface", columns(values));
    let port = transaction.insert("Port", columns([("name", name.into()), ("interfaces", interface.into())]));
    transaction.mutate(
        "Bridge",
        [Condition::equal("name", want.bridge.as_str())],
        [Mutation::insert("ports", port)],
    );
    true
}

/// Takes a port off its bridge; its rows go with the reference.
pub(crate) fn remove_port(transaction: &mut Transaction, have: &Replica, port: Uuid) {
    for bridge in all(have, "Bridge") {
        let ports: BTreeSet<Uuid> = bridge.read("ports").unwrap_or_default();
        if ports.contains(&port) {
            let gone = Mutation::delete("ports", Datum::one(Atom::Uuid(port)));
            transaction.mutate("Bridge", [Condition::uuid(bridge.uuid())], [gone]);
        }
    }
}

fn set_settings(transaction: &mut Transaction, have: &Replica, want: &Switch) -> bool {
    let Some(switch) = all(have, "Open_vSwitch").next() else { return false };
    let old = ids(switch);
    let wanted = want.settings.iter().map(|(key, setting)| (key.as_str(), setting.value.as_str()));
    let news: Vec<(&str, &str)> =
        wanted.filter(|(key, value)| old.get(*key).is_none_or(|old| old != value)).collect();
    if news.is_empty() {
        return false;
    }
    // Pair by pair, so that what others write meanwhile stays. An insertion alone would not replace an old value.
    let keys = Datum::set(news.iter().map(|(key, _)| Atom::from(*key)));
    let changes =
        [Mutation::delete("external_ids", keys), Mutation::insert("external_ids", string_map(news))];
    transaction.mutate("Open_vSwitch", [Condition::uuid(switch.uuid())], changes);
    true
}

pub(crate) fn all<'a>(have: &'a Replica, table: &str) -> impl Iterator<Item = &'a Record> + use<'a> {
    have.table(table).into_iter().flat_map(underlay_ovsdb::Table::iter)
}

pub(crate) fn ids(record: &Record) -> BTreeMap<String, String> {
    record.read("external_ids").unwrap_or_default()
}

/// Ports that hold an interface.
pub(crate) fn ports_of(have: &Replica, interface: Uuid) -> impl Iterator<Item = Uuid> + '_ {
    let holds = move |port: &&Record| {
        port.read::<BTreeSet<Uuid>>("interfaces").is_ok_and(|interfaces| interfaces.contains(&interface))
    };
    all(have, "Port").filter(holds).map(Record::uuid)
}

fn is_named(record: &Record, name: &str) -> bool {
    record.read::<String>("name").is_ok_and(|own| own == name)
}
