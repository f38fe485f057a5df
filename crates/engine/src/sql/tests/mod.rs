//! What passes, what is refused, and that no text overloads the scanner.

mod any_text;
mod mysql;
mod postgresql;

use super::{Dialect, Mode, Reading, statement};

/// How servers read by default.
fn reading(dialect: Dialect) -> Reading {
    Reading {
        plain_backslash: dialect == Dialect::PostgreSql,
        whole_ascii: true,
    }
}

/// Why a text must not be sent to the server in a read-only session.
fn refused(dialect: Dialect, text: &[u8]) -> Option<String> {
    statement(dialect, Mode::ReadOnly, reading(dialect), text).err()
}

/// Each of these texts may be sent to the server.
#[track_caller]
fn all_pass(dialect: Dialect, texts: &[impl AsRef<[u8]>]) {
    let refused: Vec<_> = texts
        .iter()
        .filter_map(|text| {
            Some((
                String::from_utf8_lossy(text.as_ref()),
                refused(dialect, text.as_ref())?,
            ))
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// None of these texts may be sent.
#[track_caller]
fn all_refused(dialect: Dialect, texts: &[impl AsRef<[u8]>]) {
    let passed: Vec<_> = texts
        .iter()
        .filter(|text| refused(dialect, text.as_ref()).is_none())
        .map(|text| String::from_utf8_lossy(text.as_ref()))
        .collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

/// Each of these texts is refused for its reason.
#[track_caller]
fn refused_as(dialect: Dialect, texts: &[(&str, &str)]) {
    for (text, reason) in texts {
        let given = refused(dialect, text.as_bytes());
        assert_eq!(given.as_deref(), Some(*reason), "{text}");
    }
}
