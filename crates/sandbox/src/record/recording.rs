//! A recording from start to end.

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;

use super::Record;
use super::dispatch::Dispatch;
use super::log;
use super::replay::Replay;
use super::trap::Trap;

/// What intercepts the calls while it exists.
#[derive(Debug)]
#[expect(dead_code, reason = "they are only dropped")]
enum Interception {
    Dispatch(Dispatch),
    Trap(Trap),
}

/// A recording that is on.
#[derive(Debug)]
pub(super) struct Recording {
    /// `None` after it has ended.
    interception: Option<Interception>,
    /// The initial working directory: path, device and inode; `None`: it has no path.
    start: Option<(Vec<u8>, (u64, u64))>,
}

impl Recording {
    /// Begins, by dispatch.
    ///
    /// # Errors
    /// As for [`Dispatch::begin`]; `EBUSY`: one is already on.
    pub(super) fn begin() -> io::Result<Self> {
        Self::begin_by(|| Dispatch::begin().map(Interception::Dispatch))
    }

    /// Begins, by a trap.
    ///
    /// # Errors
    /// As for [`Trap::begin`]; `EBUSY`: one is already on.
    pub(super) fn begin_by_trap() -> io::Result<Self> {
        Self::begin_by(|| Trap::begin().map(Interception::Trap))
    }

    fn begin_by(intercept: impl FnOnce() -> io::Result<Interception>) -> io::Result<Self> {
        // First: if one is already on, it must not see the rest.
        log::open()?;
        let start = std::env::current_dir().ok();
        let start = start.filter(|path| path.is_absolute()).and_then(|path| {
            let metadata = path.metadata().ok()?;
            let id = (metadata.dev(), metadata.ino());
            Some((path.into_os_string().into_vec(), id))
        });
        match intercept() {
            Ok(interception) => Ok(Self {
                interception: Some(interception),
                start,
            }),
            Err(error) => {
                log::drain(|_, _| ());
                Err(error)
            }
        }
    }

    /// Ends.
    pub(super) fn end(mut self) -> Record {
        self.interception = None;
        let mut replay = Replay::new(self.start.take());
        log::drain(|entry, path| replay.add(entry, path));
        replay.record(log::noted())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // In this order: nothing may be logged when the log is unmapped.
        self.interception = None;
        log::drain(|_, _| ());
    }
}
