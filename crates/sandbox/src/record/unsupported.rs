//! The recording on other architectures.

use std::convert::Infallible;
use std::io;

use nix::errno::Errno;

use super::Record;

/// A recording, which cannot exist here.
#[derive(Debug)]
pub(super) struct Recording(Infallible);

impl Recording {
    /// Begins.
    ///
    /// # Errors
    /// `ENOSYS`.
    pub(super) fn begin() -> io::Result<Self> {
        Err(Errno::ENOSYS.into())
    }

    /// Begins.
    ///
    /// # Errors
    /// `ENOSYS`.
    pub(super) fn begin_by_trap() -> io::Result<Self> {
        Err(Errno::ENOSYS.into())
    }

    /// Ends.
    pub(super) fn end(self) -> Record {
        match self.0 {}
    }
}
