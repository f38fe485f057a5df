//! Keeps secrets out of answers: replaces the values of variables with secret-looking names
//! wherever they appear, in all their usual forms.
//!
//! This keeps a password out of a log or an agent's context. It is not a guard: a snippet can
//! deliberately write a secret in a form that is not searched for.

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
use crate::result::{BootChanges, Diagnostics, EvalResult, FileChange, FileChanges};

pub use masking::mask_code;
use password_places::Places;
pub(crate) use secret_names::{is_header_name, is_scheme, is_secret_name, is_secret_variable};
use spans::Finder;
pub(crate) use url::url_password;
pub use variables::is_secret;
pub(crate) use variables::weak;

/// Minimum bytes of a value that is searched for everywhere: shorter values occur inside many
/// words.
pub const SHORTEST: usize = 6;

/// A variable's name and value.
pub(crate) type Variable = (Vec<u8>, Vec<u8>);

/// A range of a text, and the index of the secret there.
type Span = (Range<usize>, usize);

/// The secrets of a run.
pub struct Secrets {
    /// Name and value, each value once.
    values: Vec<(String, Vec<u8>)>,
    /// Finds secrets that are not common words, anywhere.
    finder: Finder,
    /// Finds secrets that are common words, only where a password stands.
    places: Places,
}

/// Replaces a text that could not be searched in time.
const UNSEARCHED: &str = "[not shown: there was no time left to look for secrets in it]";

/// The secrets that were replaced.
struct Used {
    secrets: BTreeSet<usize>,
    /// The deadline of the search.
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

/// The last secrets built. Most runs of a host have the same ones, and building the finder takes
/// longer than searching a short answer.
static LAST: Mutex<Option<Arc<Secrets>>> = Mutex::new(None);

impl Secrets {
    /// The secrets in these variables; `None` if there are none.
    pub(crate) fn of(variables: &[Variable]) -> Option<Arc<Self>> {
        let values = variables::secrets(variables);
        if values.is_empty() {
            return None;
        }
        // In a fork of the host, the lock may be held forever by a thread that does not exist
        // there.
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

    /// Replaces the secrets in all texts of a result, and names them in its diagnostics. A text not
    /// searched before `until` is not shown: its size is bounded only by the process that produced
    /// it.
    pub fn redact(&self, result: &mut EvalResult, until: Instant) {
        let mut used = Used::new(until);
        // Exhaustive destructuring: a new field must be classified here.
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
            hints,
            signal: _,
            timings_ms: _,
            start: _,
            pool: _,
            start_reason,
            blocked,
            file_changes,
            queries,
            queries_more: _,
            database_changes,
            output_truncated: _,
            resolved,
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
        // A switch with a value repeats text of the snippet.
        let blocked = blocked.iter_mut().flat_map(|it| {
            let lift = it.lift.as_mut().filter(|lift| lift.contains('='));
            lift.into_iter().chain([&mut it.what])
        });
        let changes = file_changes.iter_mut().flat_map(texts_of);
        let queries = queries.iter_mut().flatten();
        let queries = queries.flat_map(|query| query.at.iter_mut().chain([&mut query.sql]));
        for text in [message, start_reason]
            .into_iter()
            .flatten()
            .chain(places)
            .chain(blocked)
            .chain(changes)
            .chain(queries)
            .chain(hints)
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
        let names = std::mem::take(resolved).into_iter();
        let names = names.map(|(mut name, mut class)| {
            self.text(&mut name, false, &mut used);
            self.text(&mut class, false, &mut used);
            (name, class)
        });
        *resolved = names.collect();
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

    /// Replaces the secrets in a text. It is truncated if `is_cut`, or if it ends with the
    /// truncation mark. Returns whether the text was changed.
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

    /// The text that replaces a secret.
    pub(crate) fn replacement(&self, of: usize) -> String {
        format!("[redacted:{}]", self.name(of))
    }

    fn name(&self, of: usize) -> &str {
        self.values.get(of).map_or("", |(name, _)| name)
    }

    /// The secrets in `text`, which follows `before`: sorted, without overlaps, each with the
    /// secret that begins there. `None` if the time ran out.
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

    /// Where at the end of `text`, which follows `before`, a secret begins that may continue in
    /// later output.
    pub(crate) fn head_at_end(&self, before: &[u8], text: &[u8]) -> Option<usize> {
        let head = self.finder.head_at_end(text, 1).map(|(start, _)| start);
        if self.places.is_empty() {
            return head;
        }
        let place = self.places.head_at_end(&behind(before, text));
        // Output that was passed on can no longer be held back.
        let place = place.map(|(start, _)| start.saturating_sub(before.len()));
        head.into_iter().chain(place).min()
    }
}

/// `text` with `before` in front of it.
fn behind<'a>(before: &[u8], text: &'a [u8]) -> Cow<'a, [u8]> {
    match before {
        [] => Cow::Borrowed(text),
        before => Cow::Owned([before, text].concat()),
    }
}

/// The paths and diffs of changes. All of both is named: what is new has to be placed.
fn texts_of(changes: &mut FileChanges) -> impl Iterator<Item = &mut String> {
    let FileChanges {
        created,
        modified,
        deleted,
        more: _,
        incomplete: _,
        diffs_left_out: _,
        boot: _,
        boot_changes,
    } = changes;
    let of_boot = boot_changes.iter_mut().flat_map(|boot| {
        let BootChanges {
            created,
            modified,
            deleted,
        } = boot;
        [created, modified, deleted]
    });
    let lists = [created, modified, deleted].into_iter().chain(of_boot);
    lists.flatten().flat_map(
        |FileChange {
             path,
             size: _,
             file_type: _,
             target,
             mode: _,
             notes,
             diff,
         }| diff.iter_mut().chain(target).chain(notes).chain([path]),
    )
}

// Shows only names, never values.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.values.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_tuple("Secrets").field(&names).finish()
    }
}
