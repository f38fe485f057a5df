//! Values as symfony/dotenv reads them (`Symfony\Component\Dotenv\Dotenv::lexValue`): one or more
//! parts, each quoted or not. A command, `$(…)`, is left as written.

use super::{Otherwise, Piece, Quotes, Reading, line_end};

/// The value at the beginning of `text`; `None` if it is refused.
///
/// Here only its first part may span lines: otherwise an apostrophe in a word would join all lines
/// up to the next apostrophe.
pub(super) fn value(text: &[u8], quotes: &mut Quotes) -> Option<Reading> {
    let line = &text[..line_end(text)];
    if is_blank_or_comment(line) {
        return Some((Vec::new(), line.len()));
    }
    if line[0].is_ascii_whitespace() {
        return None;
    }
    let (mut pieces, mut at) = part(text, quotes, true)?;
    let end = at + line_end(&text[at..]);
    if at > line.len() && !is_blank_or_comment(&text[at..end]) {
        return None; // the closing quote more likely opens another value
    }
    while at < end && !is_comment(text, at) {
        let (part, length) = part(&text[at..end], quotes, false)?;
        pieces.extend(part);
        at += length;
    }
    Some((pieces, end))
}

/// Whether a comment begins at `at`: only after a space or a tab.
fn is_comment(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| text[before]);
    text.get(at) == Some(&b'#') && matches!(before, Some(b' ' | b'\t'))
}

/// One part of a value, and its length. `is_rest`: `text` extends to the end of the file, not of
/// the line.
fn part(text: &[u8], quotes: &mut Quotes, is_rest: bool) -> Option<Reading> {
    let inner = text.get(1..).unwrap_or_default();
    match text.first()? {
        b'\'' => {
            let end = quotes.end(inner, b'\'', is_rest, |_| true)?;
            Some((vec![Piece::Text(inner[..end].to_vec())], end + 2))
        }
        b'"' => {
            let is_end = |at: usize| {
                let before = |back: usize| at.checked_sub(back).map(|at| inner[at]);
                before(1) != Some(b'\\') || before(2) == Some(b'\\')
            };
            let end = quotes.end(inner, b'"', is_rest, is_end)?;
            let escaped = [(&b"\\\""[..], b'"'), (b"\\r", b'\r'), (b"\\n", b'\n')];
            let plain = inner[..end].to_vec();
            let plain = escaped
                .iter()
                .fold(plain, |text, (from, to)| replaced(&text, from, *to));
            Some((with_variables(&plain)?, end + 2))
        }
        _ if is_rest => unquoted(&text[..line_end(text)]),
        _ => unquoted(text),
    }
}

/// Whether a line has no value; a comment may follow the `=` directly.
fn is_blank_or_comment(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// An unquoted part at the beginning of a line, and its length. A space inside is refused if the
/// part has no variables or escapes.
fn unquoted(line: &[u8]) -> Option<Reading> {
    let mut plain = Vec::new();
    let mut at = 0;
    while let Some(byte) = line.get(at).filter(|_| !is_comment(line, at)) {
        match (byte, line.get(at + 1)) {
            (b'"' | b'\'', _) => break,
            (b'\\', Some(quote @ (b'"' | b'\''))) => {
                plain.push(*quote);
                at += 1;
            }
            _ => plain.push(*byte),
        }
        at += 1;
    }
    let plain = plain.trim_ascii_end();
    let pieces = with_variables(plain)?;
    let has_space = plain.iter().any(u8::is_ascii_whitespace);
    let is_as_written = matches!(&pieces[..], [Piece::Text(text)] if text == plain);
    (!(has_space && is_as_written)).then_some((pieces, at))
}

/// Splits a text at its variables: `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:=default}`.
/// `None` if a brace is not closed.
fn with_variables(text: &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut plain = Vec::new();
    let mut rest = text;
    while let Some(dollar) = rest.iter().position(|byte| *byte == b'$') {
        let before = &rest[..dollar];
        let backslashes = before
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        let variable = variable(&rest[dollar..])?;
        let length = variable.as_ref().map_or(1, |(_, length)| *length);
        let written = &rest[dollar..dollar + length];
        rest = &rest[dollar + length..];
        match variable {
            // Removes the backslash and keeps what it escapes.
            _ if backslashes % 2 == 1 => {
                plain.extend_from_slice(&before[..dollar - 1]);
                plain.extend_from_slice(written);
            }
            None => {
                plain.extend_from_slice(before);
                plain.extend_from_slice(written);
            }
            Some((variable, _)) => {
                plain.extend_from_slice(before);
                pieces.push(text_of(&std::mem::take(&mut plain)));
                pieces.push(variable);
            }
        }
    }
    plain.extend_from_slice(rest);
    pieces.push(text_of(&plain));
    Some(pieces)
}

/// The variable that `text` begins with, and its length. `None`: it is refused. `Some(None)`: there
/// is none.
#[allow(clippy::option_option)]
fn variable(text: &[u8]) -> Option<Option<(Piece, usize)>> {
    let has_brace = text.get(1) == Some(&b'{');
    let start = if has_brace { 2 } else { 1 };
    let inner = &text[start..];
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = inner.iter().take_while(|byte| is_of_name(byte)).count();
    let first = inner[..length]
        .strip_prefix(b"_")
        .unwrap_or(&inner[..length]);
    if !first.first().is_some_and(u8::is_ascii_alphabetic) {
        return Some(None);
    }
    let mut end = start + length;
    let mut default = Vec::new();
    if let [b':', b'-' | b'=', rest @ ..] = &text[end..] {
        let length = rest.iter().position(|byte| *byte == b'}');
        default = rest[..length.unwrap_or(rest.len())].to_vec();
        end += 2 + default.len();
    }
    let is_closed = text.get(end) == Some(&b'}');
    if has_brace && !is_closed {
        return None;
    }
    let piece = Piece::Variable {
        name: inner[..length].to_vec(),
        otherwise: Otherwise::Text(default),
        written: text[..end + usize::from(has_brace)].to_vec(),
    };
    Some(Some((piece, end + usize::from(has_brace))))
}

/// A text with each double backslash replaced by a single one.
fn text_of(text: &[u8]) -> Piece {
    Piece::Text(replaced(text, b"\\\\", b'\\'))
}

fn replaced(text: &[u8], from: &[u8], to: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.first() {
        match rest.strip_prefix(from) {
            Some(behind) => {
                out.push(to);
                rest = behind;
            }
            None => {
                out.push(*first);
                rest = &rest[1..];
            }
        }
    }
    out
}
