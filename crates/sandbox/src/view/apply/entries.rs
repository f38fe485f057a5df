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
use super::links::Linked;
use super::listing::Made;
use super::metadata::{Metadata, kind};
use super::new::New;
use super::origin::{Moved, Origin};
use super::plan::{Action, Operation};
use super::survey::{FILE, Level, Merged, Survey};
use super::work::POINT_ITSELF;
use super::{DEPTH_MAX, contents, too_deep};
use crate::Inode;
use crate::view::change::{ChangeKind, Note, What};
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
        match kind(&stat) {
            // A socket counts as nothing.
            kind if is_whiteout || kind == libc::S_IFSOCK => {
                self.push(level, name, Action::Delete(seen));
                let what = What::of(&level.lower, name, &below);
                self.list_deleted(path, what, &below);
                Ok(())
            }
            libc::S_IFCHR | libc::S_IFBLK => Err(ApplyError::Device { path: path.into() }),
            kind_above if kind_above == kind(&below) && stat.st_nlink == 1 => {
                self.same_kind(level, name, &stat, seen, path)
            }
            _ => self.replaced(level, name, (&stat, &below), seen, path),
        }
    }

    /// Returns the operation's index.
    fn push(&mut self, level: &Level<'_>, name: &OsStr, action: Action) -> usize {
        let index = self.plan.operations.len();
        let is_entry = action.is_entry();
        self.plan.operations.push(Operation {
            directory: level.index,
            name: name.to_owned(),
            action,
        });
        if is_entry {
            self.plan.mark_entry(index);
        }
        index
    }

    /// Something that takes the place of a lower entry.
    fn replaced(
        &mut self,
        level: &Level<'_>,
        name: &OsStr,
        (stat, below): (&FileStat, &FileStat),
        seen: Seen,
        path: &Path,
    ) -> Result<(), ApplyError> {
        let cannot_look = |errno| failed("cannot look at", path)(errno);
        let is_same_kind = kind(stat) == kind(below);
        let before = match is_same_kind {
            true => Some(metadata_below(level.lower, name).map_err(cannot_look)?),
            false => None,
        };
        let notes = match is_same_kind {
            true if is_directory(stat) => vec![Note::AsAWhole],
            true => Vec::new(),
            false => vec![Note::Was(What::of(&level.lower, name, below))],
        };
        let has_same_content =
            is_same_kind && self.is_same((level.upper, level.lower), name, (stat, below))?;
        let linked = seen.links();
        let operation = self.push(level, name, Action::Replace(seen));
        let mut over = self.over(level.part, before.as_ref(), false);
        over.passes_group_on = self.passes_group_on(level);
        let lower = match is_directory(below) {
            true => openat(level.lower, name, POINT, Mode::empty()).ok(),
            false => None,
        };
        let new = New {
            part: level.part,
            at: (level.upper, name),
            stat,
            path,
            depth: level.depth,
            kind: ChangeKind::Modified,
            over,
            before: before.as_ref(),
            lower,
            is_same: false,
            has_same_content,
            notes,
        };
        if let Some(entry) = self.new_tree(new)? {
            self.note_links(linked, operation, entry);
        }
        Ok(())
    }

    /// Notes that an operation is about a file with other names.
    fn note_links(
        &mut self,
        linked: Option<(Inode, libc::nlink_t)>,
        operation: usize,
        entry: usize,
    ) {
        if let Some((inode, names)) = linked {
            self.linked.push(Linked {
                operation,
                entry,
                inode,
                names,
            });
        }
    }

    /// Whether directories that are made in one get its group.
    fn passes_group_on(&self, level: &Level<'_>) -> bool {
        let directory = self.plan.directories.get(level.index);
        directory.is_some_and(|directory| directory.wanted.passes_group_on())
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
        let new = New {
            part: level.part,
            at: (level.upper, name),
            stat,
            path,
            depth: level.depth,
            kind: ChangeKind::Created,
            over: self.over(level.part, None, self.passes_group_on(level)),
            before: None,
            lower: None,
            is_same: false,
            has_same_content: false,
            notes: Vec::new(),
        };
        self.new_tree(new)?;
        Ok(())
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
            return self.replaced(level, name, (stat, below), seen, path);
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
        let raw = Metadata::as_told(upper.as_fd(), stat).map_err(cannot_look)?;
        self.merged(Merged {
            part: level.part,
            path: level.path.join(name),
            upper: upper.as_fd(),
            lower: lower.as_fd(),
            above: stat,
            below,
            before,
            raw,
            has_marks: level.has_marks,
            depth: level.depth + 1,
        })
    }

    /// Two of the same kind, none of them a directory.
    fn same_kind(
        &mut self,
        level: &Level<'_>,
        name: &OsStr,
        stat: &FileStat,
        seen: Seen,
        path: &Path,
    ) -> Result<(), ApplyError> {
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
                        .map_err(|error| self.context.unreadable(path, number(&error)))?
            }
            // What may not be read cannot be compared.
            (libc::S_IFREG, Err(_)) => false,
            _ => true,
        };
        let before = metadata_below(level.lower, name).map_err(cannot_look)?;
        let raw = Metadata::as_told(upper.as_fd(), stat).map_err(cannot_look)?;
        let over = self.over(level.part, Some(&before), false);
        let mut wanted = raw.wanted(kind(stat), over);
        // A time during the process is what a change of content gives.
        let is_time_set = match is_same {
            true => wanted.modified != before.modified,
            false => !self.context.is_during(wanted.modified),
        };
        let linked = seen.links();
        let has_left_out = raw.has_another_list(&wanted);
        let action = match is_same && lower.is_ok() {
            true => {
                wanted = wanted.with_set_id_of(stat, &before);
                let left_out = raw.mode() != wanted.mode() || has_left_out;
                match wanted != before {
                    true => Some(Action::Adjust(seen, Box::new(wanted.clone()))),
                    // It is said.
                    false if left_out => None,
                    false => return Ok(()),
                }
            }
            false if is_file && linked.is_some() => Some(Action::Write(seen)),
            false => Some(Action::Replace(seen)),
        };
        let what = What::of(&level.upper, name, stat);
        let made = Made {
            stat,
            raw: &raw,
            wanted: &wanted,
        };
        let notes = is_time_set.then_some(Note::Time).into_iter().collect();
        let modified = ChangeKind::Modified;
        let entry = self.list(path, modified, what, &made, Some(&before), notes);
        if let Some(action) = action {
            let operation = self.push(level, name, action);
            self.note_links(linked, operation, entry);
        }
        Ok(())
    }
}

/// What a lower file has.
fn metadata_below(directory: BorrowedFd<'_>, name: &OsStr) -> nix::Result<Metadata> {
    let file = openat(directory, name, POINT_ITSELF, Mode::empty())?;
    Metadata::of(file.as_fd())
}
