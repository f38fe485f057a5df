//! The words that a text begins with, and those that are anywhere in it.

use super::Dialect;

/// Words that are looked at: more than any statement is known by.
const WORDS_MAX: usize = 6;

/// Characters of a word that are shown.
const SHOWN: usize = 32;

/// What MySQL does with a comment for servers of some version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Versioned {
    /// It executes what is in it.
    Executed,
    /// It skips it.
    Skipped,
}

/// What a text begins with.
pub(super) struct Beginning {
    /// Its first words, in capitals.
    words: Vec<String>,
    /// Whether that is all of it.
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

    /// Whether there is nothing to execute.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.is_all
    }

    /// A word, from 0 on; empty where there is none.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Whether the first word is one of these, between which there are spaces.
    pub(super) fn is(&self, words: &str) -> bool {
        is_one_of(self.word(0), words)
    }

    /// Whether a word is among those that are looked at.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }

    /// What the statement is, in words for a person.
    pub(super) fn title(&self) -> String {
        let shown = |word: &String| word.chars().take(SHOWN).collect::<String>();
        let words: Vec<String> = self.words.iter().take(2).map(shown).collect();
        match words.is_empty() {
            true => "a statement that begins with no keyword".to_owned(),
            false => words.join(" "),
        }
    }
}

/// Whether a word is one of these, between which there are spaces.
pub(crate) fn is_one_of(word: &str, words: &str) -> bool {
    !word.is_empty() && words.split(' ').any(|one| one == word)
}

/// Whether a byte may be part of a name or keyword.
pub(super) fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// All runs of letters, digits and `_` in a text, wherever they are: in strings and comments, too.
pub(super) fn anywhere(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .filter(|run| !run.is_empty())
}

/// Whether a run is a word, where a number may be before it: `1e5` and a name may stand together.
pub(super) fn ends_with(run: &[u8], word: &str) -> bool {
    let Some(before) = run.len().checked_sub(word.len()) else {
        return false;
    };
    run[before..].eq_ignore_ascii_case(word.as_bytes())
        && (before == 0 || run[0].is_ascii_digit() || run[before - 1].is_ascii_digit())
}

/// Whether a word is anywhere in a text.
pub(super) fn has_word(text: &[u8], word: &str) -> bool {
    anywhere(text).any(|run| ends_with(run, word))
}

/// What comes after space, comments and what ends a statement; at the beginning after parentheses, too.
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

/// A comment that a text begins with.
pub(super) enum Comment<'a> {
    /// What is after it.
    Plain(&'a [u8]),
    /// What is in it and after it.
    Versioned(&'a [u8]),
}

/// The comment that a text begins with.
pub(super) fn comment(dialect: Dialect, text: &[u8]) -> Option<Comment<'_>> {
    match (dialect, text) {
        (
            Dialect::MySql,
            [b'/', b'*', b'!', inside @ ..] | [b'/', b'*', b'M', b'!', inside @ ..],
        ) => {
            let digits = inside.iter().take_while(|byte| byte.is_ascii_digit());
            // Five, or from some version on six: the sixth is no word then.
            Some(Comment::Versioned(&inside[digits.count()..]))
        }
        (Dialect::MySql, [b'/', b'*', inside @ ..]) => Some(Comment::Plain(after(inside, b"*/"))),
        (Dialect::PostgreSql, [b'/', b'*', inside @ ..]) => {
            Some(Comment::Plain(after_nested(inside)))
        }
        // With a space after it; else it is two signs.
        (Dialect::MySql, [b'-', b'-', next, ..]) if *next > b' ' && *next != 0x7f => None,
        (_, [b'-', b'-', line @ ..]) | (Dialect::MySql, [b'#', line @ ..]) => {
            // It goes on to the end of the line; MySQL reads on at a NUL, too.
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

/// What comes after a comment with comments in it.
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
