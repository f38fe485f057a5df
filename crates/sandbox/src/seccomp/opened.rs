//! Files that the host opens in place of a process: those by which C libraries look up names, where
//! no private root holds them. All other calls go on to the kernel, which decides about them as if
//! nobody had asked: whatever a path in memory changes to meanwhile, nothing is granted by that.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::libc::{self, seccomp_notif};
use nix::unistd::Pid;

use super::call::Opening;
use super::listener::{Answering, Reply};
use super::memory::Memory;
use crate::place::by_number;

/// Answers a call that opens a file. Without a reply, it is answered.
pub(super) fn answer(
    files: &[(PathBuf, Vec<u8>)],
    opening: &Opening,
    call: &seccomp_notif,
    memory: Memory,
    answering: &Answering,
) -> Option<Reply> {
    if !opening.is_lookup(&call.data.args) {
        // It would make a file that the filter refuses.
        return Some(Reply::Fail(Errno::EPERM));
    }
    let thread = Pid::from_raw(call.pid.cast_signed());
    let address = call.data.args.get(usize::from(opening.path)).copied();
    let path = memory.path(thread, address.unwrap_or(0));
    let content = path.and_then(|path| content_of(files, path.as_os_str().as_bytes()));
    let Some(content) = content.filter(|_| answering.gives()) else {
        return Some(Reply::Continue);
    };
    let given = sealed(content).and_then(|file| answering.give(call.id, file.as_fd(), true));
    given.err().map(Reply::Fail)
}

/// What is in the file that has this path.
pub(super) fn content_of<'a>(files: &'a [(PathBuf, Vec<u8>)], path: &[u8]) -> Option<&'a [u8]> {
    let file = files
        .iter()
        .find(|(own, _)| own.as_os_str().as_bytes() == path);
    file.map(|(_, content)| content.as_slice())
}

/// A file in memory with this content that nobody can change, opened to be read. Each call gets its
/// own: processes could signal each other by locks on a common one.
pub(super) fn sealed(content: &[u8]) -> nix::Result<OwnedFd> {
    let make = |flags| {
        // SAFETY: a C string that outlives the call.
        Errno::result(unsafe { libc::memfd_create(c"altair".as_ptr(), flags) })
    };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let fd = match make(flags | libc::MFD_NOEXEC_SEAL) {
        // Before kernel 6.3 there is no such flag.
        Err(Errno::EINVAL) => make(flags),
        made => made,
    }?;
    // SAFETY: the kernel has just made this descriptor for us.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(content).map_err(errno)?;
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: no pointer is passed.
    Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    let readable = File::open(by_number(file.as_fd())).map_err(errno)?;
    Ok(readable.into())
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
