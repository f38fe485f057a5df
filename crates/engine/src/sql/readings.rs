//! The ways in which a server may read a text, depending on settings that are not known here.

use super::Dialect;

/// One way to read a text from end to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) dialect: Dialect,
    pub(super) backslash: Backslash,
    pub(super) bytes: Bytes,
    /// Whether what is in `/*! … */` is executed.
    pub(super) executes: bool,
}

/// Where a backslash escapes what follows it: MySQL's `sql_mode` has `NO_BACKSLASH_ESCAPES` and
/// `ANSI_QUOTES`, PostgreSQL has `standard_conforming_strings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backslash {
    Nowhere,
    /// In `'…'`.
    Strings,
    /// In `'…'` and `"…"`.
    Quotes,
}

/// What bytes that are not ASCII are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    /// Letters, as in UTF-8.
    Letters,
    /// White space, as 0xA0 is in Latin 1 and 0xFF in code page 866.
    Spaces,
    /// The first of two, of which the second may look like ASCII: GBK, GB 18030, UHC.
    Gbk,
    /// The same in Big5.
    Big5,
    /// The same in Shift JIS.
    Sjis,
    /// And in PostgreSQL's `SHIFT_JIS_2004`, which has a backslash of two bytes.
    Sjis2004,
}

impl Bytes {
    /// How many bytes the character at the beginning of `text` has: 1 or 2.
    pub(super) fn width(self, text: &[u8]) -> usize {
        let &[first, second, ..] = text else { return 1 };
        let is_pair = match self {
            Self::Letters | Self::Spaces => false,
            Self::Gbk => matches!((first, second), (0x81..=0xFE, 0x40..=0x7E | 0x80..=0xFE)),
            Self::Big5 => matches!((first, second), (0xA1..=0xF9, 0x40..=0x7E | 0xA1..=0xFE)),
            Self::Sjis | Self::Sjis2004 => matches!(
                (first, second),
                (0x81..=0x9F | 0xE0..=0xFC, 0x40..=0x7E | 0x80..=0xFC)
            ),
        };
        1 + usize::from(is_pair)
    }

    /// How many bytes the backslash at the beginning of `text` has, if there is one.
    pub(super) fn backslash(self, text: &[u8]) -> Option<usize> {
        match text {
            [b'\\', ..] => Some(1),
            [0x81, 0x5F, ..] if self == Self::Sjis2004 => Some(2),
            _ => None,
        }
    }
}

/// Every reading in which `text` may differ from the others: one for most texts, and a small number
/// for all. Refuses texts of which these are not all.
pub(super) fn of(dialect: Dialect, text: &[u8]) -> Result<Vec<Reading>, String> {
    let executes: &[bool] = match dialect {
        Dialect::MySql if has_executable(text)? => &[false, true],
        _ => &[false],
    };
    let mut readings = Vec::new();
    for bytes in bytes(dialect, text) {
        for backslash in backslashes(dialect, text, bytes) {
            readings.extend(executes.iter().map(|&executes| Reading {
                dialect,
                backslash: *backslash,
                bytes,
                executes,
            }));
        }
    }
    Ok(readings)
}

fn backslashes(dialect: Dialect, text: &[u8], bytes: Bytes) -> &'static [Backslash] {
    let has_any = text.contains(&b'\\') || bytes == Bytes::Sjis2004;
    match dialect {
        Dialect::MySql if has_any => &[Backslash::Nowhere, Backslash::Strings, Backslash::Quotes],
        Dialect::PostgreSql if has_any => &[Backslash::Nowhere, Backslash::Strings],
        _ => &[Backslash::Nowhere],
    }
}

fn bytes(dialect: Dialect, text: &[u8]) -> Vec<Bytes> {
    let mut all = vec![Bytes::Letters];
    // SQLite knows no character sets.
    if text.is_ascii() || !matches!(dialect, Dialect::MySql | Dialect::PostgreSql) {
        return all;
    }
    if dialect == Dialect::MySql {
        all.push(Bytes::Spaces);
    }
    // A second byte makes a difference where by itself it would be no part of a word.
    let is_mark = |byte| matches!(byte, b'@' | b'['..=b'^' | b'`' | b'{'..=b'~');
    if text
        .windows(2)
        .any(|pair| pair[0] >= 0x80 && is_mark(pair[1]))
    {
        all.extend([Bytes::Gbk, Bytes::Big5, Bytes::Sjis]);
    }
    if dialect == Dialect::PostgreSql && text.windows(2).any(|pair| pair == [0x81, 0x5F]) {
        all.push(Bytes::Sjis2004);
    }
    all
}

/// How many bytes begin an executable comment at the beginning of `text`, with its version of five
/// or six digits: `/*!`, `/*!50000`, MariaDB's `/*M!100100`. `None` where there is no such comment.
pub(super) fn executable(text: &[u8]) -> Option<usize> {
    let mark = ["/*!", "/*M!"]
        .into_iter()
        .find(|mark| text.starts_with(mark.as_bytes()))?
        .len();
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let digits = text[mark..].iter().take(6).take_while(is_digit).count();
    // Servers take fewer digits for code.
    Some(if digits < 5 { mark } else { mark + digits })
}

/// Whether there are executable comments. Two readings are enough where all of them are executed or
/// none, which is so where all have the same version; where both end at the same place, which is not
/// so with a comment inside; and where a sixth digit is no part of what follows: `/*!500001e0INTO`.
fn has_executable(text: &[u8]) -> Result<bool, String> {
    let mut first: Option<&[u8]> = None;
    for at in (0..text.len()).filter(|at| text[*at..].starts_with(b"/*")) {
        let Some(length) = executable(&text[at..]) else {
            continue;
        };
        let (mark, inside) = text[at..].split_at(length);
        if *first.get_or_insert(mark) != mark {
            return Err("executable comments of several versions".to_owned());
        }
        let digits = mark.iter().filter(|byte| byte.is_ascii_digit()).count();
        if digits == 6 && inside.first().is_some_and(u8::is_ascii_alphanumeric) {
            return Err("an executable comment with a version of six digits".to_owned());
        }
        let mut pairs = inside.windows(2);
        if pairs.find(|pair| *pair == b"/*" || *pair == b"*/") == Some(b"/*") {
            return Err("a comment in an executable comment".to_owned());
        }
    }
    Ok(first.is_some())
}
