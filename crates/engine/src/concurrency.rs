//! Takes turns: of several runs under way, only a limited number execute their snippet at once.
//!
//! A run is under way before its turn: its process is created and set up ahead, which is much of
//! the time of a short run.
//!
//! A run returns its turn when its child has ended, not when the child announces its end: native
//! code in a child could announce it and continue.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::EvalError;
use crate::observer::Observer;

/// The longest wait before the observer is called.
const LOOK_UP: Duration = Duration::from_millis(100);

/// The maximum number of runs that start or shut down while others execute their snippet.
const BESIDES_MAX: usize = 16;

/// The number of runs that may execute their snippet at once. Clones share the count.
#[derive(Debug, Clone)]
pub struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The process whose threads take turns.
    owner: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The waiting runs, in the order of their arrival.
    waiting: VecDeque<u64>,
    came: u64,
    /// How often all waiting runs were woken.
    woken: u64,
}

/// A turn. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Shared>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    /// Creates turns for this many runs at once.
    #[must_use]
    pub fn new(at_once: usize) -> Self {
        Self(Arc::new(Shared {
            owner: std::process::id(),
            state: Mutex::new(State {
                free: at_once,
                waiting: VecDeque::new(),
                came: 0,
                woken: 0,
            }),
            changed: Condvar::new(),
        }))
    }

    /// The number of runs a host should have under way for this many turns: up to the same number
    /// again (at most 16) start or shut down meanwhile. With fewer, a core waits for the next short
    /// snippet; with more, the host does not get faster, and each run takes descriptors.
    #[must_use]
    pub fn under_way(at_once: usize) -> usize {
        at_once.saturating_add(at_once.min(BESIDES_MAX))
    }

    /// Waits for a turn. Returns it, and whether there was a wait.
    ///
    /// # Errors
    /// [`EvalError::Interrupted`] if the observer ends the wait.
    pub(crate) fn take(&self, observer: &mut dyn Observer) -> Result<(Turn, bool), EvalError> {
        let mut state = self.0.lock();
        if state.free > 0 && state.waiting.is_empty() {
            state.free -= 1;
            return Ok((Turn(Arc::clone(&self.0)), false));
        }
        let own = state.came;
        state.came += 1;
        state.waiting.push_back(own);
        loop {
            let woken = state.woken;
            drop(state);
            // Not under the lock: the observer may run any code.
            let has_had_enough = observer.tick().is_break();
            state = self.0.lock();
            if has_had_enough {
                state.waiting.retain(|waiting| *waiting != own);
                self.0.changed.notify_all();
                return Err(EvalError::Interrupted);
            }
            if state.free > 0 && state.waiting.front() == Some(&own) {
                state.waiting.pop_front();
                state.free -= 1;
                // The next one may have checked before this one was removed.
                self.0.changed.notify_all();
                return Ok((Turn(Arc::clone(&self.0)), true));
            }
            if state.woken == woken {
                state = match self.0.changed.wait_timeout(state, LOOK_UP) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                };
            }
        }
    }

    /// Wakes all waiting runs.
    pub fn wake(&self) {
        // In a fork no thread waits, and a thread that does not exist there may hold the lock.
        if self.0.owner != std::process::id() {
            return;
        }
        self.0.lock().woken += 1;
        self.0.changed.notify_all();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.lock().free += 1;
        self.0.changed.notify_all();
    }
}
