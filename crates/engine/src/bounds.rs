//! What a host takes of a child's output and time, whatever the request asks for.

use std::time::Duration;

/// Bytes of each stream that are kept: some hundred lines, what a reader still reads.
pub const OUTPUT_LIMIT: usize = 16_384;

/// What the child has to say where it was, once the deadline has passed, before it is killed.
pub const GRACE: Duration = Duration::from_millis(100);

/// What a host may take after a run's time is up and it has ended, for each of: finding what it has
/// changed, and keeping secrets out of its answer.
pub(crate) const AFTERWARDS: Duration = Duration::from_millis(30);

/// The real-time signal that asks the child to stop, as an offset from `SIGRTMIN`. Not one that a
/// PHP application has a use for.
pub const STOP_SIGNAL_OFFSET: i32 = 15;

/// The signal that asks the child to stop.
#[must_use]
pub fn stop_signal() -> i32 {
    nix::libc::SIGRTMIN() + STOP_SIGNAL_OFFSET
}
