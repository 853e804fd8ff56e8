//! What a test cannot do without. Whoever lacks it reads what to run; no test is skipped.

use underlay_lab::artifacts::Artifacts;

/// The real programs.
///
/// # Panics
///
/// When they are not there; the text says how to make them.
#[track_caller]
pub fn require_artifacts() -> Artifacts {
    Artifacts::find().unwrap_or_else(|error| panic!("this test runs real programs: {error}"))
}

/// Root, for namespaces and mounts.
///
/// # Panics
///
/// When we are somebody else.
#[track_caller]
pub fn require_root() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this test makes namespaces and needs root: run the tests with `sudo make test`"
    );
}
