//! A lab with a kernel of its own: Debian's, in QEMU without help of the processor, where VRF devices, the OVS kernel
//! datapath, Geneve and all of nftables exist.
//!
//! ```text
//! host: first process (host) --starts--> control plane, QEMU --boots--> first process of the machine (guest)
//! host: verb (client) --frames over the tap--> server in the machine --starts--> the same verb there
//! ```
//!
//! The machine's root is the host's, read-only, with memory on top. In it runs an ordinary lab, by the same program; a
//! verb on the host is sent there as a whole, so hardly any has a second implementation.
//!
//! The control plane stays on the host: emulated, it takes twice the processor time of all the rest to start, and a
//! third of a processor for ever. The port of its API server is open on its node in the machine all the same.

mod client;
mod frame;
mod guest;
mod host;
mod inside;
mod link;
mod network;
mod qemu;
mod record;
mod server;
mod status;
mod terminal;

pub use client::forward;
pub use guest::run as run_guest;
pub use host::{check, run as run_host};
pub use inside::run as run_inside;
pub(super) use network::open_door;
pub use record::VmRecord;
pub use status::status;
