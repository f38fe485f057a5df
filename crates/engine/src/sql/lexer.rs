//! Tokenizes a text as the server's own scanner does, for texts in which a name may be in a string
//! or a comment. Does not tokenize what is ambiguous.

use super::words::{Comment, Versioned, comment, is_of_word};
use super::{Dialect, Reading};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword, a name without quotes, or a number.
    Word,
    /// The inside of a quoted name.
    Name,
    /// The inside of a string.
    Text,
    /// A single character, or MySQL's `\N`.
    Mark,
}

/// A token of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a [u8],
}

impl Token<'_> {
    pub(crate) fn is_mark(&self, mark: u8) -> bool {
        self.kind == Kind::Mark && self.text == [mark]
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && super::words::ends_with(self.text, word)
    }
}

/// The tokens of a MySQL text for each way in which the server may read it: how it treats version
/// comments and double quotes is unknown. `None` if there may be other ways.
pub(super) fn each_way(reading: Reading, text: &[u8]) -> Option<Vec<Vec<Token<'_>>>> {
    let has = |mark: &[u8]| text.windows(mark.len()).any(|at| at == mark);
    let versioned = has(b"/*!") || has(b"/*M!");
    let quoted = text.contains(&b'"') && text.contains(&b'\\');
    let ways = [
        (Versioned::Executed, false),
        (Versioned::Executed, true),
        (Versioned::Skipped, false),
        (Versioned::Skipped, true),
    ];
    ways.into_iter()
        .filter(|(way, is_ansi)| (versioned || *way == Versioned::Executed) && (quoted || !is_ansi))
        .map(|(versioned, is_ansi)| {
            let lexer = Lexer::of(Dialect::MySql, reading, text);
            let lexer = Lexer {
                versioned,
                is_ansi,
                ..lexer
            };
            lexer.collect()
        })
        .collect()
}

/// The tokens of a text, without comments. `None` if it is ambiguous.
pub(super) fn tokens(dialect: Dialect, reading: Reading, text: &[u8]) -> Option<Vec<Token<'_>>> {
    Lexer::of(dialect, reading, text).collect()
}

/// Yields the tokens of a text, up to the point where it is ambiguous: `None` marks that point.
pub(crate) struct Lexer<'a> {
    dialect: Dialect,
    reading: Reading,
    text: &'a [u8],
    rest: &'a [u8],
    last: Option<Kind>,
    is_stuck: bool,
    /// How the server treats version comments.
    versioned: Versioned,
    /// Whether a version comment that it executes is open.
    is_in_versioned: bool,
    /// Whether MySQL's double quotes enclose names (`ANSI_QUOTES`) instead of strings.
    is_ansi: bool,
}

const QUOTES: &[u8] = b"'\"`";

impl<'a> Lexer<'a> {
    pub(crate) fn of(dialect: Dialect, reading: Reading, text: &'a [u8]) -> Self {
        let is_ambiguous = !text.is_ascii() && !reading.whole_ascii;
        Self {
            dialect,
            reading,
            text,
            rest: text,
            last: None,
            is_stuck: is_ambiguous || dialect == Dialect::MySql && text.contains(&0),
            versioned: Versioned::Executed,
            is_in_versioned: false,
            is_ansi: false,
        }
    }

    /// Reads the next token, which must exist; `None` if it is ambiguous.
    fn token(&mut self) -> Option<Token<'a>> {
        let Self { dialect, rest, .. } = *self;
        let (first, after) = rest.split_first()?;
        let (kind, inside, after) = match (dialect, first) {
            (_, b'\'') => {
                let escapes =
                    !self.reading.plain_backslash || is_escape_string(dialect, self.text, rest);
                quoted(Kind::Text, b'\'', escapes, after)?
            }
            (Dialect::MySql, b'"') => {
                let escapes = !self.reading.plain_backslash && !self.is_ansi;
                quoted(Kind::Name, b'"', escapes, after)?
            }
            (Dialect::MySql, b'`') => quoted(Kind::Name, b'`', false, after)?,
            // Quotes names in a mode of MariaDB; otherwise it does not occur outside strings.
            (Dialect::MySql, b'[') => return None,
            (Dialect::PostgreSql, b'"') => quoted(Kind::Name, b'"', false, after)?,
            (Dialect::PostgreSql, b'$') => dollar(rest)?,
            (Dialect::PostgreSql, b'0'..=b'9') => number(rest)?,
            // A token of its own, whatever follows.
            (Dialect::MySql, b'\\') if after.first() == Some(&b'N') => {
                (Kind::Mark, &rest[..2], &after[1..])
            }
            // White space in some character sets, part of a name in others.
            (Dialect::MySql, 0x80..) => (Kind::Mark, &rest[..1], after),
            _ if is_of_word(*first) => {
                let is_mysql = dialect == Dialect::MySql;
                let ends = |byte: &u8| !is_of_word(*byte) || is_mysql && !byte.is_ascii();
                let (word, after) = rest.split_at(rest.iter().position(ends).unwrap_or(rest.len()));
                (Kind::Word, word, after)
            }
            _ => (Kind::Mark, &rest[..1], after),
        };
        // A string that continues on the next line has the escapes of its beginning.
        let may_go_on = dialect == Dialect::PostgreSql && self.last == Some(Kind::Text);
        if kind == Kind::Text && may_go_on {
            return None;
        }
        self.last = Some(kind);
        self.rest = after;
        Some(Token { kind, text: inside })
    }

    /// Skips to the next token. `None` if its position is ambiguous.
    fn skip(&mut self) -> Option<()> {
        loop {
            let first = *self.rest.first()?;
            // A vertical tab is white space to MySQL, and to PostgreSQL from version 16 on.
            if first.is_ascii_whitespace() || first == 0x0b {
                self.rest = &self.rest[1..];
                continue;
            }
            match comment(self.dialect, self.rest) {
                // MySQL's hints end elsewhere than other comments if they contain quotes.
                Some(Comment::Plain(after)) => {
                    let inside = &self.rest[..self.rest.len() - after.len()];
                    if inside.starts_with(b"/*+") && inside.iter().any(|byte| QUOTES.contains(byte))
                    {
                        return None;
                    }
                    self.rest = after;
                }
                // It is executed or skipped. Without quotes and further comments its end is
                // unambiguous.
                Some(Comment::Versioned(inside)) => {
                    let length = inside.windows(2).position(|at| at == b"*/")?;
                    let is_sure = |byte: &u8| !QUOTES.contains(byte) && !b"/*-#".contains(byte);
                    if !inside[..length].iter().all(is_sure) {
                        return None;
                    }
                    self.is_in_versioned = self.versioned == Versioned::Executed;
                    self.rest = match self.versioned {
                        Versioned::Executed => inside,
                        Versioned::Skipped => &inside[length + 2..],
                    };
                }
                // Otherwise it is a star, and a comment may begin after it.
                None if self.is_in_versioned && self.rest.starts_with(b"*/") => {
                    self.is_in_versioned = false;
                    self.rest = &self.rest[2..];
                }
                None => return Some(()),
            }
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Option<Token<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let token = match self.is_stuck {
            true => None,
            false => self.skip().and_then(|()| self.token()),
        };
        if token.is_none() && self.rest.is_empty() {
            return None;
        }
        if token.is_none() {
            // Yield this only once.
            self.rest = &[];
        }
        Some(token)
    }
}

/// Returns whether an `E` before a string enables escapes in it.
fn is_escape_string(dialect: Dialect, text: &[u8], rest: &[u8]) -> bool {
    let before = &text[..text.len() - rest.len()];
    dialect == Dialect::PostgreSql
        && match before {
            [b'e' | b'E'] => true,
            [.., byte, b'e' | b'E'] => !is_of_word(*byte),
            _ => false,
        }
}

type Quoted<'a> = (Kind, &'a [u8], &'a [u8]);

/// The text up to the closing quote, and the text after it. A doubled quote stands for itself.
fn quoted(kind: Kind, quote: u8, escapes: bool, text: &[u8]) -> Option<Quoted<'_>> {
    let mut at = 0;
    loop {
        match text[at..] {
            [b'\\', _, ..] if escapes => at += 2,
            [first, second, ..] if first == quote && second == quote => at += 2,
            [first, ..] if first == quote => return Some((kind, &text[..at], &text[at + 1..])),
            [_, ..] => at += 1,
            // The server rejects it if it does not end.
            [] => return Some((kind, &text[..at], &[])),
        }
    }
}

/// PostgreSQL's `$1` and `$tag$…$tag$`.
fn dollar(text: &[u8]) -> Option<Quoted<'_>> {
    let end = text[1..]
        .iter()
        .position(|byte| !is_of_word(*byte) || *byte == b'$')
        .map_or(text.len(), |at| at + 1);
    let (tag, after) = text.split_at(end);
    if tag.get(1).is_some_and(u8::is_ascii_digit) {
        // Up to version 14, whatever directly follows it is a name.
        let is_plain = tag[1..].iter().all(u8::is_ascii_digit) && after.first() != Some(&b'$');
        return is_plain.then_some((Kind::Word, tag, after));
    }
    if after.first() != Some(&b'$') {
        return None;
    }
    let tag = &text[..=end];
    let body = &text[tag.len()..];
    let close = body.windows(tag.len()).position(|window| window == tag)?;
    Some((Kind::Text, &body[..close], &body[close + tag.len()..]))
}

/// A number. Whether a name or another number directly follows it depends on the version.
fn number(text: &[u8]) -> Option<Quoted<'_>> {
    let end = text
        .iter()
        .position(|byte| !is_of_word(*byte))
        .unwrap_or(text.len());
    let (number, after) = text.split_at(end);
    let is_exponent = |part: &[u8]| match part {
        [b'e' | b'E', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => part.is_empty(),
    };
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
    let exponent = &number[digits.count()..];
    if let ([b'e' | b'E'], [b'+' | b'-', b'0'..=b'9', ..]) = (exponent, after) {
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let end = end + 1 + after[1..].iter().take_while(is_digit).count();
        let is_end = text.get(end).is_none_or(|byte| !is_of_word(*byte));
        return is_end.then_some((Kind::Word, &text[..end], &text[end..]));
    }
    is_exponent(exponent).then_some((Kind::Word, number, after))
}
