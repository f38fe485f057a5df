//! Draws the comparison of the benchmark's last run, for the README.
//!
//! ```text
//! altair-bench-chart <results.json> <bench.svg>
//! ```
//!
//! The same figures give the same bytes: the date is that of the run, and nothing is drawn by lot.

mod chart;
mod results;

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::results::Results;

fn main() -> Result<()> {
    let paths: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [from, to] = paths.as_slice() else {
        bail!("Usage: altair-bench-chart <results.json> <bench.svg>");
    };
    let json = fs::read(from).with_context(|| format!("Cannot read {}", from.display()))?;
    let results: Results = serde_json::from_slice(&json)
        .with_context(|| format!("{} is not what the benchmark writes", from.display()))?;
    let svg = chart::draw(&results).context("Cannot draw the chart")?;
    fs::write(to, svg).with_context(|| format!("Cannot write {}", to.display()))
}
