//! Looks at a layer and at what is below it, and plans what is to be done. Writes nothing.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::stat::{FileStat, fstat};

use super::below::{DIRECTORY, changed_at, is_directory, look, names};
use super::error::{ApplyError, failed, number};
use super::metadata::{self, Metadata, kind};
use super::origin::{self, Moved};
use super::plan::{Directory, Operation, Part, Plan};
use super::{Context, DEPTH_MAX, ENTRIES_MAX, too_deep};
use crate::Inode;
use crate::place::point_below;
use crate::view::opened::Opened;

/// For reading a regular file.
pub(super) const FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

/// What a layer changes.
pub(super) fn survey(context: &Context<'_>, layer: BorrowedFd<'_>) -> Result<Plan, ApplyError> {
    let mut survey = Survey {
        context,
        plan: Plan::default(),
        entries: 0,
        moved: Vec::new(),
    };
    for (index, mount) in context.layers.mounts.iter().enumerate() {
        survey.part(layer, index, mount)?;
    }
    survey.plan.part_links();
    origin::check(context, &survey.plan, survey.moved)?;
    Ok(survey.plan)
}

pub(super) struct Survey<'a> {
    pub context: &'a Context<'a>,
    pub plan: Plan,
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
        let wanted = Metadata::wanted(upper.as_fd(), &stat, Some(&before))
            .map_err(cannot_look)?
            .with_owner_and_attributes_of(&before);
        let has_marks = self.context.marks.are_made(upper.as_fd());
        let (top, modified) = (self.plan.directories.len(), before.modified);
        let (above, under) = (dup(upper.as_fd())?, dup(lower.as_fd())?);
        self.plan.parts.push(Part {
            path: path.clone(),
            has_all_kinds: metadata::has_all_kinds(upper.as_fd()),
            upper,
            lower,
        });
        self.merged(Merged {
            part: index,
            path: PathBuf::new(),
            upper: above.as_fd(),
            lower: under.as_fd(),
            below: &below,
            before,
            wanted,
            has_marks,
            depth: 0,
        })?;
        // The layer's own directory was made with it: it says something only with its entries.
        let is_entry = |each: &Operation| each.directory == top && each.action.is_entry();
        if !self.plan.operations.iter().any(is_entry)
            && let Some(top) = self.plan.directories.get_mut(top)
        {
            top.wanted.modified = modified;
        }
        Ok(())
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
            below,
            before,
            mut wanted,
            has_marks,
            depth,
        } = found;
        let index = self.plan.directories.len();
        let changed = changed_at(below) >= self.context.since;
        let is_adjusted = wanted.differs(&before);
        // Others' changes to its entries would be overwritten with the time.
        if metadata::is_since(before.modified, self.context.since) {
            wanted.modified = None;
        }
        let is_retimed = wanted.modified.is_some() && wanted.modified != before.modified;
        self.plan.directories.push(Directory {
            part,
            path: path.clone(),
            inode: Inode::of(below),
            mode: below.st_mode & !libc::S_IFMT,
            adjusted: is_adjusted || (depth > 0 && is_retimed),
            wanted,
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
        Ok(())
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

    /// Counts what is in a directory that is new as a whole, and checks its kinds.
    pub(super) fn count_below(
        &mut self,
        level: &Level<'_>,
        name: &OsStr,
        stat: &FileStat,
        path: &Path,
    ) -> Result<(), ApplyError> {
        match is_directory(stat) {
            true => self.count_in(level.upper, name, path, level.depth + 1),
            false => Ok(()),
        }
    }

    fn count_in(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> Result<(), ApplyError> {
        if depth >= DEPTH_MAX {
            return Err(too_deep(path));
        }
        let directory =
            Opened::open(parent, name, DIRECTORY).map_err(failed("cannot read", path))?;
        for name in names(directory.as_fd()).map_err(failed("cannot read", path))? {
            self.context.go_on()?;
            let path = path.join(&name);
            self.count(&path)?;
            let stat = look(directory.as_fd(), &name).map_err(failed("cannot look at", &path))?;
            match kind(&stat) {
                libc::S_IFDIR => self.count_in(directory.as_fd(), &name, &path, depth + 1)?,
                libc::S_IFCHR | libc::S_IFBLK if stat.st_rdev != 0 => {
                    return Err(ApplyError::Device { path });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A directory that is in the layer and below it.
pub(super) struct Merged<'a> {
    pub part: usize,
    pub path: PathBuf,
    pub upper: BorrowedFd<'a>,
    pub lower: BorrowedFd<'a>,
    pub below: &'a FileStat,
    pub before: Metadata,
    pub wanted: Metadata,
    pub has_marks: bool,
    pub depth: usize,
}
