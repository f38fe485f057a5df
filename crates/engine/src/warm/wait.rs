//! The pause between a first call's answer and the boot of its template.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a boot waits for the host to end, or to ask again. A script that asks once ends in it, a
/// loop asks again in it, and an agent does not think faster.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause before a boot. It ends once, for one reason.
#[derive(Debug)]
pub(super) struct Wait {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    /// It has passed, or a call has cut it short.
    Over,
    /// There will be no boot.
    CalledOff,
}

impl Wait {
    /// One that begins now.
    pub(super) fn begun() -> Self {
        Self::from(State::UnderWay)
    }

    /// None: the boot is for a call that waits for it.
    pub(super) fn none() -> Self {
        Self::from(State::Over)
    }

    fn from(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Waits for its end. Returns whether to boot.
    pub(super) fn pass(&self) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), PAUSE, |state| *state == State::UnderWay);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *state == State::UnderWay {
            *state = State::Over;
        }
        *state == State::Over
    }

    pub(super) fn is_under_way(&self) -> bool {
        *self.lock() == State::UnderWay
    }

    /// Has the boot begin now. `false` if it had begun already.
    pub(super) fn cut_short(&self) -> bool {
        self.end(State::Over)
    }

    /// Has the boot not begin, if it has not yet.
    pub(super) fn call_off(&self) {
        self.end(State::CalledOff);
    }

    fn end(&self, as_what: State) -> bool {
        let mut state = self.lock();
        let ends = *state == State::UnderWay;
        if ends {
            *state = as_what;
            self.changed.notify_all();
        }
        ends
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
