//! The words at the beginning of a text, and those anywhere in it.

use super::Dialect;

/// Words to read at the beginning: more than any statement is recognised by.
const WORDS_MAX: usize = 6;

/// Characters of a word to show.
const SHOWN: usize = 32;

/// How MySQL treats a version comment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Versioned {
    /// It executes the content.
    Executed,
    /// It skips the comment.
    Skipped,
}

/// The beginning of a text.
pub(super) struct Beginning {
    /// Its first words, in upper case.
    words: Vec<String>,
    /// Whether they are the whole text.
    pub(super) is_all: bool,
}

impl Beginning {
    pub(super) fn of(dialect: Dialect, versioned: Versioned, text: &[u8]) -> Self {
        let mut words = Vec::new();
        let mut rest = text;
        loop {
            rest = after_space(dialect, versioned, rest, words.is_empty());
            let length = rest.iter().position(|byte| !is_of_word(*byte));
            let (word, after) = rest.split_at(length.unwrap_or(rest.len()));
            if word.first().is_none_or(|byte| *byte == b'$') || words.len() == WORDS_MAX {
                return Self {
                    words,
                    is_all: rest.is_empty(),
                };
            }
            words.push(String::from_utf8_lossy(word).to_ascii_uppercase());
            rest = after;
        }
    }

    /// Returns whether there is nothing to execute.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.is_all
    }

    /// A word by its index; empty if there is none.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Returns whether the first word is one of these space-separated words.
    pub(super) fn is(&self, words: &str) -> bool {
        is_one_of(self.word(0), words)
    }

    /// Returns whether a word is among those read.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }

    /// Names the statement for a person.
    pub(super) fn title(&self) -> String {
        let shown = |word: &String| word.chars().take(SHOWN).collect::<String>();
        let words: Vec<String> = self.words.iter().take(2).map(shown).collect();
        match words.is_empty() {
            true => "a statement that begins with no keyword".to_owned(),
            false => words.join(" "),
        }
    }
}

/// Returns whether a word is one of these space-separated words.
pub(crate) fn is_one_of(word: &str, words: &str) -> bool {
    !word.is_empty() && words.split(' ').any(|one| one == word)
}

/// Returns whether a byte may be part of a name or keyword.
pub(super) fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// All runs of letters, digits and `_` in a text, including those in strings and comments.
pub(super) fn anywhere(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .filter(|run| !run.is_empty())
}

/// Returns whether a run is a word, possibly with a number before it: `1e5` and a name may be
/// adjacent.
pub(super) fn ends_with(run: &[u8], word: &str) -> bool {
    let Some(before) = run.len().checked_sub(word.len()) else {
        return false;
    };
    run[before..].eq_ignore_ascii_case(word.as_bytes())
        && (before == 0 || run[0].is_ascii_digit() || run[before - 1].is_ascii_digit())
}

/// Returns whether a word occurs anywhere in a text.
pub(super) fn has_word(text: &[u8], word: &str) -> bool {
    anywhere(text).any(|run| ends_with(run, word))
}

/// Skips white space, comments and statement ends; at the beginning also parentheses.
fn after_space(dialect: Dialect, versioned: Versioned, text: &[u8], is_beginning: bool) -> &[u8] {
    let mut rest = text;
    loop {
        rest = match rest {
            [
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | b';',
                after @ ..,
            ] => after,
            [b'(', after @ ..] if is_beginning => after,
            [b'*', b'/', after @ ..] if dialect == Dialect::MySql => after,
            _ => match comment(dialect, rest) {
                Some(Comment::Versioned(inside)) if versioned == Versioned::Executed => inside,
                Some(Comment::Versioned(inside)) => after_nested(inside),
                Some(Comment::Plain(after)) => after,
                None => return rest,
            },
        }
    }
}

/// A comment at the beginning of a text.
pub(super) enum Comment<'a> {
    /// The text after it.
    Plain(&'a [u8]),
    /// Its content and the text after it.
    Versioned(&'a [u8]),
}

/// Reads the comment at the beginning of a text.
pub(super) fn comment(dialect: Dialect, text: &[u8]) -> Option<Comment<'_>> {
    match (dialect, text) {
        (
            Dialect::MySql,
            [b'/', b'*', b'!', inside @ ..] | [b'/', b'*', b'M', b'!', inside @ ..],
        ) => {
            let digits = inside.iter().take_while(|byte| byte.is_ascii_digit());
            // Five digits, or six from some version on; then the sixth is not a word.
            Some(Comment::Versioned(&inside[digits.count()..]))
        }
        (Dialect::MySql, [b'/', b'*', inside @ ..]) => Some(Comment::Plain(after(inside, b"*/"))),
        (Dialect::PostgreSql, [b'/', b'*', inside @ ..]) => {
            Some(Comment::Plain(after_nested(inside)))
        }
        // Requires a space after it; otherwise it is two signs.
        (Dialect::MySql, [b'-', b'-', next, ..]) if *next > b' ' && *next != 0x7f => None,
        (_, [b'-', b'-', line @ ..]) | (Dialect::MySql, [b'#', line @ ..]) => {
            // It extends to the end of the line; for MySQL it also ends at a NUL.
            let other = match dialect {
                Dialect::MySql => 0,
                Dialect::PostgreSql => b'\r',
            };
            let end = line
                .iter()
                .position(|byte| *byte == b'\n' || *byte == other);
            Some(Comment::Plain(end.map_or(&[], |end| &line[end..])))
        }
        _ => None,
    }
}

fn after<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    let at = text.windows(end.len()).position(|window| window == end);
    at.map_or(&[], |at| &text[at + end.len()..])
}

/// The text after a comment with nested comments.
fn after_nested(text: &[u8]) -> &[u8] {
    let (mut rest, mut depth) = (text, 1_usize);
    while depth > 0 {
        rest = match rest {
            [b'/', b'*', after @ ..] => {
                depth += 1;
                after
            }
            [b'*', b'/', after @ ..] => {
                depth -= 1;
                after
            }
            [_, after @ ..] => after,
            [] => break,
        }
    }
    rest
}
