//! Finds the strings and comments of PHP code: as much of the grammar as masking needs.

/// Kinds of text that is not code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string in quotes or backticks.
    Quoted,
    /// A heredoc or nowdoc.
    Heredoc,
    /// A comment, or text outside of the PHP tags.
    Prose,
}

/// A stretch of text that is not code, in byte offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) kind: Kind,
    /// Its opening delimiter.
    pub(super) open: usize,
    /// Its content.
    pub(super) start: usize,
    /// The end of its content.
    pub(super) end: usize,
    /// The end of its closing delimiter; `end` where that is missing.
    pub(super) close: usize,
}

/// The strings, comments and foreign parts of `source`, in order. What lies between is code.
///
/// Never fails: what is not closed extends to the end. Unlike in PHP, quotes inside of `{$…}` end a
/// string here; they come in pairs, so the text after them is read correctly.
pub(super) fn spans(source: &str) -> Vec<Span> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match span_at(source, at) {
            Some(span) => {
                // A lone delimiter at the very end has no width; always advance.
                at = span.close.max(at + 1);
                found.push(span);
            }
            None => at += 1,
        }
    }
    found
}

/// The span whose opening delimiter is at `at`.
fn span_at(source: &str, at: usize) -> Option<Span> {
    let bytes = source.as_bytes();
    let rest = &bytes[at..];
    let span = |kind, start: usize, end: usize, close: usize| {
        let length = bytes.len();
        let (start, end) = (start.min(length), end.min(length));
        Some(Span {
            kind,
            open: at,
            start,
            end,
            close: close.min(length),
        })
    };
    match rest {
        [quote @ (b'\'' | b'"' | b'`'), ..] => {
            let end = closing_quote(bytes, at + 1, *quote);
            span(Kind::Quoted, at + 1, end, end + 1)
        }
        [b'/', b'*', ..] => {
            let end = find(source, at + 2, "*/");
            span(Kind::Prose, at + 2, end, end + 2)
        }
        [b'/', b'/', ..] => {
            let end = end_of_line_comment(source, at + 2);
            span(Kind::Prose, at + 2, end, end)
        }
        // `#[` opens an attribute.
        [b'#', next, ..] if *next != b'[' => {
            let end = end_of_line_comment(source, at + 1);
            span(Kind::Prose, at + 1, end, end)
        }
        [b'?', b'>', ..] => {
            let end = find(source, at + 2, "<?");
            span(Kind::Prose, at + 2, end, end + 2)
        }
        [b'<', b'<', b'<', ..] => heredoc(source, at),
        _ => None,
    }
}

/// The next unescaped `quote` from `at` on, or the end.
fn closing_quote(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// The next `needle` from `at` on, or the end.
fn find(source: &str, at: usize, needle: &str) -> usize {
    source
        .get(at..)
        .and_then(|rest| rest.find(needle))
        .map_or(source.len(), |found| at + found)
}

fn end_of_line_comment(source: &str, at: usize) -> usize {
    let line = find(source, at, "\n");
    source[at..line].find("?>").map_or(line, |tag| at + tag)
}

/// The heredoc or nowdoc whose `<<<` is at `at`.
fn heredoc(source: &str, at: usize) -> Option<Span> {
    let first_line = find(source, at, "\n");
    let written = source[at + 3..first_line].trim();
    let label = written.trim_matches(['"', '\'']);
    if label.is_empty() || !label.bytes().all(is_label_byte) {
        return None;
    }
    let start = (first_line + 1).min(source.len());
    let mut line = start;
    while line < source.len() {
        let text = source[line..].trim_start_matches([' ', '\t']);
        let indented = source.len() - text.len();
        if let Some(after) = text.strip_prefix(label)
            && !after.bytes().next().is_some_and(is_label_byte)
        {
            let close = indented + label.len();
            return Some(Span {
                kind: Kind::Heredoc,
                open: at,
                start,
                end: line,
                close,
            });
        }
        line = find(source, line, "\n") + 1;
    }
    let end = source.len();
    Some(Span {
        kind: Kind::Heredoc,
        open: at,
        start,
        end,
        close: end,
    })
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}
