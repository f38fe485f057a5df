//! Looks at a layer and at what is below it, and plans what is to be done. Writes nothing.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::stat::{FileStat, fstat};

use super::below::{DIRECTORY, changed_at, look, names};
use super::error::{ApplyError, failed, number};
use super::links::Linked;
use super::listing::{Entry, Made, Planned};
use super::metadata::{self, Metadata, Over};
use super::origin::{self, Moved};
use super::plan::{Directory, Part, Plan};
use super::shared::Shared;
use super::{Context, ENTRIES_MAX};
use crate::Inode;
use crate::place::point_below;
use crate::view::change::{ChangeKind, Note, What};
use crate::view::opened::Opened;

/// For reading a regular file.
pub(super) const FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

/// What a layer changes, and the list of it.
pub(super) fn survey(
    context: &Context<'_>,
    layer: BorrowedFd<'_>,
) -> Result<(Plan, Planned), ApplyError> {
    let mut survey = Survey {
        context,
        plan: Plan::default(),
        listed: Vec::new(),
        is_in_new: false,
        linked: Vec::new(),
        shared: HashMap::new(),
        entries: 0,
        moved: Vec::new(),
    };
    for (index, mount) in context.layers.mounts.iter().enumerate() {
        survey.part(layer, index, mount)?;
    }
    survey.part_links()?;
    survey.name_shared();
    origin::check(context, &survey.plan, survey.moved)?;
    let planned = Planned {
        since: context.since,
        ended: context.ended,
        entries: survey.listed,
    };
    Ok((survey.plan, planned))
}

pub(super) struct Survey<'a> {
    pub context: &'a Context<'a>,
    pub plan: Plan,
    pub listed: Vec<Entry>,
    /// Whether what is listed is in a directory that is new as a whole.
    pub is_in_new: bool,
    pub linked: Vec<Linked>,
    /// The names of files of the layer that may have several, by part.
    pub shared: HashMap<(usize, Inode), Vec<Shared>>,
    entries: usize,
    pub moved: Vec<Moved>,
}

/// A directory that is being looked at, in the layer and below.
pub(super) struct Level<'a> {
    /// Its index in the plan.
    pub index: usize,
    pub part: usize,
    pub path: &'a Path,
    pub upper: BorrowedFd<'a>,
    pub lower: BorrowedFd<'a>,
    pub has_marks: bool,
    /// Whether entries of the lower directory may have gone since the process began.
    pub may_lack: bool,
    pub depth: usize,
}

impl Survey<'_> {
    fn part(
        &mut self,
        layer: BorrowedFd<'_>,
        index: usize,
        mount: &Path,
    ) -> Result<(), ApplyError> {
        let root = &self.context.layers.root;
        let path = match mount.as_os_str().is_empty() {
            true => root.path().to_owned(),
            false => root.path().join(mount),
        };
        let name = OsString::from(format!("upper{index}"));
        // Opening it can change its mode.
        let stat = look(layer, &name).map_err(failed("cannot look at", &path))?;
        let upper = Opened::open(layer, &name, DIRECTORY).map_err(failed("cannot read", &path))?;
        let lower =
            point_below(root.descriptor(), mount).map_err(|_| ApplyError::changed(&path))?;
        let cannot_look = |errno| failed("cannot look at", &path)(errno);
        let below = fstat(&lower).map_err(cannot_look)?;
        let dup = |file: BorrowedFd<'_>| {
            let file = file.try_clone_to_owned();
            file.map_err(|error| cannot_look(number(&error)))
        };
        let before = Metadata::of(lower.as_fd()).map_err(cannot_look)?;
        // Its owner and attributes in the layer are the host's.
        let raw = Metadata::as_told(upper.as_fd(), &stat)
            .map_err(cannot_look)?
            .with_owner_and_attributes_of(&before);
        let has_marks = self.context.marks.are_made(upper.as_fd());
        let (above, under) = (dup(upper.as_fd())?, dup(lower.as_fd())?);
        self.plan.parts.push(Part {
            path,
            has_attributes: metadata::has_user_attributes(upper.as_fd()),
            upper,
            lower,
        });
        self.merged(Merged {
            part: index,
            path: PathBuf::new(),
            upper: above.as_fd(),
            lower: under.as_fd(),
            above: &stat,
            below: &below,
            before,
            raw,
            has_marks,
            depth: 0,
        })
    }

    fn sealed(&self, part: usize) -> Option<&OsStr> {
        let sealed = self.context.layers.sealed.as_deref();
        sealed.filter(|_| part == 0)
    }

    /// Plans a directory whose lower entries show through.
    pub(super) fn merged(&mut self, found: Merged<'_>) -> Result<(), ApplyError> {
        let Merged {
            part,
            path,
            upper,
            lower,
            above,
            below,
            before,
            raw,
            has_marks,
            depth,
        } = found;
        let index = self.plan.directories.len();
        let changed = changed_at(below) >= self.context.since;
        let mut wanted = raw.wanted(libc::S_IFDIR, self.over(part, Some(&before), false));
        let is_adjusted = wanted.differs(&before);
        // Others' changes to its entries would be overwritten with the time.
        if metadata::is_since(before.modified, self.context.since) {
            wanted.modified = None;
        }
        self.plan.directories.push(Directory {
            part,
            path: path.clone(),
            inode: Inode::of(below),
            mode: below.st_mode & !libc::S_IFMT,
            adjusted: is_adjusted,
            has_entries: false,
            wanted: wanted.clone(),
        });
        if is_adjusted && changed {
            return Err(ApplyError::changed(&self.plan.path_of_directory(index)));
        }
        let sealed = self
            .sealed(part)
            .filter(|_| depth == 0)
            .map(OsStr::to_owned);
        let shown = self.plan.path_of_directory(index);
        let level = Level {
            index,
            part,
            path: &path,
            upper,
            lower,
            has_marks,
            may_lack: changed,
            depth,
        };
        for name in names(level.upper).map_err(failed("cannot read", &shown))? {
            if sealed.as_ref() != Some(&name) {
                self.entry(&level, &name, &shown.join(&name))?;
            }
        }
        let Some(directory) = self.plan.directories.get_mut(index) else {
            return Ok(());
        };
        // The layer's own directory was made with it: its time says something only with its entries.
        if depth == 0 && !directory.has_entries {
            wanted.modified = before.modified;
        }
        let is_retimed = wanted.modified.is_some() && wanted.modified != before.modified;
        // That its entries have changed is told by them.
        let is_set =
            is_retimed && !(directory.has_entries && self.context.is_during(wanted.modified));
        directory.adjusted = is_adjusted || is_retimed;
        directory.wanted = wanted.clone();
        let left_out = raw.mode() != wanted.mode() || raw.has_another_list(&wanted);
        if is_adjusted || is_set || left_out {
            let made = Made {
                stat: above,
                raw: &raw,
                wanted: &wanted,
            };
            let notes = is_set.then_some(Note::Time).into_iter().collect();
            let modified = ChangeKind::Modified;
            self.list(
                &shown,
                modified,
                What::Directory,
                &made,
                Some(&before),
                notes,
            );
        }
        Ok(())
    }

    /// What a layer's file comes over.
    pub(super) fn over<'a>(
        &self,
        part: usize,
        below: Option<&'a Metadata>,
        passes_group_on: bool,
    ) -> Over<'a> {
        let part = self.plan.parts.get(part);
        Over {
            below,
            has_attributes: part.is_some_and(|part| part.has_attributes),
            passes_group_on,
        }
    }

    pub(super) fn count(&mut self, path: &Path) -> Result<(), ApplyError> {
        self.entries += 1;
        match self.entries > ENTRIES_MAX {
            true => Err(ApplyError::TooMuch {
                path: path.into(),
                limit: format!("more than {ENTRIES_MAX} entries"),
            }),
            false => Ok(()),
        }
    }
}

/// A directory that is in the layer and below it.
pub(super) struct Merged<'a> {
    pub part: usize,
    pub path: PathBuf,
    pub upper: BorrowedFd<'a>,
    pub lower: BorrowedFd<'a>,
    pub above: &'a FileStat,
    pub below: &'a FileStat,
    pub before: Metadata,
    /// What it has in the layer.
    pub raw: Metadata,
    pub has_marks: bool,
    pub depth: usize,
}
