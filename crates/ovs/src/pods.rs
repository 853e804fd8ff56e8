//! Ports of pods. They come with a pod's interface and go with it; a pod's sandbox is their mark.

use std::collections::BTreeMap;

use underlay_ovsdb::{
    Client, Condition, Mutation, Record, Replica, TransactError, Transaction, columns, string_map,
};

use crate::SwitchError;
use crate::database::{all, ids, ports_of, remove_port};

/// A pod's port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPort {
    /// The bridge it is on.
    pub bridge: String,
    /// Name of the node's end of the pod's cable.
    pub name: String,
    /// `external_ids` of its interface; `iface-id` and `sandbox` among them.
    pub external_ids: BTreeMap<String, String>,
}

/// A pod's port that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPort {
    /// Its name.
    pub name: String,
    /// The container it belongs to.
    pub sandbox: String,
    /// The logical port it stands for.
    pub iface_id: String,
}

/// Adds a port. Another port for the same logical port goes: there can be only one.
pub async fn add_pod_port(client: &Client, port: &PodPort) -> Result<(), SwitchError> {
    let replica = client.loaded().await?;
    let transaction = addition(port, &replica);
    if !transaction.is_empty() {
        client.transact(transaction).await?;
    }
    Ok(())
}

fn addition(port: &PodPort, have: &Replica) -> Transaction {
    let mut transaction = Transaction::new();
    let interfaces = have.table("Interface");
    let logical = port.external_ids.get("iface-id").map_or("", String::as_str);
    let same_logical =
        interfaces.into_iter().flat_map(|table| table.find_key("external_ids", "iface-id", logical));
    let same_name = interfaces.into_iter().flat_map(|table| table.find("name", port.name.as_str()));
    let mut there = false;
    let mut rivals: Vec<&Record> = Vec::new();
    for interface in same_logical.chain(same_name) {
        if rivals.iter().any(|rival| rival.uuid() == interface.uuid()) {
            continue;
        }
        let name: String = interface.read("name").unwrap_or_default();
        let old = ids(interface);
        if name == port.name && port.external_ids.iter().all(|(key, value)| old.get(key) == Some(value)) {
            there = true;
        } else {
            rivals.push(interface);
        }
    }
    for rival in rivals {
        ports_of(have, rival.uuid()).for_each(|port| remove_port(&mut transaction, have, port));
    }
    if there {
        return transaction;
    }
    let pairs = port.external_ids.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let row = columns([("name", port.name.as_str().into()), ("external_ids", string_map(pairs))]);
    let interface = transaction.insert("Interface", row);
    let row = columns([
        ("name", port.name.as_str().into()),
        ("interfaces", interface.into()),
        // Not kept over a restart of the machine, when no pod is left.
        ("other_config", string_map([("transient", "true")])),
    ]);
    let added = transaction.insert("Port", row);
    let bridge = Condition::equal("name", port.bridge.as_str());
    transaction.mutate("Bridge", [bridge], [Mutation::insert("ports", added)]);
    transaction
}

/// Removes all ports of a container. None is no error.
pub async fn remove_pod_ports(client: &Client, sandbox: &str) -> Result<(), SwitchError> {
    let replica = client.loaded().await?;
    let mut transaction = Transaction::new();
    let interfaces = replica.table("Interface");
    for interface in
        interfaces.into_iter().flat_map(|table| table.find_key("external_ids", "sandbox", sandbox))
    {
        ports_of(&replica, interface.uuid()).for_each(|port| remove_port(&mut transaction, &replica, port));
    }
    if !transaction.is_empty() {
        client.transact(transaction).await?;
    }
    Ok(())
}

/// All ports of pods.
pub fn pod_ports(switch: &Replica) -> Vec<HeldPort> {
    let held = |interface: &Record| {
        let mut ids = ids(interface);
        let sandbox = ids.remove("sandbox")?;
        let iface_id = ids.remove("iface-id").unwrap_or_default();
        Some(HeldPort { name: interface.read("name").ok()?, sandbox, iface_id })
    };
    all(switch, "Interface").filter_map(held).collect()
}

/// Waits until OVN carries the packets of this very pod's port.
pub async fn wait_installed(client: &Client, name: &str, pod: &str) -> Result<(), SwitchError> {
    let mut states = client.subscribe();
    loop {
        let Some(update) = states.next().await else { return Err(TransactError::Ended.into()) };
        let interfaces = update.replica.table("Interface");
        let installed = interfaces.into_iter().flat_map(|table| table.find("name", name)).any(|interface| {
            let ids = ids(interface);
            ids.get("ovn-installed").is_some_and(|installed| installed == "true")
                && ids.get("iface-id-ver").is_some_and(|version| version == pod)
        });
        if installed {
            return Ok(());
        }
    }
}
