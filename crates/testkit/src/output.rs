//! What a program said, turned into text or a failed test.

use std::process::Output;

/// Reads the output of a program that must have succeeded, or must have failed.
pub trait OutputExt {
    /// Standard output of a program that must have succeeded.
    ///
    /// # Panics
    ///
    /// When it did not; both outputs are shown.
    #[track_caller]
    fn ok(self) -> String;

    /// Standard error of a program that must have failed.
    ///
    /// # Panics
    ///
    /// When it succeeded.
    #[track_caller]
    fn refused(self) -> String;

    /// Standard output on success, else everything it said, for waiters.
    fn result(self) -> Result<String, String>;
}

impl OutputExt for Output {
    #[track_caller]
    fn ok(self) -> String {
        match self.result() {
            Ok(text) => text,
            Err(text) => panic!("a program that must succeed did not: {text}"),
        }
    }

    #[track_caller]
    fn refused(self) -> String {
        assert!(!self.status.success(), "a program that must fail succeeded and said {}", said(&self));
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    fn result(self) -> Result<String, String> {
        if self.status.success() {
            Ok(String::from_utf8_lossy(&self.stdout).into_owned())
        } else {
            Err(format!("{}\n{}", self.status, said(&self)))
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
