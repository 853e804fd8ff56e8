//! What anyone with the right to annotate, or to write an attachment definition, may have written. What was read must be
//! read again, the same, from what we write.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use underlay_api::annotations as of;
use underlay_api::annotations::Annotation;
use underlay_api::nad::NetConf;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    annotation::<of::PodNetworks>(&text);
    annotation::<of::NetworkRequests>(&text);
    annotation::<of::DefaultNetworkRequest>(&text);
    annotation::<of::L3Gateway>(&text);
    annotation::<of::NodeSubnets>(&text);
    annotation::<of::NetworkIds>(&text);
    annotation::<of::Layer2TunnelIds>(&text);
    annotation::<of::HostCidrs>(&text);
    annotation::<of::PrimaryAddresses>(&text);
    annotation::<of::TunnelKeys>(&text);
    annotation::<of::NodeId>(&text);
    annotation::<of::EncapIps>(&text);
    if let Ok(read) = NetConf::parse(&text) {
        assert_eq!(NetConf::parse(&read.render()).as_ref(), Ok(&read));
    }
});

fn annotation<T: Annotation + PartialEq + Debug>(text: &str) {
    if let Ok(read) = T::parse(text)
        && !read.is_silent()
    {
        assert_eq!(T::parse(&read.render()).as_ref(), Ok(&read), "{}", T::KEY);
    }
}
