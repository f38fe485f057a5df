use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::Dialect;
use super::refused;

const DIALECTS: [Dialect; 2] = [Dialect::MySql, Dialect::PostgreSql];

/// Fragments of texts that try to confuse a scanner.
const PIECES: [&[u8]; 66] = [
    b"'",
    b"''",
    b"\"",
    b"\"\"",
    b"`",
    b"[",
    b"]",
    b"\\",
    b"\\'",
    b"\\N",
    b"E'",
    b"U&'",
    b"U&\"",
    b"x'",
    b"$$",
    b"$a$",
    b"$a",
    b"$1",
    b"$a(",
    b":a::b(",
    b"::",
    b"@",
    b"@@",
    b"#",
    b"--",
    b"-- ",
    b"--\xA0",
    b"/*",
    b"*/",
    b"/*!",
    b"/*!50000",
    b"/*M!100100 ",
    b"/*+",
    b"/*/",
    b";",
    b",",
    b"(",
    b")",
    b"=",
    b":=",
    b".",
    b"1",
    b"1e0",
    b"1.",
    b"0x",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\x81",
    b"\xA0",
    b"\xE4\xBD\xA0",
    b"\xEF\xBB\xBF",
    b"\x81\x5F",
    b"SELECT",
    b"SET",
    b"PRAGMA",
    b"EXPLAIN",
    b"EXPLAIN QUERY PLAN",
    b"PREPARE",
    b"AS",
    b"SET STATEMENT",
    b"FOR",
    b"COPY",
    b"TO",
    b"set_config",
];

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = (0..PIECES.len()).prop_map(|at| PIECES[at]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn no_text_is_too_much(text in prop_oneof![pieces(), bytes()]) {
        for dialect in DIALECTS {
            let reason = refused(dialect, &text);
            prop_assert!(!reason.is_some_and(|it| it.is_empty() || it.contains('\n')));
        }
    }

    /// A string in single quotes is the same in all dialects and readings if it contains no quotes
    /// and no backslashes; so is a comment that begins no other.
    #[test]
    fn what_is_in_a_string_or_comment_is_no_code(inside in "[ \"-&(-.0-\\[\\]-~]{0,40}") {
        for dialect in DIALECTS {
            let text = format!("select '{inside}' /* {inside} */");
            prop_assert_eq!(refused(dialect, text.as_bytes()), None);
        }
    }
}

/// A text of 64 KiB that repeats something takes long if the scanner reads anything again.
#[test]
fn time_grows_with_the_text_and_no_faster() {
    const SIZE: usize = 1 << 16;
    let more = [
        &b"EXPLAIN "[..],
        b"PREPARE a AS ",
        b"a(",
        b"'\n",
        b"/*!50000 */",
    ];
    for (dialect, piece) in DIALECTS.iter().flat_map(|dialect| {
        PIECES
            .iter()
            .chain(&more)
            .map(move |piece| (*dialect, *piece))
    }) {
        let time = |size: usize| {
            let text = [b"SELECT ", piece.repeat(size / piece.len()).as_slice()].concat();
            let start = Instant::now();
            // With the word that begins a statement, and without it.
            let reasons = (refused(dialect, &text), refused(dialect, &text[7..]));
            (start.elapsed(), reasons)
        };
        let (small, large) = (time(SIZE / 16).0, time(SIZE).0);
        // Sixteen times the text takes 256 times as long if the time is quadratic.
        let limit = small.max(Duration::from_millis(20)) * 60;
        let shown = String::from_utf8_lossy(piece);
        assert!(large < limit, "{dialect:?} {shown:?}: {small:?}, {large:?}");
    }
}
