//! Routes in both directions: how soon a router knows of networks, how soon OVN knows of what a router tells, what it
//! costs to be without overlay, and how soon a node is part of a mesh.
//!
//! In: which part to measure; all of them if none is named. Out: figures, each part's from a lab of its own. Times are
//! taken where the effect is: in the kernel of a router or node, in the northbound database.

mod advertise;
mod flood;
mod import;
mod mesh;
mod streams;
mod transport;

use std::future::Future;
use std::pin::Pin;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Bench;
use crate::figures::Figures;

type Measuring<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// A part of the benchmark, which can be asked for alone.
struct Part {
    name: &'static str,
    run: for<'a> fn(&'a Bench, &'a mut Figures) -> Measuring<'a>,
}

/// All parts, in the order in which they are measured.
const PARTS: &[Part] = &[
    Part { name: "advertise", run: |bench, figures| Box::pin(advertise::measure(bench, figures)) },
    Part { name: "import", run: |bench, figures| Box::pin(import::measure(bench, figures)) },
    Part { name: "transport", run: |bench, figures| Box::pin(transport::measure(bench, figures)) },
    Part { name: "mesh", run: |bench, figures| Box::pin(mesh::measure(bench, figures)) },
];

/// Measures one part, or everything.
pub fn run(bench: &Bench) -> Result<Value> {
    let asked = bench.part.as_deref().filter(|part| !part.is_empty());
    let parts: Vec<&Part> = PARTS.iter().filter(|part| asked.is_none_or(|name| name == part.name)).collect();
    if parts.is_empty() {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        bail!("there is no part {:?}: name one of {}", asked.unwrap_or_default(), names.join(", "));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")?;
    let mut figures = Figures::default();
    for part in parts {
        runtime.block_on((part.run)(bench, &mut figures)).context(part.name)?;
    }
    Ok(serde_json::to_value(figures)?)
}

/// A number of things as a figure.
fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
