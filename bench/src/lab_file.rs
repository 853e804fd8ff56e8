//! Lab files of any size: one control plane, workers, a top-of-rack router that all nodes peer with, and a host outside.
//!
//! In: how many nodes. Out: the text of a lab file; pure.

use std::fmt::Write;

/// A lab with this many nodes, at most 200; the first hosts the control plane.
pub fn lab_file(nodes: usize) -> String {
    let addresses: Vec<[String; 2]> =
        (10..10 + nodes).map(|host| [format!("172.30.0.{host}"), format!("fd00:172:30::{host}")]).collect();
    let mut text = String::from("nodes:\n");
    for number in 0..nodes {
        let control_plane = number == 0;
        let _ = write!(
            text,
            "  - name: {}\n    controlPlane: {control_plane}\n    gateways: [172.30.0.1, \"fd00:172:30::1\"]\n    bgp:\n      \
             asn: 64512\n      neighbors:\n        - {{ address: 172.30.0.1, asn: 64513 }}\n        \
             - {{ address: \"fd00:172:30::1\", asn: 64513 }}\n",
            node_name(number)
        );
    }
    text.push_str("routers:\n  - name: tor\n    bgp:\n      asn: 64513\n      neighbors:\n");
    for address in addresses.iter().flatten() {
        let _ = writeln!(text, "        - {{ address: \"{address}\", asn: 64512 }}");
    }
    text.push_str("      networks: [203.0.113.0/24, \"2001:db8:113::/64\"]\n");
    text.push_str("hosts:\n  - { name: outside, gateways: [203.0.113.1, \"2001:db8:113::1\"] }\n");
    text.push_str("segments:\n  - name: fabric\n    members:\n");
    text.push_str("      - { machine: tor, addresses: [172.30.0.1/24, \"fd00:172:30::1/64\"] }\n");
    for (number, [v4, v6]) in addresses.iter().enumerate() {
        let name = node_name(number);
        let _ = writeln!(text, "      - {{ machine: {name}, addresses: [{v4}/24, \"{v6}/64\"] }}");
    }
    text.push_str("links:\n  - name: uplink\n    ends:\n");
    text.push_str("      - { machine: tor, addresses: [203.0.113.1/24, \"2001:db8:113::1/64\"] }\n");
    text.push_str("      - { machine: outside, addresses: [203.0.113.10/24, \"2001:db8:113::10/64\"] }\n");
    text
}

/// A lab with this many nodes whose router speaks no BGP: they have to find each other, as these settings say.
pub fn mesh_file(nodes: usize, settings: &str) -> String {
    let mut text = format!("settings:\n{settings}");
    text.push_str("nodes:\n");
    for number in 0..nodes {
        let (name, control_plane) = (node_name(number), number == 0);
        let _ = writeln!(
            text,
            "  - {{ name: {name}, controlPlane: {control_plane}, gateways: [172.30.0.1, \"fd00:172:30::1\"] }}"
        );
    }
    text.push_str("routers:\n  - { name: tor }\nsegments:\n  - name: fabric\n    members:\n");
    text.push_str("      - { machine: tor, addresses: [172.30.0.1/24, \"fd00:172:30::1/64\"] }\n");
    for (number, host) in (0..nodes).zip(10..) {
        let name = node_name(number);
        let _ = writeln!(
            text,
            "      - {{ machine: {name}, addresses: [172.30.0.{host}/24, \"fd00:172:30::{host}/64\"] }}"
        );
    }
    text
}

fn node_name(number: usize) -> String {
    if number == 0 { "control".to_owned() } else { format!("worker{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use underlay_lab::file::parse;

    #[test]
    fn all_sizes_pass_the_checks() {
        for nodes in [1, 3, 8, 200] {
            let topology = parse("made", &lab_file(nodes)).unwrap();
            assert_eq!(topology.nodes().count(), nodes);
            assert_eq!(topology.machines.len(), nodes + 2);
            let mesh = parse("made", &mesh_file(nodes, "  managed: { topology: full-mesh }\n")).unwrap();
            assert_eq!(mesh.nodes().count(), nodes);
        }
    }
}
