//! Keeps mount sources backstage, and hides them afterwards.

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

use super::calls::{attach, clone_tree, is_inode, mount, set_attributes};
use super::files::{make_directory, make_file_at};
use crate::raw_descriptors;
use crate::view::plan::Stashed;
use crate::view::renewal::{BACKSTAGE, COVER};
use crate::view::tree::DIRECTORY_MODE;

/// Keeps something of the host's, or an empty directory, in the directory `base`.
pub(super) fn stash(base: RawFd, stashed: &Stashed) -> nix::Result<()> {
    if stashed.directory {
        make_directory(base, &stashed.name, DIRECTORY_MODE)?;
    } else {
        make_file_at(base, &stashed.name)?;
    }
    let Some(source) = &stashed.source else {
        return Ok(());
    };
    let attributes = libc::MOUNT_ATTR_NOSUID
        | libc::MOUNT_ATTR_NODEV
        | if stashed.writable {
            0
        } else {
            libc::MOUNT_ATTR_RDONLY
        };
    let tree = match clone_tree(source, stashed.whole) {
        // The process's user could not reach it outside either: it stays an empty file.
        Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR) if !stashed.directory => return Ok(()),
        other => other?,
    };
    let result = is_inode(tree, stashed.inode)
        .and_then(|()| set_attributes(tree, c"", attributes, 0, stashed.whole))
        .and_then(|()| attach(tree, base, &stashed.name));
    raw_descriptors::close(tree);
    result
}

/// Mounts an empty directory over [`BACKSTAGE`], the working directory, and leaves it.
pub(super) fn hide_backstage() -> nix::Result<()> {
    mount(Some(COVER), BACKSTAGE, None, libc::MS_BIND, None)?;
    nix::unistd::chdir(c"/")
}
