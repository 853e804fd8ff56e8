//! Tables and colours for terminals. Colours go away by themselves where the output is no terminal.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use comfy_table::{Table, presets};
use owo_colors::OwoColorize;
use underlay_lab::run::status::{DaemonState, LabStatus};

/// Text that says something is well.
pub fn good(text: &str) -> String {
    text.green().to_string()
}

/// Text that says something is not.
pub fn bad(text: &str) -> String {
    text.red().bold().to_string()
}

/// Text that says one or the other.
pub fn verdict(well: bool, text: &str) -> String {
    if well { good(text) } else { bad(text) }
}

/// A table without lines.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// The status of a lab on one screen.
pub fn status(status: &LabStatus) -> String {
    let mut text = format!(
        "lab {}   {}   memory {} MiB\n\n",
        status.name.bold(),
        verdict(status.healthy(), if status.healthy() { "everything is up" } else { "not everything is up" }),
        status.memory / (1 << 20)
    );
    let _ = writeln!(text, "{}\n", daemons(status));
    if let Some(api) = &status.api {
        let answer = if api.ready { "ready" } else { api.message.as_str() };
        let _ = writeln!(text, "API server: {}\n", verdict(api.ready, answer));
    }
    if !status.nodes.is_empty() {
        let mut nodes = table(&["NODE", "READY", "VERSION", "MESSAGE"]);
        for node in &status.nodes {
            let ready = verdict(node.ready, if node.ready { "True" } else { "False" });
            nodes.add_row([&node.name, &ready, &node.version, &node.message]);
        }
        let _ = writeln!(text, "{nodes}\n");
    }
    if !status.bgp.is_empty() {
        let mut sessions = table(&["SPEAKER", "NEIGHBOR", "AS", "STATE", "RECEIVED", "SENT"]);
        for session in &status.bgp {
            sessions.add_row([
                session.machine.clone(),
                session.neighbor.clone(),
                session.remote_as.to_string(),
                verdict(session.state == "Established", &session.state),
                session.received.to_string(),
                session.sent.to_string(),
            ]);
        }
        let _ = writeln!(text, "{sessions}");
    }
    text
}

fn daemons(status: &LabStatus) -> String {
    let mut daemons = table(&["MACHINE", "ROLE", "DAEMON", "STATE", "PID", "FOR", "RESTARTS"]);
    let mut unwell = String::new();
    for machine in &status.machines {
        if machine.daemons.is_empty() {
            let state = verdict(machine.ready, if machine.ready { "up" } else { "starting" });
            daemons.add_row([machine.name.as_str(), &machine.role, "-", &state, "", "", ""]);
        }
        for daemon in &machine.daemons {
            let state = match daemon.status.state {
                DaemonState::Up => good("up"),
                DaemonState::Starting => bad("starting"),
                DaemonState::Down => bad("down"),
            };
            daemons.add_row([
                machine.name.clone(),
                machine.role.clone(),
                daemon.status.name.clone(),
                state,
                daemon.status.pid.map(|pid| pid.to_string()).unwrap_or_default(),
                age(daemon.status.since),
                daemon.status.restarts.to_string(),
            ]);
            // A daemon may have said nothing before it ended.
            if daemon.status.state != DaemonState::Up || daemon.status.restarts > 0 {
                let exit = daemon.status.last_exit.as_deref().unwrap_or("has not ended");
                let _ = writeln!(unwell, "\n{} {}: last {exit}", machine.name, daemon.status.name);
                for line in &daemon.log {
                    let _ = writeln!(unwell, "    {line}");
                }
            }
        }
    }
    format!("{daemons}{unwell}")
}

fn age(since: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    duration(now.saturating_sub(since))
}

/// Seconds as people say them.
pub fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
    }
}
