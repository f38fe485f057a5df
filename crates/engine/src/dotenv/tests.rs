//! How either parser reads lines; `tests/DotenvTest.php` runs the parsers themselves.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Vec<(String, Vec<String>, String)> {
    let names = |all: &[(&str, &str)]| -> Names {
        let all = all.iter();
        all.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect()
    };
    let (inherited, others) = (names(&[("HOST", "db")]), names(&[("OTHER", "else")]));
    let string = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    entries(text.as_bytes(), &inherited, &others, &mut 1000)
        .into_iter()
        .map(|entry| {
            let values = entry.values.into_iter().map(string).collect();
            (string(entry.name), values, string(entry.raw))
        })
        .collect()
}

/// The values of a text's only variable.
fn values(text: &str) -> Vec<String> {
    let mut all = read(text);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    all.swap_remove(0).1
}

#[test]
fn values_are_what_the_parsers_of_php_make_of_them() {
    for (line, expected) in [
        ("A=plain", vec!["plain"]),
        ("export A=plain", vec!["plain"]),
        ("A=", vec![""]),
        ("A=   # nothing", vec![""]),
        ("A=#nothing", vec![""]),
        ("A=plain # a comment", vec!["plain"]),
        ("A=\"two words\" # a comment", vec!["two words"]),
        ("A='two words'# a comment", vec!["two words"]),
        ("A = plain", vec!["plain"]),
        ("A.B=plain", vec!["plain"]),
        ("'A'=plain", vec!["plain"]),
        // Symfony begins a comment only after a space.
        ("A=pa#ss", vec!["pa#ss", "pa"]),
        ("A=back\\slash", vec!["back\\slash"]),
        ("A=back\\\\slash", vec!["back\\slash", "back\\\\slash"]),
        ("A=\"back\\\\slash\"", vec!["back\\slash"]),
        ("A=\"back\\slash\"", vec!["back\\slash"]),
        ("A=\"tab\\tline\\n\"", vec!["tab\\tline\n", "tab\tline\n"]),
        ("A='tab\\t$HOST'", vec!["tab\\t$HOST"]),
        ("A=\"a \\\"word\\\"\"", vec!["a \"word\""]),
        // Only Symfony knows variables without braces.
        ("A=pa$word123", vec!["pa", "pa$word123"]),
        ("A=$HOST", vec!["db", "$HOST"]),
        ("A=at-${HOST}!", vec!["at-db!"]),
        ("A=\"at $HOST\"", vec!["at db", "at $HOST"]),
        ("A=${OTHER}", vec!["else"]),
        ("A=${NONE}", vec!["", "${NONE}"]),
        ("A=${NONE:-x}", vec!["x", "${NONE:-x}"]),
        ("A=${HOST:-x}", vec!["db", "${HOST:-x}"]),
        ("A=\\$HOST", vec!["$HOST", "\\$HOST"]),
        ("A=\"\\$HOST\"", vec!["$HOST"]),
        ("A=\"\\${HOST}\"", vec!["${HOST}"]),
        ("A=cost$", vec!["cost$"]),
        ("A=$5", vec!["$5"]),
        ("A=$(id)", vec!["$(id)"]),
        ("A=${HOST", vec!["${HOST"]),
        // Symfony treats quotes inside of a word as quotes.
        ("A=Bob's", vec!["Bob's"]),
        ("A=O'Neil's", vec!["ONeils", "O'Neil's"]),
        ("A='it'\"s\"", vec!["its"]),
        ("A=it\\'s", vec!["it's", "it\\'s"]),
    ] {
        assert_eq!(values(line), expected, "{line}");
    }
}

#[test]
fn a_line_that_cannot_be_read_costs_that_line_alone() {
    for line in [
        "A='Bob's'",
        "A=\"open",
        "A='open",
        "A=two words",
        "A=\"x\" y",
        "A=\"wrong\\q\" y",
    ] {
        let text = format!("BEFORE=1\n{line}\nAFTER=2\nEND='3'\nLAST=\"4\"\n");
        let all = read(&text);
        let found: Vec<(&str, Option<&str>)> = all
            .iter()
            .map(|(name, values, _)| (name.as_str(), values.first().map(String::as_str)))
            .collect();
        let set = |name, value| (name, Some(value));
        assert_eq!(
            found,
            [
                set("BEFORE", "1"),
                ("A", None),
                set("AFTER", "2"),
                set("END", "3"),
                set("LAST", "4")
            ],
            "{line}"
        );
        assert_eq!(all[1].2, line[2..]);
    }
    // Lines that set nothing.
    assert_eq!(read("=x\nno variable\n a b=c\n# C=x\nA-B=x\n\n"), []);
}

#[test]
fn an_apostrophe_in_a_word_takes_no_line_behind_it() {
    let all = read("APP_NAME=Bob's\nDB_PASSWORD=s3cret\nOTHER_NAME=Al's\n");
    let names: Vec<&str> = all.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["APP_NAME", "DB_PASSWORD", "OTHER_NAME"]);
    assert_eq!(all[1].1, ["s3cret"]);
}

#[test]
fn a_value_in_quotes_goes_over_lines() {
    let key = "-----BEGIN KEY-----\nabc=\n-----END KEY-----";
    for quote in ['"', '\''] {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("A={quote}{key}{quote} # a key\nB=1\n").replace('\n', end);
            let all = read(&text);
            assert_eq!((all[0].1[0].as_str(), all.len()), (key, 2), "{text}");
            assert_eq!(all[1], ("B".into(), vec!["1".into()], "1".into()));
        }
    }
    assert_eq!(values("A=\"\n\"\n"), ["\n"]);
    assert_eq!(read("\u{feff}A=1\n")[0].0, "A");
    assert_eq!(values("A=1"), ["1"]);
}

#[test]
fn what_is_written_is_kept_beside_what_it_means() {
    let all = read("A=\"pa$word\" # why\nB='x'\n");
    assert_eq!(all[0].2, "\"pa$word\" # why");
    assert_eq!(all[1].2, "'x'");
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let mut room = 0;
    let none = Names::new();
    let all = entries(b"A=p\xe4ss\nB=\"\xff\"\n", &none, &none, &mut room);
    assert_eq!(all[0].values, [b"p\xe4ss"]);
    assert_eq!(all[1].values, [b"\xff"]);
}

/// The processor time of this thread so far.
fn processor_time() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap())
}

#[test]
fn a_file_of_any_content_is_read_in_time() {
    const BYTES: usize = 256 << 10;
    for line in [
        "A=\"\n",
        "A='\n",
        "A=\"x\n",
        "A=x'\n",
        "A=\"\\\"\n",
        "A='\"\n",
        "A=$\n",
        "A=$A:-$A\n",
        "A=",
        "\"",
        "\\",
        "A=\"\\\\",
        "$A",
        "${",
        "A=\"\n\\\"",
    ] {
        let text = line.repeat(BYTES / line.len());
        let text = format!("A=\"{text}\nA={text}");
        // Processor time: the machine may be busy.
        let started = processor_time();
        let mut room = BYTES;
        let none = Names::new();
        let all = entries(text.as_bytes(), &none, &none, &mut room);
        let bytes: usize = all
            .iter()
            .flat_map(|entry| &entry.values)
            .map(Vec::len)
            .sum();
        assert!(bytes <= 2 * text.len() + BYTES, "{line:?}: {bytes}");
        assert!(
            processor_time() - started < Duration::from_secs(2),
            "{line:?}"
        );
    }
}

proptest! {
    #[test]
    fn no_file_panics(text in "([AB]=|['\"\\\\#$ \n{}:-]|export |[a-z]|é){0,40}") {
        read(&text);
    }

    #[test]
    fn what_has_no_special_character_is_its_own_value(value in "[a-zA-Z0-9_./:@!%+,;?*-]{1,20}") {
        prop_assert_eq!(values(&format!("A={value}")), vec![value.clone()]);
        prop_assert_eq!(values(&format!("A=\"{value}\"")), vec![value.clone()]);
        prop_assert_eq!(values(&format!("A='{value}'")), vec![value]);
    }
}
