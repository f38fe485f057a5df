//! What a plan does, as it is shown: the list that somebody agrees to is made while the plan is.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::libc;
use nix::sys::stat::FileStat;
use nix::sys::time::TimeSpec;

use super::below::changed_at;
use super::error::ApplyError;
use super::metadata::{Metadata, SET_ID, kind, modified};
use super::survey::Survey;
use crate::Inode;
use crate::view::change::{Change, ChangeKind, LeftOut, Listed, Note, What};

/// What applying a layer does: all of it, and nothing else.
#[derive(Clone, Debug)]
pub struct Planned {
    pub(super) since: Duration,
    pub(super) ended: Duration,
    pub(super) entries: Vec<Entry>,
}

/// A change, and what it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub change: Change,
    pub stamp: Option<Stamp>,
    /// Whether it is in a directory that is new as a whole, and is in the list.
    pub is_in_new: bool,
}

/// What tells two states of a file in the layer apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: Inode,
    owner: (u32, u32),
    mode: u32,
    size: i64,
    modified: TimeSpec,
    /// `None` for what the process closed to itself: looking at it changes this.
    changed_at: Option<Duration>,
}

impl Stamp {
    fn of(stat: &FileStat) -> Self {
        let needed = match kind(stat) {
            libc::S_IFDIR => libc::S_IRUSR | libc::S_IXUSR,
            _ => libc::S_IRUSR,
        };
        let is_open = stat.st_mode & needed == needed;
        Self {
            inode: Inode::of(stat),
            owner: (stat.st_uid, stat.st_gid),
            mode: stat.st_mode,
            size: match kind(stat) {
                libc::S_IFDIR => 0,
                _ => stat.st_size,
            },
            modified: modified(stat),
            changed_at: is_open.then(|| changed_at(stat)),
        }
    }
}

impl Planned {
    /// The changes: those that are certain to be seen if only some of them are come first, which are
    /// modifications and deletions, then what is new, then what is in new directories.
    #[must_use]
    pub fn changes(&self, at_most: usize) -> Listed {
        let rank = |entry: &&Entry| match entry.change.kind {
            ChangeKind::Modified | ChangeKind::Deleted => 0,
            ChangeKind::Created if !entry.is_in_new => 1,
            ChangeKind::Created => 2,
        };
        let mut each: Vec<&Entry> = self.entries.iter().collect();
        each.sort_by(|one, other| {
            let key = |entry| (rank(entry), &entry.change.path);
            key(one).cmp(&key(other))
        });
        let more = each.len().saturating_sub(at_most);
        each.truncate(at_most);
        let mut first: Vec<Change> = each.into_iter().map(|entry| entry.change.clone()).collect();
        first.sort();
        Listed {
            first,
            more: more as u64,
        }
    }

    /// The number of changes that must be in a list: all but those in new directories.
    pub(super) fn own(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is_in_new).count()
    }

    /// Checks that another look has found the same.
    pub(super) fn is_still(&self, now: &Self, root: &Path) -> Result<(), ApplyError> {
        if self.entries == now.entries {
            return Ok(());
        }
        let differs = |one: &Self, other: &Self| -> Option<PathBuf> {
            let of_other: HashSet<_> = other.entries.iter().map(|each| &each.change).collect();
            let gone = one
                .entries
                .iter()
                .find(|each| !of_other.contains(&each.change));
            gone.map(|each| each.change.path.clone())
        };
        let stamped = || {
            let mut pairs = self.entries.iter().zip(&now.entries);
            let found = pairs.find(|(one, other)| one != other);
            found.map(|(one, _)| one.change.path.clone())
        };
        let path = differs(self, now).or_else(|| differs(now, self));
        let path = path.or_else(stamped).unwrap_or_default();
        Err(ApplyError::Changed {
            path: root.join(path),
        })
    }
}

/// A file of the layer, and what becomes of it.
pub(super) struct Made<'a> {
    pub stat: &'a FileStat,
    /// What the layer's file has.
    pub raw: &'a Metadata,
    /// What it shall have.
    pub wanted: &'a Metadata,
}

impl Survey<'_> {
    fn relative(&self, path: &Path) -> PathBuf {
        let root = self.context.layers.root.path();
        path.strip_prefix(root).unwrap_or(path).to_owned()
    }

    /// Lists what is created or modified. Returns its index in the list.
    pub(super) fn list(
        &mut self,
        path: &Path,
        kind: ChangeKind,
        what: What,
        made: &Made<'_>,
        before: Option<&Metadata>,
        mut notes: Vec<Note>,
    ) -> usize {
        let has_mode = !matches!(what, What::Link(_));
        let modes = before.map(|before| (before.mode(), made.wanted.mode()));
        let mode = modes.filter(|(before, now)| has_mode && before != now);
        notes.extend(notes_of(made, before, has_mode));
        self.listed.push(Entry {
            change: Change {
                path: self.relative(path),
                kind,
                size: match what {
                    What::Directory => 0,
                    _ => made.stat.st_size.unsigned_abs(),
                },
                what,
                mode,
                notes,
            },
            stamp: Some(Stamp::of(made.stat)),
            is_in_new: self.is_in_new,
        });
        self.listed.len() - 1
    }

    /// Lists what is deleted.
    pub(super) fn list_deleted(&mut self, path: &Path, what: What, before: &FileStat) {
        self.listed.push(Entry {
            change: Change {
                path: self.relative(path),
                kind: ChangeKind::Deleted,
                size: match what {
                    What::Directory => 0,
                    _ => before.st_size.unsigned_abs(),
                },
                what,
                mode: None,
                notes: Vec::new(),
            },
            stamp: None,
            is_in_new: false,
        });
    }
}

fn notes_of(made: &Made<'_>, before: Option<&Metadata>, has_mode: bool) -> Vec<Note> {
    let Made { raw, wanted, .. } = made;
    let mut notes = Vec::new();
    if let Some(before) = before
        && before.owner() != wanted.owner()
    {
        notes.push(Note::Owner {
            from: before.owner(),
            to: wanted.owner(),
        });
    }
    let attributes = wanted.other_attributes(before);
    if !attributes.is_empty() {
        notes.push(Note::Attributes(attributes));
    }
    let mode = wanted.mode();
    // With the sticky bit, others can still put files there.
    if before.is_none() && has_mode && mode & libc::S_IWOTH != 0 {
        notes.push(Note::ForEverybody(mode));
    }
    let lost = raw.mode() & !mode & SET_ID;
    if lost & libc::S_ISUID != 0 {
        notes.push(Note::LeftOut(LeftOut::SetUser));
    }
    if lost & libc::S_ISGID != 0 {
        notes.push(Note::LeftOut(LeftOut::SetGroup));
    }
    if raw.has_another_list(wanted) {
        notes.push(Note::LeftOut(LeftOut::List));
    } else if raw.lacks_list(wanted) {
        notes.push(Note::ListStays);
    }
    if before.is_some_and(|before| wanted.lacks_list(before)) {
        notes.push(Note::ListGone);
    }
    notes
}
