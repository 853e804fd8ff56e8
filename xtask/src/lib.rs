//! What the project's chores share: the lab's own command line, and interruption by the user.

pub mod cli;
pub mod interrupt;
