//! What the runtime is told, in the shape of each version of the specification.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Error codes of the specification.
pub mod code {
    /// Another version of the specification is needed.
    pub const INCOMPATIBLE_VERSION: u32 = 1;
    /// The container is not there, and nothing has to be cleaned up.
    pub const UNKNOWN_CONTAINER: u32 = 3;
    /// A variable is missing or makes no sense.
    pub const BAD_ENVIRONMENT: u32 = 4;
    /// Reading or writing failed.
    pub const IO: u32 = 5;
    /// Something could not be understood.
    pub const UNDECODABLE: u32 = 6;
    /// The network configuration lacks something.
    pub const INVALID_CONFIG: u32 = 7;
    /// It may work later.
    pub const TRY_AGAIN: u32 = 11;
    /// No pod can be given an interface now.
    pub const NOT_AVAILABLE: u32 = 50;
    /// The interface is not as it should be. The first of the codes that are ours to choose.
    pub const NOT_AS_IT_SHOULD_BE: u32 = 100;
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{msg}")]
pub struct Failure {
    /// For the runtime.
    pub code: u32,
    /// For people.
    pub msg: String,
}

impl Failure {
    /// A failure.
    pub fn new(code: u32, msg: impl Into<String>) -> Self {
        Self { code, msg: msg.into() }
    }

    /// As the runtime reads it.
    pub fn document(&self, version: &str) -> String {
        json!({ "cniVersion": version, "code": self.code, "msg": self.msg }).to_string()
    }
}

/// Interfaces that were made for a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Success {
    /// The container's namespace.
    pub sandbox: String,
    /// In the order in which the runtime is told.
    pub interfaces: Vec<Interface>,
}

/// An interface that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The node's end.
    pub host: String,
    /// The container's end.
    pub name: String,
    /// MAC address of the container's end.
    pub mac: String,
    /// Largest packet.
    pub mtu: u32,
    /// Addresses with the lengths of their subnets, each with its gateway.
    pub addresses: Vec<(String, Option<String>)>,
    /// Routes: where to, and through whom.
    pub routes: Vec<(String, Option<String>)>,
}

impl Success {
    /// As the runtime reads it.
    pub fn document(&self, version: &str) -> String {
        // Until 1.0 every address told its family.
        let tells_family = version.starts_with("0.");
        let tells_mtu = version == "1.1.0";
        let (mut interfaces, mut addresses, mut routes) = (Vec::new(), Vec::new(), Vec::new());
        for interface in &self.interfaces {
            interfaces.push(json!({ "name": interface.host }));
            // Addresses name the container's end by its place in the list.
            let place = interfaces.len();
            let mut inner = json!({ "name": interface.name, "mac": interface.mac, "sandbox": self.sandbox });
            put(&mut inner, "mtu", tells_mtu.then(|| interface.mtu.into()));
            interfaces.push(inner);
            for (address, gateway) in &interface.addresses {
                let mut entry = json!({ "address": address, "interface": place });
                put(&mut entry, "gateway", gateway.clone().map(Value::from));
                let family = if address.contains(':') { "6" } else { "4" };
                put(&mut entry, "version", tells_family.then(|| family.into()));
                addresses.push(entry);
            }
            for (destination, gateway) in &interface.routes {
                let mut entry = json!({ "dst": destination });
                put(&mut entry, "gw", gateway.clone().map(Value::from));
                routes.push(entry);
            }
        }
        json!({
            "cniVersion": version,
            "interfaces": interfaces,
            "ips": addresses,
            "routes": routes,
            "dns": {},
        })
        .to_string()
    }
}

fn put(entry: &mut Value, key: &str, value: Option<Value>) {
    if let (Some(map), Some(value)) = (entry.as_object_mut(), value) {
        map.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str) -> Interface {
        Interface {
            host: format!("abc-{name}"),
            name: name.to_owned(),
            mac: "0a:58:0a:f4:01:03".to_owned(),
            mtu: 1400,
            addresses: vec![(address.to_owned(), Some("10.244.1.1".to_owned()))],
            routes: vec![("10.96.0.0/16".to_owned(), None)],
        }
    }

    fn success(interfaces: Vec<Interface>) -> Success {
        Success { sandbox: "/run/netns/x".to_owned(), interfaces }
    }

    #[test]
    fn old_versions_tell_the_family_and_new_ones_the_mtu() {
        let success = success(vec![interface("eth0", "10.244.1.3/24")]);
        let old: Value = serde_json::from_str(&success.document("0.4.0")).unwrap();
        let new: Value = serde_json::from_str(&success.document("1.1.0")).unwrap();
        assert_eq!(old["ips"][0]["version"], "4");
        assert_eq!(new["ips"][0].get("version"), None);
        assert_eq!((old["interfaces"][1].get("mtu"), &new["interfaces"][1]["mtu"]), (None, &json!(1400)));
        assert_eq!(new["ips"][0]["gateway"], "10.244.1.1");
    }

    #[test]
    fn every_address_names_its_own_interface() {
        let all = vec![interface("eth0", "10.244.1.3/24"), interface("ovn-udn1", "10.10.1.3/24")];
        let document: Value = serde_json::from_str(&success(all).document("1.1.0")).unwrap();
        for address in document["ips"].as_array().unwrap() {
            let place = usize::try_from(address["interface"].as_u64().unwrap()).unwrap();
            let name = if address["address"] == "10.10.1.3/24" { "ovn-udn1" } else { "eth0" };
            assert_eq!(document["interfaces"][place]["name"], name);
        }
        assert_eq!(document["interfaces"].as_array().unwrap().len(), 4);
    }
}
