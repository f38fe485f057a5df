//! Hints: what a run that failed may have meant, in a line each.
//!
//! The child collects the names, because only it has the engine's tables. How names are compared,
//! what messages mean and how hints read is here, where it can be tested without PHP.

mod nearest;
mod parse_error;
mod subject;
#[cfg(test)]
mod tests;

use crate::encode::TRUNCATED;

pub use nearest::Nearest;
pub use parse_error::ParseErrorLine;
pub use subject::Subject;

/// The number of hints of an answer.
pub const HINTS_MAX: usize = 5;
/// The longest hint, in bytes.
pub const HINT_MAX_BYTES: usize = 400;
/// The longest name that is compared or shown, in bytes.
pub const NAME_MAX_BYTES: usize = 200;
/// How many names a list may have to be shown as a whole.
pub const LIST_MAX: usize = 15;

/// What stands for the names that were left out.
const MORE: &str = "...";

/// A hint, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    about: String,
    text: String,
    names_subject: bool,
}

impl Hint {
    /// `did you mean first, second or third?`; `None` for no names.
    #[must_use]
    pub fn did_you_mean(about: &str, names: &[String]) -> Option<Self> {
        let (last, first) = names.split_last()?;
        let text = match first {
            [] => format!("did you mean {last}?"),
            first => format!("did you mean {} or {last}?", first.join(", ")),
        };
        Some(Self {
            about: about.to_owned(),
            text,
            names_subject: false,
        })
    }

    /// `head: first, second`, as many names as fit; `None` for no names.
    #[must_use]
    pub fn list(about: &str, head: &str, names: &[String]) -> Option<Self> {
        if names.is_empty() {
            return None;
        }
        let mut text = format!("{head}: ");
        for (at, name) in names.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            if text.len() + separator.len() + name.len() > HINT_MAX_BYTES - MORE.len() - 2 {
                text.push_str(separator);
                text.push_str(MORE);
                break;
            }
            text.push_str(separator);
            text.push_str(name);
        }
        Some(Self::sentence(about, text))
    }

    /// A text that says what it is about.
    #[must_use]
    pub fn sentence(about: &str, text: String) -> Self {
        Self {
            about: about.to_owned(),
            text,
            names_subject: true,
        }
    }
}

/// Hints as they are told: each once, and where they are about several things, each says about which.
#[must_use]
pub fn told(hints: &[Hint]) -> Vec<String> {
    let several = hints.iter().any(|hint| hint.about != hints[0].about);
    let told = hints.iter().map(|hint| match several {
        true if !hint.names_subject => format!("{}: {}", hint.about, hint.text),
        _ => hint.text.clone(),
    });
    bounded(told.collect())
}

/// At most [`HINTS_MAX`] hints of one line and [`HINT_MAX_BYTES`] each, each once. The host does this
/// again: a child can say anything.
#[must_use]
pub fn bounded(hints: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    for hint in hints {
        let hint = one_line(&hint, HINT_MAX_BYTES);
        if kept.len() < HINTS_MAX && !hint.is_empty() && !kept.contains(&hint) {
            kept.push(hint);
        }
    }
    kept
}

/// `text` in one line of at most `max` bytes: what breaks lines, or acts on a terminal, is replaced.
#[must_use]
pub fn one_line(text: &str, max: usize) -> String {
    let is_cut = text.len() > max;
    let kept = match is_cut {
        true => &text[..text.floor_char_boundary(max.saturating_sub(TRUNCATED.len()))],
        false => text,
    };
    let mut line = String::with_capacity(kept.len());
    for c in kept.chars() {
        // Also the separators of Unicode that some programs break lines at.
        let breaks = c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        line.push(if breaks { '?' } else { c });
    }
    if is_cut {
        // The mark that redaction knows: what stands before it may be the beginning of a secret.
        line.push_str(TRUNCATED);
    }
    line
}
