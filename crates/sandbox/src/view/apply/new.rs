//! What is new as a whole: a file, or a directory with everything in it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode};

use super::below::{DIRECTORY, is_directory, look, names};
use super::error::{ApplyError, failed, number};
use super::listing::Made;
use super::metadata::{Metadata, Over, kind};
use super::shared::is_shared;
use super::survey::{FILE, Survey};
use super::work::POINT_ITSELF;
use super::{DEPTH_MAX, contents, too_deep};
use crate::view::change::{ChangeKind, Note, What};
use crate::view::changes::POINT;
use crate::view::opened::Opened;

/// Something that comes from the layer as a whole.
pub(super) struct New<'a> {
    pub part: usize,
    pub at: (BorrowedFd<'a>, &'a OsStr),
    pub stat: &'a FileStat,
    /// Absolute.
    pub path: &'a Path,
    pub depth: usize,
    pub kind: ChangeKind,
    pub over: Over<'a>,
    /// What is there before, if that is of the same kind.
    pub before: Option<&'a Metadata>,
    /// The directory that is there before.
    pub lower: Option<OwnedFd>,
    /// Whether its content is what was there before, apart from what is in a directory.
    pub has_same_content: bool,
    /// Whether it need not be listed then.
    pub is_same: bool,
    pub notes: Vec<Note>,
}

impl Survey<'_> {
    /// Lists it, if anything of it differs or it may have other names, with everything in it. Returns its index in the list.
    pub(super) fn new_tree(&mut self, mut new: New<'_>) -> Result<Option<usize>, ApplyError> {
        let cannot_look = |errno| failed("cannot look at", new.path)(errno);
        let (parent, name) = new.at;
        let flags = match kind(new.stat) {
            libc::S_IFREG => FILE,
            libc::S_IFDIR => DIRECTORY,
            libc::S_IFCHR | libc::S_IFBLK => {
                return Err(ApplyError::Device {
                    path: new.path.into(),
                });
            }
            _ => OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        };
        let file = Opened::open(parent, name, flags).map_err(cannot_look)?;
        let raw = Metadata::as_told(file.as_fd(), new.stat).map_err(cannot_look)?;
        let wanted = raw.wanted(kind(new.stat), new.over);
        let what = What::of(&parent, name, new.stat);
        let made = Made {
            stat: new.stat,
            raw: &raw,
            wanted: &wanted,
        };
        let is_new = is_directory(new.stat);
        let is_retimed = match new.before {
            Some(before) if new.has_same_content => {
                // What is in a directory says itself why it has a new time.
                let is_told = is_new && self.context.is_during(wanted.modified);
                before.modified != wanted.modified && !is_told
            }
            // A change of content gives it.
            Some(_) => !self.context.is_during(wanted.modified),
            // A new file may have come with an earlier time, such as one from an archive.
            None => self.context.is_after(wanted.modified),
        };
        if is_retimed {
            new.notes.push(Note::Time);
        }
        let mut differs = true;
        if new.is_same
            && let Some(before) = new.before
        {
            let left_out = raw.mode() != wanted.mode() || raw.has_another_list(&wanted);
            differs = is_retimed || left_out || wanted.differs(before);
        }
        let is_shared = is_shared(new.stat);
        let entry = (differs || is_shared)
            .then(|| self.list(new.path, new.kind, what, &made, new.before, new.notes));
        if let Some(entry) = entry.filter(|_| is_shared) {
            self.note_shared(new.part, new.stat, entry, differs);
        }
        if let Some(lower) = &new.lower {
            let above = match is_new {
                true => Some(file.as_fd()),
                false => None,
            };
            self.gone(lower.as_fd(), above, new.path)?;
        }
        if is_new {
            let was_in_new = std::mem::replace(&mut self.is_in_new, true);
            let inside = Inside {
                part: new.part,
                directory: file.as_fd(),
                lower: new.lower.as_ref().map(AsFd::as_fd),
                path: new.path,
                depth: new.depth + 1,
                passes_group_on: wanted.passes_group_on(),
            };
            let listed = self.inside(&inside);
            self.is_in_new = was_in_new;
            listed?;
        }
        Ok(entry)
    }

    fn inside(&mut self, inside: &Inside<'_>) -> Result<(), ApplyError> {
        if inside.depth >= DEPTH_MAX {
            return Err(too_deep(inside.path));
        }
        let directory = inside.directory;
        for name in names(directory).map_err(failed("cannot read", inside.path))? {
            self.context.go_on()?;
            let path = inside.path.join(&name);
            self.count(&path)?;
            let stat = look(directory, &name).map_err(failed("cannot look at", &path))?;
            if !is_something(&stat) {
                continue;
            }
            let below = inside.lower.and_then(|lower| look(lower, &name).ok());
            let before = match (inside.lower, &below) {
                (Some(lower), Some(below)) if kind(below) == kind(&stat) => {
                    openat(lower, name.as_os_str(), POINT_ITSELF, Mode::empty())
                        .and_then(|file| Metadata::of(file.as_fd()))
                        .ok()
                }
                _ => None,
            };
            let mut notes = Vec::new();
            let mut is_same = false;
            if let (Some(lower), Some(below)) = (inside.lower, &below) {
                if kind(below) != kind(&stat) {
                    notes.push(Note::Was(What::of(&lower, &name, below)));
                } else {
                    is_same = self.is_same((directory, lower), &name, (&stat, below))?;
                }
            }
            let lower = match (inside.lower, &below) {
                (Some(lower), Some(below)) if is_directory(below) => {
                    openat(lower, name.as_os_str(), POINT, Mode::empty()).ok()
                }
                _ => None,
            };
            self.new_tree(New {
                part: inside.part,
                at: (directory, &name),
                stat: &stat,
                path: &path,
                depth: inside.depth,
                kind: match below {
                    Some(_) => ChangeKind::Modified,
                    None => ChangeKind::Created,
                },
                over: self.over(inside.part, None, inside.passes_group_on),
                before: before.as_ref(),
                lower,
                has_same_content: is_same,
                is_same,
                notes,
            })?;
        }
        Ok(())
    }

    /// Lists what a lower directory has and the one that takes its place has not.
    fn gone(
        &mut self,
        lower: BorrowedFd<'_>,
        above: Option<BorrowedFd<'_>>,
        path: &Path,
    ) -> Result<(), ApplyError> {
        // What is no directory any more says itself what it replaces.
        let Some(above) = above else { return Ok(()) };
        for name in names(lower).map_err(failed("cannot read", path))? {
            self.context.go_on()?;
            if look(above, &name).is_ok_and(|stat| is_something(&stat)) {
                continue;
            }
            let path = path.join(&name);
            self.count(&path)?;
            let stat = look(lower, &name).map_err(failed("cannot look at", &path))?;
            self.list_deleted(&path, What::of(&lower, &name, &stat), &stat);
        }
        Ok(())
    }

    /// Whether two of the same kind have the same content.
    pub(super) fn is_same(
        &self,
        (upper, lower): (BorrowedFd<'_>, BorrowedFd<'_>),
        name: &OsStr,
        (stat, below): (&FileStat, &FileStat),
    ) -> Result<bool, ApplyError> {
        match kind(stat) {
            libc::S_IFREG if stat.st_size == below.st_size => {
                let (Ok(one), Ok(other)) = (
                    Opened::open(upper, name, FILE),
                    openat(lower, name, FILE, Mode::empty()),
                ) else {
                    return Ok(false);
                };
                match contents::same(one.as_fd(), other.as_fd(), self.context.progress) {
                    Err(error) if number(&error) == Errno::ECANCELED => {
                        Err(self.context.timed_out())
                    }
                    same => Ok(same.unwrap_or(false)),
                }
            }
            libc::S_IFREG => Ok(false),
            libc::S_IFLNK => Ok(readlinkat(upper, name).ok() == readlinkat(lower, name).ok()),
            _ => Ok(true),
        }
    }
}

/// A new directory, and the one that was in its place.
struct Inside<'a> {
    part: usize,
    directory: BorrowedFd<'a>,
    lower: Option<BorrowedFd<'a>>,
    path: &'a Path,
    depth: usize,
    passes_group_on: bool,
}

/// Whether it is applied: neither a mark of the layer, which hides nothing in a new directory, nor a
/// socket, on which nobody listens any more.
fn is_something(stat: &FileStat) -> bool {
    match kind(stat) {
        libc::S_IFSOCK => false,
        libc::S_IFCHR => stat.st_rdev != 0,
        _ => true,
    }
}
