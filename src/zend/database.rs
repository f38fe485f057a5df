//! Database sessions that change nothing for others: what statements are is looked at here, where they
//! pass is the C side's (`database*.c`).

use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::catch_unwind;

use altair_engine::channel::{Secret, Watched};
use altair_engine::sql::sqlite::{Action, authorize};
use altair_engine::sql::{Dialect, Mode, Reading, Statement, statement};

use super::ffi;

/// Has database sessions that are opened from here on watched. Called once, before any is.
pub fn watch(watched: Watched) {
    // The run's own secret was made of the same numbers: they are there.
    let name = secret_name().unwrap_or_default();
    let mode = match watched.mode {
        Some(Mode::ReadOnly) => 0,
        Some(Mode::Rollback) => 1,
        None => 2,
    };
    // SAFETY: registers functions, and copies the name; no code is running.
    unsafe {
        ffi::altair_watch_databases(mode, watched.keeps_sqlite, name.as_ptr(), look, authorizes)
    };
}

/// The dialects by their numbers on the C side (`enum altair_dialect`).
const DIALECTS: [Dialect; 2] = [Dialect::MySql, Dialect::PostgreSql];
/// What sessions may do (`enum altair_mode`).
const MODES: [Mode; 2] = [Mode::ReadOnly, Mode::Rollback];

/// A statement's number (`enum altair_statement`); 0 is one that is refused.
fn number(statement: Statement) -> c_int {
    match statement {
        Statement::Plain => 1,
        Statement::Writes => 2,
        Statement::Sets => 3,
        Statement::SetsCharset => 4,
        Statement::Begin => 5,
        Statement::Commit { chain: false } => 6,
        Statement::Commit { chain: true } => 7,
        Statement::Rollback { chain: false } => 8,
        Statement::Rollback { chain: true } => 9,
        Statement::Autocommit(true) => 10,
        Statement::Autocommit(false) => 11,
        Statement::Savepoint => 12,
    }
}

extern "C" fn look(
    dialect: c_int,
    mode: c_int,
    plain_backslash: bool,
    whole_ascii: bool,
    text: *const c_char,
    len: usize,
    what: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: a text of the client's, for the time of the call.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    let at = |number: c_int| usize::try_from(number).unwrap_or(usize::MAX);
    let known = DIALECTS.get(at(dialect)).zip(MODES.get(at(mode)));
    let reading = Reading {
        plain_backslash,
        whole_ascii,
    };
    let said = catch_unwind(|| match known {
        Some((dialect, mode)) => statement(*dialect, *mode, reading, text),
        None => Err(String::new()),
    });
    match said {
        Ok(Ok(statement)) => number(statement),
        Ok(Err(why)) => {
            tell(&why, what, size);
            0
        }
        // What cannot be looked at is not let through.
        Err(_) => {
            tell("a statement that cannot be looked at", what, size);
            0
        }
    }
}

extern "C" fn authorizes(
    in_memory: bool,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    what: *mut c_char,
    size: usize,
) -> bool {
    let text = |text: *const c_char| match text.is_null() {
        true => None,
        // SAFETY: texts of SQLite's, for the time of the call.
        false => Some(unsafe { CStr::from_ptr(text) }.to_string_lossy()),
    };
    let (first, second) = (text(first), text(second));
    let allowed = catch_unwind(
        || match action_of(action, first.as_deref(), second.as_deref()) {
            Some(action) => authorize(in_memory, action),
            None => Ok(()),
        },
    );
    match allowed {
        Ok(Ok(())) => true,
        Ok(Err(why)) => {
            tell(&why, what, size);
            false
        }
        Err(_) => {
            tell("a statement that cannot be looked at", what, size);
            false
        }
    }
}

/// What SQLite asks for, by its action codes (`sqlite3.h`).
fn action_of<'a>(
    code: c_int,
    first: Option<&'a str>,
    second: Option<&'a str>,
) -> Option<Action<'a>> {
    let name = first.unwrap_or_default();
    Some(match code {
        19 => Action::Pragma(name, second),
        // Of a name that is an expression nothing is told.
        24 => Action::Attach(first.unwrap_or("an expression")),
        31 => Action::Function(second.unwrap_or_default()),
        _ => return None,
    })
}

/// Writes a text into a buffer of the C side's, with a NUL.
fn tell(said: &str, what: *mut c_char, size: usize) {
    let said = said.replace('\0', " ");
    let mut end = said.len().min(size.saturating_sub(1));
    while !said.is_char_boundary(end) {
        end -= 1;
    }
    if size > 0 {
        // SAFETY: `end` bytes and a NUL fit into the caller's buffer, which is no part of `said`.
        unsafe {
            what.copy_from_nonoverlapping(said.as_ptr().cast(), end);
            what.add(end).write(0);
        }
    }
}

/// A name that nobody can guess. `None` where the kernel has no random numbers.
fn secret_name() -> Option<CString> {
    let secret = Secret::generate().ok()?;
    let name: String = secret.bytes()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    CString::new(name).ok()
}
