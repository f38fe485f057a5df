//! Removing a directory that a process has had for its own.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::changes::{POINT, names};
use crate::{RunAs, other_user, system_calls, with_files_of};

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// How long what another user has left is removed as that user, who may go on making it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Removes a directory with all in it, however deep it goes and whatever modes a process has left
/// there. Nothing may be using it any more. What cannot be removed stays.
///
/// No deeper than one directory is ever looked into: what lies further down is moved up to the top
/// first. So neither the stack nor the number of descriptors depends on what is there.
///
/// `user`: whose it is, where the host may do more: as that user first.
pub fn remove_directory(path: &Path, user: Option<RunAs>) {
    if other_user(user).is_none() {
        return remove_own(path);
    }
    let own = path.to_owned();
    let _ = with_files_of(user, PATIENCE, move || remove_own(&own));
    // What the host itself has made there, and the directory where its user may not remove it: by
    // descriptors, too.
    remove_own(path);
}

fn remove_own(path: &Path) {
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

/// Gives its owner all rights to a directory; what is none is left as it is.
fn open_up(parent: &OwnedFd, name: &OsStr) {
    if let Ok(pointed) = openat(parent, name, POINT, Mode::empty()) {
        let _ = system_calls::open_up(pointed.as_fd());
    }
}
