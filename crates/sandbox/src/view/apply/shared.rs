//! Files of the layer with several names. They are still one file when they are real: what is written
//! to one name is in the others then. So every name is listed, even if nothing else of it changes, and
//! names the others.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;

use nix::sys::stat::FileStat;

use super::below::is_directory;
use super::survey::Survey;
use crate::Inode;
use crate::view::change::{ChangeKind, NAMED, Note};

/// A name in the list.
pub(super) struct Shared {
    entry: usize,
    /// Whether it would be listed if it were its file's only name.
    differs: bool,
}

/// Whether a file of the layer may have another name.
pub(super) fn is_shared(stat: &FileStat) -> bool {
    stat.st_nlink > 1 && !is_directory(stat)
}

impl Survey<'_> {
    /// Notes that an entry of the list is about a file that may have other names.
    pub(super) fn note_shared(
        &mut self,
        part: usize,
        stat: &FileStat,
        entry: usize,
        differs: bool,
    ) {
        let names = self.shared.entry((part, Inode::of(stat))).or_default();
        names.push(Shared { entry, differs });
    }

    /// Says of each name which others its file gets. Changes the indexes of the list.
    pub(super) fn name_shared(&mut self) {
        let mut alone = HashSet::new();
        for names in std::mem::take(&mut self.shared).into_values() {
            match &names[..] {
                // Its other names are not applied.
                [name] => {
                    if !name.differs {
                        alone.insert(name.entry);
                    }
                }
                names => self.name_each(names),
            }
        }
        let mut index = 0..;
        self.listed
            .retain(|_| index.next().is_none_or(|index| !alone.contains(&index)));
    }

    fn name_each(&mut self, names: &[Shared]) {
        let mut paths: Vec<(bool, PathBuf)> = names
            .iter()
            .filter_map(|name| self.listed.get(name.entry))
            .map(|entry| {
                let was_there = entry.change.kind == ChangeKind::Modified;
                (was_there, entry.change.path.clone())
            })
            .collect();
        // First those that stood for something before. A name too many, for the one that is left out.
        paths.sort_by(|one, other| (Reverse(one.0), &one.1).cmp(&(Reverse(other.0), &other.1)));
        paths.truncate(NAMED + 1);
        for name in names {
            let Some(entry) = self.listed.get_mut(name.entry) else {
                continue;
            };
            let change = &mut entry.change;
            let others = paths.iter().map(|(_, path)| path);
            let others = others.filter(|path| **path != change.path).take(NAMED);
            let first: Vec<PathBuf> = others.cloned().collect();
            let more = names.len() - 1 - first.len();
            change.notes.push(Note::OneFileWith { first, more });
        }
    }
}
