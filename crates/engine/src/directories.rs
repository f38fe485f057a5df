//! A run's directories on disk, if the kernel gives it none in memory.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;

use altair_sandbox::{Place, RunAs, other_user};
use nix::unistd::fchown;
use tempfile::TempDir;

use crate::owner::run_as;

/// Removes the directories when dropped.
#[derive(Debug, Default)]
pub(crate) struct Directories(Vec<(TempDir, Option<RunAs>)>);

impl Directories {
    /// Creates a directory for the owner of the project at `root`.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make(&mut self, root: &Place) -> io::Result<Place> {
        let dir = tempfile::Builder::new()
            .prefix("altair-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let place = Place::find(dir.path())?;
        let owner = run_as(root);
        self.0.push((dir, owner));
        if let Some(owner) = other_user(owner) {
            // The last access by path: from here on its owner can rename it.
            fchown(
                place.open()?,
                Some(owner.uid.into()),
                Some(owner.gid.into()),
            )?;
        }
        Ok(place)
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        for (dir, owner) in self.0.drain(..) {
            altair_sandbox::remove_directory(&dir.keep(), owner);
        }
    }
}
