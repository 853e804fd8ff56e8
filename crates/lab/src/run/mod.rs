//! The deeds: processes, mounts and namespaces.

pub mod cut;
pub mod down;
pub mod enter;
pub mod events;
pub mod images;
pub mod init;
mod keeper;
pub mod logs;
pub mod machine;
mod proxy;
mod reaper;
mod root;
pub mod status;
mod steps;
pub mod up;
pub mod vm;
