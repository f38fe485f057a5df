//! Wrappers of the single calls that mount, clone mounts and set their attributes.

use std::ffi::CStr;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc::{self, c_long, c_uint, c_ulong};

use crate::{Inode, system_calls};

/// Flags of every mount: it must not grant privileges.
pub(super) const ALWAYS: c_ulong = libc::MS_NOSUID | libc::MS_NODEV;

pub(super) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: c_ulong,
    data: Option<&CStr>,
) -> nix::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(0, |text| text.as_ptr() as c_long);
    // SAFETY: C strings that outlive the call, or null where mount(2) allows it.
    unsafe {
        system_calls::with_pass(
            libc::SYS_mount,
            [
                pointer(source),
                pointer(Some(target)),
                pointer(kind),
                flags.cast_signed(),
                pointer(data),
            ],
        )
    }
    .map(drop)
}

pub(super) fn unmount(target: &CStr) -> nix::Result<()> {
    let detach = c_long::from(libc::MNT_DETACH);
    // SAFETY: a C string that outlives the call.
    unsafe {
        system_calls::with_pass(
            libc::SYS_umount2,
            [target.as_ptr() as c_long, detach, 0, 0, 0],
        )
    }
    .map(drop)
}

/// Bind-mounts `source` at `at`, with all mounts below it and the same attributes.
pub(super) fn bind(source: &CStr, at: &CStr) -> nix::Result<()> {
    mount(Some(source), at, None, libc::MS_BIND | libc::MS_REC, None)
}

/// A detached copy of the mounts at `source`. Links are not followed.
pub(super) fn clone_tree(source: &CStr, whole: bool) -> nix::Result<RawFd> {
    let recursive = if whole {
        libc::AT_RECURSIVE as c_uint
    } else {
        0
    };
    let flags = libc::OPEN_TREE_CLONE
        | libc::OPEN_TREE_CLOEXEC
        | libc::AT_SYMLINK_NOFOLLOW as c_uint
        | recursive;
    // SAFETY: a C string that outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), flags) };
    descriptor(fd)
}

pub(super) fn attach(tree: RawFd, directory: RawFd, name: &CStr) -> nix::Result<()> {
    // SAFETY: C strings that outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree,
            c"".as_ptr(),
            directory,
            name.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    Errno::result(result).map(drop)
}

pub(super) fn set_attributes(
    at: RawFd,
    path: &CStr,
    set: u64,
    cleared: u64,
    whole: bool,
) -> nix::Result<()> {
    let recursive = if whole { libc::AT_RECURSIVE } else { 0 };
    let wanted = libc::mount_attr {
        attr_set: set,
        attr_clr: cleared,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: both outlive the call; the size is the struct's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    Errno::result(result).map(drop)
}

/// Checks that a file has the wanted inode: `ESTALE` if its path by now leads to another file.
pub(super) fn is_inode(file: RawFd, wanted: Option<Inode>) -> nix::Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    // SAFETY: all zeros is a valid stat.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` outlives the call.
    Errno::result(unsafe { libc::fstat(file, &raw mut stat) })?;
    match Inode::of(&stat) == wanted {
        true => Ok(()),
        false => Err(Errno::ESTALE),
    }
}

fn descriptor(result: libc::c_long) -> nix::Result<RawFd> {
    RawFd::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)
}
