//! Finds weak secrets where they stand as passwords: in a URL, `scheme://user:password@host`, and
//! after a name that marks one, `password=…`.
//!
//! Both the text examined before a password and the length of the secrets are bounded.

use super::spans::HEAD_MIN;
use super::variables::is_parameter;
use super::{Span, forms};

/// Bytes examined before a password: a user and its scheme, or a name.
pub(super) const BEFORE_MAX: usize = 128;

/// Bytes that end the value of a parameter.
const ENDS: &[u8] = b" \t\r\n\0;&,'\"`()[]{}<>\\|=";

/// The weak secrets.
pub(super) struct Places {
    /// Each with the index of its secret, sorted.
    values: Vec<(Vec<u8>, usize)>,
    /// Bytes of the longest value.
    longest: usize,
}

impl Places {
    /// Searches for these secrets as they are, and as they are written in a URL.
    pub(super) fn new<'a>(values: impl Iterator<Item = (usize, &'a [u8])>) -> Self {
        let mut values: Vec<(Vec<u8>, usize)> = values
            .flat_map(|(of, value)| {
                let value = value.trim_ascii().to_vec();
                let encoded = forms::url(&value);
                std::iter::once(value)
                    .chain(encoded)
                    .map(move |it| (it, of))
            })
            .collect();
        values.sort();
        values.dedup_by(|later, first| later.0 == first.0);
        let longest = values.iter().map(|(text, _)| text.len()).max();
        Self {
            longest: longest.unwrap_or(0),
            values,
        }
    }

    /// Whether there is nothing to search for.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The secret that equals `text`.
    pub(super) fn whole(&self, text: &[u8]) -> Option<usize> {
        if text.len() > self.longest {
            return None;
        }
        let at = self
            .values
            .binary_search_by(|(own, _)| own.as_slice().cmp(text));
        Some(self.values.get(at.ok()?)?.1)
    }

    /// Where secrets stand in `text`, sorted and without overlaps. A truncated text (`is_cut`) may
    /// end with the beginning of one.
    pub(super) fn spans(&self, text: &[u8], is_cut: bool) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        if self.is_empty() {
            return spans;
        }
        // Most texts contain neither byte; checking the whole text first is faster.
        let has_some = text.contains(&b'@') || text.contains(&b'=');
        let searched = if has_some { text } else { b"" };
        for (at, byte) in searched.iter().enumerate() {
            let place = match byte {
                b'@' => self.before_host(text, at),
                b'=' => self.behind_name(text, at),
                _ => None,
            };
            if let Some((span, of)) = place
                && spans.last().is_none_or(|(last, _)| last.end <= span.start)
            {
                spans.push((span, of));
            }
        }
        if is_cut
            && let Some((start, of)) = self.head_at_end(text)
            && text.len() - start >= HEAD_MIN
            && spans.last().is_none_or(|(last, _)| last.end <= start)
        {
            spans.push((start..text.len(), of));
        }
        spans
    }

    /// Where at the end of `text` a secret begins that may continue in later output.
    pub(super) fn head_at_end(&self, text: &[u8]) -> Option<(usize, usize)> {
        let first = text.len().saturating_sub(self.longest).max(1);
        (first..text.len()).find_map(|start| {
            let head = &text[start..];
            let at = self
                .values
                .partition_point(|(own, _)| own.as_slice() < head);
            let (value, of) = self.values.get(at)?;
            let is_place = is_of_url(text, start) || is_of_parameter(text, start);
            (value.starts_with(head) && is_place).then_some((start, *of))
        })
    }

    /// The password before the `@` of a URL.
    fn before_host(&self, text: &[u8], at: usize) -> Option<Span> {
        let before = &text[at.saturating_sub(self.longest + 1)..at];
        let length = before.iter().rev().position(|byte| b":/".contains(byte))?;
        let start = at - length;
        let of = self.whole(&text[start..at])?;
        is_of_url(text, start).then_some((start..at, of))
    }

    /// The value after the `=` of a parameter.
    fn behind_name(&self, text: &[u8], at: usize) -> Option<Span> {
        let quotes = text[at + 1..]
            .iter()
            .take_while(|byte| b"'\"\\".contains(byte));
        let start = at + 1 + quotes.take(2).count();
        let rest = &text[start..text.len().min(start + self.longest + 1)];
        let length = rest.iter().position(|byte| ENDS.contains(byte));
        let end = start + length.unwrap_or(rest.len());
        let of = self.whole(&text[start..end])?;
        is_of_parameter(text, start).then_some((start..end, of))
    }
}

/// Whether the password of a URL would begin at `start`: after a scheme and a user. A Redis URL
/// needs no user. JSON may escape the slashes.
fn is_of_url(text: &[u8], start: usize) -> bool {
    let before = &text[start.saturating_sub(BEFORE_MAX)..start];
    let (before, needs_redis) = match before.split_last() {
        Some((b':', rest)) => {
            let is_of_user = |byte: &u8| !ENDS.contains(byte) && !b"/:@?#".contains(byte);
            let user = rest
                .iter()
                .rev()
                .take_while(|byte| is_of_user(byte))
                .count();
            (&rest[..rest.len() - user], false)
        }
        Some((b'/', _)) => (before, true),
        _ => return false,
    };
    let unescaped = |text: &[u8]| {
        let escapes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
        text.len() - escapes
    };
    let mut scheme = before;
    for expected in [b'/', b'/', b':'] {
        match scheme.split_last() {
            Some((last, rest)) if *last == expected => scheme = &rest[..unescaped(rest)],
            _ => return false,
        }
    }
    let is_named = scheme.last().is_some_and(u8::is_ascii_alphanumeric);
    is_named && (!needs_redis || scheme.ends_with(b"redis") || scheme.ends_with(b"rediss"))
}

/// Whether the value of a parameter named like a password would begin at `start`.
fn is_of_parameter(text: &[u8], start: usize) -> bool {
    let before = &text[start.saturating_sub(BEFORE_MAX)..start];
    let quotes = before
        .iter()
        .rev()
        .take_while(|byte| b"'\"\\".contains(byte));
    let quotes = quotes.take(2).count();
    let Some((b'=', before)) = before[..before.len() - quotes].split_last() else {
        return false;
    };
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    let length = before
        .iter()
        .rev()
        .take_while(|byte| is_of_name(byte))
        .count();
    let name = String::from_utf8_lossy(&before[before.len() - length..]);
    is_parameter(&name)
}
