//! Database sessions that change nothing for others. Statements are classified here; the C side
//! intercepts them (`database*.c`).

use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::catch_unwind;

use altair_engine::channel::{Secret, Watched};
use altair_engine::sql::sqlite::{Action, authorize};
use altair_engine::sql::{Dialect, Mode, Reading, Statement, statement};

use super::ffi;

/// Watches database sessions that are opened from now on. Called once, before any is opened.
pub fn watch(watched: Watched) {
    // Random numbers are available: the run's own secret was made from them.
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

/// The dialects in the order of the C side (`enum altair_dialect`).
const DIALECTS: [Dialect; 2] = [Dialect::MySql, Dialect::PostgreSql];
/// What sessions may do (`enum altair_mode`).
const MODES: [Mode; 2] = [Mode::ReadOnly, Mode::Rollback];

/// A statement's number (`enum altair_statement`); 0 is a refused statement.
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
    // SAFETY: a text of the client, valid for the time of the call.
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
        // A statement that cannot be checked is refused.
        Err(_) => {
            tell("a statement that cannot be checked", what, size);
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
        // SAFETY: texts of SQLite, valid for the time of the call.
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
            tell("a statement that cannot be checked", what, size);
            false
        }
    }
}

/// The action for one of SQLite's action codes (`sqlite3.h`).
fn action_of<'a>(
    code: c_int,
    first: Option<&'a str>,
    second: Option<&'a str>,
) -> Option<Action<'a>> {
    let name = first.unwrap_or_default();
    Some(match code {
        19 => Action::Pragma(name, second),
        // SQLite does not report a name that is an expression.
        24 => Action::Attach(first.unwrap_or("an expression")),
        31 => Action::Function(second.unwrap_or_default()),
        _ => return None,
    })
}

/// Writes a text with a NUL into a buffer of the C side.
fn tell(said: &str, what: *mut c_char, size: usize) {
    let said = said.replace('\0', " ");
    let mut end = said.len().min(size.saturating_sub(1));
    while !said.is_char_boundary(end) {
        end -= 1;
    }
    if size > 0 {
        // SAFETY: `end` bytes and a NUL fit into the caller's buffer, which does not overlap
        // `said`.
        unsafe {
            what.copy_from_nonoverlapping(said.as_ptr().cast(), end);
            what.add(end).write(0);
        }
    }
}

/// A secret name. `None` if the kernel has no random numbers.
fn secret_name() -> Option<CString> {
    let secret = Secret::generate().ok()?;
    let name: String = secret.bytes()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    CString::new(name).ok()
}
