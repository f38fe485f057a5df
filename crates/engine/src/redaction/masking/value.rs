//! How far a value goes in text that has no grammar of its own.

use std::ops::Range;

use crate::redaction::{is_scheme, is_secret_name};

/// Whether a name may hold `byte`: `API_KEY`, `--api-key`.
pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The end of the word at `at`.
pub(super) fn end_of_word(bytes: &[u8], at: usize) -> usize {
    skip_while(bytes, at, bytes.len(), is_word_byte)
}

/// The next position from `at` on that is not white space.
pub(super) fn skip_space(bytes: &[u8], at: usize) -> usize {
    skip_while(bytes, at, bytes.len(), |b| b.is_ascii_whitespace())
}

/// The next position from `at` on, up to `limit`, that is neither a space nor a tab.
pub(super) fn skip_blanks(bytes: &[u8], at: usize, limit: usize) -> usize {
    skip_while(bytes, at, limit, |b| matches!(b, b' ' | b'\t'))
}

/// The next white space from `at` on, or `limit`.
pub(super) fn end_of_run(bytes: &[u8], at: usize, limit: usize) -> usize {
    skip_while(bytes, at, limit, |b| !b.is_ascii_whitespace())
}

fn skip_while(bytes: &[u8], at: usize, limit: usize, test: impl Fn(u8) -> bool) -> usize {
    let run = bytes.get(at..limit).unwrap_or_default();
    at + run.iter().take_while(|b| test(**b)).count()
}

/// Steps over what closes a quoted name: `password"`, `password\"`, `password']`.
pub(super) fn skip_closers(bytes: &[u8], at: usize, limit: usize) -> usize {
    let mut end = opening_quote(bytes, at, limit).map_or(at, |quote| quote + 1);
    while end < limit && bytes[end] == b']' {
        end += 1;
    }
    end
}

/// The position of the quote at `at`, after any backslashes.
pub(super) fn opening_quote(bytes: &[u8], at: usize, limit: usize) -> Option<usize> {
    let quote = skip_while(bytes, at, limit, |b| b == b'\\');
    (quote < limit && matches!(bytes[quote], b'\'' | b'"' | b'`')).then_some(quote)
}

/// Whether `text` begins with an expression of PHP rather than with a bare word.
pub(super) fn is_code_like(text: &str) -> bool {
    const KEYWORDS: [&str; 12] = [
        "new", "fn", "function", "static", "match", "clone", "yield", "throw", "null", "true",
        "false", "array",
    ];
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(b'$' | b'[' | b'(' | b'\\' | b'@' | b'!' | b'&') => return true,
        Some(b) if b.is_ascii_alphabetic() || *b == b'_' => {}
        _ => return false,
    }
    let end = skip_while(bytes, 0, bytes.len(), |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'\\')
    });
    let after = &bytes[skip_space(bytes, end)..];
    KEYWORDS.contains(&text[..end].to_ascii_lowercase().as_str())
        || after.starts_with(b"(")
        || after.starts_with(b"::")
}

/// What to mask of the word at `from`, and where it ends.
///
/// A word is one as in a shell: quotes hold it together. `in_pairs` also ends it at `;` and `&`. A
/// word that only introduces the secret (`Bearer`, `password:`) includes the next one.
pub(super) fn word(
    text: &str,
    from: usize,
    limit: usize,
    in_pairs: bool,
) -> (Vec<Range<usize>>, usize) {
    let bytes = text.as_bytes();
    let mut masks = Vec::new();
    let mut start = from;
    if let Some(quote) = opening_quote(bytes, from, limit) {
        let close = closing_quote(bytes, from, quote, limit);
        masks.push(quote + 1..close.start);
        let joined = bytes.get(close.end).is_some_and(|b| {
            close.end < limit && (b.is_ascii_alphanumeric() || matches!(b, b'\'' | b'"'))
        });
        if !joined {
            masks.retain(|mask| !mask.is_empty());
            return (masks, close.end);
        }
        start = close.end;
    }
    let mut at = start;
    let mut word_start = start;
    while at < limit {
        match bytes[at] {
            b if b.is_ascii_whitespace() => {
                let next = skip_blanks(bytes, at, limit);
                if !leads_on(&text[word_start..at]) || next >= limit || bytes[next] == b'\n' {
                    break;
                }
                word_start = next;
                at = next;
            }
            b';' | b'&' if in_pairs => break,
            b'\\' => at = (at + 2).min(limit),
            b'\'' | b'"' | b'`' if ends_here(bytes, at + 1, limit) && at > word_start => break,
            b'\'' | b'"' | b'`' => at = closing_quote(bytes, at, at, limit).end,
            _ => at += 1,
        }
    }
    // Skipping an escaped byte may have ended inside a character; the mask covers all of it.
    let end = (at..=limit)
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(limit);
    masks.push(start..end);
    masks.retain(|mask| !mask.is_empty());
    (masks, end)
}

/// Whether a word is not a secret, but announces one.
fn leads_on(word: &str) -> bool {
    word.ends_with([':', '=', '>'])
        || is_scheme(word)
        || (word.bytes().all(is_word_byte) && is_secret_name(word))
}

/// Whether a quote before `at` closes rather than opens: nothing is joined to it.
fn ends_here(bytes: &[u8], at: usize, limit: usize) -> bool {
    at >= limit
        || bytes[at].is_ascii_whitespace()
        || matches!(bytes[at], b',' | b';' | b')' | b']' | b'}' | b'.')
}

/// The closing delimiter of the quote at `quote`, whose backslashes begin at `open`; both have the
/// same number of backslashes. Empty, at `limit`, if there is none.
fn closing_quote(bytes: &[u8], open: usize, quote: usize, limit: usize) -> Range<usize> {
    let escapes = quote - open;
    let mut run = 0;
    for at in quote + 1..limit {
        if bytes[at] == b'\\' {
            run += 1;
            continue;
        }
        let closes = if escapes == 0 {
            run % 2 == 0
        } else {
            run == escapes
        };
        if bytes[at] == bytes[quote] && closes {
            return at - escapes..at + 1;
        }
        run = 0;
    }
    limit..limit
}
