//! Makes entries of the private root, and clears mount attributes that are too strict for them.

use std::ffi::CStr;

use nix::errno::Errno;
use nix::libc;

use super::calls::{ALWAYS, attach, clone_tree, is_inode, mount, set_attributes};
use super::files::{make_directory, make_file, make_file_of};
use crate::view::plan::PreparedView;
use crate::view::tree::{DIRECTORY_MODE, Entry};
use crate::{Inode, RunAs, raw_descriptors};

pub(super) fn make(entry: &Entry, prepared: &PreparedView) -> nix::Result<()> {
    match entry {
        Entry::Directory { at, owner } => {
            make_directory(libc::AT_FDCWD, at, DIRECTORY_MODE)?;
            owner.map_or(Ok(()), |owner| give(at, owner))
        }
        Entry::Home { at } => mount(
            Some(c"altair-home"),
            at,
            Some(c"tmpfs"),
            ALWAYS,
            prepared.home_options.as_deref(),
        ),
        Entry::Temp { at } => mount(
            Some(c"altair-temp"),
            at,
            Some(c"tmpfs"),
            ALWAYS | libc::MS_NOEXEC,
            Some(&prepared.temp_options),
        ),
        Entry::File { at, content } => make_file_of(at, content),
        Entry::Link { at, target } => {
            // SAFETY: two C strings that outlive the call.
            let result = unsafe { libc::symlinkat(target.as_ptr(), libc::AT_FDCWD, at.as_ptr()) };
            Errno::result(result).map(drop)
        }
        Entry::Bind {
            source,
            at,
            directory,
            device: _,
            inode,
        } => {
            let mut flags = libc::MS_BIND;
            if *directory {
                make_directory(libc::AT_FDCWD, at, DIRECTORY_MODE)?;
                // In a user namespace, a bind mount without the mounts below it fails.
                flags |= libc::MS_REC;
            } else {
                make_file(at)?;
            }
            let mounted = match inode {
                None => mount(Some(source), at, None, flags, None),
                Some(_) => mount_inode(source, at, *directory, *inode),
            };
            match mounted {
                // The process's user could not reach it outside either, or it has been removed or
                // replaced: an empty file or directory is left.
                Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE) => Ok(()),
                other => other,
            }
        }
    }
}

/// Gives a directory that was just made to a user.
fn give(at: &CStr, owner: RunAs) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let result = unsafe { libc::lchown(at.as_ptr(), owner.uid, owner.gid) };
    Errno::result(result).map(drop)
}

/// Mounts `source` at `at`, if it has the wanted inode.
fn mount_inode(source: &CStr, at: &CStr, whole: bool, inode: Option<Inode>) -> nix::Result<()> {
    let tree = clone_tree(source, whole)?;
    let attached = is_inode(tree, inode).and_then(|()| attach(tree, libc::AT_FDCWD, at));
    raw_descriptors::close(tree);
    attached
}

/// Clears the attributes that are too strict for an entry.
pub(super) fn release(entry: &Entry) -> nix::Result<()> {
    let (at, set, cleared) = match entry {
        Entry::Temp { at } => (at, libc::MOUNT_ATTR_NOEXEC, libc::MOUNT_ATTR_RDONLY),
        Entry::Home { at } => (at, 0, libc::MOUNT_ATTR_RDONLY),
        Entry::Bind {
            at, device: true, ..
        } => (at, libc::MOUNT_ATTR_NOEXEC, libc::MOUNT_ATTR_NODEV),
        Entry::Bind { .. } | Entry::Directory { .. } | Entry::File { .. } | Entry::Link { .. } => {
            return Ok(());
        }
    };
    match set_attributes(libc::AT_FDCWD, at, set, cleared, false) {
        // It could not be mounted (`make`).
        Err(Errno::EINVAL) => Ok(()),
        other => other,
    }
}
