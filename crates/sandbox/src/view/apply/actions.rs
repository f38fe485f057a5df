//! What happens to one name.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{openat, renameat};
use nix::sys::stat::{Mode, fstat};

use super::below::{Seen, look};
use super::calls::{self, Over};
use super::contents;
use super::error::{ApplyError, failed, number};
use super::metadata::Metadata;
use super::plan::Plan;
use super::staging::{Staging, new_name, old_name};
use super::survey::FILE;
use super::work::{POINT_ITSELF, Step, WRITE, Work};
use crate::Inode;
use crate::system_calls;

impl Work<'_> {
    fn staging(&self, index: usize) -> Result<&Staging, ApplyError> {
        let plan: &Plan = self.plan;
        let operation = plan.operations.get(index);
        let directory = operation.and_then(|each| plan.directories.get(each.directory));
        directory
            .and_then(|directory| self.stagings.get(&directory.part))
            .ok_or_else(|| self.context.timed_out())
    }

    /// Puts something new where nothing is.
    pub(super) fn put(
        &mut self,
        index: usize,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        let name = new_name(index);
        let staging = self.staging(index)?;
        let from = (staging.as_fd(), name.as_os_str());
        let stat = look(from.0, from.1).map_err(failed("cannot create", path))?;
        rename_to_nothing(from, at).map_err(|errno| match errno {
            Errno::EEXIST => ApplyError::changed(path),
            errno => failed("cannot create", path)(errno),
        })?;
        self.steps.push(Step::Put(index, Inode::of(&stat)));
        self.give(index, at, path)
    }

    /// What could only be given to something in its place.
    fn give(
        &self,
        index: usize,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        match self.wanted.get(&index) {
            Some(wanted) => wanted
                .set(at.0, at.1)
                .map_err(failed("cannot change", path)),
            None => Ok(()),
        }
    }

    pub(super) fn replace(
        &mut self,
        index: usize,
        seen: &Seen,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        self.unlock(index, seen, 0o200, at, path)?;
        let name = new_name(index);
        let staging = self.staging(index)?;
        let slot = (staging.as_fd(), name.as_os_str());
        let stat = look(slot.0, slot.1).map_err(failed("cannot replace", path))?;
        match calls::rename(slot, at, Over::Exchange) {
            Ok(()) => {}
            Err(Errno::EINVAL) => {
                self.take(index, seen, at, path)?;
                return self.put(index, at, path);
            }
            Err(Errno::ENOENT) => return Err(ApplyError::changed(path)),
            Err(errno) => return Err(failed("cannot replace", path)(errno)),
        }
        let slot = staging_slot(slot)?;
        self.steps.push(Step::Exchanged(index, Inode::of(&stat)));
        let slot = (slot.as_fd(), name.as_os_str());
        self.check_taken(seen, slot, path)?;
        self.give(index, at, path)
    }

    pub(super) fn take(
        &mut self,
        index: usize,
        seen: &Seen,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        self.unlock(index, seen, 0o200, at, path)?;
        let name = old_name(index);
        let staging = staging_slot((self.staging(index)?.as_fd(), &name))?;
        let slot = (staging.as_fd(), name.as_os_str());
        rename_to_nothing(at, slot).map_err(|errno| match errno {
            Errno::ENOENT => ApplyError::changed(path),
            errno => failed("cannot remove", path)(errno),
        })?;
        self.steps.push(Step::Taken(index));
        self.check_taken(seen, slot, path)
    }

    /// Checks that what was renamed away is what it should be: nobody else can reach it now.
    fn check_taken(
        &mut self,
        seen: &Seen,
        slot: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        let stat = look(slot.0, slot.1).map_err(failed("cannot look at", path))?;
        if !seen.is_same(&stat) || !seen.is_same_tree(self.context, slot, path)? {
            return Err(ApplyError::changed(path));
        }
        self.touch(seen, slot);
        Ok(())
    }

    /// Gives the owner the right to change something: to rename a directory into another one, they
    /// must be allowed to write to it.
    fn unlock(
        &mut self,
        index: usize,
        seen: &Seen,
        needed: u32,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        let is_for_rename = needed == 0o200 && !seen.is_directory;
        if self.context.is_root || seen.mode & needed == needed || is_for_rename {
            return Ok(());
        }
        let file =
            openat(at.0, at.1, POINT_ITSELF, Mode::empty()).map_err(failed("cannot open", path))?;
        system_calls::change_mode(file.as_fd(), seen.mode | 0o700)
            .map_err(failed("cannot change", path))?;
        self.steps.push(Step::Unlocked(index));
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        index: usize,
        seen: &Seen,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        let file = match openat(at.0, at.1, WRITE, Mode::empty()) {
            Err(Errno::EACCES) => {
                self.unlock(index, seen, 0o600, at, path)?;
                openat(at.0, at.1, WRITE, Mode::empty())
            }
            file => file,
        }
        .map_err(failed("cannot write", path))?;
        let before = Metadata::of(file.as_fd()).map_err(failed("cannot look at", path))?;
        let stat = fstat(&file).map_err(failed("cannot look at", path))?;
        if Inode::of(&stat) != seen.inode {
            return Err(ApplyError::changed(path));
        }
        let before = before.with_mode(seen.mode);
        self.steps.push(Step::Written(index, before));
        let staging = self.staging(index)?;
        let new = openat(staging, new_name(index).as_os_str(), FILE, Mode::empty())
            .map_err(failed("cannot write", path))?;
        contents::overwrite(new.as_fd(), file.as_fd(), self.context.progress)
            .map_err(|error| failed("cannot write", path)(number(&error)))?;
        self.give(index, at, path)?;
        self.touch(seen, at);
        Ok(())
    }

    pub(super) fn adjust(
        &mut self,
        index: usize,
        seen: &Seen,
        wanted: &Metadata,
        at: (BorrowedFd<'_>, &OsStr),
        path: &Path,
    ) -> Result<(), ApplyError> {
        let before = openat(at.0, at.1, POINT_ITSELF, Mode::empty())
            .and_then(|file| Metadata::of(file.as_fd()))
            .map_err(failed("cannot look at", path))?;
        self.steps.push(Step::Adjusted(index, before));
        wanted
            .set(at.0, at.1)
            .map_err(failed("cannot change", path))?;
        self.touch(seen, at);
        Ok(())
    }
}

/// Another descriptor of a staging directory.
fn staging_slot(slot: (BorrowedFd<'_>, &OsStr)) -> Result<OwnedFd, ApplyError> {
    let cloned = slot.0.try_clone_to_owned();
    cloned.map_err(|error| failed("cannot open", Path::new(slot.1))(number(&error)))
}

/// Renames where nothing must be.
pub(super) fn rename_to_nothing(
    from: (BorrowedFd<'_>, &OsStr),
    to: (BorrowedFd<'_>, &OsStr),
) -> nix::Result<()> {
    match calls::rename(from, to, Over::Nothing) {
        // The file system can only replace.
        Err(Errno::EINVAL) => match look(to.0, to.1) {
            Err(Errno::ENOENT) => renameat(from.0, from.1, to.0, to.1),
            Ok(_) => Err(Errno::EEXIST),
            Err(errno) => Err(errno),
        },
        renamed => renamed,
    }
}
