//! What the programs beside us print: flows of the switch, the packet filter, FRR's configuration and sessions.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = underlay_ovs::flows::parse(&text);
    let _ = underlay_nft::observe::parse(&text);
    let _ = underlay_frr::tree::parse(&text);
    let (bgp, bfd) = text.split_once('\n').unwrap_or((&text, ""));
    let _ = underlay_frr::state::parse(bgp, bfd);
});
