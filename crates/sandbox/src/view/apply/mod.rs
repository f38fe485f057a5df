//! Applies a layer: makes real what a process changed in it.
//!
//! First everything is looked at and checked, then all new contents are copied into a staging
//! directory beside the originals, so that a full disk is noticed before anything changes. What
//! follows is little more than renaming, and each step can be undone. The process controls the
//! layer's contents, and others may change the project meanwhile: nothing is reached but by
//! descriptor, no link is followed, and what is replaced is looked at once more.
//!
//! What is applied is what the process saw, with these exceptions:
//! - A socket counts as nothing: nobody listens on it any more. A device is an error.
//! - A file of the layer has no set-user-ID and set-group-ID bits, unless it had them before and
//!   has the same content: others must not be led to run the process's programs as its user.
//! - A file with other names (hard links) is written in place, so that they all have the new
//!   content. overlayfs shows the process a copy instead, and does not tell whether it wrote to
//!   the file or replaced it. If several of the names were changed, or linked anew, each is
//!   replaced.
//! - A directory in which others have changed entries meanwhile keeps their modification time.
//!   That of another user's files cannot be set.
//! - Extended attributes are kept if they are `user.*` ones or access control lists; those of the
//!   project's own directory, which has others in the layer, stay as they are.
//!
//! Whether something has changed is told by its time of status change (inode(7)), for a deleted
//! directory also by those of everything below it. That leaves out:
//! - that a file was deleted which the process has changed, if it had several names; or if it is a
//!   link or a pipe and the layer uses `user.*` attributes: there is no mark then that it was
//!   copied. It is made anew.
//! - that a directory was replaced by another one with unchanged files, if the layer uses `user.*`
//!   attributes or the file system has no file handles.
//! - both of these, for any file and any directory, if the layer's file system has no extended
//!   attributes of that kind (tmpfs before Linux 6.6, in a user namespace).
//! - changes on a server whose clock is behind, and those between the last look and the call that
//!   replaces a file; a file renamed away by that call is looked at afterwards once more.

mod actions;
mod below;
mod calls;
mod contents;
mod entries;
mod error;
mod finish;
mod metadata;
mod origin;
mod plan;
mod prepare;
mod progress;
mod staging;
mod survey;
mod undo;
mod work;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) use calls::{Over, rename};
pub use error::ApplyError;

use super::changes::Layer;
use super::plan::Layers;
use crate::{other_user, with_files_of};
use origin::Marks;
use progress::Progress;
use work::Work;

/// How long to wait for another user's files: a large layer takes a while to copy.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Maximum depth of nested directories, each of which holds up to two descriptors.
const DEPTH_MAX: usize = 128;

/// Maximum number of entries in a layer. Each needs a few hundred bytes here.
const ENTRIES_MAX: usize = 500_000;

/// What is known throughout.
struct Context<'a> {
    layers: &'a Layers,
    marks: Marks,
    since: Duration,
    progress: &'a Progress,
    /// Whether the files' modes do not bind the calling thread.
    is_root: bool,
}

impl Context<'_> {
    /// Fails if the caller has given up.
    fn go_on(&self) -> Result<(), ApplyError> {
        self.progress.go_on().map_err(|_| self.timed_out())
    }

    fn timed_out(&self) -> ApplyError {
        ApplyError::TimedOut {
            path: self.layers.root.path().into(),
        }
    }
}

fn too_deep(path: &Path) -> ApplyError {
    ApplyError::TooMuch {
        path: path.into(),
        limit: format!("more than {DEPTH_MAX} nested directories"),
    }
}

impl Layer {
    /// Makes everything real that the process changed: contents, owners, modes, modification
    /// times, links, deletions. Call it after the process has ended; not for a fork of a template,
    /// whose layer holds only a part of what it saw.
    ///
    /// `since` is the time since the epoch, by the clock of the kernel's timestamps, before the
    /// process began. What has changed at or after it is not overwritten.
    ///
    /// Works as the process's own user. Others may see intermediate states. If the host is killed
    /// meanwhile, what was there is in directories named `.altair-apply-…`.
    ///
    /// # Errors
    /// If it cannot be applied as a whole, nothing of it is: see [`ApplyError`]. Restoring what
    /// was there changes its status, so that another attempt with the same `since` may fail.
    pub fn apply(&self, since: Duration) -> Result<(), ApplyError> {
        let root = self.layers.root.path();
        let progress = Arc::new(Progress::default());
        let Some(user) = other_user(self.layers.user) else {
            let is_root = nix::unistd::geteuid().is_root();
            return apply(
                self.directory.as_fd(),
                &self.layers,
                since,
                &progress,
                is_root,
            );
        };
        let unable = |source| ApplyError::User {
            path: root.into(),
            source,
        };
        let directory = self.directory.try_clone().map_err(unable)?;
        let (layers, own) = (self.layers.clone(), Arc::clone(&progress));
        let done = with_files_of(Some(user), PATIENCE, move || {
            apply(directory.as_fd(), &layers, since, &own, user.uid == 0)
        });
        match done {
            Ok(applied) => applied,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => match progress.give_up() {
                true => Err(ApplyError::TimedOut { path: root.into() }),
                false => Ok(()),
            },
            Err(error) => Err(unable(error)),
        }
    }
}

fn apply(
    layer: BorrowedFd<'_>,
    layers: &Layers,
    since: Duration,
    progress: &Progress,
    is_root: bool,
) -> Result<(), ApplyError> {
    let context = Context {
        layers,
        marks: Marks::of(layers),
        since,
        progress,
        is_root,
    };
    let mut plan = survey::survey(&context, layer)?;
    if plan.is_empty() {
        return Ok(());
    }
    let mut work = Work::new(&context, &mut plan);
    match work.carry_out() {
        Ok(()) => work.tidy(),
        Err(cause) => Err(work.undo(cause)),
    }
}
