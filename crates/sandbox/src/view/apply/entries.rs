//! What a name in the layer means for what is below it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{openat, readlinkat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat};

use super::below::{DIRECTORY, Seen, changed_at, is_directory, look};
use super::error::{ApplyError, failed, number};
use super::metadata::{Metadata, kind};
use super::origin::{Moved, Origin};
use super::plan::{Action, Operation};
use super::survey::{FILE, Level, Merged, Survey};
use super::work::POINT_ITSELF;
use super::{DEPTH_MAX, contents, too_deep};
use crate::view::changes::POINT;
use crate::view::opened::Opened;

impl Survey<'_> {
    /// Plans one entry of a directory in the layer.
    pub(super) fn entry(
        &mut self,
        level: &Level<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Result<(), ApplyError> {
        self.context.go_on()?;
        self.count(path)?;
        let stat = look(level.upper, name).map_err(failed("cannot look at", path))?;
        let below = match look(level.lower, name) {
            Err(Errno::ENOENT) => None,
            below => Some(below.map_err(failed("cannot look at", path))?),
        };
        let is_whiteout = kind(&stat) == libc::S_IFCHR && stat.st_rdev == 0;
        let Some(below) = below else {
            return match kind(&stat) {
                // It is gone already, by someone else.
                _ if is_whiteout => Err(ApplyError::changed(path)),
                libc::S_IFSOCK => Ok(()),
                _ => self.new_entry(level, name, &stat, path),
            };
        };
        if is_directory(&stat) && is_directory(&below) {
            return self.both_directories(level, name, &stat, &below, path);
        }
        let at = (level.lower, name);
        let seen = Seen::unchanged(self.context, at, &below, path, level.depth)?;
        let action = match kind(&stat) {
            _ if is_whiteout => Action::Delete(seen),
            libc::S_IFSOCK => Action::Delete(seen),
            libc::S_IFCHR | libc::S_IFBLK => {
                return Err(ApplyError::Device { path: path.into() });
            }
            kind_above if kind_above == kind(&below) && stat.st_nlink == 1 => {
                match self.same_kind(level, name, &stat, seen, path)? {
                    Some(action) => action,
                    None => return Ok(()),
                }
            }
            _ => Action::Replace(seen),
        };
        self.push(level, name, action);
        self.count_below(level, name, &stat, path)
    }

    fn push(&mut self, level: &Level<'_>, name: &OsStr, action: Action) {
        self.plan.operations.push(Operation {
            directory: level.index,
            name: name.to_owned(),
            action,
        });
    }

    /// Something without a lower entry of its name.
    fn new_entry(
        &mut self,
        level: &Level<'_>,
        name: &OsStr,
        stat: &FileStat,
        path: &Path,
    ) -> Result<(), ApplyError> {
        if matches!(kind(stat), libc::S_IFCHR | libc::S_IFBLK) {
            return Err(ApplyError::Device { path: path.into() });
        }
        // Nothing has gone from a directory that has not changed.
        if level.may_lack
            && let Origin::Copied(handle) = self.origin(level.upper, name, path)?
        {
            // A directory with lower entries cannot be renamed.
            if is_directory(stat) {
                return Err(ApplyError::changed(path));
            }
            self.moved.push(Moved {
                part: level.part,
                path: path.into(),
                handle,
                stat: *stat,
            });
        }
        self.push(level, name, Action::Create);
        self.count_below(level, name, stat, path)
    }

    fn origin(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Result<Origin, ApplyError> {
        let looked = openat(directory, name, POINT_ITSELF, Mode::empty())
            .and_then(|file| self.context.marks.origin(file.as_fd()));
        match looked {
            // The process took its own rights away.
            Err(Errno::EACCES) => Opened::open(directory, name, FILE)
                .and_then(|file| self.context.marks.origin(file.as_fd())),
            looked => looked,
        }
        .map_err(failed("cannot look at", path))
    }

    fn both_directories(
        &mut self,
        level: &Level<'_>,
        name: &OsStr,
        stat: &FileStat,
        below: &FileStat,
        path: &Path,
    ) -> Result<(), ApplyError> {
        let cannot_look = |errno| failed("cannot look at", path)(errno);
        if level.depth + 1 >= DEPTH_MAX {
            return Err(too_deep(path));
        }
        // Another layer lies over this one there.
        let relative = match level.part {
            0 => level.path.join(name),
            part => self
                .context
                .layers
                .mounts
                .get(part)
                .map_or_else(PathBuf::new, |mount| mount.join(level.path).join(name)),
        };
        if self.context.layers.mounts.contains(&relative) {
            return Ok(());
        }
        let upper = Opened::open(level.upper, name, DIRECTORY).map_err(cannot_look)?;
        let marks = self.context.marks;
        let origin = marks.origin(upper.as_fd()).map_err(cannot_look)?;
        let is_new = level.has_marks && origin == Origin::New;
        if is_new || marks.is_opaque(upper.as_fd()) {
            let at = (level.lower, name);
            let seen = Seen::unchanged(self.context, at, below, path, level.depth)?;
            self.push(level, name, Action::Replace(seen));
            return self.count_below(level, name, stat, path);
        }
        // Renamed into the place of the one that the process had?
        if changed_at(below) >= self.context.since
            && let Origin::Copied(Some(handle)) = origin
            && super::calls::handle(level.lower, name).is_ok_and(|now| now != handle)
        {
            return Err(ApplyError::changed(path));
        }
        let lower: OwnedFd =
            openat(level.lower, name, POINT, Mode::empty()).map_err(cannot_look)?;
        let before = Metadata::of(lower.as_fd()).map_err(cannot_look)?;
        let wanted = Metadata::wanted(upper.as_fd(), stat, Some(&before)).map_err(cannot_look)?;
        self.merged(Merged {
            part: level.part,
            path: level.path.join(name),
            upper: upper.as_fd(),
            lower: lower.as_fd(),
            below,
            before,
            wanted,
            has_marks: level.has_marks,
            depth: level.depth + 1,
        })
    }

    /// Two of the same kind, none of them a directory. `None` if there is nothing to do.
    fn same_kind(
        &self,
        level: &Level<'_>,
        name: &OsStr,
        stat: &FileStat,
        seen: Seen,
        path: &Path,
    ) -> Result<Option<Action>, ApplyError> {
        let cannot_look = |errno| failed("cannot look at", path)(errno);
        let is_file = kind(stat) == libc::S_IFREG;
        let flags = if is_file { FILE } else { POINT_ITSELF };
        let upper = Opened::open(level.upper, name, flags).map_err(cannot_look)?;
        let lower = openat(level.lower, name, flags, Mode::empty());
        let is_same = match (kind(stat), &lower) {
            (libc::S_IFLNK, _) => {
                readlinkat(level.upper, name).map_err(cannot_look)?
                    == readlinkat(level.lower, name).map_err(cannot_look)?
            }
            (libc::S_IFREG, Ok(lower)) => {
                let below = fstat(lower).map_err(cannot_look)?;
                if !seen.is_same(&below) {
                    return Err(ApplyError::changed(path));
                }
                let progress = self.context.progress;
                below.st_size == stat.st_size
                    && contents::same(upper.as_fd(), lower.as_fd(), progress)
                        .map_err(|error| failed("cannot read", path)(number(&error)))?
            }
            // What may not be read cannot be compared.
            (libc::S_IFREG, Err(_)) => false,
            _ => true,
        };
        let Some(lower) = lower.ok().filter(|_| is_same) else {
            return Ok(Some(match is_file && seen.has_links {
                true => Action::Write(seen),
                false => Action::Replace(seen),
            }));
        };
        let before = Metadata::of(lower.as_fd()).map_err(cannot_look)?;
        let wanted = Metadata::wanted(upper.as_fd(), stat, Some(&before))
            .map_err(cannot_look)?
            .with_set_id_of(stat, &before);
        Ok((wanted != before).then(|| Action::Adjust(seen, Box::new(wanted))))
    }
}
