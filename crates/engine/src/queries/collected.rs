//! Collects in the host what a run reports of its statements.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    Entry, LISTED_MAX, MoreQueries, NAME_MAX, News, PLACES, Query, RowChanges, SQL_MAX, TABLES_MAX,
};
use crate::encode::shorten;

/// The reports so far. A run can report anything, but no more than fits here.
#[derive(Debug, Default)]
pub(crate) struct CollectedQueries {
    places: BTreeMap<u16, Entry>,
    changes: BTreeMap<String, RowChanges>,
}

/// A run's statements, as a result shows them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct QueryReport {
    pub queries: Vec<Query>,
    pub more: Option<MoreQueries>,
    pub changes: BTreeMap<String, RowChanges>,
}

impl CollectedQueries {
    /// Records news.
    pub(crate) fn take(&mut self, news: News) {
        for entry in news.entries {
            if usize::from(entry.place) < PLACES {
                self.places.insert(entry.place, entry);
            }
        }
        let changes = news.changes.into_iter().take(TABLES_MAX);
        self.changes = changes
            .map(|(table, rows)| (shorten(&table, NAME_MAX), rows))
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
    }

    /// Returns all of it. `ended`: when the run was ended, in nanoseconds of `CLOCK_MONOTONIC`, if
    /// it did not end by itself: until then it waited for a missing answer. `all` is how long the
    /// run took, an upper bound for the time of any statement.
    pub(crate) fn asked(self, ended: Option<u64>, all: Duration) -> QueryReport {
        let all_us = u64::try_from(all.as_micros()).unwrap_or(u64::MAX);
        let mut asked = QueryReport {
            changes: self.changes,
            ..QueryReport::default()
        };
        for (place, entry) in self.places {
            let waited = ended.zip(entry.since_ns);
            let waited = waited.map_or(0, |(end, since)| end.saturating_sub(since) / 1000);
            let us = entry.us.saturating_add(waited).min(all_us);
            #[allow(clippy::cast_precision_loss)] // no run takes 2^53 microseconds
            let ms = us as f64 / 1000.0;
            let Entry { times, rows, .. } = entry;
            if usize::from(place) == LISTED_MAX {
                asked.more = Some(MoreQueries { times, rows, ms });
                continue;
            }
            asked.queries.push(Query {
                sql: shorten(&entry.sql, SQL_MAX),
                times,
                rows,
                ms,
                at: (!entry.at.is_empty()).then(|| shorten(&entry.at, NAME_MAX)),
            });
        }
        asked
    }
}
