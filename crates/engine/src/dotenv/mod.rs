//! Reads `.env` files like the two parsers that PHP applications use: vlucas/phpdotenv (Laravel's)
//! and symfony/dotenv.
//!
//! Which of them an application uses is unknown; if they differ, a variable has both values. If one
//! of them would refuse the whole file, only the refused line is lost.

mod symfony;
#[cfg(test)]
mod tests;
mod vlucas;

use std::collections::HashMap;

/// A variable as a file sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub name: Vec<u8>,
    /// Its distinct values: Symfony's, then phpdotenv's. Empty if neither can read the line.
    pub values: Vec<Vec<u8>>,
    /// The text after the `=`, without the space around it.
    pub raw: Vec<u8>,
}

/// Variables that a file may refer to: `${NAME}`.
pub(crate) type Names = HashMap<Vec<u8>, Vec<u8>>;

/// The byte order mark of UTF-8, which some editors write.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Variable {
        name: Vec<u8>,
        otherwise: Otherwise,
        /// As written in the file.
        written: Vec<u8>,
    },
}

/// What replaces a variable without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Otherwise {
    /// The reference as written, if it is not set.
    Written,
    /// This text, if it is not set or empty.
    Text(Vec<u8>),
}

/// A value that a parser has read, and its length in the text in bytes.
type Reading = (Vec<Piece>, usize);

/// The variables of a file, in its order. A reference is looked up in `inherited`, then in the
/// file's own variables, then in `others`. `room`: bytes that references may still insert; a
/// reference that exceeds it stays as written.
pub(crate) fn entries(
    text: &[u8],
    inherited: &Names,
    others: &Names,
    room: &mut usize,
) -> Vec<Entry> {
    let text = with_plain_lines(text.strip_prefix(MARK).unwrap_or(text));
    let mut own = Names::new();
    let mut entries = Vec::new();
    let (mut quotes, mut other_quotes) = (Quotes::default(), Quotes::default());
    let mut at = 0;
    while at < text.len() {
        let line = &text[at..at + line_end(&text[at..])];
        let mut end = at + line.len();
        if let Some((name, before)) = name(line) {
            let start = at + before;
            let rest = &text[start..];
            let first = symfony::value(rest, &mut quotes);
            let second = vlucas::value(rest, &mut other_quotes);
            // The nearer end: the longer value may include lines of other variables.
            let read = first.iter().chain(&second).map(|(_, read)| *read).min();
            end = read.map_or(end, |read| start + read);
            let find = |name: &[u8]| {
                let found = inherited.get(name).or_else(|| own.get(name));
                found.or_else(|| others.get(name)).map(Vec::as_slice)
            };
            let mut values: Vec<Vec<u8>> = Vec::new();
            for (pieces, _) in first.into_iter().chain(second) {
                let value = joined(&pieces, &find, room);
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            if let Some(value) = values.first() {
                own.entry(name.clone()).or_insert_with(|| value.clone());
            }
            entries.push(Entry {
                name,
                values,
                raw: text[start..end].trim_ascii().to_vec(),
            });
        }
        at = end + 1;
    }
    entries
}

/// Replaces each line end with a line feed.
fn with_plain_lines(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\r' if text.get(at + 1) == Some(&b'\n') => {}
            b'\r' => plain.push(b'\n'),
            other => plain.push(*other),
        }
    }
    plain
}

fn line_end(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| *byte == b'\n');
    end.unwrap_or(text.len())
}

/// The name that a line sets, and where its value begins.
fn name(line: &[u8]) -> Option<(Vec<u8>, usize)> {
    if line.trim_ascii_start().starts_with(b"#") {
        return None;
    }
    let equals = line.iter().position(|byte| *byte == b'=')?;
    let mut name = line[..equals].trim_ascii();
    if let Some(exported) = name.strip_prefix(b"export")
        && exported.first().is_some_and(u8::is_ascii_whitespace)
    {
        name = exported.trim_ascii_start();
    }
    for quote in [b'"', b'\''] {
        if let [first, inner @ .., last] = name
            && *first == quote
            && *last == quote
        {
            name = inner;
        }
    }
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.".contains(byte);
    (!name.is_empty() && name.iter().all(is_of_name)).then(|| (name.to_vec(), equals + 1))
}

/// A value with its references replaced.
fn joined<'a>(
    pieces: &[Piece],
    find: &dyn Fn(&[u8]) -> Option<&'a [u8]>,
    room: &mut usize,
) -> Vec<u8> {
    let mut value = Vec::new();
    for piece in pieces {
        let (name, otherwise, written) = match piece {
            Piece::Text(text) => {
                value.extend_from_slice(text);
                continue;
            }
            Piece::Variable {
                name,
                otherwise,
                written,
            } => (name, otherwise, written),
        };
        let put_in = match (find(name), otherwise) {
            (None, Otherwise::Written) => written,
            (None | Some([]), Otherwise::Text(text)) => text.as_slice(),
            (Some(found), _) => found,
        };
        match room.checked_sub(put_in.len()) {
            Some(left) => {
                *room = left;
                value.extend_from_slice(put_in);
            }
            None => value.extend_from_slice(written),
        }
    }
    value
}

/// Quotes known to be unclosed up to the end of the text. Without this, each line that opens one
/// would search all lines after it.
#[derive(Debug, Default)]
struct Quotes {
    open: Vec<u8>,
}

impl Quotes {
    /// Where the quotation ends that encloses the beginning of `text`; its opening quote is before
    /// `text`. `is_end` decides whether the quote at a position closes it. `is_rest`: `text`
    /// extends to the end of the file.
    fn end(
        &mut self,
        text: &[u8],
        quote: u8,
        is_rest: bool,
        is_end: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if is_rest && self.open.contains(&quote) {
            return None;
        }
        let end = (0..text.len()).find(|at| text[*at] == quote && is_end(*at));
        if end.is_none() && is_rest {
            self.open.push(quote);
        }
        end
    }
}
