//! Real writes without a private root. Landlock grants them, and nothing can then seal `.altair`,
//! where the audit log of unsafe runs is: who may make entries in a directory may make any.
//!
//! So they are granted only where there is no log that a run could alter, and where no run is to
//! have one: the project has no `.altair`, and the host makes no unsafe runs. What has that name
//! afterwards may be the run's own, and is moved aside before anybody takes it for a log. Nothing
//! tells it from the log of another program that makes unsafe runs meanwhile.

use std::io;
use std::path::PathBuf;

use altair_sandbox::{Place, landlock_version, with_files_of};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, renameat};
use nix::sys::stat::fstatat;
use ulid::Ulid;

use crate::EvalError;
use crate::confinement::AUDIT_DIR;
use crate::context::RequestContext;
use crate::error::reason;
use crate::guards::{Guard, UnsafeRuns};
use crate::owner::{FILE_PATIENCE, run_as};

/// The first version of Landlock that governs truncate(2).
const GOVERNS_TRUNCATE: u32 = 3;

/// A project that a run may write to, with nothing that seals `.altair` in it. What the run has
/// made there is moved aside when this is dropped, if not before.
#[derive(Debug)]
#[must_use = "it is to be kept until nothing of the run is left"]
pub(crate) struct Unsealed {
    root: Place,
    /// The process that made it. A fork of that process leaves the project alone.
    maker: u32,
    settled: bool,
}

impl Unsealed {
    /// Permits real writes without a private root. `why`: why there is none.
    ///
    /// # Errors
    /// [`EvalError::Launch`] says why not, and what to do.
    pub(crate) fn new(context: &RequestContext<'_>, why: &str) -> Result<Self, EvalError> {
        let refused = |landlock: String| {
            EvalError::Launch(format!(
                "Writes cannot be allowed here: only a private root protects the audit log from them, and it is unavailable ({why}). `altair doctor` says how to get it. {landlock}"
            ))
        };
        if context.settings.selection.unsafe_runs() != UnsafeRuns::Never {
            return Err(refused(
                "Where no run is unsafe (in PHP, the ini setting altair_eval.unsafe=0), Landlock can grant them in a project without .altair.".into(),
            ));
        }
        if context.settings.purpose.lives_on() {
            return Err(refused(
                "Landlock can grant them to an evaluation, but not to an isolated PHP that lives on.".into(),
            ));
        }
        if !context.takes(Guard::Landlock) {
            return Err(refused(
                "Landlock could grant them, but is left out (altair_eval.omit).".into(),
            ));
        }
        if !context.takes(Guard::Seccomp) {
            return Err(refused(
                "Landlock could grant them, but only the filter of system calls keeps the modes and owners of files, and it is left out (altair_eval.omit).".into(),
            ));
        }
        match landlock_version() {
            Ok(version) if version >= GOVERNS_TRUNCATE => {}
            Ok(version) => {
                return Err(refused(format!(
                    "Landlock could grant them, but its version {version} does not govern truncate(): Linux 6.2 has version {GOVERNS_TRUNCATE}."
                )));
            }
            Err(why) => return Err(refused(format!("Landlock cannot grant them: {why}."))),
        }
        let root = &context.target.root;
        let log = root.path().join(AUDIT_DIR);
        match has_log(root) {
            Ok(false) => Ok(Self {
                root: root.clone(),
                maker: std::process::id(),
                settled: false,
            }),
            Ok(true) => Err(refused(format!(
                "No run is unsafe here, so Landlock could grant them, but there is {}: move it to where the run cannot write.",
                log.display()
            ))),
            Err(error) => Err(refused(format!(
                "Landlock could grant them, but {} cannot be looked at: {}.",
                log.display(),
                reason(&error)
            ))),
        }
    }

    /// Moves aside what the run has made, once nothing of the run is left. Returns what the user is
    /// to know about it.
    pub(crate) fn settle(mut self) -> Option<String> {
        self.settled = true;
        match self.move_aside() {
            Ok(None) => None,
            Ok(Some(aside)) => Some(format!(
                "The run, or another program meanwhile, made {AUDIT_DIR}, which is taken for no audit log: it is now {}.",
                aside.display()
            )),
            Err(error) => Some(format!(
                "The run, or another program meanwhile, may have made {AUDIT_DIR}, which is taken for no audit log and cannot be moved aside: {}.",
                reason(&error)
            )),
        }
    }

    /// Gives the run's `.altair` another name, as its user; returns that name.
    fn move_aside(&self) -> io::Result<Option<PathBuf>> {
        let aside = PathBuf::from(format!("{AUDIT_DIR}-of-a-run-{}", Ulid::generate()));
        let (root, name) = (self.root.clone(), aside.clone());
        let moved = with_files_of(run_as(&self.root), FILE_PATIENCE, move || {
            let at = root.descriptor();
            renameat(at, AUDIT_DIR, at, &name)
        })?;
        match moved {
            Ok(()) => Ok(Some(aside)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Unsealed {
    fn drop(&mut self) {
        if !self.settled && self.maker == std::process::id() {
            // The run has no answer that could tell.
            let _ = self.move_aside();
        }
    }
}

/// Whether a project has anything of the log's name.
fn has_log(root: &Place) -> io::Result<bool> {
    let own = root.clone();
    let found = with_files_of(run_as(root), FILE_PATIENCE, move || {
        fstatat(own.descriptor(), AUDIT_DIR, AtFlags::AT_SYMLINK_NOFOLLOW)
    })?;
    match found {
        Ok(_) => Ok(true),
        Err(Errno::ENOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
