//! Forks of a template that are made before they are asked for: each waits behind its guards for its
//! task.
//!
//! One is made when a run is over, on a thread of the host, so that nobody waits for it. It names no
//! file below the project until its task comes, so it sees what a fork sees that is made then.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use altair_sandbox::{Child, ForkError, Template, channel_pair, thread};

use crate::processors::processors;

/// The spares of one template. Those that nobody has taken end with it.
#[derive(Debug)]
pub(crate) struct Spares {
    /// Whether there can be any.
    possible: bool,
    /// The process whose thread makes them.
    owner: u32,
    kept: Mutex<Kept>,
    /// Tells the thread that it has work.
    work: Condvar,
    /// Tells who waits for a spare that there is one, or will be none.
    made: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    /// Until the template is used no more.
    template: Option<Template>,
    ready: VecDeque<Fork>,
    /// How many there are to be. Those that are missing are made, if there is a thread.
    wanted: usize,
    has_thread: bool,
    /// How many runs wait for one that is being made.
    waiting: usize,
    /// How many runs of the template are under way.
    runs: usize,
    /// A run has had to wait, as one that follows another at once does.
    was_short: bool,
}

/// A fork, and the host's end of its channel.
type Fork = (Child, OwnedFd);

impl Kept {
    fn has_work(&self) -> bool {
        self.missing() > 0
    }

    /// Whether a run that waits gets none of those that are there or are being made.
    fn has_too_few(&self) -> bool {
        self.waiting > self.ready.len() + self.missing()
    }

    /// How many are to be made.
    fn missing(&self) -> usize {
        match self.template {
            Some(_) => self.wanted.saturating_sub(self.ready.len()),
            None => 0,
        }
    }
}

/// A run of a template that is under way. When it is over, a spare for the next one is made.
#[derive(Debug)]
pub(crate) struct Underway {
    of: Arc<Spares>,
    is_followed: bool,
}

impl Underway {
    /// Others of the same host wait for its turn. Each has a fork made before its own, which need not come over
    /// another thread.
    pub(crate) fn followed(mut self) -> Self {
        self.is_followed = true;
        self
    }
}

/// How long to wait for a fork, which takes a millisecond: a stopped template does not answer, and
/// another one can be made.
const FORK_PATIENCE: Duration = Duration::from_millis(500);

/// How long the thread waits for more work. Until then, to wake it costs less than a new one.
const LINGER: Duration = Duration::from_secs(1);

impl Spares {
    /// `possible`: making a fork names no file below the project.
    pub(crate) fn of(template: Template, possible: bool) -> Arc<Self> {
        Arc::new(Self {
            possible,
            owner: std::process::id(),
            kept: Mutex::new(Kept {
                template: Some(template),
                ..Kept::default()
            }),
            work: Condvar::new(),
            made: Condvar::new(),
        })
    }

    /// Returns a fork of `template`, whose spares these are, and the host's end of its channel: a
    /// spare, or one made now. That the template is used no more by others does not matter. `until`:
    /// how long it may wait at most for a spare that is being made.
    ///
    /// # Errors
    /// As for [`Template::fork`].
    pub(crate) fn take(
        self: &Arc<Self>,
        template: &Template,
        until: Instant,
    ) -> Result<(Child, OwnedFd, Underway), ForkError> {
        let underway = self.begin();
        let (child, channel) = match self.next_running(until) {
            Some(spare) => spare,
            None => fork(template)?,
        };
        Ok((child, channel, underway))
    }

    /// Returns a spare for a run, if there is one now.
    pub(crate) fn take_ready(self: &Arc<Self>) -> Option<(Child, OwnedFd, Underway)> {
        let underway = self.begin();
        let (child, channel) = self.next_running(Instant::now())?;
        Some((child, channel, underway))
    }

    fn begin(self: &Arc<Self>) -> Underway {
        self.lock().runs += 1;
        Underway {
            of: Arc::clone(self),
            is_followed: false,
        }
    }

    fn next_running(&self, until: Instant) -> Option<Fork> {
        loop {
            let (child, channel) = self.next(until)?;
            // It may have been ended, as for want of memory.
            if child.is_running() {
                return Some((child.begun_now(), channel));
            }
        }
    }

    /// A spare, or one that is being made and that nobody else waits for: it comes sooner than another
    /// one.
    fn next(&self, until: Instant) -> Option<Fork> {
        let mut kept = self.lock();
        kept.waiting += 1;
        let fork = loop {
            if let Some(fork) = kept.ready.pop_front() {
                // Another one is made after this run, which would compete with it.
                kept.wanted = kept.wanted.saturating_sub(1);
                break Some(fork);
            }
            let left = until.saturating_duration_since(Instant::now());
            if !kept.has_thread || kept.has_too_few() || left.is_zero() {
                break None;
            }
            kept.was_short = true;
            let waited = self.made.wait_timeout(kept, left);
            kept = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        kept.waiting -= 1;
        if kept.has_too_few() {
            // This one was what another one waits for.
            self.made.notify_all();
        }
        fork
    }

    /// Tells the next fork to be taken that its task is about to come, if there is a processor on which
    /// it can wake meanwhile.
    pub(crate) fn alert(&self) {
        if let Some((child, channel)) = self.lock().ready.front()
            && processors() > 1
        {
            child.alert(channel.as_fd());
        }
    }

    /// Whether a fork may be made before its turn.
    pub(crate) fn are_possible(&self) -> bool {
        self.possible
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().ready.len()
    }

    /// Ends those that nobody has taken. There will be no more.
    ///
    /// If the template works in directories of the host, which are removed after its end, this waits
    /// for a fork that is being made in them.
    pub(crate) fn close(&self) {
        if self.owner != std::process::id() {
            return; // a fork of the host, whose copy of the lock may be held for good
        }
        let mut kept = self.lock();
        let template = kept.template.take();
        let unused = std::mem::take(&mut kept.ready);
        self.work.notify_all();
        self.made.notify_all();
        let waits = template.as_ref().is_some_and(Template::has_host_files);
        while waits && kept.has_thread {
            kept = (self.made.wait(kept)).unwrap_or_else(PoisonError::into_inner);
        }
        drop(kept);
        drop((unused, template));
    }

    /// Notes that a run is over, and has spares made for the next ones: one, another if runs follow
    /// each other faster than they are made, or as many as there were runs at once. No more than there
    /// are processors for them. None while others are under way that follow it.
    fn run_is_over(self: &Arc<Self>, is_followed: bool) {
        let mut kept = self.lock();
        let in_demand = kept.runs.max(1 + usize::from(kept.was_short));
        kept.runs -= 1;
        if is_followed && kept.runs > 0 {
            return;
        }
        kept.wanted = in_demand.min(processors());
        if kept.has_too_few() {
            self.made.notify_all();
        }
        if !self.possible || !kept.has_work() {
            return;
        }
        if kept.has_thread {
            self.work.notify_one();
            return;
        }
        let own = Arc::clone(self);
        // Without one, the next run gets a fork made for it.
        kept.has_thread = thread::start("altair-spares", move || own.make()).is_ok();
    }

    /// Makes those that are wanted, as long as there is work now and then.
    fn make(&self) {
        thread::preempt_nobody();
        let mut kept = self.lock();
        while kept.template.is_some() {
            if let Some(template) = kept.template.clone().filter(|_| kept.has_work()) {
                drop(kept);
                let made = fork(&template);
                drop(template); // it may be the last use, which takes a moment to end
                kept = self.lock();
                match made {
                    Ok(fork) if kept.template.is_some() => {
                        kept.ready.push_back(fork);
                        self.made.notify_one();
                    }
                    // The next run that is over asks again.
                    Ok(_) | Err(_) => {
                        kept.wanted = 0;
                        self.made.notify_all();
                    }
                }
                continue;
            }
            let waited = self.work.wait_timeout(kept, LINGER);
            let (now, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            kept = now;
            if timeout.timed_out() && !kept.has_work() {
                kept.was_short = false;
                break;
            }
        }
        kept.has_thread = false;
        self.made.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fork(template: &Template) -> Result<Fork, ForkError> {
    let (channel, theirs) = channel_pair()?;
    Ok((template.fork(theirs, FORK_PATIENCE)?, channel))
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.of.run_is_over(self.is_followed);
    }
}
