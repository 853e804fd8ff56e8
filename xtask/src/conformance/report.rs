//! What ginkgo wrote down about a run.
//!
//! In: the text of its JSON report. Out: every spec that ran, with its outcome; pure.

use std::time::Duration;

use serde::Deserialize;

/// Longest reason shown; some messages carry whole objects in their first line.
const REASON_MAX: usize = 300;

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The specs that ran, in the order they ran.
    pub specs: Vec<Spec>,
    /// Why the run as a whole is not good, beside the specs.
    pub complaints: Vec<String>,
}

/// A spec that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Its full name.
    pub name: String,
    /// How it went.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// How a spec went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// Not as it should.
    Failed {
        /// First line of the message.
        why: String,
        /// File and line.
        place: String,
    },
}

impl Report {
    /// How many specs passed.
    pub fn passed(&self) -> usize {
        self.specs.iter().filter(|spec| spec.outcome == Outcome::Passed).count()
    }

    /// How many failed.
    pub fn failed(&self) -> usize {
        self.specs.len() - self.passed()
    }
}

/// Reads a report. Specs that were skipped or are pending did not run and are left out. What runs around the specs
/// shows up only if it failed: then it is the reason why nothing else ran.
pub fn parse(text: &[u8]) -> serde_json::Result<Report> {
    let suites: Vec<Suite> = serde_json::from_slice(text)?;
    let mut report = Report::default();
    for suite in suites {
        report.complaints.extend(suite.special_suite_failure_reasons.unwrap_or_default());
        report.specs.extend(suite.spec_reports.unwrap_or_default().into_iter().filter_map(Entry::into_spec));
    }
    Ok(report)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    #[serde(default)]
    special_suite_failure_reasons: Option<Vec<String>>,
    #[serde(default)]
    spec_reports: Option<Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    #[serde(default)]
    leaf_node_text: String,
    state: String,
    /// In nanoseconds.
    #[serde(default)]
    run_time: u64,
    #[serde(default)]
    failure: Option<Failure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Failure {
    message: String,
    location: Location,
    /// What a panic said; then the message tells only that there was one.
    forwarded_panic: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Location {
    file_name: String,
    line_number: u32,
}

impl Entry {
    fn into_spec(self) -> Option<Spec> {
        let is_spec = self.leaf_node_type == "It";
        let outcome = match self.state.as_str() {
            "skipped" | "pending" => return None,
            "passed" if !is_spec => return None,
            "passed" => Outcome::Passed,
            state => failed(state, self.failure.unwrap_or_default()),
        };
        let kind = (!is_spec).then(|| format!("[{}]", self.leaf_node_type));
        let texts = kind.into_iter().chain(self.container_hierarchy_texts.unwrap_or_default());
        let parts = texts.chain([self.leaf_node_text]).filter(|text| !text.is_empty());
        let name = parts.collect::<Vec<_>>().join(" ");
        Some(Spec { name, outcome, took: Duration::from_nanos(self.run_time) })
    }
}

fn failed(state: &str, failure: Failure) -> Outcome {
    let said = [&failure.forwarded_panic, &failure.message];
    let line = said.into_iter().find_map(|text| text.lines().map(str::trim).find(|line| !line.is_empty()));
    let why = match (state, line) {
        ("failed", Some(line)) => shortened(line),
        (state, Some(line)) => format!("{state}: {}", shortened(line)),
        (state, None) => state.to_owned(),
    };
    let Location { file_name, line_number } = failure.location;
    let place =
        if file_name.is_empty() { String::new() } else { format!("{}:{line_number}", in_module(&file_name)) };
    Outcome::Failed { why, place }
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(REASON_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The path of a file inside its Go module.
fn in_module(path: &str) -> &str {
    path.split_once('@')
        .and_then(|(_, versioned)| versioned.split_once('/'))
        .map_or(path, |(_, inside)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(entries: &str) -> Report {
        parse(format!(r#"[{{"SpecialSuiteFailureReasons": null, "SpecReports": [{entries}]}}]"#).as_bytes())
            .unwrap()
    }

    const PASSED: &str = r#"{"ContainerHierarchyTexts": ["[sig-network] Networking", "Granular Checks: Pods"],
        "LeafNodeType": "It", "LeafNodeText": "should function [Conformance]", "State": "passed",
        "RunTime": 1500000000, "NumAttempts": 1}"#;
    const SKIPPED: &str = r#"{"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeType": "It",
        "LeafNodeText": "should run", "State": "skipped", "RunTime": 0}"#;

    #[test]
    fn a_spec_that_passed_has_its_full_name_and_duration() {
        let report = report(PASSED);
        let name = "[sig-network] Networking Granular Checks: Pods should function [Conformance]".to_owned();
        let spec = Spec { name, outcome: Outcome::Passed, took: Duration::from_millis(1500) };
        assert_eq!(report.specs, [spec]);
        assert_eq!((report.passed(), report.failed()), (1, 0));
    }

    #[test]
    fn a_spec_that_failed_says_why_and_where() {
        let report = report(
            r#"{"ContainerHierarchyTexts": ["[sig-network] DNS"], "LeafNodeType": "It", "LeafNodeText": "works",
            "State": "failed", "RunTime": 1, "Failure": {"Message": "\n  no answer: \n{lots: of, state}",
            "Location": {"FileName": "k8s.io/kubernetes@v1.36.3/test/e2e/network/dns.go", "LineNumber": 42}}}"#,
        );
        let (why, place) = ("no answer:".to_owned(), "test/e2e/network/dns.go:42".to_owned());
        assert_eq!(report.specs[0].outcome, Outcome::Failed { why, place });
        assert_eq!((report.passed(), report.failed()), (0, 1));
    }

    #[test]
    fn other_bad_ends_are_failures_with_their_kind() {
        let report = report(
            r#"{"LeafNodeType": "It", "LeafNodeText": "a", "State": "timedout", "Failure": {"Message": "too slow"}},
            {"LeafNodeType": "It", "LeafNodeText": "b", "State": "panicked",
             "Failure": {"Message": "Test Panicked", "ForwardedPanic": "nil pointer"}},
            {"LeafNodeType": "It", "LeafNodeText": "c", "State": "interrupted"}"#,
        );
        let whys = report.specs.iter().map(|spec| match &spec.outcome {
            Outcome::Failed { why, .. } => why.as_str(),
            Outcome::Passed => "passed",
        });
        assert_eq!(whys.collect::<Vec<_>>(), ["timedout: too slow", "panicked: nil pointer", "interrupted"]);
    }

    #[test]
    fn skipped_specs_and_good_surroundings_do_not_count() {
        let around = r#"{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed", "RunTime": 9}"#;
        let pending = r#"{"LeafNodeType": "It", "LeafNodeText": "later", "State": "pending"}"#;
        let report = report(&[around, SKIPPED, pending, PASSED].join(","));
        assert_eq!((report.passed(), report.failed()), (1, 0));
    }

    #[test]
    fn surroundings_that_failed_are_a_failure() {
        let report = report(
            r#"{"LeafNodeType": "SynchronizedBeforeSuite", "State": "failed", "Failure": {"Message": "no nodes"}}"#,
        );
        assert_eq!(report.specs[0].name, "[SynchronizedBeforeSuite]");
        assert_eq!((report.passed(), report.failed()), (0, 1));
    }

    #[test]
    fn reports_without_specs_are_empty() {
        assert_eq!(parse(b"[]").unwrap(), Report::default());
        assert_eq!(report(""), Report::default());
        assert_eq!(parse(br#"[{"SpecReports": null}]"#).unwrap(), Report::default());
    }

    #[test]
    fn reasons_of_the_whole_run_are_kept() {
        let report = parse(br#"[{"SpecialSuiteFailureReasons": ["Interrupted by User"]}]"#).unwrap();
        assert_eq!(report.complaints, ["Interrupted by User"]);
    }

    #[test]
    fn text_that_is_no_report_is_refused() {
        assert!(parse(b"").is_err());
        assert!(parse(b"{}").is_err());
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let cut = shortened(&"ü".repeat(REASON_MAX + 1));
        assert_eq!(cut.chars().count(), REASON_MAX + 1);
        assert!(cut.ends_with('…'));
        assert_eq!(shortened("short"), "short");
    }
}
