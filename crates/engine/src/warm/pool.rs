//! The templates of one evaluator, by the inputs they are made from.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use altair_sandbox::{Child, ForkError, Template, thread};

use super::boot::{Booting, Result as BootResult};
use super::booted_template::BootedTemplate;
use super::key::Key;
use super::spares::{Spares, Underway};
use super::template_start::TemplateStart;
use super::{Acquired, Boot, Failed, TEMPLATES_MAX};
use crate::EvalError;
use crate::bounds::GRACE;
use crate::cold_start::NewChild;
use crate::context::RequestContext;
use crate::directories::Directories;
use crate::evaluation::Evaluation;
use crate::freshness::Freshness;
use crate::guards::GuardStates;
use crate::observer::Observer;
use crate::origin::Origin;
use crate::template_files::TemplateFiles;

/// The templates of one evaluator. Dropping it ends them.
///
/// It belongs to the process that created it: a fork of that process neither uses nor ends it.
#[derive(Debug)]
pub struct Pool {
    owner: u32,
    /// The most templates.
    most: usize,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_key: HashMap<Key, Slot>,
    /// The kinds of requests that there were, the last ones.
    asked: Vec<Key>,
    /// The empty directory that stands for a project where there is none: one for all, so that they
    /// can share a template.
    no_project: Option<(Directories, PathBuf)>,
    /// Counts uses, to find the least recently used template.
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
    /// When it was asked for first and last, and how often.
    made_at: Instant,
    used_at: Instant,
    uses: u64,
}

/// A template of a pool, as told to users.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The application's root.
    pub root: PathBuf,
    /// `booting`, `ready`, `unforkable` (the application boots in each run) or `unable`.
    pub state: &'static str,
    /// Its process id, if it has one.
    pub pid: Option<i32>,
    /// Since it was asked for first.
    pub age: Duration,
    /// Since it was asked for last.
    pub idle: Duration,
    /// How often it was asked for.
    pub uses: u64,
    /// Forks that wait for a task.
    pub spares: usize,
}

impl Slot {
    fn new(used: u64, state: State) -> Self {
        let now = Instant::now();
        Self {
            used,
            state,
            made_at: now,
            used_at: now,
            uses: 1,
        }
    }

    /// Whether it is a boot that has yet to begin.
    fn is_to_come(&self) -> bool {
        matches!(&self.state, State::Booting(booting) if booting.is_to_come())
    }

    fn listed(&self, key: &Key) -> Listed {
        let (state, pid, spares) = match &self.state {
            State::Booting(_) => ("booting", None, 0),
            State::Ready(booted) => ("ready", booted.template.pid(), booted.spares.count()),
            State::Unforkable { .. } => ("unforkable", None, 0),
            State::Unable { .. } => ("unable", None, 0),
        };
        Listed {
            root: key.root().to_owned(),
            state,
            pid,
            age: self.made_at.elapsed(),
            idle: self.used_at.elapsed(),
            uses: self.uses,
            spares,
        }
    }
}

enum State {
    Booting(Arc<Booting>),
    Ready(Box<BootedTemplate>),
    /// The application must be booted in each child; valid as long as the files seen are unchanged.
    Unforkable {
        why: String,
        seen: Box<Freshness>,
    },
    /// No template could be made. The cause may be temporary.
    Unable {
        why: String,
        /// When to try again.
        again: Instant,
        /// The pause after the next attempt, if that fails, too.
        pause: Duration,
    },
}

/// What is available for a request.
enum Available {
    /// A boot under way, and whether this call began it.
    Booting(Arc<Booting>, bool),
    /// A fresh template.
    Template(Fork),
    /// No template.
    Nothing(Origin),
}

/// What a boot leaves for the call that began it.
enum Left {
    Template(Fork),
    /// No template.
    Nothing(Origin),
    /// The answer: the application does not boot.
    Failed(Box<Failed>),
    Cancelled,
}

/// What a fork is made from, and what is reported about it.
struct Fork {
    template: Template,
    spares: Arc<Spares>,
    boot: Arc<Boot>,
    guards: GuardStates,
    files: Arc<TemplateFiles>,
    origin: Origin,
}

/// The number of templates tried for one request before it starts cold. Each retry means that the
/// template's inputs changed or that it was killed.
const TRIES_MAX: usize = 3;

/// The kinds of requests to remember.
const ASKED_MAX: usize = 64;

/// How long templates that are let go of live on: their ends would take turns with the thread that
/// goes on.
const ASIDE: Duration = Duration::from_millis(1);

/// The pause before another attempt after no template could be made. Doubles each time, up to
/// [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

impl Default for Pool {
    fn default() -> Self {
        Self {
            owner: std::process::id(),
            most: TEMPLATES_MAX,
            slots: Mutex::default(),
        }
    }
}

impl Pool {
    /// Creates an empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many templates it keeps at most.
    #[must_use]
    pub fn with_room_for(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Its templates, the last used first.
    #[must_use]
    pub fn listed(&self) -> Vec<Listed> {
        let mut slots = self.lock();
        slots.catch_up();
        let mut slots: Vec<_> = slots
            .by_key
            .iter()
            .map(|(key, slot)| slot.listed(key))
            .collect();
        slots.sort_by_key(|slot| slot.idle);
        slots
    }

    /// Returns whether this process created the pool, as opposed to a process that it was forked
    /// from.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.owner == std::process::id()
    }

    /// Returns a child for a request.
    ///
    /// # Errors
    /// [`EvalError::Interrupted`] if the observer stops the wait.
    pub(crate) fn acquire(
        &self,
        key: &Key,
        context: &RequestContext<'_>,
        deadline: Instant,
        observer: &mut dyn Observer,
    ) -> Result<Acquired, EvalError> {
        if !self.is_own() {
            let why = "this process is a fork of the one that owns the templates";
            return Ok(Acquired::Nothing(Origin::cold_because(why)));
        }
        if let Some(why) = context.cannot_be_warm() {
            return Ok(Acquired::Nothing(Origin::cold_because(why)));
        }
        if self.lock().is_first(key) && !context.settings.expects_more {
            return Ok(Acquired::FirstCall);
        }
        let mut tries = 0;
        while tries < TRIES_MAX {
            let forked = match self.find(key, context)? {
                Available::Nothing(origin) => return Ok(Acquired::Nothing(origin)),
                Available::Template(fork) => {
                    tries += 1;
                    self.forked(key, fork, context, deadline)?
                }
                Available::Booting(booting, is_maker) => {
                    tries += usize::from(is_maker);
                    match wait_for(&booting, is_maker, deadline, observer)? {
                        Some(ended) => Some(ended),
                        None => self.settle(key, &booting, is_maker, context, deadline)?,
                    }
                }
            };
            if let Some(acquired) = forked {
                return Ok(acquired);
            }
        }
        let why = "the files that templates were made from kept changing";
        Ok(Acquired::Nothing(Origin::cold_because(why)))
    }

    /// Has the template of an answered [`Acquired::FirstCall`] boot, if the host neither ends nor
    /// asks again in the next moments. The boot is nobody's: how it fails, the next call finds out
    /// for itself.
    pub(crate) fn boot_after(&self, answered: Evaluation) {
        if !self.is_own() {
            return; // the observer has forked this process
        }
        let Some(key) = answered.key.clone() else {
            return;
        };
        let mut slots = self.lock();
        if slots.by_key.contains_key(&key) {
            return; // another call came in the meantime
        }
        slots.catch_up();
        slots.make_room(self.most);
        if slots.by_key.len() >= self.most {
            return; // all are booting, for calls that wait
        }
        // Without a thread, the next call boots.
        if let Ok(booting) = Booting::begin_later(move || TemplateStart::of(&answered.context())) {
            let state = State::Booting(Arc::new(booting.after(PAUSE)));
            slots.uses += 1;
            let used = slots.uses;
            slots.by_key.insert(key, Slot::new(used, state));
        }
    }

    /// Returns whether it holds nothing: no template, and no reason why there is none.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_own() || self.lock().by_key.is_empty()
    }

    /// Returns whether there is a template of a kind, fresh or not, or is to be.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.is_own() && self.lock().by_key.contains_key(key)
    }

    /// Tells the fork that the next request of a kind will get, if there is one, that its task is about
    /// to come.
    pub(crate) fn alert(&self, key: &Key) {
        if !self.is_own() {
            return;
        }
        if let Some(slot) = self.lock().by_key.get(key)
            && let State::Ready(template) = &slot.state
        {
            template.spares.alert();
        }
    }

    /// The same for a request of which nothing is known yet: most are of the kind of the last one.
    pub(crate) fn alert_latest(&self) {
        let slots = self.lock();
        let latest = slots.by_key.values().max_by_key(|slot| slot.used);
        if let Some(slot) = latest
            && let State::Ready(template) = &slot.state
        {
            template.spares.alert();
        }
    }

    /// An empty directory, which lives as long as the pool.
    pub(crate) fn no_project(&self) -> io::Result<PathBuf> {
        let kept = &mut self.lock().no_project;
        if let Some((_, path)) = kept {
            return Ok(path.clone());
        }
        let mut directories = Directories::default();
        let path = directories.make_own()?.path().to_owned();
        *kept = Some((directories, path.clone()));
        Ok(path)
    }

    /// Forks an existing fresh template for a request whose turn is still to come. `None` if there
    /// is none, or none whose forks may wait; the request must [`acquire`](Self::acquire) one then.
    pub(crate) fn ready(
        &self,
        key: &Key,
        context: &RequestContext<'_>,
        deadline: Instant,
    ) -> Option<Acquired> {
        self.fresh(key, context)?.of(context, deadline).ok()
    }

    /// The same at once, if a spare is there.
    pub(crate) fn spare(&self, key: &Key, context: &RequestContext<'_>) -> Option<Acquired> {
        // A look that finds none is no use of the template.
        let has_spare = match self.lock().by_key.get(key).map(|slot| &slot.state) {
            Some(State::Ready(template)) => template.spares.count() > 0,
            _ => false,
        };
        let spare = has_spare.then(|| self.fresh(key, context)).flatten()?;
        let (child, channel, underway) = spare.spares.take_ready()?;
        Some(spare.acquired(context, child, channel, underway))
    }

    /// A template that is fresh and whose forks may wait.
    fn fresh(&self, key: &Key, context: &RequestContext<'_>) -> Option<Fork> {
        if !self.is_own() || context.cannot_be_warm().is_some() {
            return None;
        }
        match &mut self.lock().of(key)?.state {
            State::Ready(template) => (template.spares.are_possible() && template.is_fresh())
                .then(|| template.fork_as(Origin::Warm)),
            _ => None,
        }
    }

    /// Returns whether a fork handed out with this boot could still be handed out now.
    pub(crate) fn is_fresh(&self, key: &Key, boot: &Arc<Boot>) -> bool {
        let mut slots = self.lock();
        slots.of(key).is_some_and(|slot| match &mut slot.state {
            State::Ready(template) => Arc::ptr_eq(&template.boot, boot) && template.is_fresh(),
            _ => false,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds what is available for a request; begins a boot if nothing valid is.
    fn find(&self, key: &Key, context: &RequestContext<'_>) -> Result<Available, EvalError> {
        let mut slots = self.lock();
        slots.catch_up();
        let mut pause = PAUSE;
        if let Some(slot) = slots.of(key) {
            match &mut slot.state {
                State::Booting(booting) => {
                    let is_maker = booting.take_over();
                    return Ok(Available::Booting(Arc::clone(booting), is_maker));
                }
                State::Ready(template) => {
                    if template.is_fresh() {
                        return Ok(Available::Template(template.fork_as(Origin::Warm)));
                    }
                }
                State::Unforkable { why, seen } => {
                    if seen.check().is_ok() {
                        return Ok(Available::Nothing(Origin::Booted(why.clone())));
                    }
                }
                State::Unable { why, again, .. } if Instant::now() < *again => {
                    return Ok(Available::Nothing(Origin::cold_because(why.as_str())));
                }
                State::Unable { pause: next, .. } => pause = *next,
            }
            slots.by_key.remove(key);
        }
        slots.make_room(self.most);
        let (state, found) = begin(context, pause)?;
        let used = slots.uses;
        slots.by_key.insert(key.clone(), Slot::new(used, state));
        Ok(found)
    }

    /// Handles the end of a boot: keeps its result for later calls and uses it for the call that
    /// began it.
    fn settle(
        &self,
        key: &Key,
        booting: &Arc<Booting>,
        is_maker: bool,
        context: &RequestContext<'_>,
        deadline: Instant,
    ) -> Result<Option<Acquired>, EvalError> {
        let Some(result) = booting.result(is_maker) else {
            return Ok(None); // another call takes it
        };
        let (state, left) = left_by(result, booting.pause());
        self.put(key, state);
        match left {
            // It tries again and finds the current state.
            _ if !is_maker => Ok(None),
            Left::Template(fork) => self.forked(key, fork, context, deadline),
            Left::Failed(failed) => Ok(Some(Acquired::Ended(failed))),
            Left::Nothing(origin) => Ok(Some(Acquired::Nothing(origin))),
            Left::Cancelled => Ok(None),
        }
    }

    /// Forks a template. `None` if it is gone and must be made anew.
    fn forked(
        &self,
        key: &Key,
        fork: Fork,
        context: &RequestContext<'_>,
        deadline: Instant,
    ) -> Result<Option<Acquired>, EvalError> {
        match fork.of(context, deadline) {
            Ok(acquired) => Ok(Some(acquired)),
            Err(ForkError::Gone) => {
                self.put(key, None);
                Ok(None)
            }
            // The obstacle may pass, and the request did not cause it.
            Err(error @ ForkError::Refused(_)) => {
                let origin = Origin::cold_because(error.to_string());
                Ok(Some(Acquired::Nothing(origin)))
            }
            Err(ForkError::Host(error)) => Err(EvalError::Launch(format!(
                "No child could be started: {error}."
            ))),
        }
    }

    /// Sets the state of a key; `None` removes it.
    fn put(&self, key: &Key, state: Option<State>) {
        let mut slots = self.lock();
        slots.uses += 1;
        let used = slots.uses;
        let before = match (state, slots.by_key.get_mut(key)) {
            (Some(state), Some(slot)) => {
                slot.used = used;
                Some(std::mem::replace(&mut slot.state, state))
            }
            (Some(state), None) => {
                slots.by_key.insert(key.clone(), Slot::new(used, state));
                None
            }
            (None, _) => slots.by_key.remove(key).map(|slot| slot.state),
        };
        drop(slots);
        drop(before); // a template takes a moment to end
    }
}

impl Drop for Pool {
    /// Lets its templates go on another thread: their keepers would take turns with this one. Those
    /// that work in directories of the host end first, since the host removes these.
    fn drop(&mut self) {
        if !self.is_own() {
            return;
        }
        let slots = self.slots.get_mut().unwrap_or_else(PoisonError::into_inner);
        let ends_alone = |slot: &Slot| match &slot.state {
            State::Ready(booted) => !booted.template.has_host_files(),
            State::Booting(_) | State::Unforkable { .. } | State::Unable { .. } => false,
        };
        let alone: Vec<_> = slots
            .by_key
            .extract_if(|_, slot| ends_alone(slot))
            .collect();
        if !alone.is_empty() {
            // Without a thread they are let go of here.
            let _ = thread::start("altair-collect", move || {
                std::thread::sleep(ASIDE);
                drop(alone);
            });
        }
    }
}

/// What a boot leaves for later calls, and for the one that began it. `pause` precedes another
/// attempt.
fn left_by(result: BootResult, pause: Duration) -> (Option<State>, Left) {
    match result {
        BootResult::Unable(why) => {
            let origin = Origin::cold_because(why.as_str());
            (Some(State::unable(why, pause)), Left::Nothing(origin))
        }
        BootResult::Cancelled => (None, Left::Cancelled),
        BootResult::Failed(failed) => (None, Left::Failed(failed)),
        BootResult::Template(mut template) => match template.obstacle.take() {
            Some(why) => {
                let seen = template.freshness.take().map(Box::new);
                let origin = Origin::Booted(why.clone());
                let state = seen.map(|seen| State::Unforkable { why, seen });
                (state, Left::Nothing(origin))
            }
            None => {
                let fork = template.fork_as(Origin::First);
                let is_kept = template.freshness.is_some();
                (
                    is_kept.then_some(State::Ready(template)),
                    Left::Template(fork),
                )
            }
        },
    }
}

/// Begins a boot; returns the new state and what is available for this call.
fn begin(context: &RequestContext<'_>, pause: Duration) -> Result<(State, Available), EvalError> {
    let start = match TemplateStart::of(context) {
        Ok(start) => start,
        Err(why) => {
            let origin = Origin::cold_because(why.as_str());
            return Ok((State::unable(why, pause), Available::Nothing(origin)));
        }
    };
    let booting = Booting::begin(start)
        .map_err(|error| EvalError::Launch(format!("No thread could be started: {error}.")))?;
    let booting = Arc::new(booting.after(pause));
    let state = State::Booting(Arc::clone(&booting));
    Ok((state, Available::Booting(booting, true)))
}

/// Waits for a boot. Returns the answer to the call if the boot is not over by the deadline.
fn wait_for(
    booting: &Booting,
    is_maker: bool,
    deadline: Instant,
    observer: &mut dyn Observer,
) -> Result<Option<Acquired>, EvalError> {
    match booting.wait(is_maker, deadline, observer) {
        ControlFlow::Break(()) => {
            if is_maker {
                booting.cancel();
                booting.give_up();
            }
            Err(EvalError::Interrupted)
        }
        ControlFlow::Continue(false) => {
            if is_maker {
                booting.give_up();
            }
            let failed = booting.time_out(deadline + GRACE);
            Ok(Some(Acquired::Ended(Box::new(failed))))
        }
        ControlFlow::Continue(true) => Ok(None),
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
    /// Returns the slot of a key and marks it as used.
    fn of(&mut self, key: &Key) -> Option<&mut Slot> {
        self.uses += 1;
        let slot = self.by_key.get_mut(key)?;
        slot.used = self.uses;
        slot.used_at = Instant::now();
        slot.uses += 1;
        Some(slot)
    }

    /// Returns whether no request of this kind is known, and remembers that there was one now.
    fn is_first(&mut self, key: &Key) -> bool {
        if self.asked.contains(key) {
            return false;
        }
        if self.asked.len() >= ASKED_MAX {
            self.asked.remove(0);
        }
        self.asked.push(key.clone());
        !self.by_key.contains_key(key)
    }

    /// Takes note of what has happened meanwhile: of boots that are over and that no call waits for,
    /// and of templates that have ended, whose keepers would stay zombies of the host.
    fn catch_up(&mut self) {
        self.by_key.retain(|_, slot| {
            if let State::Booting(booting) = &slot.state
                && let Some(result) = booting.unclaimed()
            {
                match left_by(result, booting.pause()).0 {
                    Some(state) => slot.state = state,
                    None => return false,
                }
            }
            match &slot.state {
                State::Ready(booted) => booted.template.is_alive(),
                State::Booting(_) | State::Unforkable { .. } | State::Unable { .. } => true,
            }
        });
    }

    /// Ends the least recently used template if the pool is full.
    fn make_room(&mut self, most: usize) {
        if self.by_key.len() < most {
            return;
        }
        let oldest = self
            .by_key
            .iter()
            .filter(|(_, slot)| slot.is_to_come() || !matches!(slot.state, State::Booting(_)))
            .min_by_key(|(_, slot)| slot.used)
            .map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.by_key.remove(&key);
        }
    }
}

impl BootedTemplate {
    fn is_fresh(&mut self) -> bool {
        let unchanged = |freshness: &mut Freshness| freshness.check().is_ok();
        self.freshness.as_mut().is_some_and(unchanged) && self.files.are_there()
    }

    fn fork_as(&self, origin: Origin) -> Fork {
        Fork {
            template: self.template.clone(),
            spares: Arc::clone(&self.spares),
            boot: Arc::clone(&self.boot),
            guards: self.guards.clone(),
            files: Arc::clone(&self.files),
            origin,
        }
    }
}

impl Fork {
    /// Forks a child for a request.
    fn of(self, context: &RequestContext<'_>, deadline: Instant) -> Result<Acquired, ForkError> {
        let (child, channel, underway) = self.spares.take(&self.template, deadline)?;
        Ok(self.acquired(context, child, channel, underway))
    }

    fn acquired(
        self,
        context: &RequestContext<'_>,
        child: Child,
        channel: OwnedFd,
        underway: Underway,
    ) -> Acquired {
        let child = NewChild::forked(context, child, channel, self.guards, &self.files, underway);
        Acquired::Child(Box::new(child), self.origin, self.boot)
    }
}
