//! A text as the server's own scanner cuts it, in one reading.
//!
//! Where it is not cut in the same place, there are more tokens here than to the server, not fewer:
//! to MySQL `1.0INTO` is a number and a keyword, but `1INTO` a name; here both are two.

use super::Dialect;
use super::readings::{Backslash, Bytes, Reading};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or a name without quotes.
    Word,
    /// What is inside of `` `…` ``, `[…]` or `"…"`, where MySQL may have a string.
    Name,
    /// What is inside of a string, with its escapes.
    Text,
    Number,
    /// A single character.
    Mark,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a [u8],
}

impl Token<'_> {
    pub(super) fn is_mark(&self, mark: u8) -> bool {
        self.kind == Kind::Mark && self.text == [mark]
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    /// Whether it is one of these words, between which there are spaces.
    pub(super) fn is_any(&self, words: &str) -> bool {
        self.kind == Kind::Word && words.split(' ').any(|word| self.is_word(word))
    }

    /// Whether it is this name, quoted or not. Where case makes a difference to the server, it makes
    /// none here.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.is_name() && self.text.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Whether it may name something.
    pub(super) fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Name)
    }

    /// Its text in lower case.
    pub(super) fn lower(&self) -> String {
        String::from_utf8_lossy(self.text).to_ascii_lowercase()
    }
}

/// The tokens of a text, without comments. Refuses what would hide something from this scanner.
pub(super) fn of(reading: Reading, text: &[u8]) -> Result<Vec<Token<'_>>, String> {
    let mut scanner = Scanner {
        reading,
        text,
        at: 0,
        is_executing: false,
        tokens: Vec::new(),
    };
    while scanner.at < text.len() {
        scanner.step()?;
    }
    Ok(scanner.tokens)
}

pub(super) struct Scanner<'a> {
    pub(super) reading: Reading,
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    /// Inside of a comment that is executed.
    pub(super) is_executing: bool,
    pub(super) tokens: Vec<Token<'a>>,
}

impl<'a> Scanner<'a> {
    fn step(&mut self) -> Result<(), String> {
        let (is_mysql, is_postgresql) = (self.is(Dialect::MySql), self.is(Dialect::PostgreSql));
        let is_sqlite = !is_mysql && !is_postgresql;
        match self.peek(0) {
            0 | 9..=13 | b' ' => self.at += 1,
            0x80.. if self.reading.bytes == Bytes::Spaces => self.at += 1,
            // A byte order mark is white space where it begins a token.
            0xEF if is_sqlite && self.rest().starts_with("\u{feff}".as_bytes()) => self.at += 3,
            b'-' if self.peek(1) == b'-' => self.dashes()?,
            b'#' if is_mysql => self.line_comment(),
            b'/' if self.peek(1) == b'*' => self.comment()?,
            b'*' if self.is_executing && self.peek(1) == b'/' => {
                self.is_executing = false;
                self.at += 2;
            }
            b'\'' => self.string(self.reading.backslash != Backslash::Nowhere),
            b'"' => self.name(b'"', self.reading.backslash == Backslash::Quotes),
            b'`' if !is_postgresql => self.name(b'`', false),
            b'[' if is_sqlite => self.brackets(),
            b'$' if is_postgresql => self.dollar()?,
            b'$' | b'@' | b'#' | b':' if is_sqlite => self.variable()?,
            // NULL, after which a keyword may follow at once.
            b'\\' if is_mysql && self.peek(1) == b'N' => self.push(Kind::Mark, 2),
            b'0'..=b'9' => self.number(),
            byte if is_part_of_word(byte) => self.word()?,
            _ => self.push(Kind::Mark, 1),
        }
        Ok(())
    }

    pub(super) fn is(&self, dialect: Dialect) -> bool {
        self.reading.dialect == dialect
    }

    /// What is yet to be read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The byte so far ahead, or 0 beyond the end.
    pub(super) fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or_default()
    }

    pub(super) fn skip(&mut self, is_in: impl Fn(u8) -> bool) {
        self.at += self.rest().iter().take_while(|byte| is_in(**byte)).count();
    }

    /// The next `length` bytes are a token.
    pub(super) fn push(&mut self, kind: Kind, length: usize) {
        let text = &self.rest()[..length];
        self.tokens.push(Token { kind, text });
        self.at += length;
    }

    /// SQLite's `:name`. What is in brackets after one belongs to it, even a quote: `$name(')`.
    fn variable(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let mut length = 1;
        loop {
            match rest.get(length..).unwrap_or_default() {
                [b':', b':', ..] => length += 2,
                [byte, ..] if is_part_of_word(*byte) => length += 1,
                [b'(', ..] if length > 1 => return Err("a variable with brackets".to_owned()),
                _ => break,
            }
        }
        self.push(Kind::Mark, length);
        Ok(())
    }

    pub(super) fn number(&mut self) {
        let begin = self.at;
        self.skip(|byte| byte.is_ascii_digit());
        if self.peek(0) == b'.' {
            self.at += 1;
            self.skip(|byte| byte.is_ascii_digit());
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
            self.at += 1 + sign;
            self.skip(|byte| byte.is_ascii_digit());
        }
        let length = self.at - begin;
        self.at = begin;
        self.push(Kind::Number, length);
    }

    fn word(&mut self) -> Result<(), String> {
        let length = self.length_of_word();
        let is_postgresql = self.is(Dialect::PostgreSql);
        match self.rest().split_at(length) {
            // Its string has escapes in every reading.
            (b"e" | b"E", [b'\'', ..]) if is_postgresql => {
                self.at += length;
                self.string(true);
            }
            (b"u" | b"U", [b'&', b'"', ..]) if is_postgresql => {
                return Err("a name in U&\"…\", which may stand for any".to_owned());
            }
            _ => self.push(Kind::Word, length),
        }
        Ok(())
    }

    fn length_of_word(&self) -> usize {
        let (rest, bytes) = (self.rest(), self.reading.bytes);
        let mut length = 0;
        while let Some(left @ [byte, ..]) = rest.get(length..)
            && is_part_of_word(*byte)
            && !(*byte >= 0x80 && bytes == Bytes::Spaces)
        {
            length += bytes.width(left);
        }
        length
    }
}

pub(super) fn is_part_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}
