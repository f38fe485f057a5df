//! How a command ended.

use std::time::Duration;

use altair_engine::{Blocked, FileChanges};
use altair_sandbox::GuardState;

use crate::PendingLayer;

/// Exit codes with a meaning of their own.
pub mod exit_codes {
    /// A deadline ended the command.
    pub const TIMEOUT: i32 = 124;
    /// The command is there, but cannot be executed.
    pub const NOT_EXECUTABLE: i32 = 126;
    /// There is no such command.
    pub const COMMAND_NOT_FOUND: i32 = 127;
    /// A program that a signal ended has this code plus the signal's number.
    pub const SIGNAL_BASE: i32 = 128;
}

/// Which deadline ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutReason {
    /// It ran too long.
    Wall,
    /// It was silent too long.
    Idle,
}

impl TimeoutReason {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Idle => "idle",
        }
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Outcome {
    /// The last bytes of standard output.
    pub stdout: Vec<u8>,
    /// The last bytes of standard error, or why the command could not be started.
    pub stderr: Vec<u8>,
    /// Whether standard output was longer.
    pub truncated_stdout: bool,
    /// Whether standard error was longer.
    pub truncated_stderr: bool,
    /// The program's own exit code, or one of [`exit_codes`].
    pub exit_code: i32,
    /// Whether the command ran; otherwise `stderr` says why not.
    pub started: bool,
    /// Time from its start to its end.
    pub duration: Duration,
    /// The deadline that ended it.
    pub timeout: Option<TimeoutReason>,
    /// What it was refused; what lifts it is a flag of the command line.
    pub blocked: Vec<Blocked>,
    /// The guards of the driver `native` that are not fully in force.
    pub guards: Vec<(&'static str, GuardState)>,
    /// What it changed in its layer; `None` if the policy has none.
    pub changes: Option<FileChanges>,
    /// The layer itself.
    pub layer: Option<PendingLayer>,
}

impl Outcome {
    /// Why the command did not start, in words for the user.
    #[must_use]
    pub fn why_not_started(&self) -> Option<String> {
        (!self.started).then(|| String::from_utf8_lossy(&self.stderr).into_owned())
    }

    /// The outcome of a command that did not start.
    pub(crate) fn not_started(exit_code: i32, why: String, duration: Duration) -> Self {
        Self {
            stdout: Vec::new(),
            stderr: why.into_bytes(),
            truncated_stdout: false,
            truncated_stderr: false,
            exit_code,
            started: false,
            duration,
            timeout: None,
            blocked: Vec::new(),
            guards: Vec::new(),
            changes: None,
            layer: None,
        }
    }
}
