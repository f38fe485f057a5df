//! What a process did to its throwaway layer, read from the layer when the process has ended.
//!
//! The layer is the process's own work: nothing in it is trusted. Links are not followed, devices
//! and pipes not opened, depth, time and memory bounded.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::libc;
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, SFlag, fchmodat, fstatat};

use super::plan::Layers;
use crate::sys;

/// How long contents are compared; a file that comes after that counts as modified.
const COMPARE_LIMIT: Duration = Duration::from_secs(2);

/// The length of a path within a layer at which its directories are not entered any more. What is
/// below counts as one.
const PATH_MAX: usize = 4000;

/// Bytes that are compared at a time.
const CHUNK_BYTES: usize = 128 * 1024;

/// A file or directory that a process made, changed or removed in its layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Relative to the project.
    pub path: PathBuf,
    /// What happened.
    pub kind: ChangeKind,
    /// Whether it is a directory.
    pub directory: bool,
    /// Bytes; of what was there before, where it was removed.
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

    /// All that has changed, in order of the paths. Call it when the process has ended.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        let mut walk = Walk {
            layer: &self.directory,
            root: &self.layers.root,
            until: Instant::now() + COMPARE_LIMIT,
            found: Vec::new(),
            buffers: (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]),
        };
        for (index, mount) in self.layers.mounts.iter().enumerate() {
            let skip = match index {
                0 => self.layers.sealed.as_deref(),
                _ => None,
            };
            walk.tree(&PathBuf::from(format!("upper{index}")), mount, skip);
        }
        let mut found = walk.found;
        found.sort();
        found
    }
}

/// A directory that is to be looked at.
struct Pending {
    /// In the layer.
    upper: PathBuf,
    /// In the project.
    path: PathBuf,
    /// Whether the directory of the project shows through.
    merged: bool,
}

struct Walk<'a> {
    layer: &'a OwnedFd,
    root: &'a Path,
    until: Instant,
    found: Vec<Change>,
    buffers: (Vec<u8>, Vec<u8>),
}

impl Walk<'_> {
    fn tree(&mut self, upper: &Path, path: &Path, skip: Option<&OsStr>) {
        let mut pending = vec![Pending {
            upper: upper.to_owned(),
            path: path.to_owned(),
            merged: true,
        }];
        while let Some(next) = pending.pop() {
            let at_top = next.upper == upper;
            self.directory(next, skip.filter(|_| at_top), &mut pending);
        }
    }

    fn directory(&mut self, at: Pending, skip: Option<&OsStr>, pending: &mut Vec<Pending>) {
        let Some(names) = self.names(&at.upper) else {
            return;
        };
        if at.merged && self.is_opaque(&at.upper) {
            self.hidden(&at.path, &names);
        }
        for name in names {
            if skip == Some(&name) {
                continue;
            }
            let (upper, path) = (at.upper.join(&name), at.path.join(&name));
            let Ok(stat) = fstatat(self.layer, &upper, AtFlags::AT_SYMLINK_NOFOLLOW) else {
                continue;
            };
            let before = match at.merged {
                true => self.root.join(&path).symlink_metadata().ok(),
                false => None,
            };
            if let Some(below) = self.entry(&upper, path, &stat, before) {
                pending.push(below);
            }
        }
    }

    /// Notes one entry of the layer; gives the directory that it is, to be entered.
    fn entry(
        &mut self,
        upper: &Path,
        path: PathBuf,
        stat: &FileStat,
        before: Option<Metadata>,
    ) -> Option<Pending> {
        let kind = SFlag::from_bits_truncate(stat.st_mode & libc::S_IFMT);
        let size = stat.st_size.unsigned_abs();
        let directory = kind == SFlag::S_IFDIR;
        if kind == SFlag::S_IFCHR && stat.st_rdev == 0 {
            // A whiteout: what was there is hidden.
            if let Some(before) = before {
                self.note(path, ChangeKind::Deleted, before.is_dir(), before.len());
            }
            return None;
        }
        let was_directory = before.as_ref().is_some_and(Metadata::is_dir);
        match &before {
            None => self.note(path.clone(), ChangeKind::Created, directory, size),
            Some(before) => {
                let same_kind = stat.st_mode & libc::S_IFMT == before.mode() & libc::S_IFMT;
                let same_mode = stat.st_mode & 0o7777 == before.mode() & 0o7777;
                if !same_kind
                    || !same_mode && kind != SFlag::S_IFLNK
                    || !self.same_content(upper, &path, kind, size, before)
                {
                    self.note(path.clone(), ChangeKind::Modified, directory, size);
                }
            }
        }
        (directory && upper.as_os_str().len() < PATH_MAX).then(|| Pending {
            upper: upper.to_owned(),
            path,
            merged: was_directory,
        })
    }

    fn note(&mut self, path: PathBuf, kind: ChangeKind, directory: bool, size: u64) {
        self.found.push(Change {
            path,
            kind,
            directory,
            size: if directory { 0 } else { size },
        });
    }

    /// What an opaque directory hides.
    fn hidden(&mut self, path: &Path, kept: &BTreeSet<OsString>) {
        let entries = std::fs::read_dir(self.root.join(path));
        for entry in entries.into_iter().flatten().flatten() {
            if kept.contains(&entry.file_name()) {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let path = path.join(entry.file_name());
            self.note(path, ChangeKind::Deleted, meta.is_dir(), meta.len());
        }
    }

    /// The names in a directory of the layer, in order.
    fn names(&self, upper: &Path) -> Option<BTreeSet<OsString>> {
        let open = || {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            Dir::openat(self.layer, upper, flags, Mode::empty())
        };
        let mut dir = match open() {
            Err(Errno::EACCES) => {
                // The process took its own rights away; nobody needs the mode any more.
                let flags = FchmodatFlags::FollowSymlink;
                fchmodat(self.layer, upper, Mode::S_IRWXU, flags).ok()?;
                open().ok()?
            }
            dir => dir.ok()?,
        };
        let names = dir
            .iter()
            .flatten()
            .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
        Some(names.filter(|name| name != "." && name != "..").collect())
    }

    /// Whether a directory of the layer hides all that the one below it holds.
    fn is_opaque(&self, upper: &Path) -> bool {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let Ok(dir) = openat(self.layer, upper, flags, Mode::empty()) else {
            return false;
        };
        // As root mounts it, and as `userxattr` has it (Documentation/filesystems/overlayfs.rst).
        [c"trusted.overlay.opaque", c"user.overlay.opaque"]
            .iter()
            .any(|name| sys::attribute_is(dir.as_fd(), name, b"y"))
    }

    fn same_content(
        &mut self,
        upper: &Path,
        path: &Path,
        kind: SFlag,
        size: u64,
        before: &Metadata,
    ) -> bool {
        let below = self.root.join(path);
        match kind {
            SFlag::S_IFDIR => true,
            SFlag::S_IFLNK => match (readlinkat(self.layer, upper), below.read_link()) {
                (Ok(new), Ok(old)) => new == old.as_os_str(),
                _ => false,
            },
            SFlag::S_IFREG if size == before.len() => self.same_bytes(upper, &below),
            _ => false,
        }
    }

    fn same_bytes(&mut self, upper: &Path, below: &Path) -> bool {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let open = || openat(self.layer, upper, flags, Mode::empty());
        let upper = match open() {
            Err(Errno::EACCES) => return false, // its mode has changed
            file => file,
        };
        let below = openat(nix::fcntl::AT_FDCWD, below, flags, Mode::empty());
        let (Ok(upper), Ok(below)) = (upper, below) else {
            return false;
        };
        let (mut upper, mut below) = (File::from(upper), File::from(below));
        let (left, right) = &mut self.buffers;
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
