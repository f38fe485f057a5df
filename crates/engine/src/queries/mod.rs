//! A run's database statements, each with its rows, its time and the line that caused it, and the
//! changes they made.
//!
//! [`Recorder`] runs inside the run, `CollectedQueries` collects its news in the host.

mod collected;
mod effect;
mod recorder;
#[cfg(test)]
mod tests;

use altair_sandbox::bounded::at_most;
use serde::{Deserialize, Serialize};

pub(crate) use collected::{CollectedQueries, QueryReport};
pub use recorder::{Recorder, Text};

/// Statements that are listed; the others are only counted.
pub const LISTED_MAX: usize = 50;
/// Bytes of a statement's text that are shown.
pub const SQL_MAX: usize = 2_000;
/// Tables whose changes are reported.
pub const TABLES_MAX: usize = 100;
/// Bytes of a place or a table's name.
const NAME_MAX: usize = 512;
/// The first [`LISTED_MAX`] statements, and one place for all others.
const PLACES: usize = LISTED_MAX + 1;

/// A statement, and how often it was executed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Query {
    /// Its text; with `?` for the values if it was executed with different ones.
    pub sql: String,
    /// How often it was executed.
    pub times: u64,
    /// Rows read or changed by all executions together.
    pub rows: u64,
    /// Milliseconds of all executions together, from sending to the answer.
    pub ms: f64,
    /// The line of the application that first executed it, `src/Orders.php:40`; never in `vendor/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// The statements after the first [`LISTED_MAX`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MoreQueries {
    /// How often other statements were executed.
    pub times: u64,
    /// Their rows.
    pub rows: u64,
    /// Their milliseconds.
    pub ms: f64,
}

/// Changed rows of a table, as far as the server reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowChanges {
    /// Added rows.
    pub inserted: u64,
    /// Changed rows.
    pub updated: u64,
    /// Removed rows.
    pub deleted: u64,
}

impl RowChanges {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn plus(self, other: Self) -> Self {
        Self {
            inserted: self.inserted.saturating_add(other.inserted),
            updated: self.updated.saturating_add(other.updated),
            deleted: self.deleted.saturating_add(other.deleted),
        }
    }
}

/// Changes since the last news: each changed thing in full.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// Statements.
    #[serde(deserialize_with = "at_most::<PLACES, _, _>")]
    pub entries: Vec<Entry>,
    /// Changes by table.
    #[serde(deserialize_with = "at_most::<TABLES_MAX, _, _>")]
    pub changes: Vec<(String, RowChanges)>,
}

/// A statement on its way to the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The statement's number; [`LISTED_MAX`] stands for all unlisted ones.
    pub place: u16,
    /// As in [`Query`].
    pub sql: String,
    /// As in [`Query`]; empty if unknown.
    pub at: String,
    /// As in [`Query`].
    pub times: u64,
    /// As in [`Query`].
    pub rows: u64,
    /// Microseconds of all answered executions together.
    pub us: u64,
    /// When it was sent, if it is unanswered, in nanoseconds of `CLOCK_MONOTONIC`.
    pub since_ns: Option<u64>,
}
