//! Guard: Landlock.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::GuardState;

/// What Landlock permits; all else that the kernel's version of it governs is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landlock {
    /// Files, and directories with all below, that may be read.
    pub readable: Vec<PathBuf>,
    /// Directories below which anything may be read, written, made, renamed and removed, but no
    /// device, socket or program.
    pub writable: Vec<PathBuf>,
    /// Single files (devices) that may be read and written.
    pub devices: Vec<PathBuf>,
    /// Whether TCP connections may be made. To listen is never permitted.
    pub network: bool,
}

/// Takes it for the calling process.
pub(crate) fn take(_rules: &Landlock) -> GuardState {
    GuardState::Missing {
        because: "not built yet".into(),
    }
}
