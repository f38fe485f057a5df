//! How much of the guard `filesystem` the kernel gives: the best is tried first, then the next.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, TryLockError};

use altair_sandbox::{GuardState, SpawnError, Step};

use crate::error::reason;

/// How much of the guard there is; `D` is a directory of the run's own on disk.
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
    /// What `make` says.
    pub(crate) fn with<D, E>(self, make: impl FnOnce() -> Result<D, E>) -> Result<Level<D>, E> {
        Ok(match self {
            Self::Full => Level::Full,
            Self::LayerOnDisk(()) => Level::LayerOnDisk(make()?),
            Self::ReadOnly => Level::ReadOnly,
            Self::None(()) => Level::None(make()?),
        })
    }

    /// The next level where this one fails at `step`. Where writes are allowed, there is no layer.
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

/// A level, and why it is not a better one.
#[derive(Debug, Clone)]
struct Known {
    level: Level<()>,
    why: String,
}

/// The best that worked for a project, so that a host that evaluates again and again does not try in
/// vain each time.
static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Known>>> = LazyLock::new(Mutex::default);
/// Projects that are remembered.
const KNOWN_MAX: usize = 256;

/// Never waited for: in a fork of the host it may be locked by a thread that is not there.
fn known() -> Option<MutexGuard<'static, HashMap<PathBuf, Known>>> {
    match KNOWN.try_lock() {
        Ok(known) => Some(known),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Why a project cannot have a layer in memory, as far as that is known.
pub(crate) fn why_degraded(root: &Path) -> Option<String> {
    known()?.get(root).map(|known| known.why.clone())
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

/// The way down for one run.
#[derive(Debug)]
pub(crate) struct Ladder<'a> {
    root: &'a Path,
    /// Whether the run is to have the guard at all.
    takes: bool,
    writes: bool,
    level: Level<()>,
    why: String,
    is_lasting: bool,
}

impl<'a> Ladder<'a> {
    /// From the best that is known to work for the project at `root`. `takes`: whether the guard is to
    /// be had; `writes`: whether writes to the project are real.
    pub(crate) fn new(root: &'a Path, takes: bool, writes: bool) -> Self {
        let remembered = known().and_then(|known| known.get(root).cloned());
        let (level, why) = match remembered.filter(|_| takes) {
            // There is no layer that could fail.
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

    /// What is to be tried now.
    pub(crate) fn level(&self) -> Level<()> {
        self.level
    }

    /// Why there is no private root, where the run was to have one.
    pub(crate) fn why_no_root(&self) -> Option<&str> {
        (self.takes && self.level == Level::None(())).then_some(&self.why)
    }

    /// Goes down a level, because the start has failed.
    ///
    /// # Errors
    /// The same error where it is of something else, or where there is no level below.
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

    /// The level has worked: remembers it, and gives the state of the guard where it is less than in
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
