//! Files with several names. A process does not see them as one file: overlayfs shows it a copy of
//! the name that it changes. So that name is replaced, and the others stay as they are, such as
//! those in a package manager's store. Only where all names are in the layer's own directories do
//! they stay one file: what is done to one of them is then done to all, and said.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc;
use nix::sys::stat::fstat;

use super::below::{is_directory, look, names};
use super::error::ApplyError;
use super::plan::Action;
use super::survey::Survey;
use super::{DEPTH_MAX, ENTRIES_MAX};
use crate::Inode;
use crate::view::change::{LeftOut, Note};

/// A change of a file that has other names.
pub(super) struct Linked {
    /// The indexes of the operation in the plan, and of the change in the list.
    pub operation: usize,
    pub entry: usize,
    pub inode: Inode,
    /// How many names the file has.
    pub names: libc::nlink_t,
}

/// What was found of a file's names.
#[derive(Default)]
struct Found {
    /// The directory and the name in it tell names apart: several mounts may show one directory.
    names: HashSet<(Inode, OsString)>,
    /// A path of each.
    paths: Vec<PathBuf>,
}

/// By file.
type Files = HashMap<Inode, Found>;

impl Survey<'_> {
    /// Decides for each of them whether it is written in place or replaced.
    pub(super) fn part_links(&mut self) -> Result<(), ApplyError> {
        let linked = std::mem::take(&mut self.linked);
        if linked.is_empty() {
            return Ok(());
        }
        let files = linked.iter().map(|each| (each.inode, Found::default()));
        let mut found: Files = files.collect();
        self.find(&mut found)?;
        let mut changed: HashMap<Inode, Vec<&Linked>> = HashMap::new();
        for each in &linked {
            changed.entry(each.inode).or_default().push(each);
        }
        for (inode, changed) in changed {
            let names = found.remove(&inode).unwrap_or_default().paths;
            let all_inside = changed
                .iter()
                .all(|each| usize::try_from(each.names) == Ok(names.len()));
            let stays_one = all_inside && self.agree(&changed);
            let listed = changed
                .iter()
                .filter_map(|each| self.listed.get(each.entry))
                .map(|entry| entry.change.path.clone());
            let listed: HashSet<PathBuf> = listed.collect();
            let all_listed = names.iter().all(|name| listed.contains(name));
            for each in &changed {
                match stays_one {
                    // They say it themselves.
                    true if all_listed => {}
                    true => self.keep_together(each, &names),
                    false => self.replace(each, all_inside),
                }
            }
        }
        Ok(())
    }

    /// Whether the changes of a file's names are one change.
    fn agree(&self, changed: &[&Linked]) -> bool {
        let actions = || {
            let operations = changed
                .iter()
                .map(|each| self.plan.operations.get(each.operation));
            operations.map(|operation| operation.map(|operation| &operation.action))
        };
        match actions().next() {
            Some(Some(Action::Write(_))) => changed.len() == 1,
            Some(Some(Action::Adjust(_, wanted))) => actions()
                .all(|action| matches!(action, Some(Action::Adjust(_, other)) if other == wanted)),
            _ => false,
        }
    }

    fn keep_together(&mut self, each: &Linked, names: &[PathBuf]) {
        let Some(entry) = self.listed.get_mut(each.entry) else {
            return;
        };
        let own = &entry.change.path;
        let others = names.iter().filter(|name| *name != own).cloned().collect();
        entry.change.notes.push(Note::LinkedWith(others));
    }

    fn replace(&mut self, each: &Linked, all_inside: bool) {
        let (Some(operation), Some(entry)) = (
            self.plan.operations.get_mut(each.operation),
            self.listed.get_mut(each.entry),
        ) else {
            return;
        };
        let change = &mut entry.change;
        match &operation.action {
            Action::Write(seen) => operation.action = Action::Replace(seen.clone()),
            Action::Adjust(seen, wanted) => {
                // A new file does not have the set-ID bits of the old one.
                let had = wanted.mode() & super::metadata::SET_ID;
                if had != 0 {
                    let before = change.mode.map_or(wanted.mode(), |(before, _)| before);
                    change.mode = Some((before, wanted.mode() & !had));
                }
                for (bit, left_out) in [
                    (libc::S_ISUID, LeftOut::SetUser),
                    (libc::S_ISGID, LeftOut::SetGroup),
                ] {
                    if had & bit != 0 {
                        change.notes.push(Note::LeftOut(left_out));
                    }
                }
                operation.action = Action::Replace(seen.clone());
                self.plan.mark_entry(each.operation);
            }
            Action::Create | Action::Replace(_) | Action::Delete(_) => {}
        }
        change.notes.push(match all_inside {
            true => Note::Parted,
            false => Note::LinkedElsewhere,
        });
    }

    /// Looks for names in all of the layer's own directories.
    fn find(&self, found: &mut Files) -> Result<(), ApplyError> {
        let mut left = ENTRIES_MAX;
        for part in &self.plan.parts {
            let path = part.path.strip_prefix(self.context.layers.root.path());
            let path = path.unwrap_or(&part.path);
            if let Some(directory) = enter(part.lower.as_fd(), OsStr::new(".")) {
                self.find_in(directory.as_fd(), path, found, &mut left, 0)?;
            }
        }
        Ok(())
    }

    /// What cannot be looked at has no names: a name too few means that a file is replaced.
    fn find_in(
        &self,
        directory: BorrowedFd<'_>,
        path: &Path,
        found: &mut Files,
        left: &mut usize,
        depth: usize,
    ) -> Result<(), ApplyError> {
        for name in names(directory).unwrap_or_default() {
            self.context.go_on()?;
            *left = left.saturating_sub(1);
            let Ok(stat) = look(directory, &name) else {
                continue;
            };
            if *left == 0 {
                return Ok(());
            }
            if is_directory(&stat) {
                if depth < DEPTH_MAX
                    && let Some(directory) = enter(directory, &name)
                {
                    self.find_in(directory.as_fd(), &path.join(&name), found, left, depth + 1)?;
                }
            } else if stat.st_nlink > 1
                && let Some(file) = found.get_mut(&Inode::of(&stat))
                && let Ok(parent) = fstat(directory)
                && file.names.insert((Inode::of(&parent), name.clone()))
            {
                file.paths.push(path.join(&name));
            }
        }
        Ok(())
    }
}

/// Opens a directory of the same mount: what is mounted in it may show a file's name twice.
fn enter(parent: BorrowedFd<'_>, name: &OsStr) -> Option<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_XDEV);
    openat2(parent, name, how).ok()
}
