//! The compact encoding: plain JSON where that loses nothing, tags where it would.
//!
//! [`compact`] makes it from the typed encoding, on the host. `docs/compact.md` describes it for
//! whoever reads it. The typed encoding may come from a hostile child: unknown shapes become cuts,
//! and nesting is bounded.
//!
//! `read.rs` turns the typed encoding into a tree of [`item::Item`], `fit.rs` cuts that tree to a
//! budget, `write.rs` writes it.

mod fit;
mod item;
mod read;
mod size;
#[cfg(test)]
mod tests;
mod write;

use serde_json::Value;

/// Bytes that a value may have as compact JSON in an answer to an agent.
pub const COMPACT_MAX_BYTES: usize = 16 << 10;

/// The hint of a cut that the budget made: no request parameter shows more.
const RETURN_LESS: &str = "return less of it";

/// The compact encoding of a value in the typed encoding.
///
/// With a budget the JSON text has at most that many bytes (at least 32). Each container divides its
/// share among its items: what is small is shown whole, and what is large gets equal parts of the
/// rest. So every container that is shown is opened before any sibling's content uses up the budget.
#[must_use]
pub fn compact(typed: &Value, budget: Option<usize>) -> Value {
    let mut item = read::item(typed, read::Place::default());
    if let Some(budget) = budget {
        fit::fit(&mut item, budget);
    }
    write::write(&item)
}
