//! `kubectl-underlay lab`, called as a user would call it.
//!
//! In: the name of a lab. Out: the lab brought up, asked and taken down; the program's own progress goes to our
//! standard error.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The program, as built together with the one that runs.
#[derive(Debug, Clone)]
pub struct Cli {
    program: PathBuf,
}

impl Cli {
    /// Finds it beside the running program.
    pub fn beside_us() -> Result<Self> {
        let us = std::env::current_exe().context("finding this program")?;
        let program = us.with_file_name("kubectl-underlay");
        if !program.is_file() {
            bail!("{} is not there: build it with `cargo build --workspace`", program.display());
        }
        Ok(Self { program })
    }

    fn lab(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["lab", "--name", name]).stdin(Stdio::null());
        command
    }

    /// Brings a lab up: the default one, or that of a lab file.
    pub fn up(&self, name: &str, file: Option<&Path>) -> Result<TakenDown> {
        let mut command = self.lab(name);
        command.arg("up");
        if let Some(file) = file {
            command.arg("--file").arg(file);
        }
        let status = command.status().with_context(|| format!("running {}", self.program.display()))?;
        let lab = TakenDown { cli: self.clone(), name: name.to_owned(), armed: true };
        if status.success() {
            return Ok(lab);
        }
        if status.code().is_some() {
            // It has told why, and cleaned up behind itself. Whatever has that name now is not ours.
            lab.keep();
        }
        bail!("lab {name:?} did not come up");
    }

    /// Takes a lab down.
    pub fn down(&self, name: &str) -> Result<()> {
        let status = self.lab(name).arg("down").status();
        let status = status.with_context(|| format!("running {}", self.program.display()))?;
        if status.success() { Ok(()) } else { bail!("lab {name:?} could not be taken down") }
    }

    /// What `status` tells about a lab, and whether it finds everything well.
    pub fn status(&self, name: &str) -> Result<(Value, bool)> {
        let output = self.lab(name).args(["status", "--output", "json"]).output();
        let output = output.with_context(|| format!("running {}", self.program.display()))?;
        let report = serde_json::from_slice(&output.stdout).with_context(|| {
            format!("asking lab {name:?} how it is: {}", String::from_utf8_lossy(&output.stderr).trim())
        })?;
        Ok((report, output.status.success()))
    }

    /// A command in a machine of a lab, to be run.
    pub fn in_machine(&self, name: &str, machine: &str, argv: &[&str]) -> Command {
        let mut command = self.lab(name);
        command.args(["exec", machine, "--"]).args(argv);
        command
    }

    /// What a command prints that runs in a machine of a lab.
    pub fn exec(&self, name: &str, machine: &str, argv: &[&str]) -> Result<String> {
        let output = self.in_machine(name, machine, argv).output();
        let output = output.with_context(|| format!("running {}", self.program.display()))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            bail!("`{}` in {machine}: {}", argv.join(" "), text.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A lab that is taken down when this value goes, whatever the reason.
#[derive(Debug)]
pub struct TakenDown {
    cli: Cli,
    name: String,
    armed: bool,
}

impl TakenDown {
    /// Leaves the lab up.
    pub fn keep(mut self) {
        self.armed = false;
    }

    /// Takes the lab down now.
    pub fn down(mut self) -> Result<()> {
        self.armed = false;
        self.cli.down(&self.name)
    }
}

impl Drop for TakenDown {
    fn drop(&mut self) {
        if self.armed
            && let Err(error) = self.cli.down(&self.name)
        {
            eprintln!("{error:#}");
        }
    }
}
