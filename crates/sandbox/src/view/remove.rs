//! Removes a directory that a process had to itself.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::apply::{Over, rename};
use super::changes::{POINT, names};
use crate::{Place, RunAs, other_user, system_calls, with_files_of};

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// Time limit for removing another user's files as that user, who may keep creating more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Removes a directory with everything in it, at any depth and with any modes. It must no longer be
/// in use. What cannot be removed stays.
///
/// Only one level is visited at a time: deeper directories are moved up to the top first. So
/// neither the stack nor the number of descriptors depends on the contents.
///
/// `user`: the owner, if the host has more rights; removal is first tried as that user.
pub fn remove_directory(path: &Path, user: Option<RunAs>) {
    if other_user(user).is_none() {
        return remove_own(path);
    }
    let own = path.to_owned();
    let _ = with_files_of(user, PATIENCE, move || remove_own(&own));
    // Removes what the host itself made there, and the directory if its user may not remove it;
    // also by descriptors.
    remove_own(path);
}

/// Removes exactly this directory, like [`remove_directory`]. Whoever may rename it cannot have
/// another one removed in its place.
pub fn remove_place(place: &Place, user: Option<RunAs>) {
    let remove = |place: &Place| {
        let _ = system_calls::open_up(place.descriptor());
        if let Ok(top) = place.open() {
            remove_entries(&top);
        }
    };
    if other_user(user).is_some() {
        let own = place.clone();
        let _ = with_files_of(user, PATIENCE, move || remove(&own));
    }
    // As above.
    remove(place);
    let _ = std::fs::remove_dir(place.path());
}

fn remove_own(path: &Path) {
    if let Ok(top) = openat(AT_FDCWD, path, DIRECTORY, Mode::empty()) {
        remove_entries(&top);
    }
    let _ = std::fs::remove_dir(path);
}

/// Removes everything in a directory, like [`remove_directory`].
pub(crate) fn remove_entries(top: &OwnedFd) {
    let mut moved = 0;
    while let Some(found) = names(top).filter(|found| !found.is_empty()) {
        let removed = found
            .iter()
            .filter(|name| remove(top, name, &mut moved))
            .count();
        if removed == 0 {
            break;
        }
    }
}

/// Removes one entry of `top`; subdirectories of a directory are moved to `top`. Returns `false` if
/// the entry still exists.
fn remove(top: &OwnedFd, name: &OsStr, moved: &mut u64) -> bool {
    match unlinkat(top, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) => return true,
        // A directory: `EISDIR` on Linux, `EPERM` in POSIX.
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
        // Moving a directory to another parent requires write permission on it.
        open_up(&directory, &below);
        move_up(&directory, &below, top, moved);
    }
    unlinkat(top, name, UnlinkatFlags::RemoveDir).is_ok()
}

/// Moves a directory to `top`, under a name that nothing has there: who has made the directory may
/// have taken some.
fn move_up(parent: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) {
    loop {
        *moved += 1;
        let mut place = OsString::from(".altair-removed-");
        place.push(moved.to_string());
        let (from, to) = ((parent.as_fd(), name), (top.as_fd(), place.as_os_str()));
        match rename(from, to, Over::Nothing) {
            Err(Errno::EEXIST) => {}
            // The file system cannot do this.
            Err(Errno::EINVAL) => match renameat(parent, name, top, place.as_os_str()) {
                Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
                _ => return,
            },
            _ => return,
        }
    }
}

fn enter(parent: &OwnedFd, name: &OsStr) -> Option<OwnedFd> {
    open_up(parent, name);
    openat(parent, name, DIRECTORY, Mode::empty()).ok()
}

/// Gives the owner all rights to a directory; other files stay as they are.
fn open_up(parent: &OwnedFd, name: &OsStr) {
    if let Ok(pointed) = openat(parent, name, POINT, Mode::empty()) {
        let _ = system_calls::open_up(pointed.as_fd());
    }
}
