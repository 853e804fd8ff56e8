//! What the user sees of a run.
//!
//! In: notes while it runs, the report at its end. Out: a bar on a terminal or a line a spec elsewhere, and a table.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use owo_colors::OwoColorize;

use super::follow::{Ending, Note};
use super::report::{Outcome, Report, Spec};

/// Shows a run while it goes on, on standard error.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    total: usize,
    passed: usize,
    failed: usize,
    ended: usize,
}

impl Progress {
    /// Starts showing a run of this many specs.
    pub fn start(total: usize) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = if plain { ProgressBar::hidden() } else { ProgressBar::new(total as u64) };
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} [{bar:20}] {pos}/{len} {elapsed} {prefix} {wide_msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message("waiting for the cluster");
        bar.enable_steady_tick(Duration::from_millis(120));
        if plain {
            eprintln!("running {total} {}", if total == 1 { "spec" } else { "specs" });
        }
        Self { bar, plain, total, passed: 0, failed: 0, ended: 0 }
    }

    /// Shows that a spec began or ended.
    pub fn note(&mut self, note: &Note) {
        let (name, ending) = match note {
            Note::Began(name) => return self.bar.set_message(name.clone()),
            Note::Ended(name, ending) => (name, *ending),
        };
        self.ended += 1;
        let word = match ending {
            Ending::Passed => {
                self.passed += 1;
                "passed".green().to_string()
            }
            Ending::Failed => {
                self.failed += 1;
                "failed".red().bold().to_string()
            }
            Ending::Skipped => "skipped".yellow().to_string(),
        };
        if self.plain {
            anstream::eprintln!("[{}/{}] {word}  {name}", self.ended, self.total);
        } else {
            self.bar.println(format!("{word}  {name}"));
        }
        self.bar.inc(1);
        self.bar.set_prefix(format!("{} passed, {} failed", self.passed, self.failed));
        self.bar.set_message("");
    }

    /// Clears the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Every spec that ran, and the totals in the last line.
pub fn summary(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["RESULT", "TIME", "SPEC"]);
    for spec in &report.specs {
        table.add_row(row(spec));
    }
    let mut text = String::new();
    if !report.specs.is_empty() {
        let _ = writeln!(text, "\n{}\n", table.trim_fmt());
    }
    for complaint in &report.complaints {
        let _ = writeln!(text, "{} {complaint}", "not complete:".red().bold());
    }
    let _ = writeln!(text, "{} passed, {} failed", report.passed(), report.failed());
    text
}

fn row(spec: &Spec) -> [String; 3] {
    let time = format!("{:.1}s", spec.took.as_secs_f64());
    match &spec.outcome {
        Outcome::Passed => ["passed".green().to_string(), time, spec.name.clone()],
        Outcome::Failed { why, place } => {
            let mut text = format!("{}\n  {why}", spec.name);
            if !place.is_empty() {
                let _ = write!(text, "\n  at {place}");
            }
            ["failed".red().bold().to_string(), time, text]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_count() {
        assert_eq!(summary(&Report::default()), "0 passed, 0 failed\n");
        let spec =
            |name: &str, outcome| Spec { name: name.to_owned(), outcome, took: Duration::from_millis(1250) };
        let failed = Outcome::Failed { why: "no answer".to_owned(), place: "dns.go:42".to_owned() };
        let report = Report {
            specs: vec![spec("a", Outcome::Passed), spec("b", failed)],
            complaints: vec!["cut".to_owned()],
        };
        let text = summary(&report);
        assert_eq!(text.lines().last(), Some("1 passed, 1 failed"));
        for part in ["no answer", "at dns.go:42", "1.2s", "cut"] {
            assert!(text.contains(part), "{part:?} is missing from {text}");
        }
    }
}
