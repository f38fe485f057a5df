//! How a fork exits that has nothing more to say: its run is over before the kernel has freed it.

use std::time::{Duration, Instant};

use nix::sched::sched_getcpu;

use crate::child::Status;
use crate::procfs::{Progress, StatFile};
use crate::template::ForkedProcess;

/// How long its end is waited for without sleeping: what a fork still does after its last packet takes
/// less, where it has a processor of its own. To sleep and to wake take longer.
const AT_ONCE: Duration = Duration::from_micros(30);

/// The time between the first two looks that are not [`AT_ONCE`]. Shorter ones take processor time from
/// the process. It doubles each time: where that is slow, processors are scarce.
const LOOK_AGAIN: Duration = Duration::from_micros(20);

/// The same for one of several runs under way: it has to share the processors, so it takes longer.
const LOOK_AGAIN_OF_SEVERAL: Duration = Duration::from_micros(60);

/// The longest time between two looks: what follows the last packet may take as long as the deadline
/// lets it, such as a destructor.
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(20);

/// Looks at a fork until nothing is left of it but the kernel's work.
pub(crate) struct Exiting {
    stat: Option<StatFile>,
    /// Whether it is the only run under way, and its host has another processor.
    is_alone: bool,
    /// Whether the fork's status may be read before it is collected.
    tells: bool,
    /// Where it was seen last.
    processor: Option<usize>,
    status: Option<Status>,
    /// When to look again; from its last packet on.
    look_again: Option<Duration>,
}

impl Exiting {
    /// A first look at a fork that still does something. `is_alone`: no other run is under way, and there are
    /// processors for both.
    pub(crate) fn of(fork: &ForkedProcess, is_alone: bool) -> Self {
        let mut exiting = Self {
            stat: fork.stat(),
            is_alone,
            tells: false,
            processor: None,
            status: None,
            look_again: None,
        };
        exiting.see(fork);
        exiting
    }

    /// Looks at it from now on: it has sent its last packet. It is to go on elsewhere than where its
    /// host runs now, if it is alone: what that gains, other runs would lose.
    pub(crate) fn begin(&mut self, fork: &ForkedProcess) {
        self.see(fork);
        if !self.is_alone {
            self.look_again = Some(LOOK_AGAIN_OF_SEVERAL / 2);
            return;
        }
        match self.processor.filter(|_| self.status.is_none()) {
            Some(on) if sched_getcpu() == Ok(on) => fork.leave_processor(),
            Some(_) => {
                let until = Instant::now() + AT_ONCE;
                while self.status.is_none() && Instant::now() < until {
                    self.look(fork);
                }
            }
            None => {}
        }
        self.look_again = Some(LOOK_AGAIN / 2);
    }

    /// Whether it is looked at.
    pub(crate) fn has_begun(&self) -> bool {
        self.look_again.is_some()
    }

    /// Whether it is looked at until its end is known.
    pub(crate) fn is_awaited(&self) -> bool {
        self.has_begun() && self.status.is_none()
    }

    /// Looks at it, unless its end is known.
    pub(crate) fn look(&mut self, fork: &ForkedProcess) {
        if self.status.is_some() {
            return;
        }
        if let Some(look_again) = &mut self.look_again {
            *look_again = (*look_again * 2).min(LOOK_AGAIN_MAX);
        }
        if !self.stat.as_ref().is_some_and(StatFile::may_have_memory) {
            self.see(fork);
        }
    }

    fn see(&mut self, fork: &ForkedProcess) {
        let stat = self.stat.as_ref();
        match stat.and_then(|stat| fork.progress(stat)) {
            Some(Progress::Alive { tells, processor }) => {
                self.tells = tells;
                self.processor = Some(processor);
            }
            Some(Progress::Exiting { status }) => {
                self.status = self.tells.then(|| Status::of_wait(status));
            }
            None => {}
        }
    }

    /// When to look again.
    pub(crate) fn look_again(&self) -> Option<Duration> {
        self.look_again
    }

    /// How it ends, once that is known.
    pub(crate) fn status(&self) -> Option<Status> {
        self.status
    }
}
