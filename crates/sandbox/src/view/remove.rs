//! Removing a directory that a process has had for its own.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::changes::names;

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// Removes a directory with all in it, however deep it goes and whatever modes a process has left
/// there. Nothing may be using it any more. What cannot be removed stays.
///
/// No deeper than one directory is ever looked into: what lies further down is moved up to the top
/// first. So neither the stack nor the number of descriptors depends on what is there.
pub fn remove_directory(path: &Path) {
    if let Ok(top) = openat(AT_FDCWD, path, DIRECTORY, Mode::empty()) {
        let mut moved = 0;
        while let Some(found) = names(&top).filter(|found| !found.is_empty()) {
            let removed = found
                .iter()
                .filter(|name| remove(&top, name, &mut moved))
                .count();
            if removed == 0 {
                break;
            }
        }
    }
    let _ = std::fs::remove_dir(path);
}

/// Removes one entry of `top`; a directory's own directories come to `top`. `false` if it is still
/// there.
fn remove(top: &OwnedFd, name: &OsStr, moved: &mut u64) -> bool {
    match unlinkat(top, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) => return true,
        // A directory, as Linux and as POSIX says it.
        Err(Errno::EISDIR | Errno::EPERM) => {}
        Err(_) => return false,
    }
    let Some(directory) = enter(top, name) else {
        return false;
    };
    for below in names(&directory).unwrap_or_default() {
        if unlinkat(&directory, below.as_os_str(), UnlinkatFlags::NoRemoveDir).is_ok() {
            continue;
        }
        // To give it another parent, its own user must be able to write in it.
        open_up(&directory, &below);
        *moved += 1;
        let mut place = OsString::from(".altair-removed-");
        place.push(moved.to_string());
        let _ = renameat(&directory, below.as_os_str(), top, place.as_os_str());
    }
    unlinkat(top, name, UnlinkatFlags::RemoveDir).is_ok()
}

fn enter(parent: &OwnedFd, name: &OsStr) -> Option<OwnedFd> {
    open_up(parent, name);
    openat(parent, name, DIRECTORY, Mode::empty()).ok()
}

/// Only ever called for what could not be unlinked, which no link is.
fn open_up(parent: &OwnedFd, name: &OsStr) {
    let _ = fchmodat(
        parent.as_fd(),
        name,
        Mode::S_IRWXU,
        FchmodatFlags::FollowSymlink,
    );
}
