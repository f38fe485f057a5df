//! Copies everything new to where it only has to be renamed.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::stat::{Mode, fstat};

use super::below::{DIRECTORY, look};
use super::contents;
use super::error::{ApplyError, failed, number};
use super::metadata::{Metadata, kind};
use super::plan::{Action, Part, Plan};
use super::staging::{Copier, Source, Staging, Target, new_name, old_name};
use super::survey::FILE;
use super::work::{POINT_ITSELF, Step, Work, lost, way};
use crate::view::opened::Opened;

const NEW_FILE: OFlag = OFlag::O_WRONLY
    .union(OFlag::O_CREAT)
    .union(OFlag::O_EXCL)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// A directory of the layer, with those on the way to it.
type Way = Vec<Opened>;

impl Work<'_> {
    /// Makes the staging directories, and fills them.
    pub(super) fn stage(&mut self) -> Result<(), ApplyError> {
        let mut parts = BTreeSet::new();
        for operation in &self.plan.operations {
            if let Some(directory) = self.plan.directories.get(operation.directory)
                && !matches!(operation.action, Action::Adjust(..))
            {
                parts.insert(directory.part);
            }
        }
        for part in parts {
            self.make_staging(part)?;
        }
        let mut copier = Copier::new(self.context);
        let mut open: Option<(usize, Way)> = None;
        for index in 0..self.plan.operations.len() {
            self.copy(index, &mut copier, &mut open)?;
        }
        for index in 0..self.plan.operations.len() {
            self.save(index)?;
        }
        Ok(())
    }

    /// Makes a part's staging directory in the first directory where that is possible: whoever may
    /// replace a file may also make one beside it.
    fn make_staging(&mut self, part: usize) -> Result<(), ApplyError> {
        let of_part = |directory: &usize| {
            let found = self.plan.directories.get(*directory);
            found.is_some_and(|found| found.part == part)
        };
        let root = (0..self.plan.directories.len()).find(of_part);
        let changed = self.plan.operations.iter().map(|each| each.directory);
        let mut candidates: Vec<usize> = root.into_iter().chain(changed.filter(of_part)).collect();
        candidates.dedup();
        let mut refused = None;
        for directory in candidates {
            let path = self.plan.path_of_directory(directory);
            let parent = self.enter(directory)?;
            match Staging::make(parent.as_fd(), directory, &path) {
                Ok(staging) => {
                    self.stagings.insert(part, staging);
                    self.steps.push(Step::Staged(part));
                    return Ok(());
                }
                Err(errno @ (Errno::EACCES | Errno::EPERM | Errno::EROFS)) => {
                    refused.get_or_insert((errno, path));
                }
                Err(errno) => return Err(failed("cannot make a directory in", &path)(errno)),
            }
        }
        let (errno, path) = refused.unwrap_or((Errno::EACCES, Path::new("").into()));
        Err(failed("cannot make a directory in", &path)(errno))
    }

    /// Copies what an operation puts in place.
    fn copy(
        &mut self,
        index: usize,
        copier: &mut Copier<'_>,
        open: &mut Option<(usize, Way)>,
    ) -> Result<(), ApplyError> {
        let plan: &Plan = self.plan;
        let Some(operation) = plan.operations.get(index) else {
            return Ok(());
        };
        let Some(directory) = plan.directories.get(operation.directory) else {
            return Ok(());
        };
        let (Some(part), Some(staging)) = (
            plan.parts.get(directory.part),
            self.stagings.get(&directory.part),
        ) else {
            return Ok(());
        };
        if !operation.action.has_content() {
            return Ok(());
        }
        let path = plan.path_of(operation);
        let cannot_read = |errno| failed("cannot read", &path)(errno);
        if open
            .as_ref()
            .is_none_or(|(of, _)| *of != operation.directory)
        {
            let opened = open_way(part, &directory.path).map_err(cannot_read)?;
            *open = Some((operation.directory, opened));
        }
        let parent = match open {
            Some((_, way)) => way.last().map_or(part.upper.as_fd(), AsFd::as_fd),
            None => part.upper.as_fd(),
        };
        let stat = look(parent, &operation.name).map_err(cannot_read)?;
        let below = self.below(index, kind(&stat)).map_err(lost(&path))?;
        let name = new_name(index);
        let source = Source {
            part: (directory.part, part),
            at: (parent, &operation.name),
            path: &path,
            below: below.as_ref(),
            passes_group_on: directory.wanted.passes_group_on(),
        };
        let target = Target {
            staging,
            at: (staging.as_fd(), &name),
            path: Path::new(&name),
        };
        let needs_more =
            kind(&stat) == libc::S_IFDIR || matches!(operation.action, Action::Write(_));
        let wanted = match copier.copy(&source, &target) {
            Ok(wanted) => wanted,
            Err(error) => {
                let wanted = keeps_owner(&error, &source);
                let seen = operation.action.seen().cloned();
                // Not through a name that it has elsewhere.
                let seen = seen.filter(|seen| seen.links().is_none());
                let (Some(wanted), Some(seen)) = (wanted, seen) else {
                    return Err(error);
                };
                self.wanted.insert(index, wanted);
                if let Some(operation) = self.plan.operations.get_mut(index) {
                    operation.action = Action::Write(seen);
                }
                return Ok(());
            }
        };
        if needs_more {
            self.wanted.insert(index, wanted);
        }
        Ok(())
    }

    /// The metadata of what an operation replaces by something of the same kind.
    fn below(&self, index: usize, of_kind: u32) -> nix::Result<Option<Metadata>> {
        let Some(operation) = self.plan.operations.get(index) else {
            return Ok(None);
        };
        if operation.action.seen().is_none() {
            return Ok(None);
        }
        let parent = way(self.plan, operation.directory)?;
        let name = operation.name.as_os_str();
        let file = openat(&parent, name, POINT_ITSELF, Mode::empty())?;
        match kind(&fstat(&file)?) == of_kind {
            true => Ok(Some(Metadata::of(file.as_fd())?)),
            false => Ok(None),
        }
    }

    /// Copies the content of a file that is to be overwritten.
    fn save(&self, index: usize) -> Result<(), ApplyError> {
        let Some(operation) = self.plan.operations.get(index) else {
            return Ok(());
        };
        let part = self
            .plan
            .directories
            .get(operation.directory)
            .map(|found| found.part);
        let Some(staging) = part.and_then(|part| self.stagings.get(&part)) else {
            return Ok(());
        };
        if !matches!(operation.action, Action::Write(_)) {
            return Ok(());
        }
        let path = self.plan.path_of(operation);
        let parent = way(self.plan, operation.directory).map_err(lost(&path))?;
        let cannot_save = |errno| failed("cannot copy", &path)(errno);
        let from = openat(&parent, operation.name.as_os_str(), FILE, Mode::empty())
            .map_err(cannot_save)?;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let to =
            openat(staging, old_name(index).as_os_str(), NEW_FILE, mode).map_err(cannot_save)?;
        contents::copy(from.as_fd(), to.as_fd(), self.context.progress)
            .map_err(|error| cannot_save(number(&error)))
    }
}

/// What a file of the layer shall have, if a copy cannot have its owner, but what it replaces has.
/// It is written in place then, as the process did.
fn keeps_owner(error: &ApplyError, source: &Source<'_>) -> Option<Metadata> {
    let ApplyError::NotApplied { source: cause, .. } = error else {
        return None;
    };
    if number(cause) != Errno::EPERM {
        return None;
    }
    let (directory, name) = source.at;
    let stat = look(directory, name).ok()?;
    if kind(&stat) != libc::S_IFREG {
        return None;
    }
    let file = Opened::open(directory, name, FILE).ok()?;
    let wanted = source.wanted(file.as_fd(), &stat).ok()?;
    source.below?.has_owner_of(&wanted).then_some(wanted)
}

/// Opens a directory of the layer.
fn open_way(part: &Part, path: &Path) -> nix::Result<Way> {
    let mut way: Way = Vec::new();
    for name in path {
        let parent = way.last().map_or(part.upper.as_fd(), AsFd::as_fd);
        way.push(Opened::open(parent, name, DIRECTORY)?);
    }
    Ok(way)
}
