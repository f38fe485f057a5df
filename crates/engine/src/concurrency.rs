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
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The waiting runs, in the order of their arrival.
    waiting: VecDeque<Waiting>,
    came: u64,
    /// How often all waiting runs were woken.
    woken: u64,
}

/// A run that waits.
#[derive(Debug)]
struct Waiting {
    number: u64,
    /// Wakes it, and no other one.
    turn: Arc<Condvar>,
}

impl State {
    /// What wakes the run whose turn it is, if there is a free one.
    fn next(&self) -> Option<Arc<Condvar>> {
        let next = self.waiting.front().filter(|_| self.free > 0)?;
        Some(Arc::clone(&next.turn))
    }
}

/// A turn. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Shared>);

impl Shared {
    /// Changes the state, and wakes the run whose turn it is then.
    fn change(&self, mut state: MutexGuard<'_, State>, how: impl FnOnce(&mut State)) {
        how(&mut state);
        let next = state.next();
        // What it wakes takes the lock first.
        drop(state);
        if let Some(turn) = next {
            turn.notify_one();
        }
    }

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
        let turn = Arc::new(Condvar::new());
        state.waiting.push_back(Waiting {
            number: own,
            turn: Arc::clone(&turn),
        });
        loop {
            let woken = state.woken;
            drop(state);
            // Not under the lock: the observer may run any code.
            let has_had_enough = observer.tick().is_break();
            state = self.0.lock();
            if has_had_enough {
                // It may have been woken for its turn.
                self.0.change(state, |state| {
                    state.waiting.retain(|waiting| waiting.number != own);
                });
                return Err(EvalError::Interrupted);
            }
            let is_next = (state.waiting.front()).is_some_and(|waiting| waiting.number == own);
            if state.free > 0 && is_next {
                self.0.change(state, |state| {
                    state.waiting.pop_front();
                    state.free -= 1;
                });
                return Ok((Turn(Arc::clone(&self.0)), true));
            }
            if state.woken == woken {
                state = match turn.wait_timeout(state, LOOK_UP) {
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
        let mut state = self.0.lock();
        state.woken += 1;
        for waiting in &state.waiting {
            waiting.turn.notify_one();
        }
    }
}

impl Turn {
    /// Whether another run waits for one.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.0.lock().waiting.is_empty()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.change(self.0.lock(), |state| state.free += 1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use altair_sandbox::Stream;

    use super::*;

    /// Ends its wait at once, or never.
    struct Waits(ControlFlow<()>);

    impl Observer for Waits {
        fn output(&mut self, _stream: Stream, _chunk: &[u8]) -> ControlFlow<()> {
            self.0
        }

        fn tick(&mut self) -> ControlFlow<()> {
            self.0
        }
    }

    const AT_ONCE: usize = 2;
    const RUNS: usize = 8;
    const EACH: usize = 50;

    #[test]
    fn a_turn_that_is_returned_wakes_the_run_that_has_waited_longest() {
        let turns = Turns::new(AT_ONCE);
        let began = Instant::now();
        let under_way = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..RUNS {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let (turn, _) = turns.take(&mut Waits(ControlFlow::Continue(()))).unwrap();
                        assert!(under_way.fetch_add(1, Ordering::SeqCst) < AT_ONCE);
                        std::thread::yield_now();
                        under_way.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
        // Nobody had to look up for it.
        let looked_up = began.elapsed().as_millis() / LOOK_UP.as_millis();
        assert!(looked_up < 10, "{looked_up}");
        assert_eq!(turns.0.lock().free, AT_ONCE);
    }

    #[test]
    fn a_run_that_gives_up_keeps_no_turn_from_the_next() {
        let turns = Turns::new(1);
        let (turn, _) = turns.take(&mut Waits(ControlFlow::Continue(()))).unwrap();
        let gave_up = turns.take(&mut Waits(ControlFlow::Break(())));
        assert!(matches!(gave_up, Err(EvalError::Interrupted)));
        drop(turn);
        let (_turn, waited) = turns.take(&mut Waits(ControlFlow::Continue(()))).unwrap();
        assert!(!waited);
    }
}
