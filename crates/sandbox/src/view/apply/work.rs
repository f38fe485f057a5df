//! Carries out a plan, noting for each step how it is undone.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::fstat;
use nix::sys::time::TimeSpec;

use super::Context;
use super::below::{Seen, changed_at, look};
use super::error::{ApplyError, failed};
use super::metadata::{Metadata, modified};
use super::plan::{Action, Plan};
use super::staging::Staging;
use crate::Inode;
use crate::place::point_below;
use crate::system_calls;

pub(super) const POINT_ITSELF: OFlag = OFlag::O_PATH
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
/// For writing to a regular file as it is.
pub(super) const WRITE: OFlag = OFlag::O_WRONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

/// A step that was done. The numbers are indexes in the plan.
pub(super) enum Step {
    /// The staging directory of a part was made.
    Staged(usize),
    /// A directory is about to be used, and had this modification time.
    Entered(usize, TimeSpec),
    /// A directory was made accessible to its owner.
    OpenedUp(usize),
    /// The same for what an operation is about.
    Unlocked(usize),
    /// A file from the staging directory, with this inode, was put in place.
    Put(usize, Inode),
    /// What was there was taken to the staging directory.
    Taken(usize),
    /// Both at once.
    Exchanged(usize, Inode),
    /// A file that had this is being overwritten.
    Written(usize, Metadata),
    /// A file that had this gets something else.
    Adjusted(usize, Metadata),
    /// The same for a directory.
    Finished(usize, Metadata),
}

pub(super) struct Work<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) plan: &'a mut Plan,
    pub(super) steps: Vec<Step>,
    /// By part.
    pub(super) stagings: HashMap<usize, Staging>,
    /// What operations give to what they have put in place or written.
    pub(super) wanted: HashMap<usize, Metadata>,
    /// The changes of status that were made here, of files with several names.
    touched: HashMap<Inode, Duration>,
    pub(super) entered: HashSet<usize>,
    open: Option<(usize, Rc<OwnedFd>)>,
}

/// Opens a directory of the plan below the layer.
///
/// # Errors
/// Those of open(2); `ESTALE` if it is another one by now.
pub(super) fn way(plan: &Plan, directory: usize) -> nix::Result<OwnedFd> {
    let found = plan.directories.get(directory).ok_or(Errno::EINVAL)?;
    let part = plan.parts.get(found.part).ok_or(Errno::EINVAL)?;
    let open = point_below(part.lower.as_fd(), &found.path)?;
    match Inode::of(&fstat(&open)?) == found.inode {
        true => Ok(open),
        false => Err(Errno::ESTALE),
    }
}

/// The directory that a directory of the plan is in, and its name there.
pub(super) fn way_to(plan: &Plan, directory: usize) -> nix::Result<(OwnedFd, OsString)> {
    let found = plan.directories.get(directory).ok_or(Errno::EINVAL)?;
    let part = plan.parts.get(found.part).ok_or(Errno::EINVAL)?;
    let (parent, name) = match (found.path.parent(), found.path.file_name()) {
        (Some(parent), Some(name)) => (parent, name),
        _ => (Path::new(""), OsStr::new(".")),
    };
    let parent = point_below(part.lower.as_fd(), parent)?;
    match Inode::of(&look(parent.as_fd(), name)?) == found.inode {
        true => Ok((parent, name.to_owned())),
        false => Err(Errno::ESTALE),
    }
}

/// What the failure to reach a directory means.
pub(super) fn lost(path: &Path) -> impl FnOnce(Errno) -> ApplyError {
    move |errno| match errno {
        Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ESTALE => ApplyError::changed(path),
        errno => failed("cannot open", path)(errno),
    }
}

impl<'a> Work<'a> {
    pub(super) fn new(context: &'a Context<'a>, plan: &'a mut Plan) -> Self {
        Self {
            context,
            plan,
            steps: Vec::new(),
            stagings: HashMap::new(),
            wanted: HashMap::new(),
            touched: HashMap::new(),
            entered: HashSet::new(),
            open: None,
        }
    }

    /// Does everything. After an error the steps so far must be undone.
    pub(super) fn carry_out(&mut self) -> Result<(), ApplyError> {
        self.stage()?;
        // First what only renames: writing to a file changes what its other names stand for.
        self.each(|action| {
            matches!(
                action,
                Action::Create | Action::Replace(_) | Action::Delete(_)
            )
        })?;
        self.each(|action| matches!(action, Action::Write(_)))?;
        self.each(|action| matches!(action, Action::Adjust(..)))?;
        // What is in a directory comes after it.
        for directory in (0..self.plan.directories.len()).rev() {
            self.finish(directory)?;
        }
        self.context
            .progress
            .applied()
            .map_err(|_| self.context.timed_out())
    }

    fn each(&mut self, which: fn(&Action) -> bool) -> Result<(), ApplyError> {
        for index in 0..self.plan.operations.len() {
            let Some(operation) = self.plan.operations.get(index) else {
                break;
            };
            if which(&operation.action) {
                self.context.go_on()?;
                self.operate(index)?;
            }
        }
        Ok(())
    }

    fn operate(&mut self, index: usize) -> Result<(), ApplyError> {
        let plan: &Plan = self.plan;
        let Some(operation) = plan.operations.get(index) else {
            return Ok(());
        };
        let path = plan.path_of(operation);
        let (directory, name) = (operation.directory, operation.name.clone());
        let action = operation.action.clone();
        let parent = self.enter(directory)?;
        let at = (parent.as_fd(), name.as_os_str());
        if let Some(seen) = action.seen() {
            self.check(seen, at, &path)?;
        }
        match action {
            Action::Create => self.put(index, at, &path),
            Action::Replace(seen) => self.replace(index, &seen, at, &path),
            Action::Delete(seen) => self.take(index, &seen, at, &path),
            Action::Write(seen) => self.write(index, &seen, at, &path),
            Action::Adjust(seen, wanted) => self.adjust(index, &seen, &wanted, at, &path),
        }
    }

    /// Opens a directory for changes of its entries.
    pub(super) fn enter(&mut self, directory: usize) -> Result<Rc<OwnedFd>, ApplyError> {
        if let Some((open, file)) = &self.open
            && *open == directory
        {
            return Ok(Rc::clone(file));
        }
        let path = self.plan.path_of_directory(directory);
        let file = Rc::new(way(self.plan, directory).map_err(lost(&path))?);
        if self.entered.insert(directory) {
            let stat = fstat(&*file).map_err(failed("cannot look at", &path))?;
            self.steps.push(Step::Entered(directory, modified(&stat)));
            let mode = self
                .plan
                .directories
                .get(directory)
                .map_or(0, |each| each.mode);
            // The process had made it writable, perhaps only for a while.
            if !self.context.is_root
                && mode & 0o300 != 0o300
                && system_calls::change_mode(file.as_fd(), mode | 0o700).is_ok()
            {
                self.steps.push(Step::OpenedUp(directory));
            }
        }
        self.open = Some((directory, Rc::clone(&file)));
        Ok(file)
    }

    /// Checks that something is still what the plan is for.
    fn check(
        &self,
        seen: &Seen,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        let stat = look(at.0, at.1).map_err(lost(path))?;
        let is_same = match self.touched.get(&seen.inode) {
            Some(at) => Inode::of(&stat) == seen.inode && changed_at(&stat) == *at,
            None => seen.is_same(&stat) && changed_at(&stat) == seen.changed_at,
        };
        match is_same {
            true => Ok(()),
            false => Err(ApplyError::changed(path)),
        }
    }

    /// Notes what was done to a file with several names.
    pub(super) fn touch(&mut self, seen: &Seen, at: (BorrowedFd<'_>, &OsStr)) {
        if seen.links().is_some()
            && let Ok(stat) = look(at.0, at.1)
        {
            self.touched.insert(seen.inode, changed_at(&stat));
        }
    }
}
