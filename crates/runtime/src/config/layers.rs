//! Where a setting may be said, and what was said there: flags win over the file.

use std::path::Path;

use ini::Ini;

use super::{ConfigError, Flags, Place};

/// Section and name of every key. A key with several sections may be said in any of them.
const KEYS: [(&str, &str); 22] = [
    ("default", "cluster-subnets"),
    ("default", "mtu"),
    ("default", "encap-port"),
    ("default", "imported-routes-limit"),
    ("default", "transport"),
    ("kubernetes", "service-cidrs"),
    ("kubernetes", "ovn-config-namespace"),
    ("gateway", "v4-join-subnet"),
    ("gateway", "v6-join-subnet"),
    ("gateway", "v4-masquerade-subnet"),
    ("gateway", "v6-masquerade-subnet"),
    ("clustermanager", "v4-transit-subnet"),
    ("clustermanager", "v6-transit-subnet"),
    ("no-overlay", "outbound-snat"),
    ("no-overlay", "routing"),
    ("bgp.managed", "as-number"),
    ("bgp-managed", "as-number"),
    ("bgp.managed", "frr-namespace"),
    ("bgp-managed", "frr-namespace"),
    ("bgp.managed", "topology"),
    ("bgp-managed", "topology"),
    ("no-overlay", "topology"),
];
/// The section of features, and the key in it that is more than a switch.
const FEATURES: &str = "ovnkubernetesfeature";
const ISOLATION: &str = "advertised-udn-isolation-mode";
/// Switches of that section for what is always on here: they need not be said, and nothing is said of them.
const ALWAYS_ON: [&str; 7] = [
    "enable-multi-network",
    "enable-network-segmentation",
    "enable-route-advertisements",
    "enable-preconfigured-udn-addresses",
    "enable-persistent-ips",
    "enable-egress-ip",
    "enable-interconnect",
];

/// The flag that says the same as a key. Most have the key's name; those of the managed mesh would mean too much.
pub fn flag(key: &'static str) -> &'static str {
    match key {
        "topology" => "bgp-topology",
        "as-number" => "bgp-as-number",
        "frr-namespace" => "bgp-frr-namespace",
        same => same,
    }
}

/// All places where a key may be said in the file.
fn places(wanted: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.into_iter().chain([(FEATURES, ISOLATION)]).filter(move |(_, key)| *key == wanted)
}

/// What was said, the strongest first.
pub struct Layers<'a> {
    pub flags: &'a Flags,
    pub file: Option<(&'a Path, &'a Ini)>,
}

impl Layers<'_> {
    /// Sets what was said. Places of the file that say different things are refused.
    pub fn set<T: PartialEq>(
        &self,
        key: &'static str,
        target: &mut T,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<(), ConfigError> {
        if let Some(value) = self.get(key, read)? {
            *target = value;
        }
        Ok(())
    }

    /// What was said, if anything was.
    pub fn get<T: PartialEq>(
        &self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let mut found: Option<(Place, T)> = None;
        for (place, text) in self.find(key) {
            let text = text.trim();
            let value = match read(text) {
                Ok(value) => value,
                Err(problem) => return Err(ConfigError::Value { place, value: text.to_owned(), problem }),
            };
            match found {
                Some((one, first)) if first != value => {
                    return Err(ConfigError::Contradiction { one, other: place });
                }
                Some(_) => {}
                None => found = Some((place, value)),
            }
        }
        Ok(found.map(|(_, value)| value))
    }

    /// Where something was said, for people; nothing if nothing was.
    pub fn place(&self, key: &'static str) -> Option<Place> {
        self.find(key).into_iter().map(|(place, _)| place).next()
    }

    fn find(&self, wanted: &'static str) -> Vec<(Place, &str)> {
        if let Some(text) = self.flags.of(wanted) {
            return vec![(Place::Flag(flag(wanted)), text)];
        }
        let Some((path, file)) = self.file else { return vec![] };
        let said = |(section, key)| {
            let text = file.get_from(Some(section), key)?;
            Some((Place::File { path: path.to_owned(), section, key }, text))
        };
        places(wanted).filter_map(said).collect()
    }

    /// Keys of the file that nobody here reads.
    pub fn unknown(&self) -> Vec<String> {
        let known = |section: &str, key: &str| {
            KEYS.contains(&(section, key))
                || section == FEATURES && (key == ISOLATION || ALWAYS_ON.contains(&key))
        };
        let mut unknown = Vec::new();
        for (section, properties) in self.file.iter().flat_map(|(_, file)| file.iter()) {
            let section = section.unwrap_or_default();
            let strange = properties.iter().filter(|(key, _)| !known(section, key));
            unknown.extend(strange.map(|(key, _)| format!("[{section}] {key}")));
        }
        unknown
    }
}
