//! The resources as users meet them: manifests read and written again, and what is refused and why, here and by a
//! real API server.

// This crate is nothing but tests; the attribute tells it to clippy.
#[cfg(test)]
mod cases;
#[cfg(test)]
mod definitions;
#[cfg(test)]
mod manifests;
#[cfg(test)]
mod meaning;
#[cfg(test)]
mod networks;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod server;
