//! A run's directories on disk, if the kernel gives it none in memory.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use altair_sandbox::{Place, RunAs, other_user, remove_fork_directory};
use nix::unistd::fchown;
use tempfile::TempDir;

use crate::owner::run_as;

/// Removes the directories when dropped by the process that made them.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    made: Vec<Directory>,
    of_fork: Option<OfFork>,
}

/// The directory for temporary files that a fork makes for itself.
#[derive(Debug)]
struct OfFork {
    /// Its template's, which hold it and are kept as long.
    _of_template: Arc<Directories>,
    /// The directory that holds those of all forks.
    parent: Place,
    fork: i32,
    /// As which user the forks use them.
    user: Option<RunAs>,
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
    /// Creates a directory in `parent` for the owner of the project at `root`.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make(&mut self, parent: &Path, root: &Place) -> io::Result<Place> {
        self.make_for(run_as(root), parent)
    }

    /// Creates a directory for the host's own user.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make_own(&mut self) -> io::Result<Place> {
        self.make_for(None, &std::env::temp_dir())
    }

    /// Removes those of `other`, too, when dropped.
    pub(crate) fn take_over(&mut self, mut other: Self) {
        self.made.append(&mut other.made);
        if let Some(of_fork) = other.of_fork.take() {
            self.of_fork = Some(of_fork);
        }
    }

    /// The directory that the process `fork` makes for itself as `user`, in `parent`, which is one
    /// of its template's.
    pub(crate) fn of_fork(
        of_template: &Arc<Self>,
        parent: &Place,
        fork: i32,
        user: Option<RunAs>,
    ) -> Self {
        Self {
            made: Vec::new(),
            of_fork: Some(OfFork {
                _of_template: Arc::clone(of_template),
                parent: parent.clone(),
                fork,
                user,
                maker: std::process::id(),
            }),
        }
    }

    fn make_for(&mut self, owner: Option<RunAs>, parent: &Path) -> io::Result<Place> {
        let dir = tempfile::Builder::new()
            .prefix("altair-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
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
        if let Some(of_fork) = &self.of_fork
            && of_fork.maker == std::process::id()
        {
            remove_fork_directory(&of_fork.parent, of_fork.fork, of_fork.user);
        }
        for Directory { dir, owner, maker } in self.made.drain(..) {
            let path = dir.keep();
            if maker == std::process::id() {
                altair_sandbox::remove_directory(&path, owner);
            }
        }
    }
}
