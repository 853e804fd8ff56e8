//! How far something is that takes a while. Of a lab that comes up: a bar on a terminal, a line a machine elsewhere. Of a
//! cluster that is read: a bar on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;
use underlay_lab::run::events::Event;

/// Shows the events of `up`.
pub struct UpProgress {
    bar: ProgressBar,
    plain: bool,
}

impl UpProgress {
    /// Starts showing.
    pub fn start(lab: &str) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = if plain { ProgressBar::hidden() } else { ProgressBar::new(0) };
        let style = "{spinner} {prefix} [{bar:30}] {pos}/{len} daemons {elapsed} {msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(lab.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        if plain {
            eprintln!("lab {lab:?}: making networks and machines");
        }
        Self { bar, plain }
    }

    /// Shows one event.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Planned { daemons } => {
                self.bar.set_length(*daemons as u64);
                if self.plain {
                    eprintln!("starting {daemons} daemons");
                }
            }
            Event::Up { machine, daemon } => {
                self.bar.inc(1);
                self.bar.set_message(format!("{machine} {daemon}"));
            }
            Event::Ready { machine } if self.plain => {
                eprintln!("{machine} is ready after {:.1} s", self.bar.elapsed().as_secs_f64());
            }
            Event::Ready { .. } | Event::Failed { .. } | Event::Complete => {}
        }
    }

    /// Clears the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Shows the steps of something that takes a second or more on a large cluster.
pub struct Steps(ProgressBar);

impl Steps {
    /// Starts showing.
    pub fn start(what: &'static str, count: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(count as u64) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} [{bar:30}] {pos}/{len} {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// The next step begins.
    pub fn next(&self, what: &str) {
        self.0.inc(1);
        self.0.set_message(what.to_owned());
    }

    /// Clears the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
