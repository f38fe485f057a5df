//! The exit statuses of children and the exit codes of results, shared by host and child.

use crate::channel::Ending;

/// An exception has left the snippet.
pub const THREW: i32 = 1;
/// The application could not be booted.
pub const BOOT_FAILED: i32 = 2;
/// The deadline ended the run; what `timeout(1)` uses.
pub const TIMED_OUT: i32 = 124;
/// A signal ended the run: this plus the signal's number; what shells use.
pub const SIGNAL_BASE: i32 = 128;
/// A fatal error; PHP's own.
pub const FATAL: i32 = 255;
/// A process that cannot get the memory that it needs; what PHP's own allocator uses.
pub const EXHAUSTED: i32 = 1;
/// A child that could not do its work (`EX_SOFTWARE` of sysexits(3)). The host does not evaluate
/// this status, but the missing report.
pub const BROKEN: i32 = 70;

impl Ending {
    /// The status of a child with this ending, and the exit code of its result.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Returned(_) => 0,
            Self::Threw(_) => THREW,
            Self::Exited(status) => (*status).into(),
            Self::Fatal { .. } | Self::OutOfMemory { .. } => FATAL,
            Self::BootFailed { .. } => BOOT_FAILED,
        }
    }
}
