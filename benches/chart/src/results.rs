//! What `benches/bench.php` writes, as far as the chart shows it.

use serde::Deserialize;

/// One run of the benchmark.
#[derive(Deserialize)]
pub struct Results {
    /// When the run ended, as RFC 3339.
    pub taken_at: String,
    /// PHP's version.
    pub php: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's architecture.
    pub machine: String,
    /// How many processors there are.
    pub cores: u32,
    /// The medians of one evaluation.
    pub evaluation_ms: Applications,
}

/// The applications that snippets are evaluated against.
#[derive(Deserialize)]
pub struct Applications {
    /// `examples/shop`.
    pub shop: Ways,
    /// The one that the benchmark generates.
    pub larger: Ways,
}

/// The median of one evaluation in milliseconds, by how it comes by a booted application.
#[derive(Deserialize)]
pub struct Ways {
    /// In plain PHP, with `proc_open`.
    pub plain: f64,
    /// In a process that boots, runs once and ends.
    pub cold: f64,
    /// In the call that boots the template and forks from it.
    pub first: f64,
    /// In a fork of a template that is there.
    pub warm: f64,
}

impl Results {
    /// The day on which the run ended, as `2026-11-21`.
    pub fn day(&self) -> &str {
        self.taken_at
            .split_once('T')
            .map_or(self.taken_at.as_str(), |(day, _)| day)
    }
}
