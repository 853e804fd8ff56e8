//! Log lines on standard error: for people or, on request, for machines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Shape of the log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One line of text.
    #[default]
    Compact,
    /// One JSON object a line.
    Json,
}

/// Starts logging. `RUST_LOG` chooses what is told; without it, what operators need. A second call does nothing.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // Tests start several daemons in one process: the first one's choice stays.
    let _ = match format {
        LogFormat::Compact => lines.compact().with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
