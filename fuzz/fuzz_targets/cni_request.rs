//! What a container runtime says to the plugin: understood or refused with a code, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use underlay_cni::exchange::Request;
use underlay_cni::verb::Call;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(6, '\n');
    let names = ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"];
    let environment =
        names.iter().map(|name| ((*name).to_owned(), parts.next().unwrap_or_default().to_owned()));
    let request =
        Request { environment: environment.collect(), config: parts.next().unwrap_or_default().to_owned() };
    if let Err(failure) = Call::read(&request) {
        assert!(failure.code > 0 && !failure.msg.is_empty());
    }
});
