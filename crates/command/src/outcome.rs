//! How a command ended.

use std::time::Duration;

/// Exit codes with a meaning of their own.
pub mod exit_codes {
    /// A deadline ended the command.
    pub const TIMEOUT: i32 = 124;
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
    /// The last bytes of standard error.
    pub stderr: Vec<u8>,
    /// Whether standard output was longer.
    pub truncated_stdout: bool,
    /// Whether standard error was longer.
    pub truncated_stderr: bool,
    /// The program's own exit code, or one of [`exit_codes`].
    pub exit_code: i32,
    /// Time from its start to its end.
    pub duration: Duration,
    /// The deadline that ended it.
    pub timeout: Option<TimeoutReason>,
}
