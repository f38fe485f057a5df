//! From a prepared evaluation to a running child, with as much of the filesystem guard as the
//! kernel gives.

use std::collections::{BTreeMap, HashMap};
use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, TryLockError};

use altair_sandbox::{
    Child, FinalGuards, Limits, Place, RunAs, Shown, SpawnError, Step, channel_pair, other_user,
};
use nix::unistd::fchown;
use tempfile::TempDir;

use crate::asked::Asked;
use crate::confinement::{Confinement, Level, run_as};
use crate::guards::Insisted;
use crate::{EvalError, guards, launch};

/// A child that runs and waits for its task.
pub(crate) struct Started {
    pub child: Child,
    /// The host's end of the channel.
    pub channel: OwnedFd,
    /// What the child is to take before boot.
    pub final_guards: FinalGuards,
    /// The limits that it is to take itself.
    pub limits: Limits,
    /// Of these, what it may not do without.
    pub insist: Vec<Insisted>,
    /// The state of each guard so far.
    pub guards: BTreeMap<String, String>,
    /// Whether it is in a private root.
    pub private_root: bool,
    /// What may be read beside the project.
    pub readable: Vec<PathBuf>,
    /// Directories of the run on disk, where there are any.
    pub directories: Directories,
}

impl Started {
    /// A fork of a template.
    pub(crate) fn forked(
        asked: &Asked<'_>,
        child: Child,
        channel: OwnedFd,
        guards: BTreeMap<String, String>,
    ) -> Self {
        let confinement = Confinement {
            request: asked.request,
            target: asked.target,
            selection: &asked.evaluator.selection,
            level: &Level::Full,
            readable: &[],
            services: asked.services,
        };
        Self {
            child,
            channel,
            final_guards: confinement.final_guards(),
            limits: confinement.policy().limits,
            insist: asked
                .evaluator
                .selection
                .insisted_final(asked.request, true),
            guards,
            private_root: true,
            readable: Vec::new(),
            directories: Directories::default(),
        }
    }
}

/// Directories of a run on disk. Removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Directories(Vec<(TempDir, Option<RunAs>)>);

impl Directories {
    fn make(&mut self, root: &Place) -> std::io::Result<Place> {
        let dir = tempfile::Builder::new()
            .prefix("altair-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let place = Place::find(dir.path())?;
        let owner = run_as(root);
        self.0.push((dir, owner));
        if let Some(owner) = other_user(owner) {
            // The last thing that is done by its path: from here on it is its owner's to rename.
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

/// What is tried, from the best on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Full,
    LayerOnDisk,
    ReadOnly,
    NoView,
}

/// The best that worked for a project, and why not more: so that a host that evaluates again and
/// again does not try in vain each time.
static KNOWN: LazyLock<Mutex<HashMap<PathBuf, (Attempt, String)>>> = LazyLock::new(Mutex::default);
/// Projects that are remembered.
const KNOWN_MAX: usize = 256;

impl Attempt {
    /// What is tried next when this failed at `step`.
    fn after(self, step: Step, writes: bool) -> Option<Self> {
        match self {
            Self::NoView => None,
            Self::Full if step == Step::ProjectLayer && !writes => Some(Self::LayerOnDisk),
            Self::LayerOnDisk if step == Step::ProjectLayer => Some(Self::ReadOnly),
            _ if step.is_of_view() => Some(Self::NoView),
            _ => None,
        }
    }
}

/// Why the kernel does not give a part of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// It never will, here.
    Lasting,
    /// It would, with fewer namespaces in use: `user.max_user_namespaces`, which may be 0.
    Exhausted,
}

impl Lack {
    /// `None` for what says nothing of the kernel: no memory, no descriptor, a file that is gone.
    fn of(step: Step, source: &std::io::Error) -> Option<Self> {
        use nix::libc::{EACCES, EINVAL, ENODEV, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM, EROFS, EUSERS};
        match source.raw_os_error()? {
            EPERM | EACCES | ENOSYS | EINVAL | EOPNOTSUPP | ENODEV | EROFS => Some(Self::Lasting),
            ENOSPC | EUSERS if step == Step::Namespace => Some(Self::Exhausted),
            _ => None,
        }
    }
}

/// Never waited for: in a fork of the host it may be locked by a thread that is not there.
fn known() -> Option<MutexGuard<'static, HashMap<PathBuf, (Attempt, String)>>> {
    match KNOWN.try_lock() {
        Ok(known) => Some(known),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Why a project cannot have a layer in memory, as far as that is known.
pub(crate) fn why_degraded(root: &Path) -> Option<String> {
    known()?.get(root).map(|(_, why)| why.clone())
}

/// Starts a child in a process of its own.
///
/// # Errors
///
/// [`EvalError::Launch`] where it could not be started, or where a guard that it must have is
/// not to be had.
pub(crate) fn start(asked: &Asked<'_>) -> Result<Started, EvalError> {
    let Asked {
        evaluator,
        request,
        target,
        ..
    } = *asked;
    let selection = &evaluator.selection;
    let readable = asked.readable().map_err(|why| system(&why))?;
    let (mut attempt, mut why) = if selection.takes("filesystem", request) {
        known()
            .and_then(|known| known.get(target.root.path()).cloned())
            .unwrap_or((Attempt::Full, String::new()))
    } else {
        (Attempt::NoView, String::new())
    };
    if request.allow_writes && matches!(attempt, Attempt::LayerOnDisk | Attempt::ReadOnly) {
        attempt = Attempt::Full; // there is no layer that could fail
    }
    let mut lasting = true;
    loop {
        let mut directories = Directories::default();
        let mut directory = || {
            directories
                .make(&target.root)
                .map_err(|e| system(&format!("no temporary directory could be made: {e}")))
        };
        let level = match attempt {
            _ if request.unconfined => Level::Full,
            Attempt::Full => Level::Full,
            Attempt::LayerOnDisk => Level::LayerOnDisk(directory()?),
            Attempt::ReadOnly => Level::ReadOnly,
            // Nothing would keep the run in a directory of its own.
            Attempt::NoView
                if !selection.takes("filesystem", request)
                    && !selection.takes("landlock", request) =>
            {
                Level::None(std::env::temp_dir())
            }
            Attempt::NoView => Level::None(directory()?.path().to_owned()),
        };
        let confinement = Confinement {
            request,
            target,
            selection,
            level: &level,
            readable: &readable,
            services: asked.services,
        };
        if request.allow_writes
            && !request.unconfined
            && attempt == Attempt::NoView
            && selection.takes("filesystem", request)
        {
            return Err(EvalError::Launch(format!(
                "Writes cannot be allowed here: the audit log can only be kept from them by a private root, and that is not to be had ({why}). `altair doctor` says how to get it."
            )));
        }
        let (ours, theirs) = channel_pair().map_err(|e| system(&e))?;
        let child = match launch::plan(&confinement, asked.host(), theirs).spawn() {
            Ok(child) => child,
            Err(SpawnError::Step { step, source, .. })
                if let Some(found) = Lack::of(step, &source)
                    && let Some(next) = attempt.after(step, request.allow_writes) =>
            {
                lasting &= found == Lack::Lasting;
                why = format!(
                    "the kernel does not let the process {step}: {}",
                    crate::request::reason(&source)
                );
                attempt = next;
                continue;
            }
            // Of a script or a loader that is there, but not in the run's private root.
            Err(error @ SpawnError::InterpreterMissing { .. }) if !request.unconfined => {
                return Err(system(&format!(
                    "{error}, or lies where a confined run cannot read (--read=<path> shows it)"
                )));
            }
            Err(error) => return Err(system(&error)),
        };
        let mut guards = guards::states(child.guards(), selection, request);
        if !request.unconfined && selection.takes("filesystem", request) {
            if attempt != Attempt::Full
                && lasting
                && let Some(mut known) = known()
            {
                if known.len() >= KNOWN_MAX {
                    known.clear();
                }
                known.insert(target.root.path().to_owned(), (attempt, why.clone()));
            }
            let state = match attempt {
                Attempt::ReadOnly => Some(format!("degraded to a read-only project: {why}")),
                Attempt::NoView => Some(format!("missing: {why}")),
                Attempt::LayerOnDisk => Some(format!(
                    "degraded to a layer on disk, whose size is not bounded: {why}"
                )),
                Attempt::Full => None,
            };
            guards.extend(state.map(|state| ("filesystem".to_owned(), state)));
        }
        selection.check_states(&guards)?;
        let private_root = confinement.has_view() && !request.unconfined;
        return Ok(Started {
            child,
            channel: ours,
            final_guards: if request.unconfined {
                FinalGuards::default()
            } else {
                confinement.final_guards()
            },
            limits: Limits::default(),
            insist: selection.insisted_final(request, private_root),
            guards,
            private_root,
            readable: readable
                .iter()
                .map(|shown| shown.path().to_owned())
                .chain(readable.iter().filter_map(Shown::found_at))
                .collect(),
            directories,
        });
    }
}

fn system(what: &dyn std::fmt::Display) -> EvalError {
    EvalError::Launch(format!("No child could be started: {what}"))
}
