//! Whether applying goes on, once its caller no longer waits for it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

const AT_WORK: u8 = 0;
const APPLIED: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The caller has given up: what was done is to be undone.
#[derive(Debug)]
pub(super) struct GivenUp;

/// The state that the caller and the thread at work share. Only one of two things can happen: the
/// caller gives up, or everything is applied.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: AtomicU8,
    /// When the caller gives up by itself.
    until: Option<Instant>,
}

impl Progress {
    /// The caller gives up at this time.
    pub(super) fn until(until: Instant) -> Self {
        Self {
            until: Some(until),
            ..Self::default()
        }
    }

    /// Fails if the caller has given up.
    pub(super) fn go_on(&self) -> Result<(), GivenUp> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(GivenUp);
        }
        match self.state.load(Ordering::Relaxed) {
            GIVEN_UP => Err(GivenUp),
            _ => Ok(()),
        }
    }

    /// From now on everything stays applied. Fails if the caller has given up.
    pub(super) fn applied(&self) -> Result<(), GivenUp> {
        self.leave(APPLIED).then_some(()).ok_or(GivenUp)
    }

    /// Gives up. `false`: everything is applied already.
    pub(super) fn give_up(&self) -> bool {
        self.leave(GIVEN_UP)
    }

    fn leave(&self, to: u8) -> bool {
        let order = Ordering::AcqRel;
        self.state
            .compare_exchange(AT_WORK, to, order, Ordering::Acquire)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_is_not_applied_and_the_other_way_round() {
        let progress = Progress::default();
        assert!(progress.go_on().is_ok());
        assert!(progress.give_up());
        assert!(progress.go_on().is_err());
        assert!(progress.applied().is_err());
        let progress = Progress::default();
        assert!(progress.applied().is_ok());
        assert!(!progress.give_up());
        assert!(progress.go_on().is_ok());
    }
}
