//! Builds the private root, between clone(2) and execve(2), with system calls only.
//!
//! As in [`crate::system_calls`], everything is async-signal-safe.
#![allow(unsafe_code)]

mod backstage;
mod calls;
mod entries;
mod files;
mod fork_mounts;
mod project;

use std::ffi::CStr;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::stat::{Mode, umask};

pub(crate) use fork_mounts::{Renewed, renew};

use backstage::{hide_backstage, stash};
use calls::{ALWAYS, mount, set_attributes, unmount};
use entries::{make, release};
use files::{make_directory, make_file_of, open_directory};
use project::{mount_project, seal};

use super::plan::{Covered, PreparedView};
use super::renewal::BACKSTAGE;
use super::tree::DIRECTORY_MODE;
use crate::error::{Failure, Step};
use crate::process::LIFELINE;
use crate::raw_descriptors;

/// The mount attributes of what may only be read.
const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Makes the view of the calling process, which must have its own namespaces. If there is a layer,
/// its directory is sent to the host over `lifeline`.
pub(crate) fn apply(
    prepared: &PreparedView,
    lifeline: RawFd,
    has_input: bool,
) -> Result<(), Failure> {
    let old_mask = umask(Mode::empty());
    // Mounts must not propagate in either direction.
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)
        .map_err(|e| Step::Namespace.failed(e))?;
    build(prepared, lifeline, has_input, old_mask)?;
    umask(old_mask);
    Ok(())
}

/// Makes it under an empty file mode creation mask; `mask` is for what outlives the process.
fn build(
    prepared: &PreparedView,
    lifeline: RawFd,
    has_input: bool,
    mask: Mode,
) -> Result<(), Failure> {
    let root = |e| Step::PrivateRoot.failed(e);
    // On top of the old root: a path from `/` still leads through the old one, one from the
    // working directory through the new one.
    mount(
        Some(c"altair"),
        c"/",
        Some(c"tmpfs"),
        ALWAYS | libc::MS_NOEXEC,
        Some(&prepared.root_options),
    )
    .map_err(root)?;
    enter_top_of_root().map_err(root)?;
    for entry in &prepared.entries {
        make(entry, prepared).map_err(root)?;
    }
    // One call for all entries; writable ones are unlocked or mounted afterwards.
    set_attributes(libc::AT_FDCWD, c".", READ_ONLY, 0, true).map_err(root)?;
    let unlocked = libc::MOUNT_ATTR_RDONLY;
    set_attributes(libc::AT_FDCWD, c".", 0, unlocked, false).map_err(root)?;
    for entry in &prepared.entries {
        release(entry).map_err(root)?;
    }
    if prepared.processes {
        mount_processes(prepared.user_namespace.is_some()).map_err(root)?;
    }
    for covered in &prepared.covered {
        make_file_of(relative(&covered.file), &covered.content).map_err(root)?;
    }
    let step = prepared.mounts.step();
    make_directory(libc::AT_FDCWD, relative(BACKSTAGE), DIRECTORY_MODE).map_err(root)?;
    let base = open_directory(relative(BACKSTAGE)).map_err(root)?;
    for stashed in &prepared.stash {
        stash(base, stashed).map_err(|e| step.failed(e))?;
    }
    raw_descriptors::close(base);
    let pivot = |e| Step::PivotRoot.failed(e);
    set_attributes(libc::AT_FDCWD, c".", libc::MOUNT_ATTR_RDONLY, 0, false).map_err(pivot)?;
    become_root().map_err(pivot)?;
    nix::unistd::chdir(BACKSTAGE).map_err(pivot)?;
    if let Some(store) = mount_project(&prepared.mounts).map_err(|e| step.failed(e))? {
        let sent = raw_descriptors::send_descriptor(lifeline, store);
        raw_descriptors::close(store);
        sent.map_err(|e| step.failed(e))?;
    }
    umask(mask);
    seal(&prepared.mounts)?;
    umask(Mode::empty());
    // Over whatever shows them by now.
    for covered in &prepared.covered {
        cover(covered).map_err(root)?;
    }
    hide_backstage().map_err(pivot)?;
    match has_input {
        true => Ok(()),
        false => empty_input().map_err(pivot),
    }
}

/// Covers a file with another, or a directory with an empty one. It is no error if it does not exist,
/// or if this process cannot reach it, which has more rights than its program.
fn cover(covered: &Covered) -> nix::Result<()> {
    let done = match mount(Some(&covered.file), &covered.at, None, libc::MS_BIND, None) {
        // For user 0 its file is its own.
        Ok(()) => set_attributes(libc::AT_FDCWD, &covered.at, READ_ONLY, 0, false),
        Err(Errno::ENOTDIR) => cover_directory(&covered.at),
        other => other,
    };
    match done {
        // The last two: a file or a circle of links on the way to it.
        Err(Errno::ENOENT | Errno::EACCES | Errno::ENOTDIR | Errno::ELOOP) => Ok(()),
        other => other,
    }
}

/// Covers a directory with an empty one, if it exists.
fn cover_directory(at: &CStr) -> nix::Result<()> {
    let flags = ALWAYS | libc::MS_NOEXEC | libc::MS_RDONLY;
    let options = Some(c"mode=0555,size=4k,nr_inodes=2");
    match mount(Some(c"altair"), at, Some(c"tmpfs"), flags, options) {
        Err(Errno::ENOENT) => Ok(()),
        other => other,
    }
}

/// Mounts a `/proc` of the calling process's pid namespace. In a container that hides parts of its
/// own, the kernel refuses it (`mount_too_revealing` in fs/namespace.c): the directory stays empty.
/// Read-only: settings of the machine belong to user 0, whatever its capabilities.
///
/// It shows only what the process may inspect (proc(5), `hidepid`): not the keeper, whose arguments
/// and mounts are the host's. Members of the group `gid`, by default user 0's, would see it; where
/// they do, it is covered.
fn mount_processes(in_user_namespace: bool) -> nix::Result<()> {
    let flags = ALWAYS | libc::MS_NOEXEC | libc::MS_RDONLY;
    let mount = |options| mount(Some(c"proc"), c"proc", Some(c"proc"), flags, Some(options));
    let mounted = match in_user_namespace {
        // The group would have to be mapped.
        true => mount(c"hidepid=2"),
        false => match mount(c"hidepid=2,gid=4294967294") {
            // The host is in a user namespace of its own.
            Err(Errno::EINVAL) => mount(c"hidepid=2"),
            other => other,
        },
    };
    match mounted {
        Ok(()) => cover_directory(c"proc/1"),
        Err(Errno::EPERM) => Ok(()),
        other => other,
    }
}

/// An absolute path as one relative to the private root under construction.
fn relative(path: &CStr) -> &CStr {
    match path.to_bytes_with_nul() {
        [b'/', rest @ ..] => CStr::from_bytes_with_nul(rest).unwrap_or(path),
        _ => path,
    }
}

/// Makes the new root the root, and detaches the old one if the kernel lets it.
///
/// Where it does not, the old root stays below the new one, which was mounted on top of it. That is
/// where `switch_root` leaves it, too, and not an ordinary chroot: `..` ends at the new root also for
/// a process that has changed its root once more. The ways back are to unmount the new root and to
/// enter a directory by a descriptor from outside. The first takes CAP_SYS_ADMIN, which a process has
/// lost when its program runs and a template may not use; of the second there is none
/// ([`process::isolate`](crate::process::isolate)).
fn become_root() -> nix::Result<()> {
    // SAFETY: two C strings. With the same directory twice the old root is mounted on top of the
    // new one (pivot_root(2), "pivot_root(".", ".")").
    let result = unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) };
    match Errno::result(result) {
        Ok(_) => unmount(c".")?,
        // EINVAL: the old root is the initial rootfs, which pivot_root(2) cannot replace. Otherwise a
        // filter refuses this call alone, as that of Docker does with every capability.
        Err(Errno::EINVAL | Errno::EPERM | Errno::EACCES | Errno::ENOSYS) => {
            // SAFETY: a C string.
            Errno::result(unsafe { libc::chroot(c".".as_ptr()) })?;
        }
        Err(errno) => return Err(errno),
    }
    nix::unistd::chdir(c"/")
}

/// Enters the mount on top of `/`, which no absolute path reaches.
fn enter_top_of_root() -> nix::Result<()> {
    // `..` of the root is what is mounted on top of it (`follow_dotdot` in fs/namei.c).
    nix::unistd::chdir(c"/..")
}

/// Reopens standard input. The inherited `/dev/null` was opened through a mount of the host's;
/// through that mount, the device's owner could change its mode for the whole machine.
fn empty_input() -> nix::Result<()> {
    // SAFETY: a C string.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let input = match Errno::result(null) {
        Ok(null) => null,
        // Not part of the view: a pipe without a writer reads as empty, too.
        Err(_) => {
            let (reading, writing) = raw_descriptors::pipe_at(LIFELINE + 1)?;
            raw_descriptors::close(writing);
            reading
        }
    };
    let put = raw_descriptors::put(input, 0, false);
    raw_descriptors::close(input);
    put
}
