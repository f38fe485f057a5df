//! The line of a parse error, as a hint of one line: `line 3, column 19: foreach ($a as $b {`.

use super::one_line;

/// Characters that are shown before the place, and after it.
const AROUND: usize = 60;
/// What stands where a long line is cut.
const CUT: char = '…';
/// More than a hint of this kind takes: each character at most four bytes.
const LINE_MAX_BYTES: usize = 8 * (AROUND + 2);

/// A line and the place of the error in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseErrorLine {
    /// The line's number, from 1.
    pub line: usize,
    /// The column, in characters, from 1.
    pub column: usize,
    /// The line, or what is around the place of a long one.
    pub text: String,
}

impl ParseErrorLine {
    /// The place `offset` bytes into `snippet`. An error at the end is behind the last character that is
    /// no space.
    #[must_use]
    pub fn of(snippet: &[u8], offset: usize) -> Self {
        let mut offset = offset.min(snippet.len());
        if snippet[offset..].iter().all(u8::is_ascii_whitespace) {
            offset = snippet[..offset].trim_ascii_end().len();
        }
        let start = |before: &[u8]| before.iter().rposition(|byte| *byte == b'\n');
        let from = start(&snippet[..offset]).map_or(0, |at| at + 1);
        let rest = &snippet[offset..];
        let to = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        // Of a line of any length, no more is looked at than is shown.
        let after = &rest[..to.unwrap_or(rest.len()).min(4 * AROUND + 4)];
        let before = &snippet[from..offset];
        let head = String::from_utf8_lossy(before);
        let column = head.chars().count() + 1;
        let shown: String = match column > AROUND + 1 {
            true => std::iter::once(CUT)
                .chain(head.chars().skip(column - AROUND))
                .collect(),
            false => head.into_owned(),
        };
        let tail = String::from_utf8_lossy(after);
        let mut text = shown;
        text.extend(tail.chars().take(AROUND));
        if tail.chars().nth(AROUND).is_some() {
            text.push(CUT);
        }
        let lines = snippet[..from].iter().filter(|byte| **byte == b'\n');
        Self {
            line: lines.count() + 1,
            column,
            // A tab is one character here, so that the caret is below its place.
            text: one_line(&text.replace('\t', " "), LINE_MAX_BYTES),
        }
    }

    /// Reads a hint that is one of these.
    #[must_use]
    pub fn read(hint: &str) -> Option<Self> {
        let (line, rest) = hint.strip_prefix("line ")?.split_once(", column ")?;
        let (column, text) = rest.split_once(": ")?;
        Some(Self {
            line: line.parse().ok()?,
            column: column.parse().ok().filter(|column| *column > 0)?,
            text: text.to_owned(),
        })
    }

    /// How many characters of `text` stand before the place.
    #[must_use]
    pub fn before(&self) -> usize {
        (self.column - 1).min(AROUND)
    }
}

impl std::fmt::Display for ParseErrorLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, column, text } = self;
        write!(f, "line {line}, column {column}: {text}")
    }
}
