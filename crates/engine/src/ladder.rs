//! How much of the guard `filesystem` the kernel supports: tries the best level first, then the
//! next.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, TryLockError};

use altair_sandbox::{GuardState, SpawnError, Step};

use crate::error::reason;

/// How much of the guard is available; `D` is the run's own directory on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level<D> {
    /// A private root, the project under a layer in memory.
    Full,
    /// A private root, the project under a layer in this directory on disk.
    LayerOnDisk(D),
    /// A private root, the project read-only.
    ReadOnly,
    /// No private root; this directory for temporary files.
    None(D),
}

impl Level<()> {
    /// The same level, with the directory that it needs.
    ///
    /// # Errors
    /// Any error of `make`.
    pub(crate) fn with<D, E>(self, make: impl FnOnce() -> Result<D, E>) -> Result<Level<D>, E> {
        Ok(match self {
            Self::Full => Level::Full,
            Self::LayerOnDisk(()) => Level::LayerOnDisk(make()?),
            Self::ReadOnly => Level::ReadOnly,
            Self::None(()) => Level::None(make()?),
        })
    }

    /// The next level if this one fails at `step`. If writes are allowed, there is no layer.
    fn after(self, step: Step, writes: bool) -> Option<Self> {
        match self {
            Self::None(()) => None,
            Self::Full if step == Step::ProjectLayer && !writes => Some(Self::LayerOnDisk(())),
            Self::LayerOnDisk(()) if step == Step::ProjectLayer => Some(Self::ReadOnly),
            _ if step.is_of_view() => Some(Self::None(())),
            _ => None,
        }
    }
}

/// A level, and why no better one is available.
#[derive(Debug, Clone)]
struct Known {
    level: Level<()>,
    why: String,
}

/// The best level that worked for each project, so that a host does not repeat failing attempts in
/// every evaluation.
static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Known>>> = LazyLock::new(Mutex::default);
/// The maximum number of projects remembered.
const KNOWN_MAX: usize = 256;

/// Never blocks: in a fork of the host a thread that does not exist there may hold the lock.
fn known() -> Option<MutexGuard<'static, HashMap<PathBuf, Known>>> {
    match KNOWN.try_lock() {
        Ok(known) => Some(known),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Why a project has a private root, but no layer in memory, if that is known.
pub(crate) fn why_no_layer(root: &Path) -> Option<String> {
    let known = known()?;
    let known = known.get(root)?;
    match known.level {
        Level::LayerOnDisk(()) | Level::ReadOnly => Some(known.why.clone()),
        Level::Full | Level::None(()) => None,
    }
}

/// Why the kernel refuses a part of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// It always does on this system.
    Lasting,
    /// Too many namespaces are in use: `user.max_user_namespaces`, which may be 0.
    Exhausted,
}

impl Lack {
    /// `None` for errors unrelated to kernel support: no memory, no descriptor, a missing file.
    fn of(step: Step, source: &std::io::Error) -> Option<Self> {
        use nix::libc::{EACCES, EINVAL, ENODEV, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM, EROFS, EUSERS};
        match source.raw_os_error()? {
            EPERM | EACCES | ENOSYS | EINVAL | EOPNOTSUPP | ENODEV | EROFS => Some(Self::Lasting),
            ENOSPC | EUSERS if step == Step::Namespace => Some(Self::Exhausted),
            _ => None,
        }
    }
}

/// Whether a start failed because the kernel does not support a part of the view here, and why, in
/// words for the user.
#[must_use]
pub fn why_unsupported(error: &SpawnError) -> Option<(Step, String)> {
    let SpawnError::Step { step, source, .. } = error else {
        return None;
    };
    Lack::of(*step, source).filter(|_| step.is_of_view())?;
    let why = format!(
        "the kernel does not let the process {step}: {}",
        reason(source)
    );
    Some((*step, why))
}

/// The descent through the levels for one run.
#[derive(Debug)]
pub(crate) struct Ladder<'a> {
    root: &'a Path,
    /// Whether the run takes the guard at all.
    takes: bool,
    writes: bool,
    level: Level<()>,
    why: String,
    is_lasting: bool,
}

impl<'a> Ladder<'a> {
    /// Starts at the best level known to work for the project at `root`. `takes`: whether the run
    /// takes the guard; `writes`: whether writes to the project are real.
    pub(crate) fn new(root: &'a Path, takes: bool, writes: bool) -> Self {
        let remembered = known().and_then(|known| known.get(root).cloned());
        let (level, why) = match remembered.filter(|_| takes) {
            // With real writes there is no layer that could fail.
            Some(Known {
                level: Level::LayerOnDisk(()) | Level::ReadOnly,
                why,
            }) if writes => (Level::Full, why),
            Some(Known { level, why }) => (level, why),
            None if takes => (Level::Full, String::new()),
            None => (Level::None(()), String::new()),
        };
        Self {
            root,
            takes,
            writes,
            level,
            why,
            is_lasting: true,
        }
    }

    /// The level to try now.
    pub(crate) fn level(&self) -> Level<()> {
        self.level
    }

    /// Why there is no better level; empty for the best.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// Why there is no private root, if the run was to have one.
    pub(crate) fn why_no_root(&self) -> Option<&str> {
        (self.takes && self.level == Level::None(())).then_some(&self.why)
    }

    /// Goes down a level after a failed start.
    ///
    /// # Errors
    /// The same error if its cause is a different one, or if there is no lower level.
    pub(crate) fn step_down(&mut self, error: SpawnError) -> Result<(), SpawnError> {
        let SpawnError::Step { step, source, .. } = &error else {
            return Err(error);
        };
        let found = Lack::of(*step, source).zip(self.level.after(*step, self.writes));
        let Some((lack, level)) = found else {
            return Err(error);
        };
        self.is_lasting &= lack == Lack::Lasting;
        self.why = format!(
            "the kernel does not let the process {step}: {}",
            reason(source)
        );
        self.level = level;
        Ok(())
    }

    /// Remembers the level, which has worked. Returns the guard's state if it is not fully in
    /// force.
    pub(crate) fn settle(self) -> Option<GuardState> {
        if !self.takes || self.level == Level::Full {
            return None;
        }
        if self.is_lasting
            && let Some(mut known) = known()
        {
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            let (level, why) = (self.level, self.why.clone());
            known.insert(self.root.to_owned(), Known { level, why });
        }
        let why = self.why;
        Some(match self.level {
            Level::Full => GuardState::InForce,
            Level::LayerOnDisk(()) => GuardState::Degraded {
                to: format!("a layer on disk, whose size is not bounded: {why}"),
            },
            Level::ReadOnly => GuardState::Degraded {
                to: format!("a read-only project: {why}"),
            },
            Level::None(()) => GuardState::Missing { because: why },
        })
    }
}
