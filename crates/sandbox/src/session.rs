//! A process that lives on between the jobs that its host gives it over the channel.

use std::time::{Duration, Instant};

use crate::channel::Outgoing;
use crate::child::Child;
use crate::supervise::{Ended, Observer, SupervisedRun, Supervision};

/// How far away the deadline of a process without a job is: nothing waits for it.
const IDLE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A started process that is supervised while it has a job, and rests in between: its host reads
/// nothing from it then. Dropping it ends the process.
pub struct Session {
    /// `None` in between two calls of [`Session::serve`] that replace it, and after the end.
    run: Option<SupervisedRun>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

/// How a job ended.
#[derive(Debug)]
pub enum Served {
    /// The observer was ready, and everything that the process had written by then is read.
    Ready,
    /// The process has ended, by itself or because its time was up.
    Ended(Box<Ended>),
}

impl Child {
    /// Supervises the process job by job. The supervision's deadline is that of the first.
    #[must_use]
    pub fn hold(self, supervision: Supervision) -> Session {
        Session {
            run: Some(SupervisedRun::new(self, supervision)),
        }
    }
}

impl Session {
    /// Gives the process a job: packets, and the time by which it must be done.
    pub fn give(&mut self, job: Vec<Outgoing>, deadline: Instant) {
        if let Some(run) = &mut self.run {
            run.give(job, deadline);
        }
    }

    /// Supervises the process until [`Observer::is_ready`] returns true or the process has ended.
    /// `None` if it had ended before.
    pub fn serve(&mut self, observer: &mut dyn Observer) -> Option<Served> {
        let run = self.run.as_mut()?;
        let mut has_ended = false;
        while !has_ended && !observer.is_ready() {
            has_ended = run.step(observer);
        }
        if !has_ended {
            run.drain_streams(observer);
        }
        // The observer may have ended it at its last output.
        while !has_ended && run.is_interrupted() {
            has_ended = run.step(observer);
        }
        if has_ended {
            let run = self.run.take()?;
            return Some(Served::Ended(Box::new(run.ended(observer))));
        }
        run.rest(Instant::now() + IDLE);
        Some(Served::Ready)
    }

    /// The process, while it lives.
    #[must_use]
    pub fn child(&self) -> Option<&Child> {
        self.run.as_ref().map(SupervisedRun::child)
    }

    /// Whether it has not yet read all packets that it was given.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.run.as_ref().is_some_and(SupervisedRun::has_unsent)
    }

    /// Whether the process has ended while it had no job.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.run.as_ref().is_none_or(SupervisedRun::has_ended)
    }

    /// Lets the process end by itself, by closing the channel, and ends it at the deadline. Returns
    /// how it ended; `None` if it had ended before.
    pub fn end(mut self, deadline: Instant, observer: &mut dyn Observer) -> Option<Ended> {
        let mut run = self.run.take()?;
        run.close(deadline);
        while !run.step(observer) {}
        Some(run.ended(observer))
    }
}
