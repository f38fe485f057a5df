//! Values as vlucas/phpdotenv 5 reads them (`Dotenv\Parser\EntryParser`).

use super::{Otherwise, Piece, Quotes, Reading, line_end};

/// The value at the beginning of `text`; `None` if it is refused.
pub(super) fn value(text: &[u8], quotes: &mut Quotes) -> Option<Reading> {
    let line = &text[..line_end(text)];
    let first = line.iter().position(|byte| !is_space(*byte));
    let start = first.unwrap_or(line.len());
    let (pieces, end) = match text.get(start) {
        Some(b'\'') => {
            let inner = &line[start + 1..];
            let end = quotes.end(inner, b'\'', false, |_| true)?;
            (vec![Piece::Text(inner[..end].to_vec())], start + end + 2)
        }
        Some(b'"') => {
            let inner = &text[start + 1..];
            let end = quotes.end(inner, b'"', true, |at| is_unescaped(inner, at))?;
            (unescaped(&inner[..end])?, start + end + 2)
        }
        _ => {
            let rest = &line[start..];
            let is_end = |byte: &u8| is_space(*byte) || *byte == b'#';
            let end = rest.iter().position(is_end).unwrap_or(rest.len());
            (with_variables(&rest[..end]), start + end)
        }
    };
    let behind = &text[end..];
    let behind = &behind[..line_end(behind)];
    let next = behind.iter().find(|byte| !is_space(**byte));
    matches!(next, None | Some(b'#')).then_some((pieces, end + behind.len()))
}

/// Whether `ctype_space()` accepts `byte`.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Whether no backslash escapes the byte at `at`.
fn is_unescaped(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev();
    before.take_while(|byte| **byte == b'\\').count() % 2 == 0
}

/// The text between double quotes; `None` if it has an unknown escape.
fn unescaped(text: &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut bytes = text.iter().enumerate();
    // Unescaped text up to the next backslash is searched for variables.
    let mut from = 0;
    while let Some((at, byte)) = bytes.next() {
        if *byte != b'\\' {
            continue;
        }
        pieces.extend(with_variables(&text[from..at]));
        let (_, escaped) = bytes.next()?;
        let plain = match escaped {
            b'"' | b'\\' | b'$' => *escaped,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            _ => return None,
        };
        pieces.push(Piece::Text(vec![plain]));
        from = at + 2;
    }
    pieces.extend(with_variables(&text[from..]));
    Some(pieces)
}

/// Splits a text at its variables: only `${NAME}`.
fn with_variables(text: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte == b'$') {
        let start = at + found;
        at = start + 1;
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.".contains(byte);
        let Some(inner) = text[at..].strip_prefix(b"{") else {
            continue;
        };
        let length = inner.iter().position(|byte| !is_of_name(byte));
        if let Some(length) = length.filter(|length| *length > 0 && inner[*length] == b'}') {
            let end = at + 1 + length + 1;
            pieces.push(Piece::Text(text[copied..start].to_vec()));
            pieces.push(Piece::Variable {
                name: inner[..length].to_vec(),
                otherwise: Otherwise::Written,
                written: text[start..end].to_vec(),
            });
            (copied, at) = (end, end);
        }
    }
    pieces.push(Piece::Text(text[copied..].to_vec()));
    pieces
}
