//! Taking turns: of several runs that are under way, only so many are at their snippet at once.
//!
//! A run is under way before that: its process is made and set up ahead, which is much of the time of
//! a short one.
//!
//! A run gives its turn back when its child has ended, and not when it says that it will: native code
//! in a child could say so and go on.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::EvalError;
use crate::observer::Observer;

/// How long a wait lasts at most before the observer is asked.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Runs that get ready, or end, while others are at their snippet, at most.
const BESIDES_MAX: usize = 16;

/// How many runs may be at their snippet at once. Copies share the count.
#[derive(Debug, Clone)]
pub struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The process whose threads they are.
    owner: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Who waits, in the order of their coming.
    waiting: VecDeque<u64>,
    came: u64,
    /// How often all were told to look up.
    woken: u64,
}

/// A turn. Dropping it gives it away.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Shared>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    /// Turns for so many at once.
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

    /// How many runs a host should have under way for so many turns: as many besides get ready and
    /// end meanwhile. With fewer a core waits for the next short snippet; with more it does not get
    /// faster, and each takes descriptors.
    #[must_use]
    pub fn under_way(at_once: usize) -> usize {
        at_once.saturating_add(at_once.min(BESIDES_MAX))
    }

    /// Waits for a turn. Gives it, and whether it had to be waited for.
    ///
    /// # Errors
    /// [`EvalError::Interrupted`] where the observer has had enough.
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
            // Without the lock: it is the observer's own code.
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
                // Who comes next may have looked before this one did.
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

    /// Has all who wait look up.
    pub fn wake(&self) {
        // In a fork nobody waits, and a thread that is not there may have the lock.
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
