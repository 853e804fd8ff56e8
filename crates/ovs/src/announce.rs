//! Tells neighbours that an IPv6 address is here now: OVN does so for IPv4 addresses alone, and whoever knows the address
//! at a node that is gone would go on sending there for most of a minute.

use std::fmt::Write;
use std::net::Ipv6Addr;

use underlay_desired::flow::Announcement;
use underlay_net::Mac;
use underlay_program::{ProgramError, run};

/// All nodes of a link, and where their frames go.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
/// The number of the protocol.
const ICMP: u8 = 58;
/// A neighbour's advertisement that replaces what was known.
const ADVERTISEMENT: [u8; 8] = [136, 0, 0, 0, 0x20, 0, 0, 0];

/// Sends one announcement.
pub async fn announce(what: &Announcement) -> Result<(), ProgramError> {
    let Announcement { bridge, port, mac, address } = what;
    let mut hex = String::new();
    for byte in frame(*mac, *address) {
        let _ = write!(hex, "{byte:02x}");
    }
    let packet = format!("in_port=LOCAL,packet={hex},actions=output:{port}");
    run(&["ovs-ofctl", "-O", "OpenFlow15", "packet-out", bridge, &packet], "").await?;
    Ok(())
}

/// The frame by which a neighbour says, without being asked, that it has an address.
fn frame(mac: Mac, address: Ipv6Addr) -> Vec<u8> {
    let mut message = ADVERTISEMENT.to_vec();
    message.extend(address.octets());
    // The option with the neighbour's own MAC address: its kind, and its length in eights.
    message.extend([2, 1]);
    message.extend(mac.0);
    let sum = checksum(address, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = u8::try_from(message.len()).unwrap_or_default();
    // Farther than one hop nobody believes it.
    let header = [0x60, 0, 0, 0, 0, length, ICMP, 255];
    let mut frame = [&ALL_NODES_MAC[..], &mac.0, &[0x86, 0xdd], &header].concat();
    frame.extend(address.octets());
    frame.extend(ALL_NODES.octets());
    frame.extend(message);
    frame
}

/// The sum over addresses, length, protocol and message that its receivers check.
fn checksum(source: Ipv6Addr, message: &[u8]) -> u16 {
    let length = u8::try_from(message.len()).unwrap_or_default();
    let pseudo = [&source.octets()[..], &ALL_NODES.octets(), &[0, length, 0, ICMP]].concat();
    let words = pseudo.chunks(2).chain(message.chunks(2));
    let sum: u32 = words.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_is_what_receivers_expect() {
        let address: Ipv6Addr = "fd00:172:30::100".parse().unwrap();
        let frame = frame("02:00:00:00:00:12".parse().unwrap(), address);
        assert_eq!(frame.len(), 14 + 40 + 32);
        assert_eq!(frame[20], ICMP);
        assert_eq!(frame[62..78], address.octets());
        // A sum over a message with its own sum in it is nothing.
        assert_eq!(checksum(address, &frame[54..]), 0);
    }
}
