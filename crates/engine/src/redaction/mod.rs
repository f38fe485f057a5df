//! Secrets do not leave in answers: the values of variables whose names look secret are replaced,
//! wherever they appear and in whatever form they usually do.
//!
//! This keeps a password out of a log or an agent's context. It is no guard: a snippet that means to
//! can write a secret in a form that nobody looks for.

mod common_words;
mod encoded_values;
mod escapes;
mod forms;
pub(crate) mod masking;
pub(crate) mod output;
mod password_places;
mod secret_names;
mod spans;
#[cfg(test)]
mod tests;
mod url;
mod variables;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::encode::TRUNCATED;
use crate::guards::GuardState;
use crate::result::{Diagnostics, EvalResult, FileChanges};

use password_places::Places;
pub(crate) use secret_names::{is_header_name, is_scheme, is_secret_name, is_secret_variable};
use spans::Finder;
pub(crate) use url::url_password;
pub use variables::is_secret;
pub(crate) use variables::weak;

/// Bytes of the shortest value that is looked for everywhere: a shorter one would be found in many a word.
pub const SHORTEST: usize = 6;

/// A variable's name and value.
pub(crate) type Variable = (Vec<u8>, Vec<u8>);

/// A part of a text, and the secret that is there.
type Span = (Range<usize>, usize);

/// What is secret in a run.
pub struct Secrets {
    /// Name and value, each value once.
    values: Vec<(String, Vec<u8>)>,
    /// Finds those that stand for nothing else.
    finder: Finder,
    /// Finds those that are words, where they stand as passwords.
    places: Places,
}

/// What stands for a text that could not be searched in time.
const UNSEARCHED: &str = "[not shown: there was no time left to look for secrets in it]";

/// The secrets that were replaced.
struct Used {
    secrets: BTreeSet<usize>,
    /// When the search has to be over.
    until: Option<Instant>,
}

impl Used {
    fn new(until: Instant) -> Self {
        Self {
            secrets: BTreeSet::new(),
            until: Some(until),
        }
    }

    fn for_ever() -> Self {
        Self {
            secrets: BTreeSet::new(),
            until: None,
        }
    }
}

/// The last that were made. Most runs of a host have the same, and making the finder takes longer
/// than a short answer does to be searched.
static LAST: Mutex<Option<Arc<Secrets>>> = Mutex::new(None);

impl Secrets {
    /// What is secret in these variables; `None` where nothing is.
    pub(crate) fn of(variables: &[Variable]) -> Option<Arc<Self>> {
        let values = variables::secrets(variables);
        if values.is_empty() {
            return None;
        }
        // In a fork of a host another thread may have the lock for ever.
        let mut last = LAST.try_lock().ok();
        if let Some(Some(last)) = last.as_deref()
            && last.values == values
        {
            return Some(Arc::clone(last));
        }
        let numbered = values.iter().enumerate();
        let (weak, strong): (Vec<_>, Vec<_>) = numbered
            .map(|(of, (_, value))| (of, value.as_slice()))
            .partition(|(_, value)| common_words::is_weak(value));
        let finder = Finder::new(strong.into_iter());
        let places = Places::new(weak.into_iter());
        let secrets = Arc::new(Self {
            values,
            finder,
            places,
        });
        if let Some(last) = last.as_deref_mut() {
            *last = Some(Arc::clone(&secrets));
        }
        Some(secrets)
    }

    /// Replaces the secrets in everything that a result says, and names them in its diagnostics. What
    /// has not been searched `until` then is not shown: it is bounded, but by whoever has made it.
    pub fn redact(&self, result: &mut EvalResult, until: Instant) {
        let mut used = Used::new(until);
        // All of it is taken apart: what is new has to be placed.
        let EvalResult {
            result: value,
            stdout,
            stderr,
            exception,
            duration_ms: _,
            memory_peak_bytes: _,
            exit_code: _,
            timed_out: _,
            diagnostics,
        } = result;
        let Diagnostics {
            outcome: _,
            phase: _,
            message,
            location,
            signal: _,
            timings_ms: _,
            start: _,
            start_reason,
            blocked,
            file_changes,
            queries,
            queries_more: _,
            database_changes,
            output_truncated: _,
            redacted,
            guards,
        } = diagnostics;
        for output in [stdout, stderr] {
            self.text(output, false, &mut used);
        }
        for value in [value, exception].into_iter().flatten() {
            self.json(value, &mut used);
        }
        let location = location.iter_mut();
        let places = location.flat_map(|at| at.stack_trace.iter_mut().chain([&mut at.file]));
        // A switch with a value says what the snippet has asked for.
        let blocked = blocked.iter_mut().flat_map(|it| {
            let lift = it.lift.as_mut().filter(|lift| lift.contains('='));
            lift.into_iter().chain([&mut it.what])
        });
        let changes = file_changes.iter_mut().flat_map(paths);
        let queries = queries.iter_mut().flatten();
        let queries = queries.flat_map(|query| query.at.iter_mut().chain([&mut query.sql]));
        for text in [message, start_reason]
            .into_iter()
            .flatten()
            .chain(places)
            .chain(blocked)
            .chain(changes)
            .chain(queries)
            .chain(guards.values_mut().filter_map(GuardState::text_mut))
        {
            self.text(text, false, &mut used);
        }
        let changes = std::mem::take(database_changes);
        let changes = changes.into_iter().map(|(mut table, rows)| {
            self.text(&mut table, false, &mut used);
            (table, rows)
        });
        *database_changes = changes.collect();
        *redacted = used
            .secrets
            .into_iter()
            .map(|of| self.name(of).to_owned())
            .collect();
        redacted.sort();
        redacted.dedup();
    }

    /// `text` with its secrets replaced.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.text(&mut text, false, &mut Used::for_ever());
        text
    }

    /// Replaces the secrets in a text, which may be cut at its end, or says so there. Gives whether
    /// there were any.
    fn text(&self, text: &mut String, is_cut: bool, used: &mut Used) -> bool {
        let (kept, mark) = match text.strip_suffix(TRUNCATED) {
            Some(kept) => match kept.strip_suffix('\n') {
                Some(kept) => (kept, &text[kept.len()..]),
                None => (kept, TRUNCATED),
            },
            None => (text.as_str(), ""),
        };
        let is_cut = is_cut || !mark.is_empty();
        let Some(spans) = self.spans(b"", kept.as_bytes(), is_cut, used.until) else {
            *text = UNSEARCHED.to_owned();
            return true;
        };
        if spans.is_empty() {
            return false;
        }
        let mut out = Vec::with_capacity(text.len());
        let mut copied = 0;
        for (span, of) in spans {
            out.extend_from_slice(&kept.as_bytes()[copied..span.start]);
            out.extend_from_slice(self.replacement(of).as_bytes());
            used.secrets.insert(of);
            copied = span.end;
        }
        out.extend_from_slice(&kept.as_bytes()[copied..]);
        out.extend_from_slice(mark.as_bytes());
        *text = String::from_utf8(out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        true
    }

    /// What stands for a secret.
    pub(crate) fn replacement(&self, of: usize) -> String {
        format!("[redacted:{}]", self.name(of))
    }

    fn name(&self, of: usize) -> &str {
        self.values.get(of).map_or("", |(name, _)| name)
    }

    /// Where secrets are in a text that stands behind another one, in order and apart, each with the secret
    /// that begins there. `None`: that was not all, and there was no time left.
    pub(crate) fn spans(
        &self,
        before: &[u8],
        text: &[u8],
        is_cut: bool,
        until: Option<Instant>,
    ) -> Option<Vec<Span>> {
        let mut spans = self.finder.spans(text, is_cut, until)?;
        if self.places.is_empty() {
            return Some(spans);
        }
        let whole = behind(before, text);
        let places = self.places.spans(&whole, is_cut).into_iter();
        let places = places.filter_map(|(span, of)| {
            let start = span.start.checked_sub(before.len())?;
            Some((start..span.end - before.len(), of))
        });
        spans.extend(places);
        spans.sort_by_key(|(span, _)| span.start);
        let mut apart: Vec<Span> = Vec::with_capacity(spans.len());
        for (span, of) in spans {
            match apart.last_mut() {
                Some((last, _)) if span.start < last.end => last.end = last.end.max(span.end),
                _ => apart.push((span, of)),
            }
        }
        Some(apart)
    }

    /// Where at the end of a text that stands behind another one a secret begins that may go on behind it.
    pub(crate) fn head_at_end(&self, before: &[u8], text: &[u8]) -> Option<usize> {
        let head = self.finder.head_at_end(text, 1).map(|(start, _)| start);
        if self.places.is_empty() {
            return head;
        }
        let place = self.places.head_at_end(&behind(before, text));
        // What was passed on is not held any more.
        let place = place.map(|(start, _)| start.saturating_sub(before.len()));
        head.into_iter().chain(place).min()
    }
}

/// A text with another one before it.
fn behind<'a>(before: &[u8], text: &'a [u8]) -> Cow<'a, [u8]> {
    match before {
        [] => Cow::Borrowed(text),
        before => Cow::Owned([before, text].concat()),
    }
}

/// The paths of changes.
fn paths(changes: &mut FileChanges) -> impl Iterator<Item = &mut String> {
    [
        &mut changes.created,
        &mut changes.modified,
        &mut changes.deleted,
    ]
    .into_iter()
    .flatten()
    .map(|change| &mut change.path)
}

// The values are nobody's to see.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.values.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_tuple("Secrets").field(&names).finish()
    }
}
