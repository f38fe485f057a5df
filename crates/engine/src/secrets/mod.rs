//! Secrets do not leave in answers: the values of variables whose names look secret are replaced,
//! wherever they appear and in whatever form they usually do.
//!
//! This keeps a password out of a log or an agent's context. It is no guard: a snippet that means to
//! can write a secret in a form that nobody looks for.

mod forms;
mod name;
mod spans;
mod stream;
#[cfg(test)]
mod tests;
mod url;
mod variables;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Map, Value};

use crate::encode::TRUNCATED;
use crate::result::{EvalResult, FileChanges};

use crate::known::Variable;
pub(crate) use name::{is_header_name, is_scheme, is_secret_name, is_secret_variable};
use spans::Finder;
pub(crate) use stream::Redactor;
pub(crate) use url::url_password;
pub use variables::is_secret;

/// Bytes of the shortest value that is looked for: a shorter one would be found in many a word.
pub const SHORTEST: usize = 6;

/// What is secret in a run.
pub struct Secrets {
    /// Name and value, each value once.
    values: Vec<(String, Vec<u8>)>,
    finder: Finder,
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

/// Parts of an encoded value that are none of the snippet's.
const SHAPE: [&str; 9] = [
    "type",
    "encoding",
    "is_list",
    "count",
    "length",
    "id",
    "truncated",
    "size_hint",
    "exhausted",
];

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
        let finder = Finder::new(values.iter().map(|(_, value)| value.as_slice()));
        let secrets = Arc::new(Self { values, finder });
        if let Some(last) = last.as_deref_mut() {
            *last = Some(Arc::clone(&secrets));
        }
        Some(secrets)
    }

    /// Replaces the secrets in everything that a result says, and names them in its diagnostics. What
    /// has not been searched `until` then is not shown: it is bounded, but by whoever has made it.
    pub fn redact(&self, result: &mut EvalResult, until: Instant) {
        let mut used = Used::new(until);
        for output in [&mut result.stdout, &mut result.stderr] {
            self.text(output, false, &mut used);
        }
        for value in [&mut result.result, &mut result.exception]
            .into_iter()
            .flatten()
        {
            self.json(value, &mut used);
        }
        let diagnostics = &mut result.diagnostics;
        let location = diagnostics.location.iter_mut();
        let places = location.flat_map(|at| at.stack_trace.iter_mut().chain([&mut at.file]));
        let blocked = diagnostics.blocked.iter_mut();
        // A switch with a value says what the snippet has asked for.
        let blocked = blocked.flat_map(|it| {
            let lift = it.lift.as_mut().filter(|lift| lift.contains('='));
            lift.into_iter().chain([&mut it.what])
        });
        let changes = diagnostics.file_changes.iter_mut().flat_map(paths);
        let texts = [&mut diagnostics.message, &mut diagnostics.start_reason];
        for text in texts
            .into_iter()
            .flatten()
            .chain(places)
            .chain(blocked)
            .chain(changes)
            .chain(diagnostics.guards.values_mut())
        {
            self.text(text, false, &mut used);
        }
        diagnostics.redacted = used
            .secrets
            .into_iter()
            .map(|of| self.name(of).to_owned())
            .collect();
        diagnostics.redacted.sort();
        diagnostics.redacted.dedup();
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
        let Some(spans) = self.finder.spans_until(kept.as_bytes(), is_cut, used.until) else {
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
    fn replacement(&self, of: usize) -> String {
        format!("[redacted:{}]", self.name(of))
    }

    fn name(&self, of: usize) -> &str {
        self.values.get(of).map_or("", |(name, _)| name)
    }

    /// Replaces the secrets in an encoded value: in its texts, its numbers, and its keys.
    fn json(&self, value: &mut Value, used: &mut Used) {
        match value {
            Value::String(text) => {
                self.text(text, false, used);
            }
            Value::Number(number) => {
                let text = number.to_string();
                // A longer number that has one inside is another number.
                let spans = self.finder.spans_until(text.as_bytes(), false, used.until);
                match spans.as_deref() {
                    None => *value = UNSEARCHED.into(),
                    Some([(span, of)]) if *span == (0..text.len()) => {
                        used.secrets.insert(*of);
                        *value = self.replacement(*of).into();
                    }
                    Some(_) => {}
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item, used)),
            Value::Object(map) => {
                let is_cut = map.get("truncated") == Some(&Value::Bool(true));
                let is_encoded = map.get("type").is_some_and(Value::is_string);
                for (key, item) in map.iter_mut() {
                    match (key.as_str(), item) {
                        // The shape is ours, and a secret may equal a word of it.
                        (key, _) if is_encoded && SHAPE.contains(&key) => {}
                        // What is shown as base64 has no mark where it is cut.
                        ("value", Value::String(text)) if is_cut => {
                            self.text(text, true, used);
                        }
                        ("value" | "properties", Value::Object(entries)) if is_encoded => {
                            entries
                                .values_mut()
                                .for_each(|entry| self.json(entry, used));
                            self.keys(entries, used);
                        }
                        (_, item) => self.json(item, used),
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Replaces the secrets in keys. Two that become the same are told apart.
    fn keys(&self, map: &mut Map<String, Value>, used: &mut Used) {
        let until = used.until;
        let is_clean = |key: &String| {
            let spans = self.finder.spans_until(key.as_bytes(), false, until);
            spans.is_some_and(|spans| spans.is_empty())
        };
        if map.keys().all(is_clean) {
            return;
        }
        let mut clean = Map::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (mut key, item) in std::mem::take(map) {
            self.text(&mut key, false, used);
            let mut distinct = key.clone();
            while clean.contains_key(&distinct) {
                // From where the last one so called has come to.
                let number = numbers.entry(key.clone()).or_insert(1);
                *number += 1;
                distinct = format!("{key} ({number})");
            }
            clean.insert(distinct, item);
        }
        *map = clean;
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
