//! The templates of one evaluator, by what they are made from.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use altair_sandbox::{ForkError, channel_pair};

use super::boot::{Booting, Result as BootResult};
use super::key::Key;
use super::made::Made;
use super::start::TemplateStart;
use super::{Acquired, Boot, Start, TEMPLATES_MAX};
use crate::EvalError;
use crate::asked::Asked;
use crate::evaluation::{GRACE, Observer};
use crate::freshness::Freshness;
use crate::guards::GuardStates;
use crate::start::Started;

/// The templates of one evaluator. Dropping it ends them.
///
/// It belongs to the process that made it: in a fork of that, it is neither used nor ended.
#[derive(Debug)]
pub struct Pool {
    owner: u32,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_key: HashMap<Key, Slot>,
    /// Counts uses, to find the template that was used the longest ago.
    uses: u64,
}

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

struct Slot {
    used: u64,
    state: State,
}

enum State {
    Booting(Arc<Booting>),
    Ready(Box<Made>),
    /// The application has to be booted in each child; why, and as long as what was seen.
    Booted {
        why: String,
        seen: Box<Freshness>,
    },
    /// There was no template to be had. What was in the way may pass.
    Unable {
        why: String,
        /// When to try again.
        again: Instant,
        /// How long after the next time, where that is in vain, too.
        pause: Duration,
    },
}

/// What to do next for a request.
enum Next {
    Wait(Arc<Booting>, bool),
    Take(Result<Box<Forked>, ForkError>),
    Nothing(Start),
}

/// A fork of a template, and what is to be said of it.
struct Forked {
    child: altair_sandbox::Child,
    channel: std::os::fd::OwnedFd,
    boot: Arc<Boot>,
    guards: GuardStates,
    start: Start,
}

/// Templates that are made for one request before it is started cold: each time, what one was made
/// from changed, or it was killed.
const TRIES_MAX: usize = 3;

/// How long after there was no template to be had one is tried again; twice as long each time, up to
/// [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long a fork is waited for: a template that was stopped does not answer, and there is to be
/// time left for another one. It takes a millisecond.
const FORK_PATIENCE: Duration = Duration::from_millis(500);

impl Default for Pool {
    fn default() -> Self {
        Self {
            owner: std::process::id(),
            slots: Mutex::default(),
        }
    }
}

impl Pool {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it is this process's own, and not that of one which this is a fork of.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.owner == std::process::id()
    }

    /// A child for a request.
    ///
    /// # Errors
    /// [`EvalError::Interrupted`] where the observer has had enough.
    pub(crate) fn acquire(
        &self,
        asked: &Asked<'_>,
        deadline: Instant,
        observer: &mut dyn Observer,
    ) -> Result<Acquired, EvalError> {
        if !self.is_own() {
            let why = "this process is a fork of the one that has the templates";
            return Ok(Acquired::Nothing(Start::Cold(Some(why.into()))));
        }
        if let Some(why) = asked.cannot_be_warm() {
            return Ok(Acquired::Nothing(Start::Cold(Some(why))));
        }
        let key = Key::new(asked);
        let mut tries = 0;
        while tries < TRIES_MAX {
            let next = self.next(&key, asked, deadline)?;
            let (booting, is_maker) = match next {
                Next::Nothing(start) => return Ok(Acquired::Nothing(start)),
                Next::Take(Ok(forked)) => return Ok(child(*forked, asked)),
                Next::Take(Err(ForkError::Gone)) => {
                    tries += 1;
                    continue;
                }
                // There is something in the way that may pass, and is none of the request's.
                Next::Take(Err(error @ ForkError::Refused(_))) => {
                    let why = error.to_string();
                    return Ok(Acquired::Nothing(Start::Cold(Some(why))));
                }
                Next::Take(Err(ForkError::Host(error))) => {
                    return Err(EvalError::Launch(format!(
                        "No child could be started: {error}."
                    )));
                }
                Next::Wait(booting, is_maker) => (booting, is_maker),
            };
            match booting.wait(deadline, observer) {
                ControlFlow::Break(()) => {
                    if is_maker {
                        booting.cancel();
                        booting.give_up();
                    }
                    return Err(EvalError::Interrupted);
                }
                ControlFlow::Continue(false) => {
                    if is_maker {
                        booting.give_up();
                    }
                    let failed = booting.time_out(deadline + GRACE);
                    return Ok(Acquired::Ended(Box::new(failed)));
                }
                ControlFlow::Continue(true) => {}
            }
            if let Some(acquired) = self.settle(&key, &booting, is_maker, asked, deadline)? {
                return Ok(acquired);
            }
            tries += usize::from(is_maker);
        }
        let why = "what templates were made from kept changing";
        Ok(Acquired::Nothing(Start::Cold(Some(why.into()))))
    }

    /// A fork of a template that is there and fresh, for a request whose turn is still to come.
    /// `None` where there is none: it is to [`acquire`](Self::acquire) one then.
    pub(crate) fn ready(&self, asked: &Asked<'_>, deadline: Instant) -> Option<Acquired> {
        if !self.is_own() || asked.cannot_be_warm().is_some() {
            return None;
        }
        let (template, facts) = match &mut self.lock().of(&Key::new(asked))?.state {
            State::Ready(made) => made
                .is_fresh()
                .then(|| (made.template.clone(), made.facts(Start::Warm)))?,
            _ => return None,
        };
        let forked = facts.fork(&template, deadline).ok()?;
        Some(child(*forked, asked))
    }

    /// Whether a fork that was given out with this boot could be given out now.
    pub(crate) fn is_fresh(&self, asked: &Asked<'_>, boot: &Arc<Boot>) -> bool {
        let mut slots = self.lock();
        slots
            .of(&Key::new(asked))
            .is_some_and(|slot| match &mut slot.state {
                State::Ready(made) => Arc::ptr_eq(&made.boot, boot) && made.is_fresh(),
                _ => false,
            })
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forks a template that is there, or finds a boot to wait for, or begins one.
    fn next(&self, key: &Key, asked: &Asked<'_>, deadline: Instant) -> Result<Next, EvalError> {
        let mut slots = self.lock();
        let mut pause = PAUSE;
        if let Some(slot) = slots.of(key) {
            match &mut slot.state {
                State::Booting(booting) => {
                    return Ok(Next::Wait(Arc::clone(booting), false));
                }
                State::Unable { why, again, .. } if Instant::now() < *again => {
                    return Ok(Next::Nothing(Start::Cold(Some(why.clone()))));
                }
                State::Unable { pause: next, .. } => {
                    pause = *next;
                    slots.by_key.remove(key);
                }
                State::Ready(made) => {
                    if made.is_fresh() {
                        let (template, facts) = (made.template.clone(), made.facts(Start::Warm));
                        drop(slots);
                        let forked = facts.fork(&template, deadline);
                        if matches!(forked, Err(ForkError::Gone)) {
                            self.forget(key);
                        }
                        return Ok(Next::Take(forked));
                    }
                    slots.by_key.remove(key);
                }
                State::Booted { why, seen } => {
                    if seen.check().is_ok() {
                        return Ok(Next::Nothing(Start::Booted(why.clone())));
                    }
                    slots.by_key.remove(key);
                }
            }
        }
        slots.make_room();
        let now = slots.uses;
        let booting = match TemplateStart::of(asked) {
            Ok(start) => Booting::begin(start).map_err(|error| {
                EvalError::Launch(format!("No thread could be started: {error}."))
            })?,
            Err(why) => {
                let state = State::unable(why.clone(), pause);
                slots.by_key.insert(key.clone(), Slot { used: now, state });
                return Ok(Next::Nothing(Start::Cold(Some(why))));
            }
        };
        let booting = Arc::new(booting.after(pause));
        let state = State::Booting(Arc::clone(&booting));
        slots.by_key.insert(key.clone(), Slot { used: now, state });
        Ok(Next::Wait(booting, true))
    }

    /// A boot is over: what came out of it is for whoever comes next, and for who made it.
    fn settle(
        &self,
        key: &Key,
        booting: &Arc<Booting>,
        is_maker: bool,
        asked: &Asked<'_>,
        deadline: Instant,
    ) -> Result<Option<Acquired>, EvalError> {
        let Some(result) = booting.result(is_maker) else {
            return Ok(None); // it is another one's
        };
        let mut slots = self.lock();
        slots.uses += 1;
        let used = slots.uses;
        let mut put = |state: Option<State>| match state {
            Some(state) => drop(slots.by_key.insert(key.clone(), Slot { used, state })),
            None => drop(slots.by_key.remove(key)),
        };
        let mut made = match result {
            BootResult::Unable(why) => {
                put(Some(State::unable(why.clone(), booting.pause())));
                return Ok(Some(Acquired::Nothing(Start::Cold(Some(why)))));
            }
            BootResult::Failed(failed) => {
                put(None);
                // For who made it, it is the answer.
                return Ok(is_maker.then_some(Acquired::Ended(failed)));
            }
            BootResult::Made(made) => made,
        };
        let start = match made.obstacle.take() {
            None => Start::First,
            Some(why) => Start::Booted(why),
        };
        let template = made.template.clone();
        let facts = made.facts(start.clone());
        match (&start, made.freshness.take()) {
            (Start::Booted(why), Some(seen)) => {
                let why = why.clone();
                let seen = Box::new(seen);
                put(Some(State::Booted { why, seen }));
            }
            (_, Some(freshness)) => {
                made.freshness = Some(freshness);
                put(Some(State::Ready(made)));
            }
            (_, None) => put(None),
        }
        drop(slots);
        if !is_maker {
            // It comes again, and finds what is there now.
            return Ok(None);
        }
        if start != Start::First {
            return Ok(Some(Acquired::Nothing(start)));
        }
        match facts.fork(&template, deadline) {
            Ok(forked) => Ok(Some(child(*forked, asked))),
            Err(ForkError::Gone) => {
                self.forget(key);
                Ok(None)
            }
            Err(error @ ForkError::Refused(_)) => {
                let why = error.to_string();
                Ok(Some(Acquired::Nothing(Start::Cold(Some(why)))))
            }
            Err(ForkError::Host(error)) => Err(EvalError::Launch(format!(
                "No child could be started: {error}."
            ))),
        }
    }

    fn forget(&self, key: &Key) {
        self.lock().by_key.remove(key);
    }
}

impl State {
    fn unable(why: String, pause: Duration) -> Self {
        Self::Unable {
            why,
            again: Instant::now() + pause,
            pause: pause.saturating_mul(2).min(PAUSE_MAX),
        }
    }
}

impl Slots {
    /// What there is for a key, which is used with that.
    fn of(&mut self, key: &Key) -> Option<&mut Slot> {
        self.uses += 1;
        let slot = self.by_key.get_mut(key)?;
        slot.used = self.uses;
        Some(slot)
    }

    /// Ends the template that was used the longest ago, where there are as many as may be.
    fn make_room(&mut self) {
        if self.by_key.len() < TEMPLATES_MAX {
            return;
        }
        let oldest = self
            .by_key
            .iter()
            .filter(|(_, slot)| !matches!(slot.state, State::Booting(_)))
            .min_by_key(|(_, slot)| slot.used)
            .map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.by_key.remove(&key);
        }
    }
}

impl Made {
    fn is_fresh(&mut self) -> bool {
        self.freshness
            .as_mut()
            .is_some_and(|freshness| freshness.check().is_ok())
    }

    fn facts(&self, start: Start) -> Facts {
        Facts {
            boot: Arc::clone(&self.boot),
            guards: self.guards.clone(),
            start,
        }
    }
}

/// What is to be said of a fork.
struct Facts {
    boot: Arc<Boot>,
    guards: GuardStates,
    start: Start,
}

impl Facts {
    fn fork(
        self,
        template: &altair_sandbox::Template,
        deadline: Instant,
    ) -> Result<Box<Forked>, ForkError> {
        let (channel, theirs) = channel_pair()?;
        let until = deadline.min(Instant::now() + FORK_PATIENCE);
        Ok(Box::new(Forked {
            child: template.fork(theirs, until)?,
            channel,
            boot: self.boot,
            guards: self.guards,
            start: self.start,
        }))
    }
}

fn child(forked: Forked, asked: &Asked<'_>) -> Acquired {
    let Forked {
        child,
        channel,
        boot,
        guards,
        start,
    } = forked;
    let started = Started::forked(asked, child, channel, guards);
    Acquired::Child(Box::new(started), start, boot)
}
