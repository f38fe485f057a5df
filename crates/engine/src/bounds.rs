//! Bounds on a child's output and time, whatever the request asks for.

use std::time::Duration;

/// Bytes of each stream to keep: some hundred lines, as much as a reader still reads.
pub const OUTPUT_LIMIT: usize = 16_384;

/// The time that the child has after the deadline to report where it was, before it is killed.
pub const GRACE: Duration = Duration::from_millis(100);

/// The time that a host may take after a run has ended and its time is up, for each of: finding the
/// run's changes, and removing secrets from its answer.
pub(crate) const AFTERWARDS: Duration = Duration::from_millis(30);

/// The real-time signal that asks the child to stop, as an offset from `SIGRTMIN`. PHP applications
/// have no use for it.
pub const STOP_SIGNAL_OFFSET: i32 = 15;

/// The signal that asks the child to stop.
#[must_use]
pub fn stop_signal() -> i32 {
    nix::libc::SIGRTMIN() + STOP_SIGNAL_OFFSET
}
