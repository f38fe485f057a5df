//! Statements: each text is vetted without a panic, and white space before it makes no difference.
#![no_main]

use altair_engine::sql::{Dialect, Mode, Reading, statement};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, bool, bool, bool, &[u8])| {
    let (is_mysql, is_rolled_back, plain_backslash, whole_ascii, text) = input;
    let dialect = match is_mysql {
        true => Dialect::MySql,
        false => Dialect::PostgreSql,
    };
    let mode = match is_rolled_back {
        true => Mode::Rollback,
        false => Mode::ReadOnly,
    };
    let reading = Reading {
        plain_backslash,
        whole_ascii,
    };
    let is_sent = statement(dialect, mode, reading, text).is_ok();
    let spaced = [b" \n", text].concat();
    assert_eq!(statement(dialect, mode, reading, &spaced).is_ok(), is_sent);
});
