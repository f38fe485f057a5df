//! Change events from the kernel: inotify(7) for files and directories, proc_pid_mountinfo(5) for
//! the mount table.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use super::tree::DirId;

/// Events of a directory on the way: names that come and go, and its own removal and move. None
/// that its files can also have: for those, the kernel walks everything that it has cached of the
/// directory (`fsnotify_set_children_dentry_flags` in fs/notify/fsnotify.c), and `/tmp` may have a
/// hundred thousand names.
const WAY: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR);

/// Events of a directory that the template saw: also changes of its rights and of those of its
/// entries. The content of files is watched at the files, so that a growing log causes no event.
const NAMES: AddWatchFlags = WAY.union(AddWatchFlags::IN_ATTRIB);

/// Additional events of a directory whose times matter. Only setting its mtime (utimensat(2)) is
/// reported as a modification (`fsnotify_change` in linux/fsnotify.h); writes to its files are
/// reported too.
const TIMES: AddWatchFlags = NAMES.union(AddWatchFlags::IN_MODIFY);

/// Events of a file. The watch is on the inode: it also reports writes through another name (even
/// one created later) or another mount, which a watch on the directory does not. `IN_CLOSE_WRITE`:
/// a write to a shared mapping is not reported, but the mapping's end is.
const CONTENT: AddWatchFlags = AddWatchFlags::IN_MODIFY
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF);

/// What a watch is for. A name in a directory means the file that it named.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Directory(DirId),
    /// A directory on the way to what was seen.
    Way(DirId),
    /// A directory whose times matter.
    Listed(DirId),
    File(DirId, Vec<u8>),
}

/// An inotify event.
pub(super) struct Event {
    pub about: AddWatchFlags,
    /// The name in a directory.
    pub name: Option<Vec<u8>>,
    /// More than one where the same directory is mounted twice; none for an overflow.
    pub targets: Vec<Target>,
}

/// Which sources have events.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub events: bool,
    /// The mount table has changed, or cannot be watched.
    pub mounts: bool,
}

/// One inotify instance and the mount table.
#[derive(Debug)]
pub(super) struct Watcher {
    inotify: Option<Inotify>,
    mounts: Option<File>,
    targets: HashMap<i32, Vec<Target>>,
    /// Watches that may still be set.
    left: usize,
}

impl Watcher {
    /// Without an instance (`EMFILE`: a user has 128 by default), or with `most` 0, there are no
    /// watches.
    pub(super) fn new(most: usize) -> Self {
        let flags = InitFlags::IN_CLOEXEC.union(InitFlags::IN_NONBLOCK);
        Self {
            inotify: (most > 0).then(|| Inotify::init(flags).ok()).flatten(),
            // Changes before it is opened are not reported (mounts_open_common in
            // fs/proc_namespace.c), so it is opened before anything is looked at.
            mounts: File::open("/proc/self/mountinfo").ok(),
            targets: HashMap::new(),
            left: most,
        }
    }

    /// Watches `path`, which must not be a link. `false`: there is no watch (`ENOSPC`: the user's
    /// watches are used up; `EACCES`: the directory may not be read).
    pub(super) fn add(&mut self, path: &[u8], target: Target) -> bool {
        let Some(inotify) = &self.inotify else {
            return false;
        };
        if self.left == 0 {
            return false;
        }
        let mask = match target {
            Target::Directory(_) => NAMES,
            Target::Way(_) => WAY,
            Target::Listed(_) => TIMES,
            Target::File(..) => CONTENT,
        };
        // The same inode may already be watched under another name: adds to its events.
        let how =
            AddWatchFlags::IN_DONT_FOLLOW.union(AddWatchFlags::from_bits_retain(libc::IN_MASK_ADD));
        let Ok(watch) = inotify.add_watch(path, mask.union(how)) else {
            return false;
        };
        self.left -= 1;
        self.targets.entry(watch.as_raw()).or_default().push(target);
        true
    }

    /// How many inodes are watched.
    #[cfg(test)]
    pub(super) fn watches(&self) -> usize {
        self.targets.len()
    }

    /// Polls without waiting. On an error, every source counts as ready.
    pub(super) fn ready(&self) -> Ready {
        let Some(mounts) = &self.mounts else {
            return Ready {
                events: true,
                mounts: true,
            };
        };
        let mut fds = vec![PollFd::new(mounts.as_fd(), PollFlags::POLLPRI)];
        if let Some(inotify) = &self.inotify {
            fds.push(PollFd::new(inotify.as_fd(), PollFlags::POLLIN));
        }
        let done = poll(&mut fds, PollTimeout::ZERO);
        let told = |at: usize| {
            done.is_err()
                || fds
                    .get(at)
                    .is_some_and(|fd| fd.revents().is_none_or(|told| !told.is_empty()))
        };
        Ready {
            mounts: told(0),
            events: told(1),
        }
    }

    /// The next events, oldest first; empty when there are no more.
    ///
    /// # Errors
    /// Those of read(2), except `EAGAIN` and `EINTR`.
    pub(super) fn events(&self) -> Result<Vec<Event>, Errno> {
        let Some(inotify) = &self.inotify else {
            return Ok(Vec::new());
        };
        let events = loop {
            match inotify.read_events() {
                Ok(events) => break events,
                Err(Errno::EAGAIN) => return Ok(Vec::new()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        };
        Ok(events
            .into_iter()
            .map(|event| Event {
                about: event.mask,
                name: event.name.map(std::os::unix::ffi::OsStringExt::into_vec),
                targets: self
                    .targets
                    .get(&event.wd.as_raw())
                    .cloned()
                    .unwrap_or_default(),
            })
            .collect())
    }
}
