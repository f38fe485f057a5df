//! Helpers for the tests of recordings.

use std::ffi::{CString, c_char, c_int, c_long};
use std::fs::{self, Metadata};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use altair_sandbox::{Identity, Look, Record, Recorder};
use libc::*;

/// How the recorder intercepts calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Dispatch,
    Trap,
}

/// Whether this process records by a trap.
static BY_TRAP: AtomicBool = AtomicBool::new(false);

/// Runs `body` once for each recorder, as [`alone_by`] does.
pub fn alone(body: impl Fn(&Path)) {
    alone_by(By::Dispatch, &body);
    alone_by(By::Trap, &body);
}

/// Runs `body` in a fork of this thread, in a directory of its own; fails if `body` fails.
pub fn alone_by(by: By, body: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    let (mut reading, mut writing) = std::io::pipe().unwrap();
    let pid = unsafe { fork() };
    assert!(pid >= 0);
    if pid == 0 {
        drop(reading);
        BY_TRAP.store(by == By::Trap, Ordering::Relaxed);
        // Ends it if it hangs.
        unsafe { alarm(60) };
        let ended = catch_unwind(AssertUnwindSafe(|| body(&root)));
        let said = match ended {
            Ok(()) => "passed".to_owned(),
            Err(panic) => match panic.downcast::<String>() {
                Ok(said) => *said,
                Err(panic) => (*panic.downcast::<&str>().unwrap_or(Box::new("?"))).to_owned(),
            },
        };
        let _ = writing.write_all(said.as_bytes());
        unsafe { _exit(0) };
    }
    drop(writing);
    let mut said = String::new();
    reading.read_to_string(&mut said).unwrap();
    let mut status = 0;
    assert_eq!(unsafe { waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(said, "passed", "by {by:?}: wait status {status:#x}");
}

/// Begins a recording by the process's recorder.
pub fn begin() -> std::io::Result<Recorder> {
    if BY_TRAP.load(Ordering::Relaxed) {
        Recorder::begin_by_trap()
    } else {
        Recorder::begin()
    }
}

pub fn record(act: impl FnOnce()) -> Record {
    let recorder = begin().unwrap();
    act();
    recorder.end()
}

pub fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

pub fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

/// The look at a path, if there is exactly one.
pub fn look_at<'a>(record: &'a Record, path: &Path) -> Option<&'a Look> {
    let bytes = path.as_os_str().as_bytes();
    let mut looks = record.looks.iter().filter(|look| look.path == bytes);
    looks.next().filter(|_| looks.next().is_none())
}

#[track_caller]
pub fn look<'a>(record: &'a Record, path: &Path) -> &'a Look {
    look_at(record, path).unwrap_or_else(|| panic!("not one look at {path:?} in {record:#?}"))
}

pub fn names(paths: &[Vec<u8>]) -> Vec<String> {
    let name = |path: &Vec<u8>| String::from_utf8(path.clone()).unwrap();
    paths.iter().map(name).collect()
}

pub fn looked(record: &Record) -> Vec<String> {
    let paths: Vec<_> = record.looks.iter().map(|look| look.path.clone()).collect();
    names(&paths)
}

pub fn identity(metadata: &Metadata) -> Identity {
    let of_file = |number| if metadata.is_dir() { 0 } else { number };
    Identity {
        mode: metadata.mode(),
        ino: of_file(metadata.ino()),
        size: of_file(metadata.size()),
        mtime_ns: metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec(),
        ctime_ns: metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec(),
    }
}

/// A path in the form that calls take.
pub type Text = *const c_char;

macro_rules! sys {
    ($($arg:expr),* $(,)?) => { unsafe { syscall($($arg),*) } };
}
pub(crate) use sys;

/// Large enough for `struct stat`, `struct statx`, `struct statfs` or an attribute.
pub fn room() -> *mut [u8; 4096] {
    Box::leak(Box::new([0; 4096]))
}

pub const NO: usize = 0;

/// Closes a descriptor that a call has opened.
pub fn opened(fd: c_long) -> c_long {
    if fd >= 0 {
        sys!(SYS_close, fd);
    }
    fd
}
