//! Comments: which are none, and which are code.

use super::Dialect;
use super::readings;
use super::tokens::{Kind, Scanner};

impl Scanner<'_> {
    /// `--` begins a comment, in MySQL only before white space or a control character.
    pub(super) fn dashes(&mut self) -> Result<(), String> {
        match self.peek(2) {
            // Where this is white space depends on the character set, and byte by byte.
            0x80.. if self.is(Dialect::MySql) => {
                return Err("`--` before a byte that may be white space".to_owned());
            }
            33..=126 if self.is(Dialect::MySql) => self.push(Kind::Mark, 1),
            _ => self.line_comment(),
        }
        Ok(())
    }

    pub(super) fn line_comment(&mut self) {
        let is_postgresql = self.is(Dialect::PostgreSql);
        self.skip(|byte| !matches!(byte, b'\n' | 0) && (byte != b'\r' || !is_postgresql));
    }

    /// `/* … */`. PostgreSQL's nest; MySQL has some that are executed, and some with hints.
    pub(super) fn comment(&mut self) -> Result<(), String> {
        let rest = self.rest();
        if self.reading.executes
            && let Some(length) = readings::executable(rest)
        {
            self.is_executing = true;
            self.at += length;
            return Ok(());
        }
        let length = if self.is(Dialect::PostgreSql) {
            nested(rest)
        } else {
            let mut ends = rest[2..].windows(2);
            ends.position(|pair| pair == b"*/")
                .map_or(rest.len(), |end| end + 4)
        };
        if self.is(Dialect::MySql) && rest.starts_with(b"/*+") {
            hints(&rest[3..length])?;
        }
        self.at += length;
        Ok(())
    }
}

/// How many bytes the comment has at the beginning of `text`, with those inside of it.
fn nested(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match text.get(at..).unwrap_or_default() {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            [] => return text.len(),
            _ => at += 1,
        }
    }
}

/// Refuses MySQL's optimizer hints that may set the mode for a statement, and those with a quote in
/// which the end of the comment could be: they have a scanner of their own.
fn hints(text: &[u8]) -> Result<(), String> {
    let lower = text.to_ascii_lowercase();
    if lower.windows(9).any(|part| part == b"read_only") {
        return Err("SET_VAR of the read-only mode".to_owned());
    }
    let is_paired = text.split(|byte| *byte == b'`').count() % 2 == 1;
    if !is_paired || text.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        return Err("an optimizer hint with quotes".to_owned());
    }
    Ok(())
}
