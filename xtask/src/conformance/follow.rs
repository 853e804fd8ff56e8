//! How far a run is, read from what ginkgo prints.
//!
//! In: its verbose output, line by line, and the names of the specs that will run. Out: what began and what ended;
//! pure. Only the progress hangs on it: results come from the report.

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// This spec began.
    Began(String),
    /// This spec ended.
    Ended(String, Ending),
}

/// How a spec ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Passed,
    /// Not well.
    Failed,
    /// It found that it does not fit this cluster.
    Skipped,
}

/// Reads the output.
#[derive(Debug)]
pub struct Follower<'a> {
    names: &'a [String],
    /// The last line was the rule that ginkgo draws between specs.
    fresh: bool,
    current: Option<&'a String>,
}

impl<'a> Follower<'a> {
    /// Waits for these specs.
    pub fn new(names: &'a [String]) -> Self {
        Self { names, fresh: false, current: None }
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &str) -> Option<Note> {
        let fresh = std::mem::replace(&mut self.fresh, is_rule(line));
        if let Some(ending) = ending(line) {
            return self.current.take().map(|name| Note::Ended(name.clone(), ending));
        }
        if !fresh {
            return None;
        }
        // Labels follow the name, and one name may begin another.
        let matching = self.names.iter().filter(|name| line.starts_with(name.as_str()));
        self.current = matching.max_by_key(|name| name.len());
        self.current.map(|name| Note::Began(name.clone()))
    }
}

fn is_rule(line: &str) -> bool {
    line.len() > 10 && line.bytes().all(|byte| byte == b'-')
}

/// What the tests print themselves is indented; a mark in the first column is ginkgo's verdict.
fn ending(line: &str) -> Option<Ending> {
    if line.starts_with("S [SKIPPED]") {
        return Some(Ending::Skipped);
    }
    let rest = line.strip_prefix("• [")?;
    // A number is the duration; a word is how it went wrong.
    Some(if rest.starts_with(|first: char| first.is_ascii_digit()) { Ending::Passed } else { Ending::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
Will run 3 of 7579 specs
------------------------------
[SynchronizedBeforeSuite] 
k8s.io/kubernetes/test/e2e/e2e.go:69
[SynchronizedBeforeSuite] PASSED [0.020 seconds]
------------------------------
[sig-network] Pods: http [Conformance] [sig-network, Conformance]
k8s.io/kubernetes/test/e2e/common/network/networking.go:85
  STEP: Creating a kubernetes client
  • [FAILED] is what a test may print itself
• [16.441 seconds]
------------------------------
[sig-network] Pods: http [sig-network]
k8s.io/kubernetes/test/e2e/common/network/networking.go:99
• [FAILED] [3.000 seconds]
[sig-network] Pods: http [sig-network]
------------------------------
[sig-network] Pods: udp [sig-network]
S [SKIPPED] [0.100 seconds]
------------------------------
";

    #[test]
    fn specs_are_followed_from_beginning_to_end() {
        let names =
            ["[sig-network] Pods: http", "[sig-network] Pods: http [Conformance]", "[sig-network] Pods: udp"];
        let names = names.map(str::to_owned);
        let mut follower = Follower::new(&names);
        let notes: Vec<Note> = OUTPUT.lines().filter_map(|line| follower.line(line)).collect();
        let [http, conformant, udp] = names.clone();
        assert_eq!(
            notes,
            [
                Note::Began(conformant.clone()),
                Note::Ended(conformant, Ending::Passed),
                Note::Began(http.clone()),
                Note::Ended(http, Ending::Failed),
                Note::Began(udp.clone()),
                Note::Ended(udp, Ending::Skipped),
            ]
        );
    }

    #[test]
    fn an_end_without_a_beginning_is_nothing() {
        assert_eq!(Follower::new(&[]).line("• [1.000 seconds]"), None);
    }
}
