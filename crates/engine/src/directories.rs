//! A run's directories on disk, if the kernel gives it none in memory.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use altair_sandbox::{Place, RunAs, other_user, remove_fork_directory};
use nix::unistd::fchown;
use tempfile::TempDir;

use crate::owner::run_as;
use crate::warm::TemplateFiles;

/// Removes the directories when dropped by the process that made them.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    made: Vec<Directory>,
    of_fork: Option<OfFork>,
}

/// The directory for temporary files that a fork makes for itself.
#[derive(Debug)]
struct OfFork {
    /// Of its template.
    files: Arc<TemplateFiles>,
    fork: i32,
    /// As in [`Directory`].
    maker: u32,
}

#[derive(Debug)]
struct Directory {
    dir: TempDir,
    owner: Option<RunAs>,
    /// The process that made it. A fork of that process has a copy of this value, and leaves the
    /// directory alone.
    maker: u32,
}

impl Directories {
    /// Creates a directory for the owner of the project at `root`.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make(&mut self, root: &Place) -> io::Result<Place> {
        self.make_for(run_as(root))
    }

    /// Creates a directory for the host's own user.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make_own(&mut self) -> io::Result<Place> {
        self.make_for(None)
    }

    /// Removes those of `other`, too, when dropped.
    pub(crate) fn take_over(&mut self, mut other: Self) {
        self.made.append(&mut other.made);
        if let Some(of_fork) = other.of_fork.take() {
            self.of_fork = Some(of_fork);
        }
    }

    /// Adds the directory of a template's fork.
    pub(crate) fn add_of_fork(&mut self, files: Arc<TemplateFiles>, fork: i32) {
        self.of_fork = Some(OfFork {
            files,
            fork,
            maker: std::process::id(),
        });
    }

    fn make_for(&mut self, owner: Option<RunAs>) -> io::Result<Place> {
        let dir = tempfile::Builder::new()
            .prefix("altair-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let place = Place::find(dir.path())?;
        self.made.push(Directory {
            dir,
            owner,
            maker: std::process::id(),
        });
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
        if let Some(OfFork { files, fork, maker }) = self.of_fork.take()
            && maker == std::process::id()
            && let Some(parent) = files.temp()
        {
            remove_fork_directory(parent, fork, files.user);
        }
        for Directory { dir, owner, maker } in self.made.drain(..) {
            let path = dir.keep();
            if maker == std::process::id() {
                altair_sandbox::remove_directory(&path, owner);
            }
        }
    }
}
