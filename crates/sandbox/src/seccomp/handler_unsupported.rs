//! The handler on other architectures, where there is none.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

/// What the filter would return with its answer.
pub(super) const MARK: u16 = 0;

/// Puts it in place.
///
/// # Errors
/// `ENOSYS`.
pub(super) fn begin() -> io::Result<OwnedFd> {
    Err(Errno::ENOSYS.into())
}
