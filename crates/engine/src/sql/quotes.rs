//! Strings and quoted names.

use super::Dialect;
use super::tokens::{Kind, Scanner, Token, is_part_of_word};

impl Scanner<'_> {
    /// `'…'`.
    pub(super) fn string(&mut self, escapes: bool) {
        let begin = self.at + 1;
        let mut end = self.closing(begin, b'\'', escapes);
        // In PostgreSQL it goes on if another one follows on a later line, with the same escapes.
        while let Some(next) = self.continuation(end + 1) {
            end = self.closing(next + 1, b'\'', escapes);
        }
        self.quoted(Kind::Text, begin, end);
    }

    pub(super) fn name(&mut self, quote: u8, escapes: bool) {
        let end = self.closing(self.at + 1, quote, escapes);
        self.quoted(Kind::Name, self.at + 1, end);
    }

    pub(super) fn brackets(&mut self) {
        let closing = self.rest().iter().position(|byte| *byte == b']');
        let end = closing.map_or(self.text.len(), |length| self.at + length);
        self.quoted(Kind::Name, self.at + 1, end);
    }

    fn quoted(&mut self, kind: Kind, begin: usize, end: usize) {
        let text = self.text.get(begin..end).unwrap_or_default();
        self.tokens.push(Token { kind, text });
        self.at = end + 1;
    }

    /// Where the quote is that closes what begins at `at`; the end of the text where there is none.
    fn closing(&self, mut at: usize, quote: u8, escapes: bool) -> usize {
        let bytes = self.reading.bytes;
        while let Some(rest @ [byte, ..]) = self.text.get(at..) {
            if *byte == quote {
                if rest.get(1) != Some(&quote) {
                    return at;
                }
                at += 2;
            } else if escapes && let Some(length) = bytes.backslash(rest) {
                // MySQL escapes a byte, PostgreSQL a character.
                let is_mysql = self.is(Dialect::MySql);
                let next = rest.get(length..).unwrap_or_default();
                at += length + if is_mysql { 1 } else { bytes.width(next) };
            } else {
                at += bytes.width(rest);
            }
        }
        self.text.len()
    }

    /// Where the quote is that continues PostgreSQL's string which ended before `at`. On the same line
    /// one is an error to the server, and need not be told apart.
    fn continuation(&self, mut at: usize) -> Option<usize> {
        if !self.is(Dialect::PostgreSql) {
            return None;
        }
        loop {
            match self.text.get(at..)? {
                [9..=13 | b' ', ..] => at += 1,
                [b'-', b'-', comment @ ..] => {
                    at += 2 + comment
                        .iter()
                        .position(|byte| matches!(byte, b'\n' | b'\r'))?;
                }
                [b'\'', ..] => return Some(at),
                _ => return None,
            }
        }
    }

    /// PostgreSQL's parameters, `$1`, and strings, `$tag$ … $tag$`.
    pub(super) fn dollar(&mut self) -> Result<(), String> {
        let rest = self.rest();
        if self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.number();
            return Ok(());
        }
        let is_tag = |byte: &u8| *byte != b'$' && is_part_of_word(*byte);
        let tag = 1 + rest[1..].iter().take_while(|byte| is_tag(byte)).count();
        // Two that differ may be the same when they are converted.
        if !rest[..tag].is_ascii() {
            return Err("`$` before a name that is not ASCII".to_owned());
        }
        if rest.get(tag) != Some(&b'$') {
            self.push(Kind::Mark, 1);
            return Ok(());
        }
        let (delimiter, inside) = rest.split_at(tag + 1);
        let length = (0..inside.len())
            .find(|at| inside[*at] == b'$' && inside[*at..].starts_with(delimiter))
            .unwrap_or(inside.len());
        self.at += delimiter.len();
        self.push(Kind::Text, length);
        self.at += delimiter.len();
        Ok(())
    }
}
