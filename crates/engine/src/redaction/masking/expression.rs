//! The strings of an expression of PHP.

use std::ops::Range;

use super::php::Span;
use super::value;

/// The strings and comments of the expression that begins at `from`, and where it ends: with its
/// statement, element or argument, or with `one_call` at the bracket that closes the one at `from`.
pub(super) fn strings(
    bytes: &[u8],
    spans: &[Span],
    from: usize,
    one_call: bool,
) -> (Vec<Range<usize>>, usize) {
    let mut masks = Vec::new();
    let mut at = from;
    let mut depth = 0_usize;
    let mut last = b'=';
    let mut index = spans.partition_point(|span| span.open < from);
    while let Some(&byte) = bytes.get(at) {
        if let Some(span) = spans.get(index).filter(|span| span.open == at) {
            if span.start < span.end {
                masks.push(span.start..span.end);
            }
            index += 1;
            at = span.close.max(at + 1);
            last = b'"';
            continue;
        }
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return (masks, at),
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 && one_call {
                    return (masks, at + 1);
                }
            }
            b';' | b',' if depth == 0 => return (masks, at),
            b'\n' if depth == 0 => {
                let next = value::skip_space(bytes, at);
                let goes_on = matches!(bytes.get(next), Some(b'.' | b'?' | b':'))
                    || matches!(last, b'.' | b'?' | b':' | b'=');
                if !goes_on {
                    return (masks, at);
                }
                at = next;
                continue;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
        at += 1;
    }
    (masks, at)
}
