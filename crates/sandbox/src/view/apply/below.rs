//! What is below the layer, and whether it is still what the process had.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstatat};
use nix::sys::time::TimeSpec;

use super::error::{ApplyError, failed};
use super::metadata::{kind, modified};
use super::{Context, DEPTH_MAX};
use crate::Inode;

/// For reading the names in a directory.
pub(super) const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// The time of the last status change (inode(7), ctime), since the epoch. It comes with every
/// change, and with a new name, and nobody can set it.
pub(super) fn changed_at(stat: &FileStat) -> Duration {
    let seconds = u64::try_from(stat.st_ctime).unwrap_or(0);
    Duration::new(seconds, u32::try_from(stat.st_ctime_nsec).unwrap_or(0))
}

pub(super) fn is_directory(stat: &FileStat) -> bool {
    kind(stat) == libc::S_IFDIR
}

/// What a name stands for; a link for itself.
pub(super) fn look(directory: BorrowedFd<'_>, name: &OsStr) -> nix::Result<FileStat> {
    fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)
}

/// The names in a directory.
pub(super) fn names(directory: BorrowedFd<'_>) -> nix::Result<BTreeSet<OsString>> {
    let mut found = BTreeSet::new();
    for entry in Dir::openat(directory, ".", DIRECTORY, Mode::empty())?.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            found.insert(name.to_owned());
        }
    }
    Ok(found)
}

/// A file or directory as it was before anything was written.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) inode: Inode,
    pub(super) is_directory: bool,
    pub(super) mode: u32,
    /// How many names it has; a directory has one.
    names: libc::nlink_t,
    pub(super) changed_at: Duration,
    size: i64,
    modified: TimeSpec,
    /// What tells two states of everything below it apart; 0 if it is no directory.
    tree: u64,
}

impl Seen {
    /// Checks that something has not changed since the process began; a directory with everything
    /// below it.
    pub(super) fn unchanged(
        context: &Context<'_>,
        at: (BorrowedFd<'_>, &OsStr),
        stat: &FileStat,
        path: &Path,
        depth: usize,
    ) -> Result<Self, ApplyError> {
        if changed_at(stat) >= context.since {
            return Err(ApplyError::changed(path));
        }
        let tree = match is_directory(stat) {
            true => tree(context, at, Some(context.since), path, depth)?,
            false => 0,
        };
        Ok(Self {
            inode: Inode::of(stat),
            is_directory: is_directory(stat),
            mode: stat.st_mode & !libc::S_IFMT,
            names: match is_directory(stat) {
                true => 1,
                false => stat.st_nlink,
            },
            changed_at: changed_at(stat),
            size: stat.st_size,
            modified: modified(stat),
            tree,
        })
    }

    /// The file and how many names it has, if there are several.
    pub(super) fn links(&self) -> Option<(Inode, libc::nlink_t)> {
        (self.names > 1).then_some((self.inode, self.names))
    }

    /// Whether this is still it. Renaming it changes its status, but nothing else of it.
    pub(super) fn is_same(&self, stat: &FileStat) -> bool {
        self.inode == Inode::of(stat)
            && self.modified == modified(stat)
            && self.size == stat.st_size
    }

    /// Whether everything below it is still what it was. Only the changes of what has a single
    /// name are certain to be those of others.
    pub(super) fn is_same_tree(
        &self,
        context: &Context<'_>,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<bool, ApplyError> {
        if !self.is_directory {
            return Ok(true);
        }
        Ok(tree(context, at, None, path, 0)? == self.tree)
    }
}

/// Sums up everything below a directory. With `since`, it must not have changed after that.
fn tree(
    context: &Context<'_>,
    top: (BorrowedFd<'_>, &OsStr),
    since: Option<Duration>,
    path: &Path,
    depth: usize,
) -> Result<u64, ApplyError> {
    let mut sum = 0u64;
    walk(context, top, path, depth, &mut |_, stat, found| {
        if since.is_some_and(|since| changed_at(stat) >= since) {
            return Err(ApplyError::changed(found));
        }
        let mut hasher = DefaultHasher::new();
        found.strip_prefix(path).unwrap_or(found).hash(&mut hasher);
        (stat.st_dev, stat.st_ino, stat.st_mode).hash(&mut hasher);
        (stat.st_size, stat.st_mtime, stat.st_mtime_nsec).hash(&mut hasher);
        // Another name of the same file may be applied meanwhile.
        if is_directory(stat) || stat.st_nlink == 1 {
            changed_at(stat).hash(&mut hasher);
        }
        // In any order.
        sum = sum.wrapping_add(hasher.finish());
        Ok(())
    })?;
    Ok(sum)
}

/// Is given the directory and the name of each entry, what it is, and its path.
type Visit<'a> =
    &'a mut dyn FnMut((BorrowedFd<'_>, &OsStr), &FileStat, &Path) -> Result<(), ApplyError>;

/// Visits everything below a directory.
pub(super) fn walk(
    context: &Context<'_>,
    (parent, name): (BorrowedFd<'_>, &OsStr),
    path: &Path,
    depth: usize,
    visit: Visit<'_>,
) -> Result<(), ApplyError> {
    context.go_on()?;
    if depth >= DEPTH_MAX {
        return Err(super::too_deep(path));
    }
    let directory =
        openat(parent, name, DIRECTORY, Mode::empty()).map_err(failed("cannot read", path))?;
    for name in names(directory.as_fd()).map_err(failed("cannot read", path))? {
        let path = path.join(&name);
        let at = (directory.as_fd(), name.as_os_str());
        let stat = look(at.0, at.1).map_err(failed("cannot look at", &path))?;
        visit(at, &stat, &path)?;
        if is_directory(&stat) {
            walk(context, at, &path, depth + 1, visit)?;
        }
    }
    Ok(())
}
