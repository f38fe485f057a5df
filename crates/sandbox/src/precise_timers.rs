//! Timers of the calling thread that end when they are to.

use nix::sys::prctl;

/// As long as this lives, the kernel wakes the thread when it asked for, instead of up to 50 µs later (prctl(2),
/// `PR_SET_TIMERSLACK`).
pub(crate) struct PreciseTimers(Option<u64>);

impl PreciseTimers {
    pub(crate) fn begin() -> Self {
        let before = prctl::get_timerslack().ok();
        let before = before.and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
        Self(before.filter(|_| prctl::set_timerslack(1).is_ok()))
    }
}

impl Drop for PreciseTimers {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            let _ = prctl::set_timerslack(before);
        }
    }
}
