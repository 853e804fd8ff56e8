//! The hash that names OVN rows whose names are not free.

/// FNV-1a, 64 bits: small, fixed for ever, and what the ecosystem uses for these names.
pub fn fnv1a64(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Name of the address set or port group with this id: OVN allows few characters there.
pub fn hashed_name(id: &str) -> String {
    format!("a{}", fnv1a64(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_ecosystem() {
        assert_eq!(
            hashed_name("default-network-controller:ClusterNodeIPs:node-ips:v4"),
            "a1042611113178530741"
        );
    }
}
