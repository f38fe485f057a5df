//! How a fork exits that has nothing more to say: its run is over before the kernel has freed it.

use std::time::Duration;

use nix::sched::sched_getcpu;
use nix::sys::prctl;

use crate::child::Status;
use crate::procfs::{Progress, StatFile};
use crate::template::ForkedProcess;

/// The time between the first two looks. Shorter ones take processor time from the process. It doubles
/// each time: where that is slow, processors are scarce.
const LOOK_AGAIN: Duration = Duration::from_micros(20);

/// The longest time between two looks: what follows the last packet may take as long as the deadline
/// lets it, such as a destructor.
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(20);

/// Looks at a fork until nothing is left of it but the kernel's work.
pub(crate) struct Exiting {
    stat: Option<StatFile>,
    /// Whether the fork's status may be read before it is collected.
    tells: bool,
    status: Option<Status>,
    waits: Option<Waits>,
}

/// Between two looks.
struct Waits {
    look_again: Duration,
    _timers: PreciseTimers,
}

/// The kernel wakes the thread when it asked for, instead of up to 50 µs later (prctl(2),
/// `PR_SET_TIMERSLACK`).
struct PreciseTimers(Option<u64>);

impl PreciseTimers {
    fn begin() -> Self {
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

impl Exiting {
    /// A first look at a fork that still does something.
    pub(crate) fn of(fork: &ForkedProcess) -> Self {
        let mut exiting = Self {
            stat: fork.stat(),
            tells: false,
            status: None,
            waits: None,
        };
        exiting.look(fork);
        exiting
    }

    /// Looks at it from now on: it has sent its last packet. It is to go on elsewhere than where its
    /// host runs now.
    pub(crate) fn begin(&mut self, fork: &ForkedProcess) {
        self.waits = Some(Waits {
            look_again: LOOK_AGAIN / 2,
            _timers: PreciseTimers::begin(),
        });
        if self.look(fork).is_some_and(|on| sched_getcpu() == Ok(on)) {
            fork.leave_processor();
        }
    }

    /// Whether it is looked at.
    pub(crate) fn has_begun(&self) -> bool {
        self.waits.is_some()
    }

    /// Looks at it. Returns the processor that it ran on last.
    pub(crate) fn look(&mut self, fork: &ForkedProcess) -> Option<usize> {
        if let Some(waits) = &mut self.waits {
            waits.look_again = (waits.look_again * 2).min(LOOK_AGAIN_MAX);
        }
        match fork.progress(self.stat.as_ref()?)? {
            Progress::Alive { tells, processor } => {
                self.tells = tells;
                Some(processor)
            }
            Progress::Exiting { status, processor } => {
                self.status = self.tells.then(|| Status::of_wait(status));
                Some(processor)
            }
        }
    }

    /// When to look again.
    pub(crate) fn look_again(&self) -> Option<Duration> {
        self.waits.as_ref().map(|waits| waits.look_again)
    }

    /// How it ends, once that is known.
    pub(crate) fn status(&self) -> Option<Status> {
        self.status
    }
}
