//! A recording from start to end, on x86-64.

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;

use super::Record;
use super::dispatch::Dispatch;
use super::log;
use super::replay::Replay;

/// A recording that is on.
#[derive(Debug)]
pub(super) struct Recording {
    /// `None` after it has ended.
    dispatch: Option<Dispatch>,
    /// The initial working directory: path, device and inode; `None`: it has no path.
    start: Option<(Vec<u8>, (u64, u64))>,
}

impl Recording {
    /// Begins.
    ///
    /// # Errors
    /// As for [`Dispatch::begin`]; `EBUSY`: one is already on.
    pub(super) fn begin() -> io::Result<Self> {
        // First: if one is already on, it must not see the rest.
        log::open()?;
        let start = std::env::current_dir().ok();
        let start = start.filter(|path| path.is_absolute()).and_then(|path| {
            let metadata = path.metadata().ok()?;
            let id = (metadata.dev(), metadata.ino());
            Some((path.into_os_string().into_vec(), id))
        });
        match Dispatch::begin() {
            Ok(dispatch) => Ok(Self {
                dispatch: Some(dispatch),
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
        self.dispatch = None;
        let mut replay = Replay::new(self.start.take());
        log::drain(|entry, path| replay.add(entry, path));
        replay.record(log::noted())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // In this order: nothing may be logged when the log is unmapped.
        self.dispatch = None;
        log::drain(|_, _| ());
    }
}
