//! Kernel settings: their files, their values.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Where all settings are.
const ROOT: &str = "/proc/sys";
/// What stands before the name of an interface.
const OF_INTERFACES: [&str; 4] = ["net.ipv4.conf.", "net.ipv6.conf.", "net.ipv4.neigh.", "net.ipv6.neigh."];

/// The file of a setting. The name of an interface may have dots in it, which stay. None for what is no setting's name.
pub fn path(name: &str) -> Option<PathBuf> {
    let of_interface = OF_INTERFACES.iter().find_map(|prefix| {
        let (interface, leaf) = name.strip_prefix(prefix)?.rsplit_once('.')?;
        Some(Path::new(&prefix.replace('.', "/")).join(interface).join(leaf))
    });
    let relative = of_interface.unwrap_or_else(|| PathBuf::from(name.replace('.', "/")));
    let plain = |component| matches!(component, Component::Normal(_));
    let inside = !relative.as_os_str().is_empty() && relative.components().all(plain);
    inside.then(|| Path::new(ROOT).join(relative))
}

/// The values of those settings that are there. A missing link has none, and an older kernel lacks some.
pub(crate) fn read(names: &[String]) -> io::Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for name in names {
        let Some(path) = path(name) else { continue };
        match fs::read_to_string(path) {
            Ok(value) => _ = values.insert(name.clone(), value.trim_end().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(values)
}

/// Sets a value.
pub(crate) fn write(name: &str, value: &str) -> io::Result<()> {
    let path = path(name).ok_or(io::ErrorKind::InvalidInput)?;
    fs::write(path, value)
}

/// Sets a value if the kernel has the setting.
pub(crate) fn write_if_there(name: &str, value: &str) -> io::Result<()> {
    match write(name, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_names_of_interfaces_stay() {
        let path = |name| path(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(path("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
        assert_eq!(path("net.ipv4.conf.br-ex.forwarding"), "/proc/sys/net/ipv4/conf/br-ex/forwarding");
        assert_eq!(path("net.ipv6.conf.eth0.100.accept_ra"), "/proc/sys/net/ipv6/conf/eth0.100/accept_ra");
    }

    #[test]
    fn nothing_leads_out_of_the_settings() {
        for name in ["", "net.ipv4.conf./etc.x", "net/../../x", "net.ipv4.conf..x"] {
            let found = path(name);
            assert!(
                found.as_ref().is_none_or(|path| !path.to_string_lossy().contains("etc")
                    && !path.components().any(|part| part == Component::ParentDir)),
                "{name:?} is {found:?}"
            );
        }
    }
}
