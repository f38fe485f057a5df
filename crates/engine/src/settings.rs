//! A host's settings for all its evaluations: which PHP, with which extension and guards, on whose
//! behalf.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::Caller;
use crate::audit::Actor;
use crate::guards::Selection;
use crate::launch::StartIni;

/// How long a template waits for a request before it ends, by default: longer than an agent thinks.
pub const IDLE: Duration = Duration::from_secs(5 * 60);

/// The settings of an [`Evaluator`](crate::Evaluator).
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The PHP of children, as the caller named it ([`php::resolve`](crate::php_binary::resolve)).
    pub php: OsString,
    /// The host's own PHP binary.
    pub running: Option<PathBuf>,
    /// Where `php` is looked up: the `PATH` that the host was started with.
    pub search_path: Option<OsString>,
    /// Where the host's own PHP has its programs.
    pub own_programs: Option<PathBuf>,
    /// The extension that children are told to load, in case their own ini files do not.
    pub extension: Option<PathBuf>,
    /// The `PHP_INI_SCAN_DIR` that the host was started with.
    pub ini_scan_dir: Option<OsString>,
    /// The required guards, and those that are left out.
    pub selection: Selection,
    /// What a confined PHP needs to read, as known to the host.
    pub known_paths: Arc<[PathBuf]>,
    /// How long a template waits for a request before it ends.
    pub idle: Duration,
    /// Whether there will be more requests of each kind, so that a template boots with the first.
    pub expects_more: bool,
    /// The entry point.
    pub actor: Actor,
    /// The ini settings that its children start with.
    pub ini: StartIni,
    /// What its children are for.
    pub purpose: Purpose,
    /// Their `memory_limit`, in bytes; `None`: that of the request.
    pub memory_limit_bytes: Option<u64>,
    /// The permissions that files of real writes do not get (umask(2)); `None`: those of this process.
    pub umask: Option<u32>,
}

/// What a child is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// One evaluation.
    Evaluation,
    /// An isolated PHP, which lives on between entries.
    Runtime(Caller),
}

impl Purpose {
    /// Whether the application is booted.
    pub(crate) fn boots(self) -> bool {
        match self {
            Self::Evaluation => true,
            Self::Runtime(caller) => caller.boots(),
        }
    }

    /// Who has started an isolated PHP.
    pub(crate) fn caller(self) -> Option<Caller> {
        match self {
            Self::Evaluation => None,
            Self::Runtime(caller) => Some(caller),
        }
    }

    /// Whether the child lives longer than one deadline.
    pub(crate) fn lives_on(self) -> bool {
        matches!(self, Self::Runtime(_))
    }
}
