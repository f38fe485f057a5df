//! What a process changed in its throwaway layer, read from the layer after the process has ended.
//!
//! The process controls the layer's contents, so they are not trusted: links are not followed,
//! devices and pipes are not opened, and depth, time, memory and descriptors are bounded.

use std::collections::{BTreeSet, BinaryHeap};
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use super::change::{Change, ChangeKind, Listed, What};
use super::opened::Opened;
use super::plan::Layers;
use crate::place::{point_below, read_below};
use crate::{system_calls, with_files_of};

/// Time limit for the whole scan. A file whose content has not been compared by then counts as
/// modified; entries not reached by then are not reported.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Maximum depth of nested directories; each level holds a descriptor. Deeper entries are covered
/// by the deepest directory that was entered.
const DEPTH_MAX: usize = 64;

/// Bytes compared at a time.
const CHUNK_BYTES: usize = 128 * 1024;

/// Maximum number of [`Changes::undone`] paths.
const UNDONE_MAX: usize = 1000;

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
/// Refers to a directory without opening it for reading (open(2), `O_PATH`).
pub(super) const POINT: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
const FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

/// A file before and after the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// What the project has; `None` if there is no file.
    pub before: Option<Vec<u8>>,
    /// What the layer has; `None` if there is no file.
    pub after: Option<Vec<u8>>,
}

/// What has changed in a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changes made at or after `since`.
    pub late: Listed,
    /// Changes made before `since`.
    pub early: Listed,
    /// Whether changes may be missing because a limit was reached.
    pub incomplete: bool,
    /// Paths at and below which the layer shows the project's own state (nothing, if the project
    /// has nothing there): changes that a lower layer made there are undone.
    pub undone: Vec<PathBuf>,
}

/// The throwaway layer of one process. Dropping this discards it.
#[derive(Debug)]
pub struct Layer {
    pub(super) directory: OwnedFd,
    pub(super) layers: Layers,
}

impl Layer {
    pub(crate) fn new(directory: OwnedFd, layers: Layers) -> Self {
        Self { directory, layers }
    }

    /// Returns the changes found before `until`; of these, the first `at_most` by path that were made
    /// before `since`, and as many that were made later. Call it after the process has ended.
    ///
    /// `since` is the time since the epoch by `CLOCK_REALTIME_COARSE`, the clock of the kernel's
    /// timestamps; `None`: the beginning of the process. A process cannot set the time of a status
    /// change (inode(7), ctime), so it cannot make a later change look early. An early deletion
    /// looks late if there is a later one: overlayfs uses one inode for the marks of all.
    ///
    /// The scan runs as the process's own user: files that this user may not read are not
    /// compared, so that the result reveals nothing about them.
    #[must_use]
    pub fn changes(&self, at_most: usize, since: Option<Duration>, until: Instant) -> Changes {
        let until = until.min(Instant::now() + TIME_LIMIT);
        let unseen = || Changes {
            incomplete: true,
            ..Changes::default()
        };
        let Some(user) = self.layers.user else {
            return look(self.directory.as_fd(), &self.layers, at_most, since, until);
        };
        let Ok(directory) = self.directory.try_clone() else {
            return unseen();
        };
        let layers = self.layers.clone();
        let patience = until.saturating_duration_since(Instant::now()) + LATE;
        with_files_of(Some(user), patience, move || {
            look(directory.as_fd(), &layers, at_most, since, until)
        })
        .unwrap_or_else(|_| unseen())
    }

    /// Reads files of the project and of the layer, as the process's own user. `None` for a path
    /// that is not a regular file of at most `most` bytes in both, and for those not reached by
    /// `until`. Call it after the process has ended.
    #[must_use]
    pub fn contents(
        &self,
        paths: Vec<PathBuf>,
        most: u64,
        until: Instant,
    ) -> Vec<Option<Contents>> {
        let count = paths.len();
        let Ok(directory) = self.directory.try_clone() else {
            return vec![None; count];
        };
        let layers = self.layers.clone();
        let read = move || {
            let each = paths.iter().map(|path| {
                let in_time = Instant::now() < until;
                in_time
                    .then(|| contents(directory.as_fd(), &layers, path, most))
                    .flatten()
            });
            each.collect()
        };
        let Some(user) = self.layers.user else {
            return read();
        };
        let patience = until.saturating_duration_since(Instant::now()) + LATE;
        with_files_of(Some(user), patience, read).unwrap_or_else(|_| vec![None; count])
    }
}

/// How long to wait for the scan after `until`.
const LATE: Duration = Duration::from_millis(100);

/// One file before and after.
fn contents(layer: BorrowedFd<'_>, layers: &Layers, path: &Path, most: u64) -> Option<Contents> {
    // Layers can be nested: the innermost one has the file.
    let mounts = layers.mounts.iter().enumerate();
    let (index, below) = mounts
        .filter_map(|(index, mount)| Some((index, path.strip_prefix(mount).ok()?)))
        .min_by_key(|(_, below)| below.components().count())?;
    let upper = Path::new(&format!("upper{index}")).join(below);
    // A whiteout is a character device.
    let file = |read: io::Result<Vec<u8>>| match read {
        Ok(content) => Some(Some(content)),
        Err(error) => match Errno::from_raw(error.raw_os_error()?) {
            Errno::ENOENT | Errno::ENOTDIR => Some(None),
            _ => None,
        },
    };
    let after = match read_below(layer, &upper, most) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            is_whiteout(layer, &upper).then_some(None)?
        }
        read => file(read)?,
    };
    let before = file(read_below(layers.root.descriptor(), path, most))?;
    (before.is_some() || after.is_some()).then_some(Contents { before, after })
}

fn is_whiteout(layer: BorrowedFd<'_>, path: &Path) -> bool {
    let stat = point_below(layer, path).and_then(|found| fstat(&found));
    stat.is_ok_and(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFCHR && stat.st_rdev == 0)
}

fn look(
    layer: BorrowedFd<'_>,
    layers: &Layers,
    at_most: usize,
    since: Option<Duration>,
    until: Instant,
) -> Changes {
    let mut walk = Walk {
        opaque: layers.opaque,
        until,
        at_most,
        since,
        late: Collected::default(),
        early: Collected::default(),
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
        late: walk.late.listed(),
        early: walk.early.listed(),
        incomplete: walk.incomplete,
        undone: walk.undone,
    }
}

/// The first changes by path, and how many there are.
#[derive(Default)]
struct Collected {
    first: BinaryHeap<Change>,
    total: u64,
}

impl Collected {
    fn add(&mut self, change: Change, at_most: usize) {
        self.total += 1;
        if self.first.len() == at_most
            && self
                .first
                .peek()
                .is_none_or(|last| last.path <= change.path)
        {
            return;
        }
        self.first.push(change);
        if self.first.len() > at_most {
            self.first.pop();
        }
    }

    fn listed(self) -> Listed {
        Listed {
            more: self.total - self.first.len() as u64,
            first: self.first.into_sorted_vec(),
        }
    }
}

/// The time of the last status change (inode(7), ctime), since the epoch.
fn changed_at(stat: &FileStat) -> Duration {
    let seconds = u64::try_from(stat.st_ctime).unwrap_or(0);
    Duration::new(seconds, u32::try_from(stat.st_ctime_nsec).unwrap_or(0))
}

/// A directory of the layer that is being scanned.
struct Level {
    directory: Opened,
    /// The project's directory that shows through.
    project: Option<OwnedFd>,
    /// Directories not yet entered.
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
    since: Option<Duration>,
    late: Collected,
    early: Collected,
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

    /// Scans one directory of the layer and returns it with its subdirectories.
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
        // An opaque directory hides everything in the lower one.
        if system_calls::attribute_is(directory.as_fd(), self.opaque, b"y") {
            if let Some(project) = &project {
                let at = fstat(&directory).map_or(Duration::MAX, |stat| changed_at(&stat));
                self.hidden(path, project, &names, at);
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

    /// Classifies one entry of the layer.
    fn entry(
        &mut self,
        parent: &Opened,
        project: Option<&OwnedFd>,
        name: &OsStr,
        path: PathBuf,
        stat: &FileStat,
        before: Option<FileStat>,
    ) {
        let kind = SFlag::from_bits_truncate(stat.st_mode & libc::S_IFMT);
        let size = stat.st_size.unsigned_abs();
        let at = changed_at(stat);
        let directory = kind == SFlag::S_IFDIR;
        if kind == SFlag::S_IFCHR && stat.st_rdev == 0 {
            // A whiteout: it hides the lower entry.
            match before {
                Some(before) => {
                    let what =
                        project.map_or(What::Other, |project| What::of(project, name, &before));
                    self.note(path, ChangeKind::Deleted, what, before.st_size, None, at);
                }
                None => self.undo(path),
            }
            return;
        }
        let what = What::of(parent, name, stat);
        let (Some(before), Some(project)) = (before, project) else {
            return self.note(path, ChangeKind::Created, what, stat.st_size, None, at);
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
            let modes = (before.st_mode & 0o7777, stat.st_mode & 0o7777);
            let mode = (same_kind && !same_mode).then_some(modes);
            self.note(path, ChangeKind::Modified, what, stat.st_size, mode, at);
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

    fn note(
        &mut self,
        path: PathBuf,
        kind: ChangeKind,
        what: What,
        size: i64,
        mode: Option<(u32, u32)>,
        at: Duration,
    ) {
        let size = match what {
            What::Directory => 0,
            _ => size.unsigned_abs(),
        };
        let change = Change {
            path,
            kind,
            what,
            size,
            mode,
            notes: Vec::new(),
        };
        let is_early = self.since.is_some_and(|since| at < since);
        let collected = if is_early {
            &mut self.early
        } else {
            &mut self.late
        };
        collected.add(change, self.at_most);
    }

    /// Notes the project's entries that an opaque directory hides.
    fn hidden(&mut self, path: &Path, project: &OwnedFd, kept: &BTreeSet<OsString>, at: Duration) {
        for name in names(project).unwrap_or_default().difference(kept) {
            if Instant::now() >= self.until {
                self.incomplete = true;
                return;
            }
            let stat = fstatat(project, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
            let Ok(stat) = stat else { continue };
            let what = What::of(project, name, &stat);
            let path = path.join(name);
            self.note(path, ChangeKind::Deleted, what, stat.st_size, None, at);
        }
    }

    fn same_bytes(&mut self, parent: &Opened, project: &OwnedFd, name: &OsStr) -> bool {
        // An unreadable file either has a changed mode or no content to compare with.
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

fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> Option<Opened> {
    Opened::open(parent, name, DIRECTORY).ok()
}

/// The names in a directory, sorted.
pub(super) fn names(directory: &impl AsFd) -> Option<BTreeSet<OsString>> {
    let mut dir = Dir::openat(directory, ".", DIRECTORY, Mode::empty()).ok()?;
    let names = dir
        .iter()
        .flatten()
        .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    Some(names.filter(|name| name != "." && name != "..").collect())
}

/// Reads until the buffer is full or the file ends.
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
