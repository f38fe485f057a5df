//! Finds the secrets of a text.

use std::ops::Range;

use super::expression;
use super::php::{Kind, Span};
use super::separator::{self, Separator};
use super::value;
use crate::redaction::{is_header_name, is_scheme, is_secret_name, url_password};

/// The secrets of `text`, sorted by their start; they may overlap. `spans` are the parts of the
/// text that are not code.
pub(super) fn secrets(text: &str, spans: &[Span]) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut scan = Scan {
        text,
        bytes,
        spans,
        masks: Vec::new(),
        covered: 0,
    };
    scan.run();
    scan.masks.sort_by_key(|mask| mask.start);
    scan.masks
}

/// A name that was found, as a range of the text.
struct Name<'a> {
    word: &'a str,
    start: usize,
    end: usize,
    /// Whether it is written like an option of a command: `--password`.
    flag: bool,
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    spans: &'a [Span],
    masks: Vec<Range<usize>>,
    /// The end of the last expression whose strings are masked.
    covered: usize,
}

impl<'a> Scan<'a> {
    fn run(&mut self) {
        let mut at = 0;
        // The end of the last run of text that was searched for the `@` of a URL, and its last `@`.
        let mut searched = (0, None);
        while at < self.bytes.len() {
            if self.bytes[at..].starts_with(b"://") {
                let start = at + 3;
                if start >= searched.0 {
                    let end = value::end_of_run(self.bytes, start, self.limit_at(start));
                    searched = (end, self.bytes[start..end].iter().rposition(|b| *b == b'@'));
                    searched.1 = searched.1.map(|found| start + found);
                }
                let password = url_password(self.text, start..searched.0, searched.1);
                at = password.as_ref().map_or(start, |mask| mask.end);
                self.masks.extend(password);
            } else if value::is_word_byte(self.bytes[at]) {
                let end = value::end_of_word(self.bytes, at);
                let word = &self.text[at..end];
                let name = Name {
                    word,
                    start: at,
                    end,
                    flag: word.starts_with('-'),
                };
                at = if is_secret_name(word) {
                    self.value_of(&name).max(end)
                } else {
                    end
                };
            } else {
                at += 1;
            }
        }
    }

    /// Masks the value of `name`, if it has one, and returns where to continue.
    fn value_of(&mut self, name: &Name<'_>) -> usize {
        match self.span_around(name.start) {
            Some(span) if span.kind == Kind::Quoted && name.end == span.end => self
                .value_in_code(name, span.close, true)
                .unwrap_or(span.close),
            Some(span) => self.value_in_prose(name, span.end),
            None => self
                .value_in_code(name, name.end, false)
                // A name with no operator after it is not in code: an earlier quote may have been
                // misread.
                .unwrap_or_else(|| self.value_in_prose(name, self.bytes.len())),
        }
    }

    /// As [`Scan::value_of`], for a name in code, or a string in code that is only a name.
    fn value_in_code(&mut self, name: &Name<'_>, from: usize, quoted: bool) -> Option<usize> {
        let mut at = value::skip_space(self.bytes, from);
        while self.bytes.get(at) == Some(&b']') {
            at = value::skip_space(self.bytes, at + 1);
        }
        let (separator, after) = separator::at(self.bytes, at)?;
        let first = value::skip_space(self.bytes, after);
        let string = self
            .spans_from(first)
            .first()
            .filter(|span| span.open == first && matches!(span.kind, Kind::Quoted | Kind::Heredoc));
        let before = name.start.checked_sub(1).and_then(|at| self.bytes.get(at));
        let of_php = matches!(before, Some(b'$' | b'>' | b':')) || quoted;
        Some(match (separator, string) {
            (Separator::Comma, Some(_)) if quoted => self.mask_list(first),
            (Separator::Comma | Separator::Space, _) => return None,
            (Separator::Call, _) if quoted => return None,
            (Separator::Call, _) => {
                self.mask_expression(at, true);
                after
            }
            (Separator::Assign | Separator::Colon, Some(string)) => {
                self.mask_expression(first, false);
                string.close
            }
            (Separator::Colon, None) if is_header_name(name.word) && !of_php => {
                self.mask_header(name, after, self.bytes.len())
            }
            (Separator::Assign, None) if !of_php => {
                self.mask_word(name, after, self.bytes.len(), separator)
            }
            (Separator::Assign | Separator::Colon, None) => {
                if value::is_code_like(&self.text[first..]) {
                    self.mask_expression(first, false);
                    first
                } else {
                    self.mask_word(name, first, self.bytes.len(), separator)
                }
            }
        })
    }

    /// As [`Scan::value_of`], for a name in a string or other prose that ends at `limit`.
    fn value_in_prose(&mut self, name: &Name<'_>, limit: usize) -> usize {
        let closed = value::skip_closers(self.bytes, name.end, limit);
        let at = value::skip_blanks(self.bytes, closed, limit);
        let quote_follows = at > name.end && value::opening_quote(self.bytes, at, limit).is_some();
        let (separator, after) =
            match separator::at(self.bytes, at).filter(|(_, end)| *end <= limit) {
                Some((Separator::Call, _)) => (Separator::Call, at + 1),
                Some((Separator::Comma, _)) if closed == name.end => return name.end,
                Some(found) => found,
                None if closed == name.end
                    && at > closed
                    && (name.flag || name.word.eq_ignore_ascii_case("bearer") || quote_follows) =>
                {
                    (Separator::Space, at)
                }
                None => return name.end,
            };
        let first = value::skip_blanks(self.bytes, after, limit);
        let end = if separator == Separator::Space && self.bytes.get(first) == Some(&b'-') {
            return name.end; // the next option: this one has no value
        } else if first >= limit {
            limit
        } else if separator == Separator::Call
            && value::opening_quote(self.bytes, first, limit).is_none()
        {
            return name.end;
        } else if is_header_name(name.word) {
            self.mask_header(name, first, limit)
        } else {
            self.mask_word(name, first, limit, separator)
        };
        if end == limit {
            self.mask_concatenated(limit)
        } else {
            end
        }
    }

    /// Masks what `.` appends to a string that ends at `limit` in the middle of a value.
    fn mask_concatenated(&mut self, limit: usize) -> usize {
        let index = self.spans.partition_point(|span| span.end < limit);
        let span = self.spans.get(index);
        let Some(span) = span.filter(|s| s.end == limit && s.kind == Kind::Quoted) else {
            return limit;
        };
        let at = value::skip_space(self.bytes, span.close);
        match self.bytes.get(span.close) {
            _ if self.bytes.get(at) == Some(&b'.') => self.mask_expression(at + 1, false),
            // In PHP no word follows a closing quote directly: this one opens, and an earlier one
            // was misread.
            Some(byte) if value::is_word_byte(*byte) || !byte.is_ascii() => {
                let (masks, end) = value::word(self.text, span.end, self.bytes.len(), false);
                self.masks.extend(masks);
                end
            }
            _ => limit,
        }
    }

    /// Masks the strings of the expression that begins at `from`, and returns its end. Names in it
    /// are still scanned: it may contain `f(password: 'x')` or `--token=x`.
    fn mask_expression(&mut self, from: usize, one_call: bool) -> usize {
        // A nested expression ends no later than the outer one, whose strings are already masked.
        if from < self.covered {
            return from;
        }
        let (masks, end) = expression::strings(self.bytes, self.spans, from, one_call);
        self.masks.extend(masks);
        self.covered = end;
        end
    }

    /// Masks the string at `from`, and each next element as long as the one before it is itself a
    /// name: `['--token', '--password', …]`.
    fn mask_list(&mut self, from: usize) -> usize {
        let mut at = from;
        loop {
            let content = self
                .spans_from(at)
                .first()
                .map(|span| &self.text[span.start..span.end]);
            let named = content.is_some_and(|c| c.starts_with('-') || is_secret_name(c));
            at = self.mask_expression(at, false);
            let next = value::skip_space(self.bytes, at + 1);
            let string_follows = self
                .spans_from(next)
                .first()
                .is_some_and(|s| s.open == next);
            if !(named && self.bytes.get(at) == Some(&b',') && string_follows) {
                return at;
            }
            at = next;
        }
    }

    /// Masks a header's value, without its scheme: the rest of the line, or up to the quote that
    /// matches the one before the header's name.
    fn mask_header(&mut self, name: &Name<'_>, from: usize, limit: usize) -> usize {
        let before = name
            .start
            .checked_sub(1)
            .and_then(|at| self.bytes.get(at))
            .copied();
        let quote = before.filter(|b| matches!(b, b'\'' | b'"'));
        let first = value::skip_blanks(self.bytes, from, limit);
        let end = (first..limit)
            .find(|at| self.bytes[*at] == b'\n' || Some(self.bytes[*at]) == quote)
            .unwrap_or(limit);
        let scheme = value::end_of_word(self.bytes, first).min(end);
        let credentials = value::skip_blanks(self.bytes, scheme, end);
        let shows_scheme =
            credentials > scheme && credentials < end && is_scheme(&self.text[first..scheme]);
        let start = if shows_scheme { credentials } else { first };
        if start < end {
            self.masks.push(start..end);
        }
        end
    }

    /// Masks the word or the quoted part that begins at `from`.
    fn mask_word(
        &mut self,
        name: &Name<'_>,
        from: usize,
        limit: usize,
        separator: Separator,
    ) -> usize {
        let first = value::skip_blanks(self.bytes, from, limit);
        // In `password=…;user=…` and `?token=…&page=…` the value ends where the next one begins. In
        // an option's word and a line of an environment file, these characters are ordinary.
        let in_pairs = separator == Separator::Assign
            && !name.flag
            && name.word.bytes().any(|b| b.is_ascii_lowercase());
        let (masks, end) = value::word(self.text, first, limit, in_pairs);
        self.masks.extend(masks);
        end
    }

    /// The span around `at`; `None` in code.
    fn span_around(&self, at: usize) -> Option<Span> {
        let index = self.spans.partition_point(|span| span.end <= at);
        self.spans
            .get(index)
            .filter(|span| span.start <= at)
            .copied()
    }

    /// The spans that open at `at` or later.
    fn spans_from(&self, at: usize) -> &'a [Span] {
        &self.spans[self.spans.partition_point(|span| span.open < at)..]
    }

    /// The end of the span around `at`; in code, the end of the text.
    fn limit_at(&self, at: usize) -> usize {
        self.span_around(at)
            .map_or(self.bytes.len(), |span| span.end)
    }
}
