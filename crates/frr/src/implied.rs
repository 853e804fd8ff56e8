//! Lines that FRR takes but does not print, because its profile says the same. A difference must not see them missing.

use crate::tree::Block;

/// First words of the line that names the profile.
const PROFILE: &str = "frr defaults ";

/// A profile of defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// What FRR calls `traditional`.
    Traditional,
    /// What FRR calls `datacenter`.
    Datacenter,
}

impl Profile {
    /// The profile of a daemon with this configuration.
    pub fn of(running: &Block) -> Self {
        match running.iter().filter_map(|entry| entry.line.strip_prefix(PROFILE)).next_back() {
            Some("datacenter") => Self::Datacenter,
            _ => Self::Traditional,
        }
    }

    /// Whether a line of a BGP router says what the profile says anyway.
    fn implies(self, line: &str) -> bool {
        match self {
            Self::Datacenter => line == "no bgp ebgp-requires-policy",
            Self::Traditional => line == "bgp ebgp-requires-policy",
        }
    }

    /// What FRR will print of a configuration.
    #[must_use]
    pub fn printed(self, mut block: Block) -> Block {
        let routers: Vec<String> = block
            .iter()
            .filter(|entry| entry.line.starts_with("router bgp "))
            .map(|entry| entry.line.clone())
            .collect();
        for router in routers {
            block.open(router).retain(|entry| !self.implies(&entry.line));
        }
        block
    }
}
