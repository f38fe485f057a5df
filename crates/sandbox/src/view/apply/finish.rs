//! The end: what directories shall have, and the removal of what was there before.

use std::os::fd::AsFd;

use nix::fcntl::openat;
use nix::sys::stat::Mode;

use super::error::{ApplyError, failed};
use super::metadata::Metadata;
use super::plan::Operation;
use super::work::{POINT_ITSELF, Step, Work, lost, way, way_to};

impl Work<'_> {
    /// Gives a directory what it shall have, once everything in it is done.
    pub(super) fn finish(&mut self, directory: usize) -> Result<(), ApplyError> {
        let is_staging = self.holds_staging(directory);
        let Some(found) = self.plan.directories.get(directory) else {
            return Ok(());
        };
        if !found.adjusted && !self.entered.contains(&directory) {
            return Ok(());
        }
        let path = self.plan.path_of_directory(directory);
        let (parent, name) = way_to(self.plan, directory).map_err(lost(&path))?;
        let before = openat(&parent, name.as_os_str(), POINT_ITSELF, Mode::empty())
            .and_then(|file| Metadata::of(file.as_fd()))
            .map_err(failed("cannot look at", &path))?;
        let mut wanted = found.wanted.clone();
        if is_staging {
            // The staging directory is still to be removed.
            wanted = wanted.open_to_owner();
            wanted.modified = None;
        }
        self.steps.push(Step::Finished(directory, before));
        wanted
            .set(parent.as_fd(), &name)
            .map_err(failed("cannot change", &path))
    }

    fn holds_staging(&self, directory: usize) -> bool {
        self.stagings
            .values()
            .any(|staging| staging.directory == directory)
    }

    /// Removes what was there before. Nothing can be undone any more.
    pub(super) fn tidy(&mut self) -> Result<(), ApplyError> {
        let mut saved = Vec::new();
        for staging in self.stagings.values() {
            let parent = way(self.plan, staging.directory);
            if parent
                .and_then(|parent| staging.remove(parent.as_fd()))
                .is_err()
            {
                saved.push(staging.path.clone());
            }
            self.finish_after(staging.directory);
        }
        match saved.is_empty() {
            true => Ok(()),
            false => Err(ApplyError::NotTidied { saved }),
        }
    }

    /// Gives a directory that had a staging directory what it shall have.
    fn finish_after(&self, directory: usize) {
        let Some(found) = self.plan.directories.get(directory) else {
            return;
        };
        let is_changed = |each: &Operation| each.directory == directory && each.action.is_entry();
        let before = match self.plan.operations.iter().any(is_changed) {
            // Others have changed its entries, too.
            true => None,
            false => self.steps.iter().find_map(|step| match step {
                Step::Entered(entered, modified) if *entered == directory => Some(*modified),
                _ => None,
            }),
        };
        let mut wanted = found.wanted.clone();
        wanted.modified = wanted.modified.or(before);
        if let Ok((parent, name)) = way_to(self.plan, directory) {
            let _ = wanted.set(parent.as_fd(), &name);
        }
    }
}
