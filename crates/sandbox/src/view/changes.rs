//! What a process did to its throwaway layer, read from the layer when the process has ended.
//!
//! The layer is the process's own work: nothing in it is trusted. Links are not followed, devices
//! and pipes not opened; depth, time, memory and descriptors are bounded.

use std::collections::{BTreeSet, BinaryHeap};
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};

use super::plan::Layers;
use crate::place::point_below;
use crate::{system_calls, with_files_of};

/// How long the whole look may take. A file whose content has not been compared by then counts as
/// modified, and what has not been seen is not told.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Directories within each other that are entered; each holds a descriptor. What is further down
/// goes with the last of them.
const DEPTH_MAX: usize = 64;

/// Bytes that are compared at a time.
const CHUNK_BYTES: usize = 128 * 1024;

/// Paths at which something is undone that are kept.
const UNDONE_MAX: usize = 1000;

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
/// To point at a directory (open(2), `O_PATH`).
pub(super) const POINT: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
const FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

/// A file or directory that a process made, changed or removed in its layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Relative to the project.
    pub path: PathBuf,
    /// What happened.
    pub kind: ChangeKind,
    /// Whether it is a directory.
    pub directory: bool,
    /// Bytes; of what was there before, where it was removed. 0 for a directory.
    pub size: u64,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its content, mode or kind is another.
    Modified,
    /// It is gone; with all below, where it is a directory.
    Deleted,
}

/// What has changed in a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The first of them, in order of the paths.
    pub first: Vec<Change>,
    /// How many there are beside these.
    pub more: u64,
    /// Whether there may be others: it took too long to look at all of them.
    pub incomplete: bool,
    /// Paths at which, with all below, the layer shows the project's own, or nothing where the
    /// project has nothing: what a layer below it did there is undone.
    pub undone: Vec<PathBuf>,
}

/// The throwaway layer of one process. It is gone when this is dropped.
#[derive(Debug)]
pub struct Layer {
    directory: OwnedFd,
    layers: Layers,
}

impl Layer {
    pub(crate) fn new(directory: OwnedFd, layers: Layers) -> Self {
        Self { directory, layers }
    }

    /// What has changed; the first `at_most` by name, as far as that is found `until` then. Call it
    /// when the process has ended.
    ///
    /// It is looked for as the process's own user: what that user may not read is not compared, so
    /// that nothing of it shows in what has changed.
    #[must_use]
    pub fn changes(&self, at_most: usize, until: Instant) -> Changes {
        let until = until.min(Instant::now() + TIME_LIMIT);
        let unseen = || Changes {
            incomplete: true,
            ..Changes::default()
        };
        let Some(user) = self.layers.user else {
            return look(self.directory.as_fd(), &self.layers, at_most, until);
        };
        let Ok(directory) = self.directory.try_clone() else {
            return unseen();
        };
        let layers = self.layers.clone();
        let patience = until.saturating_duration_since(Instant::now()) + LATE;
        with_files_of(Some(user), patience, move || {
            look(directory.as_fd(), &layers, at_most, until)
        })
        .unwrap_or_else(|_| unseen())
    }
}

/// How long after `until` the look is still waited for.
const LATE: Duration = Duration::from_millis(100);

fn look(layer: BorrowedFd<'_>, layers: &Layers, at_most: usize, until: Instant) -> Changes {
    let mut walk = Walk {
        opaque: layers.opaque,
        until,
        at_most,
        first: BinaryHeap::new(),
        total: 0,
        incomplete: false,
        undone: Vec::new(),
        buffers: (Vec::new(), Vec::new()),
    };
    for (index, mount) in layers.mounts.iter().enumerate() {
        let skip = match index {
            0 => layers.sealed.as_deref(),
            _ => None,
        };
        let upper = format!("upper{index}");
        let below = point_below(layers.root.descriptor(), mount).ok();
        walk.tree(layer, OsStr::new(&upper), mount, below, skip);
    }
    Changes {
        more: walk.total - walk.first.len() as u64,
        first: walk.first.into_sorted_vec(),
        incomplete: walk.incomplete,
        undone: walk.undone,
    }
}

/// A directory of the layer that is being looked at.
struct Level {
    directory: OwnedFd,
    /// The project's directory that shows through.
    project: Option<OwnedFd>,
    /// What is still to be entered.
    below: Vec<Below>,
}

struct Below {
    name: OsString,
    /// Whether the directory of the project shows through.
    merged: bool,
}

struct Walk {
    opaque: &'static CStr,
    until: Instant,
    at_most: usize,
    first: BinaryHeap<Change>,
    total: u64,
    incomplete: bool,
    undone: Vec<PathBuf>,
    buffers: (Vec<u8>, Vec<u8>),
}

impl Walk {
    fn tree(
        &mut self,
        layer: BorrowedFd<'_>,
        upper: &OsStr,
        mount: &Path,
        project: Option<OwnedFd>,
        skip: Option<&OsStr>,
    ) {
        let mut path = mount.to_owned();
        let Some(top) = self.level(layer, upper, &path, project, skip) else {
            return;
        };
        let mut levels = vec![top];
        while let Some(level) = levels.last_mut() {
            let Some(next) = level.below.pop() else {
                levels.pop();
                path.pop();
                continue;
            };
            path.push(&next.name);
            let project = match (&level.project, next.merged) {
                (Some(project), true) => {
                    openat(project, next.name.as_os_str(), POINT, Mode::empty()).ok()
                }
                _ => None,
            };
            let entered = self.level(level.directory.as_fd(), &next.name, &path, project, None);
            match entered {
                Some(mut level) => {
                    if levels.len() + 1 == DEPTH_MAX {
                        level.below.clear();
                    }
                    levels.push(level);
                }
                None => {
                    path.pop();
                }
            }
        }
    }

    /// Looks at one directory of the layer, and gives those in it.
    fn level(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        project: Option<OwnedFd>,
        skip: Option<&OsStr>,
    ) -> Option<Level> {
        let directory = open_directory(parent, name)?;
        let names = names(&directory)?;
        // It hides all that the one below it holds.
        if system_calls::attribute_is(directory.as_fd(), self.opaque, b"y") {
            if let Some(project) = &project {
                self.hidden(path, project, &names);
            }
            self.undo(path.to_owned());
        }
        let mut below = Vec::new();
        for name in names.iter().filter(|name| skip != Some(name.as_os_str())) {
            if Instant::now() >= self.until {
                self.incomplete = true;
                return None;
            }
            let stat = fstatat(&directory, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
            let Ok(stat) = stat else { continue };
            let path = path.join(name);
            let before = project.as_ref().and_then(|project| {
                fstatat(project, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).ok()
            });
            let was_directory = before.as_ref().is_some_and(is_directory);
            self.entry(&directory, project.as_ref(), name, path, &stat, before);
            if stat.st_mode & libc::S_IFMT == libc::S_IFDIR {
                below.push(Below {
                    name: name.clone(),
                    merged: was_directory,
                });
            }
        }
        Some(Level {
            directory,
            project,
            below,
        })
    }

    /// Notes one entry of the layer.
    fn entry(
        &mut self,
        parent: &OwnedFd,
        project: Option<&OwnedFd>,
        name: &OsStr,
        path: PathBuf,
        stat: &FileStat,
        before: Option<FileStat>,
    ) {
        let kind = SFlag::from_bits_truncate(stat.st_mode & libc::S_IFMT);
        let size = stat.st_size.unsigned_abs();
        let directory = kind == SFlag::S_IFDIR;
        if kind == SFlag::S_IFCHR && stat.st_rdev == 0 {
            // A whiteout: what was there is hidden.
            match before {
                Some(before) => {
                    let size = before.st_size.unsigned_abs();
                    self.note(path, ChangeKind::Deleted, is_directory(&before), size);
                }
                None => self.undo(path),
            }
            return;
        }
        let (Some(before), Some(project)) = (before, project) else {
            return self.note(path, ChangeKind::Created, directory, size);
        };
        let same_kind = stat.st_mode & libc::S_IFMT == before.st_mode & libc::S_IFMT;
        let same_mode = stat.st_mode & 0o7777 == before.st_mode & 0o7777 || kind == SFlag::S_IFLNK;
        let is_same = same_kind
            && same_mode
            && match kind {
                SFlag::S_IFDIR => true,
                SFlag::S_IFLNK => {
                    let below = readlinkat(project, name);
                    matches!((readlinkat(parent, name), below), (Ok(new), Ok(old)) if new == old)
                }
                SFlag::S_IFREG => {
                    size == before.st_size.unsigned_abs() && self.same_bytes(parent, project, name)
                }
                _ => false,
            };
        if !is_same {
            self.note(path, ChangeKind::Modified, directory, size);
        } else if !directory {
            self.undo(path);
        }
    }

    fn undo(&mut self, path: PathBuf) {
        if self.undone.len() < UNDONE_MAX {
            self.undone.push(path);
        } else {
            self.incomplete = true;
        }
    }

    fn note(&mut self, path: PathBuf, kind: ChangeKind, directory: bool, size: u64) {
        self.total += 1;
        if self.first.len() == self.at_most
            && self.first.peek().is_none_or(|last| last.path <= path)
        {
            return;
        }
        self.first.push(Change {
            path,
            kind,
            directory,
            size: if directory { 0 } else { size },
        });
        if self.first.len() > self.at_most {
            self.first.pop();
        }
    }

    /// What an opaque directory hides.
    fn hidden(&mut self, path: &Path, project: &OwnedFd, kept: &BTreeSet<OsString>) {
        for name in names(project).unwrap_or_default().difference(kept) {
            if Instant::now() >= self.until {
                self.incomplete = true;
                return;
            }
            let stat = fstatat(project, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
            let Ok(stat) = stat else { continue };
            let size = stat.st_size.unsigned_abs();
            self.note(
                path.join(name),
                ChangeKind::Deleted,
                is_directory(&stat),
                size,
            );
        }
    }

    fn same_bytes(&mut self, parent: &OwnedFd, project: &OwnedFd, name: &OsStr) -> bool {
        // One that may not be read has another mode than before, or no content to compare with.
        let upper = openat(parent, name, FILE, Mode::empty());
        let below = openat(project, name, FILE, Mode::empty());
        let (Ok(upper), Ok(below)) = (upper, below) else {
            return false;
        };
        let (mut upper, mut below) = (File::from(upper), File::from(below));
        let (left, right) = &mut self.buffers;
        left.resize(CHUNK_BYTES, 0);
        right.resize(CHUNK_BYTES, 0);
        loop {
            if Instant::now() >= self.until {
                return false;
            }
            match (fill(&mut upper, left), fill(&mut below, right)) {
                (Some(0), Some(0)) => return true,
                (Some(a), Some(b)) if left.get(..a) == right.get(..b) => {}
                _ => return false,
            }
        }
    }
}

fn is_directory(stat: &FileStat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFDIR
}

fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> Option<OwnedFd> {
    match openat(parent, name, DIRECTORY, Mode::empty()) {
        Err(Errno::EACCES) => {
            // The process took its own rights away; nobody needs the mode any more.
            let pointed = openat(parent, name, POINT, Mode::empty()).ok()?;
            system_calls::open_up(pointed.as_fd()).ok()?;
            openat(parent, name, DIRECTORY, Mode::empty()).ok()
        }
        opened => opened.ok(),
    }
}

/// The names in a directory, in order.
pub(super) fn names(directory: &OwnedFd) -> Option<BTreeSet<OsString>> {
    let mut dir = Dir::openat(directory, ".", DIRECTORY, Mode::empty()).ok()?;
    let names = dir
        .iter()
        .flatten()
        .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    Some(names.filter(|name| name != "." && name != "..").collect())
}

/// Fills a buffer as far as the file goes.
fn fill(file: &mut File, buffer: &mut [u8]) -> Option<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(filled)
}
