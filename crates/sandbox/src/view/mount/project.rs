//! Mounts the project, as it is or under layers that take the writes.

use std::ffi::CStr;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;

use super::calls::{ALWAYS, bind, mount};
use super::files::{make_directory, open_directory};
use crate::error::{Failure, Step};
use crate::view::renewal::{COVER, Further, LayerMount, MountKind, Mounts, Store};
use crate::view::tree::DIRECTORY_MODE;
use crate::{RunAs, raw_descriptors};

/// Mounts the project from the working directory, which is
/// [`BACKSTAGE`](crate::view::renewal::BACKSTAGE). Returns the layer's directory, if there is one.
pub(super) fn mount_project(mounts: &Mounts) -> nix::Result<Option<RawFd>> {
    let store = match &mounts.kind {
        MountKind::Bind { source } => {
            bind(source, &mounts.project)?;
            None
        }
        MountKind::Layers {
            store,
            parts,
            user_xattr,
        } => {
            make_store(store)?;
            for (index, part) in parts.iter().enumerate() {
                match layer_part(part, *user_xattr) {
                    Ok(()) => {}
                    // Only the project itself must have a layer; mounts below it can do without.
                    Err(_) if index > 0 => bind(&part.source, &part.at)?,
                    Err(errno) => return Err(errno),
                }
            }
            Some(open_directory(&store.path)?)
        }
    };
    let store = match further(mounts)? {
        Some(further) => Some(further),
        None => store,
    };
    for (source, at) in &mounts.files {
        bind(source, at)?;
    }
    Ok(store)
}

/// The mode of a sealed directory that did not exist, less the file mode creation mask: as the host
/// itself makes it, whose users may share it by their group.
const SEALED_MODE: u32 = 0o775;

/// Mounts an empty directory over the sealed one, after the project. If it has to make that one, the
/// mask in force applies.
pub(super) fn seal(mounts: &Mounts) -> Result<(), Failure> {
    let Some(at) = &mounts.sealed else {
        return Ok(());
    };
    match bind(COVER, at) {
        Err(Errno::ENOENT) => match make_as(mounts.sealed_as, at) {
            Ok(()) | Err(Errno::EEXIST) => bind(COVER, at),
            Err(errno) => Err(errno),
        },
        other => other,
    }
    .map_err(|errno| Step::Seal.failed(errno))
}

/// Makes a directory, as `user` if there is one. A directory that root made would shut its project's
/// owner out.
fn make_as(user: Option<RunAs>, at: &CStr) -> nix::Result<()> {
    let Some(user) = user else {
        return make_directory(libc::AT_FDCWD, at, SEALED_MODE);
    };
    // SAFETY: no pointer is passed. Back at user 0, the process has the capabilities that it had
    // (capabilities(7), "Effect of user ID changes on capabilities").
    unsafe {
        let gid = libc::syscall(libc::SYS_setfsgid, user.gid);
        let uid = libc::syscall(libc::SYS_setfsuid, user.uid);
        let made = make_directory(libc::AT_FDCWD, at, SEALED_MODE);
        libc::syscall(libc::SYS_setfsuid, uid);
        libc::syscall(libc::SYS_setfsgid, gid);
        made
    }
}

/// Makes the further mounts. Returns the directory of their layers, if there is one.
fn further(mounts: &Mounts) -> nix::Result<Option<RawFd>> {
    if let Some(store) = &mounts.further_store {
        make_store(store)?;
    }
    for further in &mounts.further {
        match further {
            Further::Bind { source, at } => bind(source, at)?,
            Further::Layer {
                layer,
                user_xattr,
                can_do_without,
            } => match layer_part(layer, *user_xattr) {
                Err(_) if *can_do_without => bind(&layer.source, &layer.at)?,
                mounted => mounted?,
            },
        }
    }
    let store = mounts.further_store.as_ref().filter(|store| store.sent);
    store.map(|store| open_directory(&store.path)).transpose()
}

/// Mounts the file system for a layer's files, unless they are on disk.
fn make_store(store: &Store) -> nix::Result<()> {
    match &store.options {
        Some(options) => mount(
            Some(c"altair-layer"),
            &store.path,
            Some(c"tmpfs"),
            ALWAYS,
            Some(options),
        ),
        None => Ok(()),
    }
}

fn layer_part(part: &LayerMount, user_xattr: bool) -> nix::Result<()> {
    make_directory(libc::AT_FDCWD, &part.upper, 0o700)?;
    make_directory(libc::AT_FDCWD, &part.work, 0o700)?;
    if let Some(name) = &part.make {
        let upper = open_directory(&part.upper)?;
        let made = make_directory(upper, name, DIRECTORY_MODE);
        raw_descriptors::close(upper);
        made?;
    }
    own(part, user_xattr)?;
    mount(
        Some(c"altair-project"),
        &part.at,
        Some(c"overlay"),
        ALWAYS,
        Some(&part.options),
    )
}

/// Gives the upper directory the owner and mode of the project's, since it shows in its place.
fn own(part: &LayerMount, in_user_namespace: bool) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let result =
        unsafe { libc::fchownat(libc::AT_FDCWD, part.upper.as_ptr(), part.uid, part.gid, 0) };
    match Errno::result(result) {
        Ok(_) => {}
        // The owner is not mapped in the namespace: the directory shows as the process's own.
        Err(Errno::EINVAL | Errno::EPERM) if in_user_namespace => {}
        Err(errno) => return Err(errno),
    }
    // SAFETY: a C string that outlives the call.
    let result = unsafe { libc::fchmodat(libc::AT_FDCWD, part.upper.as_ptr(), part.mode, 0) };
    Errno::result(result).map(drop)
}
