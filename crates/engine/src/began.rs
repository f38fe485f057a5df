//! When an evaluation began.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// When an evaluation began, by the host's clock and by the one that its child also reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Began {
    pub at: Instant,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub ns: u64,
}

impl Began {
    /// The moment of `CLOCK_MONOTONIC` at which another process began; now, if that is still to
    /// come.
    pub(crate) fn at_ns(ns: u64) -> Self {
        let now = Self::now();
        let ago = Duration::from_nanos(now.ns.saturating_sub(ns));
        Self {
            at: now.at.checked_sub(ago).unwrap_or(now.at),
            ns: ns.min(now.ns),
        }
    }

    pub(crate) fn now() -> Self {
        let ns = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
            let nanos = i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec());
            u64::try_from(nanos).unwrap_or(0)
        });
        Self {
            at: Instant::now(),
            ns,
        }
    }
}
