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
//!   has the same content: others must not be led to run the process's programs as its user. A
//!   directory has them if it had them before, or, as any new directory, from the one that it is in.
//! - No access control list comes from the layer: it would give others rights. Those of files and
//!   directories that are there stay.
//! - A file with other names (hard links) is replaced, as for the process, which saw a copy of the
//!   one name. It is written in place, so that they all have the new content, if all its names are
//!   in the layer's directories (`links.rs`).
//! - Names of one file in the layer are names of one file afterwards, and all of them are listed
//!   (`shared.rs`).
//! - A directory in which others have changed entries meanwhile keeps their modification time.
//!   That of another user's files cannot be set.
//! - Extended attributes are kept if they are `user.*` ones; those of the project's own directory,
//!   which has others in the layer, stay as they are.
//!
//! Only what was shown is applied: the survey lists each change while it plans it, and applying
//! begins with another survey, which must come to the same list (`listing.rs`).
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
mod links;
mod listing;
mod lists;
mod metadata;
mod new;
mod origin;
mod plan;
mod prepare;
mod progress;
mod shared;
mod staging;
mod survey;
mod undo;
mod work;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(super) use calls::{Over, rename};
pub use error::ApplyError;
pub use listing::Planned;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;

use super::changes::Layer;
use super::plan::Layers;
use crate::{other_user, with_files_of};
use origin::Marks;
use progress::Progress;
use work::Work;

/// How long to wait for another user's files beyond the time that a survey has.
const LATE: Duration = Duration::from_secs(1);

/// The same for applying: a large layer takes a while to copy.
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
    /// When the process had ended: a later modification is one that it has set.
    ended: Duration,
    progress: &'a Progress,
    /// Whether the files' modes do not bind the calling thread.
    is_root: bool,
}

impl Context<'_> {
    /// Fails if the caller has given up.
    fn go_on(&self) -> Result<(), ApplyError> {
        self.progress.go_on().map_err(|_| self.timed_out())
    }

    /// Whether a modification may be one of the process's changes, not a time that was set.
    fn is_during(&self, modified: Option<TimeSpec>) -> bool {
        metadata::is_since(modified, self.since) && !self.is_after(modified)
    }

    /// Whether a modification was not yet when the process had ended.
    fn is_after(&self, modified: Option<TimeSpec>) -> bool {
        // The clock of files is never ahead of the one that `ended` is read from.
        metadata::is_since(modified, self.ended + Duration::from_nanos(1))
    }

    /// What a failure to read a file means.
    fn unreadable(&self, path: &Path, errno: Errno) -> ApplyError {
        match errno {
            // The caller has given up.
            Errno::ECANCELED => self.timed_out(),
            errno => error::failed("cannot read", path)(errno),
        }
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
    /// Looks what applying would do: contents, owners, modes, modification times, links, deletions.
    /// Writes nothing. Call it after the process has ended; not for a fork of a template, whose layer
    /// holds only a part of what it saw.
    ///
    /// `since` is the time since the epoch, by the clock of the kernel's timestamps, before the
    /// process began. What has changed at or after it is not overwritten. There may be `at_most`
    /// changes outside of new directories, so that all of them can be shown.
    ///
    /// # Errors
    /// Why nothing can be applied; [`ApplyError::TooLong`] if the survey is not over by `until`.
    pub fn plan(
        &self,
        since: Duration,
        at_most: usize,
        until: Instant,
    ) -> Result<Planned, ApplyError> {
        let root = self.layers.root.path();
        let too_long = || ApplyError::TooLong { path: root.into() };
        let patience = until.saturating_duration_since(Instant::now()) + LATE;
        let ended = SystemTime::now().duration_since(UNIX_EPOCH);
        let ended = ended.unwrap_or_default();
        let planned = self.as_user(patience, Progress::until(until), move |task| {
            let (_, planned) = survey::survey(&task.context(since, ended), task.layer())?;
            Ok(planned)
        });
        let planned = match planned {
            Err(ApplyError::TimedOut { .. }) => return Err(too_long()),
            planned => planned?.ok_or_else(too_long)?,
        };
        match planned.own() > at_most {
            true => Err(ApplyError::TooMuch {
                path: root.into(),
                limit: format!("more than {at_most} changes"),
            }),
            false => Ok(planned),
        }
    }

    /// Makes everything real that is planned, and nothing else.
    ///
    /// Works as the process's own user. Others may see intermediate states. If the host is killed
    /// meanwhile, what was there is in directories named `.altair-apply-…`.
    ///
    /// # Errors
    /// If it cannot be applied as a whole, nothing of it is: see [`ApplyError`]; so it is if the plan
    /// would be another one by now. Restoring what was there changes its status, so that another
    /// attempt may fail.
    pub fn apply(&self, planned: &Planned) -> Result<(), ApplyError> {
        let planned = planned.clone();
        self.as_user(PATIENCE, Progress::default(), move |task| {
            let context = task.context(planned.since, planned.ended);
            apply(&context, task.layer(), &planned)
        })
        .map(|_| ())
    }

    /// Works on the layer as the process's own user. `None` if the work is done although its result
    /// did not come in time.
    fn as_user<T: Send + 'static>(
        &self,
        patience: Duration,
        progress: Progress,
        work: impl FnOnce(&Task) -> Result<T, ApplyError> + Send + 'static,
    ) -> Result<Option<T>, ApplyError> {
        let root = self.layers.root.path();
        let unable = |source| ApplyError::User {
            path: root.into(),
            source,
        };
        let user = other_user(self.layers.user);
        let task = Task {
            layer: self.directory.try_clone().map_err(unable)?,
            layers: self.layers.clone(),
            progress: Arc::new(progress),
            is_root: match user {
                Some(user) => user.uid == 0,
                None => nix::unistd::geteuid().is_root(),
            },
        };
        let Some(user) = user else {
            return work(&task).map(Some);
        };
        let progress = Arc::clone(&task.progress);
        match with_files_of(Some(user), patience, move || work(&task)) {
            Ok(worked) => worked.map(Some),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => match progress.give_up() {
                true => Err(ApplyError::TimedOut { path: root.into() }),
                false => Ok(None),
            },
            Err(error) => Err(unable(error)),
        }
    }
}

/// What a thread needs that works on a layer.
struct Task {
    layer: OwnedFd,
    layers: Layers,
    progress: Arc<Progress>,
    is_root: bool,
}

impl Task {
    fn layer(&self) -> BorrowedFd<'_> {
        self.layer.as_fd()
    }

    fn context(&self, since: Duration, ended: Duration) -> Context<'_> {
        Context {
            layers: &self.layers,
            marks: Marks::of(&self.layers),
            since,
            ended,
            progress: &self.progress,
            is_root: self.is_root,
        }
    }
}

fn apply(
    context: &Context<'_>,
    layer: BorrowedFd<'_>,
    planned: &Planned,
) -> Result<(), ApplyError> {
    let (mut plan, now) = survey::survey(context, layer)?;
    planned.is_still(&now, context.layers.root.path())?;
    if plan.is_empty() {
        return Ok(());
    }
    let mut work = Work::new(context, &mut plan);
    match work.carry_out() {
        Ok(()) => work.tidy(),
        Err(cause) => Err(work.undo(cause)),
    }
}
