//! Threads of the host that have a file descriptor table of their own.
//!
//! What they hold counts towards no limit of the host's, and a fork of the host does not hold it
//! open. And it may be any file of a process's: closing one that the host also has open would
//! release the host's locks on it (fcntl(2), "Record locking").
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::mpsc::sync_channel;

use nix::errno::Errno;
use nix::libc::{self, c_ulong};

use crate::system_calls;

/// What a thread does where it cannot have its own table: before kernel 5.9, or behind a filter that
/// refuses close_range(2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// It keeps sharing the host's.
    Share,
    /// It does not start.
    Fail,
}

/// Starts a thread that has its own table, with nothing but a copy of `kept` in it.
///
/// # Errors
/// If there can be no such thread; `body` then does not run.
pub(super) fn start(
    name: &str,
    kept: BorrowedFd<'_>,
    otherwise: Otherwise,
    body: impl FnOnce(OwnedFd) + Send + 'static,
) -> io::Result<()> {
    let kept = kept.as_raw_fd();
    // Until the thread has its own table, it uses ours.
    let (ready, has_own_table) = sync_channel(1);
    crate::thread::start(name, move || {
        let own = own_table(kept, otherwise);
        let _ = ready.send(own.as_ref().err().copied());
        if let Ok(own) = own {
            body(own);
        }
    })?;
    match has_own_table.recv() {
        Ok(None) => Ok(()),
        Ok(Some(errno)) => Err(errno.into()),
        Err(_) => Err(Errno::EAGAIN.into()),
    }
}

/// Gives the calling thread its own file descriptor table with nothing but `kept`.
fn own_table(kept: RawFd, otherwise: Otherwise) -> nix::Result<OwnedFd> {
    let close_range = |first: RawFd, last: c_ulong, flags: u32| {
        // SAFETY: no pointer is passed; only copies are closed, since the first call unshares the
        // table.
        Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) })
    };
    match close_range(kept + 1, u32::MAX.into(), libc::CLOSE_RANGE_UNSHARE) {
        Ok(_) => {
            if let Ok(before) = c_ulong::try_from(kept - 1) {
                close_range(0, before, 0)?;
            }
            Ok(system_calls::own_descriptor(kept))
        }
        Err(errno) if otherwise == Otherwise::Fail => Err(errno),
        Err(_) => {
            // SAFETY: no pointer is passed.
            let copy = unsafe { libc::fcntl(kept, libc::F_DUPFD_CLOEXEC, 0) };
            Errno::result(copy).map(system_calls::own_descriptor)
        }
    }
}
