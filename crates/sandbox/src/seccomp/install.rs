//! The system calls that put the filter on the calling process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use seccompiler::{BpfProgramRef, apply_filter_all_threads};

use crate::sys;

/// Puts a filter on all threads, and gives the listener's end of it.
///
/// # Errors
/// What seccomp(2) says: `EBUSY` where there is a listener further out already, `EINVAL` before
/// kernel 5.7.
pub(super) fn with_listener(program: BpfProgramRef<'_>) -> nix::Result<OwnedFd> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?;
    let program = libc::sock_fprog {
        len,
        // The crate's instruction is the kernel's, field by field (linux/filter.h).
        filter: program.as_ptr().cast_mut().cast(),
    };
    // With a listener, a thread that cannot follow is to be an error, not a number that could be
    // the listener's (TSYNC_ESRCH).
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
        | libc::SECCOMP_FILTER_FLAG_TSYNC
        | libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    // SAFETY: `program` and what it points to outlive the call, which only reads them.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    let listener = RawFd::try_from(Errno::result(listener)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor for us, close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// Puts a filter on the calling thread, which is the only one, in addition to a template's.
///
/// # Errors
/// What seccomp(2) says.
pub(super) fn in_addition(program: BpfProgramRef<'_>) -> nix::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?;
    let program = libc::sock_fprog {
        len,
        // As above.
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: `program` and what it points to outlive the call, which only reads them.
    unsafe {
        sys::with_pass(
            libc::SYS_seccomp,
            [
                libc::SECCOMP_SET_MODE_FILTER.into(),
                0,
                (&raw const program) as libc::c_long,
                0,
                0,
            ],
        )
    }
    .map(drop)
}

/// Puts a filter on all threads.
///
/// # Errors
/// What seccomp(2) says.
pub(super) fn alone(program: BpfProgramRef<'_>) -> io::Result<()> {
    apply_filter_all_threads(program).map_err(|error| match error {
        seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => error,
        other => io::Error::other(other),
    })
}

/// Whether the calling process has one thread only: another one that runs already would stay free
/// of Landlock. Where that cannot be found out, it has others.
#[must_use]
pub fn has_one_thread() -> bool {
    // `CLONE_THREAD` asks for what a process with one thread has already, and is `EINVAL` for any
    // other (unshare(2)). It needs no `/proc`, which is not there in a private root.
    // SAFETY: no pointer is passed, and nothing changes.
    match Errno::result(unsafe { libc::unshare(libc::CLONE_THREAD) }) {
        Ok(_) => true,
        Err(Errno::EINVAL) => false,
        // A filter further out refuses the call altogether; there, /proc is what it is outside.
        Err(_) => std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1),
    }
}
