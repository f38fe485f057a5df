//! What passes, what is refused, and what no text may do to the scanner.

mod any_text;
mod mysql;
mod postgresql;
mod several;
mod sqlite;

use super::{Dialect, refused};

/// Each of these texts may go to the server.
#[track_caller]
fn all_pass(dialect: Dialect, texts: &[impl AsRef<[u8]>]) {
    for text in texts {
        let text = text.as_ref();
        let reason = refused(dialect, text);
        assert_eq!(reason, None, "{}", String::from_utf8_lossy(text));
    }
}

/// None of these texts may.
#[track_caller]
fn all_refused(dialect: Dialect, texts: &[impl AsRef<[u8]>]) {
    for text in texts {
        let text = text.as_ref();
        let reason = refused(dialect, text);
        assert!(reason.is_some(), "{}", String::from_utf8_lossy(text));
    }
}

/// Each of these texts is refused for its reason.
#[track_caller]
fn refused_as(dialect: Dialect, texts: &[(&str, &str)]) {
    for (text, reason) in texts {
        let given = refused(dialect, text.as_bytes());
        assert_eq!(given.as_deref(), Some(*reason), "{text}");
    }
}
