//! What a run asks its databases: each statement with its rows, its time and the line that caused it,
//! and what they have changed.
//!
//! [`Recorder`] is the run's own end, `CollectedQueries` is what its host makes of what it hears.

mod collected;
mod effect;
mod recorder;
#[cfg(test)]
mod tests;

use altair_sandbox::bounded::at_most;
use serde::{Deserialize, Serialize};

pub(crate) use collected::{CollectedQueries, QueryReport};
pub use recorder::{Recorder, Text};

/// Statements that are listed; of others there are only counts.
pub const LISTED_MAX: usize = 50;
/// Bytes of a statement's text that are shown.
pub const SQL_MAX: usize = 2_000;
/// Tables whose changes are told.
pub const TABLES_MAX: usize = 100;
/// Bytes of a place, and of a table's name.
const NAME_MAX: usize = 512;
/// The first [`LISTED_MAX`] statements, and one place for all others.
const PLACES: usize = LISTED_MAX + 1;

/// A statement that was asked, and how often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Query {
    /// Its text; where it was asked with several values, with `?` in their place.
    pub sql: String,
    /// How often.
    pub times: u64,
    /// Rows that it read or changed, of all times.
    pub rows: u64,
    /// Milliseconds of all times, from when it was sent until its answer was there.
    pub ms: f64,
    /// The line of the application that asked first, `src/Orders.php:40`: no code of `vendor/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What came after the first [`LISTED_MAX`] statements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MoreQueries {
    /// How often another statement was asked.
    pub times: u64,
    /// Their rows.
    pub rows: u64,
    /// Their milliseconds.
    pub ms: f64,
}

/// Rows of a table that were changed, as far as the server tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowChanges {
    /// Rows that are new.
    pub inserted: u64,
    /// Rows that are other ones.
    pub updated: u64,
    /// Rows that are gone.
    pub deleted: u64,
}

impl RowChanges {
    /// Whether there are none.
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

/// What has come since the last one: all of each thing that is another.
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
    /// Which of them: [`LISTED_MAX`] stands for all that are not listed.
    pub place: u16,
    /// As in [`Query`].
    pub sql: String,
    /// As in [`Query`]; empty for none.
    pub at: String,
    /// As in [`Query`].
    pub times: u64,
    /// As in [`Query`].
    pub rows: u64,
    /// Microseconds of all times that have an answer.
    pub us: u64,
    /// When it was sent, where there is no answer yet, in nanoseconds of `CLOCK_MONOTONIC`.
    pub since_ns: Option<u64>,
}
