//! Makes and opens directories and files of the private root.

use std::ffi::CStr;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

use crate::raw_descriptors;

pub(super) fn make_directory(at: RawFd, path: &CStr, mode: u32) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::mkdirat(at, path.as_ptr(), mode) }).map(drop)
}

pub(super) fn make_file(at: &CStr) -> nix::Result<()> {
    make_file_at(libc::AT_FDCWD, at)
}

pub(super) fn make_file_of(at: &CStr, content: &[u8]) -> nix::Result<()> {
    make_file(at)?;
    let file = raw_descriptors::open_for_writing(at)?;
    let written = raw_descriptors::write_all(file, content);
    raw_descriptors::close(file);
    written
}

pub(super) fn make_file_at(directory: RawFd, name: &CStr) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let made = unsafe { libc::mknodat(directory, name.as_ptr(), libc::S_IFREG | 0o444, 0) };
    Errno::result(made).map(drop)
}

pub(super) fn open_directory(path: &CStr) -> nix::Result<RawFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::open(path.as_ptr(), flags) })
}
