//! Records a run's database queries. The C side (`database*.c`) reports the clients' statements.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use altair_engine::queries::{News, Recorder, RowChanges, Text};
use altair_engine::sql::{Dialect, Reading};
use nix::time::{ClockId, clock_gettime};

use super::{ffi, frames};

/// The record and its receiver.
struct Recording {
    recorder: Recorder,
    /// The project's directory.
    root: Vec<u8>,
    tell: fn(News),
}

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

static HOOKS: ffi::RawRecorder = ffi::RawRecorder {
    text,
    begins,
    answers,
    undoes,
    counted,
    ends,
};

/// Records the statements of the application in `root` from now on. `tell` receives news; it must
/// not run PHP code.
pub fn record(root: &[u8], tell: fn(News)) {
    *RECORDING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Recording {
        recorder: Recorder::default(),
        root: root.to_vec(),
        tell,
    });
    // SAFETY: the functions live as long as the process.
    unsafe { ffi::altair_record_queries(&raw const HOOKS) };
}

/// Reports the remaining news.
pub fn tell_all() {
    if RECORDING
        .try_lock()
        .is_ok_and(|recording| recording.is_some())
    {
        // SAFETY: sends queries to servers; runs no PHP code.
        unsafe { ffi::altair_count_changes() };
        let _ = with(|recording, now| recording.recorder.last_news(now));
    }
}

/// Runs `then` on the record, and reports its news. Returns the time.
fn with(then: impl FnOnce(&mut Recording, u64) -> Option<News>) -> u64 {
    let now = now_ns();
    // The lock stays held if memory ran out inside; then nothing more is recorded.
    if let Ok(mut recording) = RECORDING.try_lock()
        && let Some(recording) = recording.as_mut()
    {
        let news = catch_unwind(AssertUnwindSafe(|| then(recording, now)));
        if let Ok(Some(news)) = news {
            (recording.tell)(news);
        }
    }
    now
}

fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec().unsigned_abs() * 1_000_000_000 + now.tv_nsec().unsigned_abs()
    })
}

/// The dialects in the order of the C side (`enum altair_dialect`). To find values in a text,
/// SQLite's dialect is the same as PostgreSQL's.
const DIALECTS: [Dialect; 3] = [Dialect::MySql, Dialect::PostgreSql, Dialect::PostgreSql];

extern "C" fn text(
    dialect: c_int,
    plain_backslash: bool,
    whole_ascii: bool,
    text: *const c_char,
    len: usize,
) -> u64 {
    // SAFETY: a text of the client, valid for the time of the call.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    let at = usize::try_from(dialect).unwrap_or(usize::MAX);
    let reading = Reading {
        plain_backslash,
        whole_ascii,
    };
    let mut number = 0;
    with(|recording, _| {
        let known = recording.recorder.text(*DIALECTS.get(at)?, reading, text);
        number = known.map_or(0, Text::number);
        None
    });
    number
}

extern "C" fn begins(text: u64) -> u64 {
    with(|recording, now| {
        let Recording { recorder, root, .. } = recording;
        recorder.begins(Text::of(text)?, now, || frames::line_of_application(root))
    })
}

extern "C" fn answers(
    session: *const c_void,
    text: u64,
    rows: u64,
    since: u64,
    is_first: bool,
    has_failed: bool,
) -> u64 {
    with(|Recording { recorder, .. }, now| {
        let (session, text) = (session as usize, Text::of(text)?);
        let ns = if since == 0 {
            0
        } else {
            now.saturating_sub(since)
        };
        match has_failed {
            true => recorder.fails(session, text, ns, now),
            false => recorder.answers(session, text, rows, ns, is_first, now),
        }
    })
}

extern "C" fn undoes(session: *const c_void, text: u64) {
    with(|recording, _| {
        recording.recorder.undoes(session as usize, Text::of(text)?);
        None
    });
}

extern "C" fn counted(
    session: *const c_void,
    is_first: bool,
    table: *const c_char,
    inserted: u64,
    updated: u64,
    deleted: u64,
) {
    // SAFETY: a text of the client, valid for the time of the call.
    let table = unsafe { CStr::from_ptr(table) }
        .to_string_lossy()
        .into_owned();
    let rows = RowChanges {
        inserted,
        updated,
        deleted,
    };
    with(|recording, _| {
        recording
            .recorder
            .counted(session as usize, is_first, &table, rows);
        None
    });
}

extern "C" fn ends(session: *const c_void) {
    with(|recording, _| {
        recording.recorder.session_ends(session as usize);
        None
    });
}
