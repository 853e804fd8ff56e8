//! Measures the project with the real programs.
//!
//! In: the name of a benchmark. Out: a table while it goes, then exactly one line of JSON with everything measured, the
//! versions and the machine. A benchmark measures and never judges: what is fast enough is for its reader to say.
//!
//! A benchmark is one file with a function from [`Bench`] to its results, and one line in [`BENCHMARKS`].

mod bgp;
mod control_plane;
mod cpu;
mod figures;
mod first_route;
mod lab;
mod lab_file;
mod networks;
mod place;
mod plan;
mod process;
mod rig;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use owo_colors::OwoColorize;
use serde_json::{Value, json};
use xtask::cli::Cli;
use xtask::interrupt::Interrupt;

/// Measure something with the real programs.
#[derive(Debug, Parser)]
#[command(name = "underlay-bench", about, long_about = None, after_help = list())]
struct Arguments {
    /// The benchmark.
    name: Option<String>,
    /// Name of the lab that it brings up and takes down.
    #[arg(long, default_value = "bench")]
    lab: String,
    /// Nodes of a cluster without kubelets.
    #[arg(long, env = "NODES", default_value_t = 200)]
    nodes: usize,
    /// Networks of tenants in it.
    #[arg(long, env = "NETWORKS", default_value_t = 20)]
    networks: usize,
    /// The part of a benchmark that has several: the others are left out.
    #[arg(long, env = "PART")]
    part: Option<String>,
}

/// What every benchmark is given.
struct Bench {
    cli: Cli,
    interrupt: Interrupt,
    lab: String,
    nodes: usize,
    networks: usize,
    part: Option<String>,
}

/// A benchmark.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    /// Measures, printing rows of a table meanwhile.
    run: fn(&Bench) -> Result<Value>,
}

/// All benchmarks.
const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "bgp",
        about: "routes told and learned: 100 networks advertised, 100,000 routes imported, no overlay against Geneve, a \
                node that joins a mesh; PART=advertise, import, transport or mesh alone",
        run: bgp::run,
    },
    Benchmark {
        name: "control_plane",
        about: "the cluster manager before NODES=200 and NETWORKS=20: time, CPU, memory, and writes as the API server counts",
        run: control_plane::run,
    },
    Benchmark {
        name: "first_route",
        about: "pods and routes of the default lab: 100 pods at once, restarts, memory, and how soon a router knows",
        run: first_route::run,
    },
    Benchmark {
        name: "lab",
        about: "what a lab of 1, 3 and 8 nodes costs: time to come up and go down, memory, idle CPU",
        run: lab::run,
    },
    Benchmark {
        name: "networks",
        about: "networks of tenants in the default lab: how soon one and ten work, what 50 cost, how soon 20 are gone",
        run: networks::run,
    },
    Benchmark {
        name: "plan",
        about: "the plan for 3,000 nodes with 1,000 networks, and for 50,000 endpoints: all at once, nothing new, one more",
        run: plan::run,
    },
];

/// The benchmarks, a line each.
fn list() -> String {
    let lines = BENCHMARKS.iter().map(|benchmark| format!("\n  {}\t{}", benchmark.name, benchmark.about));
    format!("Benchmarks:{}", lines.collect::<String>())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let name = arguments.name.as_deref().unwrap_or_default();
    let Some(benchmark) = BENCHMARKS.iter().find(|benchmark| benchmark.name == name) else {
        let trouble = if name.is_empty() { "name one".to_owned() } else { format!("there is no {name:?}") };
        anstream::eprintln!("{} {trouble}, as in `make bench NAME=lab`\n{}", "error:".red().bold(), list());
        return ExitCode::from(2);
    };
    match measure(benchmark, arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            anstream::eprintln!("{} {error:#}", "error:".red().bold());
            ExitCode::FAILURE
        }
    }
}

fn measure(benchmark: &Benchmark, arguments: Arguments) -> Result<Value> {
    // Before the benchmark itself adds to the load.
    let (machine, versions) = (place::machine()?, place::versions()?);
    let Arguments { lab, nodes, networks, part, .. } = arguments;
    let bench = Bench { cli: Cli::beside_us()?, interrupt: Interrupt::catch()?, lab, nodes, networks, part };
    let results = (benchmark.run)(&bench)?;
    Ok(json!({ "benchmark": benchmark.name, "results": results, "versions": versions, "machine": machine }))
}

/// A figure with as many decimals as mean anything.
fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
