//! Undoes what was done so far.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::openat;
use nix::sys::stat::Mode;

use super::actions::rename_to_nothing;
use super::below::{is_directory, look};
use super::calls::{self, Over};
use super::contents;
use super::error::{ApplyError, number};
use super::metadata::{Metadata, set_time};
use super::progress::Progress;
use super::staging::{Staging, new_name, old_name};
use super::survey::FILE;
use super::work::{POINT_ITSELF, Step, WRITE, Work, way, way_to};
use crate::Inode;
use crate::system_calls;

impl Work<'_> {
    /// Undoes all steps in reverse order. What cannot be undone is left for the user.
    pub(super) fn undo(&mut self, cause: ApplyError) -> ApplyError {
        let mut first: Option<(PathBuf, Errno)> = None;
        let mut saved = Vec::new();
        for step in std::mem::take(&mut self.steps).iter().rev() {
            let undone = match step {
                Step::Staged(part) if first.is_some() => {
                    saved.extend(self.stagings.get(part).map(|staging| staging.path.clone()));
                    Ok(())
                }
                step => self.undo_step(step),
            };
            if let Err(errno) = undone
                && first.is_none()
            {
                first = Some((self.path_of_step(step), errno));
            }
        }
        match first {
            None => cause,
            Some((path, errno)) => ApplyError::NotRestored {
                cause: Box::new(cause),
                path,
                source: errno.into(),
                saved,
            },
        }
    }

    fn path_of_step(&self, step: &Step) -> PathBuf {
        match step {
            Step::Staged(part) => {
                let staging = self.stagings.get(part);
                staging
                    .map(|staging| staging.path.clone())
                    .unwrap_or_default()
            }
            Step::Entered(directory, _)
            | Step::OpenedUp(directory)
            | Step::Finished(directory, _) => self.plan.path_of_directory(*directory),
            Step::Unlocked(operation)
            | Step::Put(operation, _)
            | Step::Taken(operation)
            | Step::Exchanged(operation, _)
            | Step::Written(operation, _)
            | Step::Adjusted(operation, _) => {
                let operation = self.plan.operations.get(*operation);
                operation
                    .map(|operation| self.plan.path_of(operation))
                    .unwrap_or_default()
            }
        }
    }

    fn undo_step(&self, step: &Step) -> nix::Result<()> {
        match step {
            Step::Staged(part) => {
                let staging = self.stagings.get(part).ok_or(Errno::EINVAL)?;
                let parent = way(self.plan, staging.directory)?;
                staging.remove(parent.as_fd())
            }
            Step::Entered(directory, modified) => {
                let (parent, name) = way_to(self.plan, *directory)?;
                set_time(parent.as_fd(), &name, modified)
            }
            Step::OpenedUp(directory) => {
                let mode = self
                    .plan
                    .directories
                    .get(*directory)
                    .map(|found| found.mode);
                let file = way(self.plan, *directory)?;
                system_calls::change_mode(file.as_fd(), mode.ok_or(Errno::EINVAL)?)
            }
            Step::Finished(directory, before) => {
                let (parent, name) = way_to(self.plan, *directory)?;
                before.set(parent.as_fd(), &name)
            }
            Step::Unlocked(operation) => {
                let at = self.at(*operation)?;
                let file = openat(&at.parent, at.name.as_os_str(), POINT_ITSELF, Mode::empty())?;
                system_calls::change_mode(file.as_fd(), at.mode)
            }
            Step::Put(operation, inode) => {
                let at = self.at(*operation)?;
                at.expect(*inode)?;
                let slot = new_name(*operation);
                rename_to_nothing(at.pair(), (at.staging.as_fd(), &slot))
            }
            Step::Taken(operation) => {
                let at = self.at(*operation)?;
                let slot = old_name(*operation);
                rename_to_nothing((at.staging.as_fd(), &slot), at.pair())
            }
            Step::Exchanged(operation, inode) => {
                let at = self.at(*operation)?;
                at.expect(*inode)?;
                let slot = new_name(*operation);
                calls::rename((at.staging.as_fd(), &slot), at.pair(), Over::Exchange)
            }
            Step::Written(operation, before) => self.unwrite(*operation, before),
            Step::Adjusted(operation, before) => {
                let found = self.plan.operations.get(*operation).ok_or(Errno::EINVAL)?;
                let parent = way(self.plan, found.directory)?;
                before.set(parent.as_fd(), &found.name)
            }
        }
    }

    /// Writes the previous content again.
    fn unwrite(&self, operation: usize, before: &Metadata) -> nix::Result<()> {
        let at = self.at(operation)?;
        let name = at.name.as_os_str();
        let old = openat(
            at.staging,
            old_name(operation).as_os_str(),
            FILE,
            Mode::empty(),
        )?;
        let file = match openat(&at.parent, name, WRITE, Mode::empty()) {
            Err(Errno::EACCES) => {
                open_up(at.parent.as_fd(), name)?;
                openat(&at.parent, name, WRITE, Mode::empty())?
            }
            file => file?,
        };
        // Also if the caller has given up.
        contents::overwrite(old.as_fd(), file.as_fd(), &Progress::default())
            .map_err(|error| number(&error))?;
        before.set(at.parent.as_fd(), name)
    }

    fn at(&self, operation: usize) -> nix::Result<At<'_>> {
        let found = self.plan.operations.get(operation).ok_or(Errno::EINVAL)?;
        let directory = self.plan.directories.get(found.directory);
        let part = directory.ok_or(Errno::EINVAL)?.part;
        Ok(At {
            parent: way(self.plan, found.directory)?,
            name: found.name.clone(),
            mode: found.action.seen().map_or(0, |seen| seen.mode),
            staging: self.stagings.get(&part).ok_or(Errno::EINVAL)?,
        })
    }
}

/// What an operation was about.
struct At<'a> {
    parent: OwnedFd,
    name: OsString,
    /// The mode of what was there before.
    mode: u32,
    staging: &'a Staging,
}

impl At<'_> {
    fn pair(&self) -> (BorrowedFd<'_>, &OsStr) {
        (self.parent.as_fd(), &self.name)
    }

    /// Checks that what was put there still is. It can then be renamed again.
    fn expect(&self, inode: Inode) -> nix::Result<()> {
        let stat = look(self.parent.as_fd(), &self.name)?;
        if Inode::of(&stat) != inode {
            return Err(Errno::ESTALE);
        }
        match is_directory(&stat) {
            true => open_up(self.parent.as_fd(), &self.name),
            false => Ok(()),
        }
    }
}

fn open_up(parent: BorrowedFd<'_>, name: &OsStr) -> nix::Result<()> {
    let file = openat(parent, name, POINT_ITSELF, Mode::empty())?;
    system_calls::open_up(file.as_fd())
}
