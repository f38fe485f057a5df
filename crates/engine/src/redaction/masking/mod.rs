//! Masks what looks like a secret: the value after a name such as `password`, `--token` or
//! `API_KEY`, an `Authorization` header, the password of a URL.
//!
//! A name is found anywhere. What follows it determines its value: in code an expression, whose
//! strings are masked and whose calls stay readable; in a string, a comment or other prose a word,
//! a quoted part, or for a header the rest of the line. When in doubt, more is masked. A secret
//! without a name next to it is not recognised.

mod expression;
mod php;
mod scan;
mod separator;
#[cfg(test)]
mod tests;
mod value;

use php::{Kind, Span};

/// Replaces a masked value.
const MASK: &str = "***";

/// How a text is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// PHP code.
    Php,
    /// Anything else: a message.
    Prose,
}

/// PHP code with what looks like a secret masked, for a place where it stays.
#[must_use]
pub fn mask_code(code: &str) -> String {
    masked(code, Grammar::Php, usize::MAX)
}

/// `text` with its secrets masked, cut at `max` bytes and never inside a character. Masking comes
/// first, so that no cut leaves a part of a secret that is no longer recognised.
pub(crate) fn masked(text: &str, grammar: Grammar, max: usize) -> String {
    let spans = match grammar {
        Grammar::Php => php::spans(text),
        Grammar::Prose => {
            let (start, end) = (0, text.len());
            vec![Span {
                kind: Kind::Prose,
                open: start,
                start,
                end,
                close: end,
            }]
        }
    };

    let mut out = String::with_capacity(text.len().min(max));
    let mut copied = 0;
    for mask in scan::secrets(text, &spans) {
        // Masks come in order; one that begins inside of the last adds only what is beyond it.
        if mask.end <= copied {
            continue;
        }
        if mask.start >= copied {
            out.push_str(&text[copied..mask.start]);
            out.push_str(MASK);
        }
        copied = mask.end;
        if out.len() >= max {
            break;
        }
    }
    if out.len() < max {
        out.push_str(&text[copied..]);
    }
    let end = (0..=max.min(out.len()))
        .rev()
        .find(|at| out.is_char_boundary(*at))
        .unwrap_or(0);
    out.truncate(end);
    out
}
