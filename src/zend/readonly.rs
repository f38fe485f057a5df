//! Database sessions that only read: what statements mean is looked at here, where they pass is the
//! C side's (`readonly.c`).

use std::ffi::{c_char, c_int};
use std::panic::catch_unwind;

use altair_engine::sql::{Dialect, refused};

use super::ffi;

/// Has database sessions that are opened from here on read only. Called once, before any is.
pub fn read_only() {
    // SAFETY: registers a function; no code is running.
    unsafe { ffi::altair_read_only(vet) };
}

/// The dialects by their numbers on the C side (`enum altair_dialect`).
const DIALECTS: [Dialect; 4] = [
    Dialect::MySql,
    Dialect::PostgreSql,
    Dialect::Sqlite,
    Dialect::SqliteInMemory,
];

extern "C" fn vet(
    dialect: c_int,
    text: *const c_char,
    len: usize,
    what: *mut c_char,
    size: usize,
) -> bool {
    // SAFETY: a text of the engine's, for the time of the call.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    let dialect = usize::try_from(dialect)
        .ok()
        .and_then(|at| DIALECTS.get(at));
    let said = catch_unwind(|| dialect.map_or_else(unknown, |dialect| refused(*dialect, text)));
    // What cannot be looked at is not let through.
    let Some(said) = said.unwrap_or_else(|_| unknown()) else {
        return false;
    };
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
    true
}

fn unknown() -> Option<String> {
    Some("a statement that cannot be looked at".into())
}
