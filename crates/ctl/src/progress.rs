//! How far a lab is while it comes up: a bar on a terminal, a line a machine elsewhere.

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
