//! A run that a pool was asked for: its host waits for the answer, and takes the run back from a pool
//! that does not begin it.

use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use altair_engine::{EvalError, GRACE, Observer, ToldResult};
use altair_sandbox::Stream;

use crate::asked::{Asked, Asks, NoAnswer, unexpected};
use crate::connection::Received;
use crate::message::{ANSWER_MAX_BYTES, Answer, Next};

/// How long a pool may take to look at a host that asks again and to prepare its run. It refuses after a
/// second.
const TAKING: Duration = Duration::from_millis(1500);
/// When a host looks whether the pool has done so; then after twice as long, and so on.
const LOOK: Duration = Duration::from_millis(1);
/// How long a pool that has begun to work may be silent.
const SILENCE: Duration = Duration::from_secs(2);
/// How often the observer is asked.
const TICK: Duration = Duration::from_millis(100);
/// How long a pool may take, after a run's deadline, to end it and to answer.
const ANSWERED: Duration = Duration::from_secs(10);

/// The wait for the answer to a run.
pub(crate) struct Run {
    asked: Asked,
    /// When there must be an answer.
    deadline: Instant,
    /// When the pool was last heard.
    heard: Instant,
    began: Began,
    /// How long it may be silent before the run begins.
    patience: Duration,
    /// When it looks next whether the pool has taken it.
    look: Duration,
    next: Option<Next>,
}

/// Whether a run may have had effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    /// The pool has taken it.
    Yes,
    /// The pool has said that it is yet to begin.
    No,
    /// If the pool has taken the permit.
    Open,
}

impl Run {
    /// `until`: the end of the run's time.
    pub(crate) fn new(asked: Asked, until: Instant) -> Self {
        Self {
            deadline: until + GRACE + ANSWERED,
            heard: Instant::now(),
            began: match asked.pool {
                Asks::First(_) => Began::Yes,
                Asks::Again(..) => Began::Open,
            },
            patience: TAKING,
            look: LOOK,
            asked,
            next: None,
        }
    }

    /// Waits for the answer. An error: nothing was run.
    pub(crate) fn answer(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<Result<ToldResult, EvalError>, NoAnswer> {
        let mut ticked = Instant::now();
        loop {
            let received = self
                .asked
                .connection
                .receive::<Answer>(ANSWER_MAX_BYTES, Instant::now() + self.tick());
            match received {
                Ok(Some(Received::Message(answer, _))) => {
                    if let Some(end) = self.heard(answer, observer) {
                        return end;
                    }
                }
                Ok(Some(Received::Part(_))) => {
                    self.heard = Instant::now();
                }
                Ok(Some(Received::Closed)) => return self.lost(ErrorKind::UnexpectedEof.into()),
                Ok(None) => {
                    self.look_for_permit();
                    if self.is_overdue() {
                        return self.lost(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return self.lost(error),
            }
            if ticked.elapsed() >= TICK || self.began != Began::Open {
                ticked = Instant::now();
                if observer.tick().is_break() {
                    return Ok(Err(EvalError::Interrupted));
                }
            }
        }
    }

    /// Remembers the pool, and keeps the connection if the pool does.
    pub(crate) fn end(self) {
        self.asked.end(self.next);
    }

    /// Finds out whether the pool has taken the run. A host that has waited for too long takes it back, if
    /// it is there still.
    fn look_for_permit(&mut self) {
        if self.began != Began::Open {
            return;
        }
        if self.is_overdue() && self.asked.take_back() {
            self.began = Began::No;
        } else if self.asked.is_taken() {
            self.began = Began::Yes;
        } else {
            self.look = (self.look * 2).min(TICK);
        }
    }

    /// Takes an answer; returns the end of the run, if it is one.
    fn heard(
        &mut self,
        answer: Answer,
        observer: &mut dyn Observer,
    ) -> Option<Result<Result<ToldResult, EvalError>, NoAnswer>> {
        self.heard = Instant::now();
        match answer {
            Answer::Working => {
                self.began = Began::No;
                self.patience = SILENCE;
                None
            }
            Answer::Begins => {
                self.began = Began::Yes;
                None
            }
            Answer::Output { is_error, chunk } => {
                let stream = if is_error {
                    Stream::Stderr
                } else {
                    Stream::Stdout
                };
                match observer.output(stream, &chunk) {
                    ControlFlow::Continue(()) => None,
                    ControlFlow::Break(()) => Some(Ok(Err(EvalError::Interrupted))),
                }
            }
            Answer::Result { json, next } => {
                self.next = next;
                Some(Ok(Ok(ToldResult(json))))
            }
            Answer::Failed {
                is_request,
                message,
            } => Some(Ok(Err(match is_request {
                true => EvalError::InvalidRequest(message),
                false => EvalError::Launch(message),
            }))),
            // It says so only if nothing has begun.
            Answer::Refused(why) => Some(Err(NoAnswer::Refused(why))),
            Answer::Looked { .. } | Answer::State { .. } | Answer::Stopping => {
                Some(self.lost(unexpected()))
            }
        }
    }

    fn is_overdue(&self) -> bool {
        match self.began {
            Began::Yes => Instant::now() >= self.deadline,
            Began::No | Began::Open => self.heard.elapsed() >= self.patience,
        }
    }

    /// How long it waits at once.
    fn tick(&self) -> Duration {
        match self.began {
            Began::Open => self.look,
            Began::Yes | Began::No => TICK,
        }
    }

    /// No answer will come. The run may have had effects if the pool's last word is not that it is still
    /// to begin, and it is not made again then.
    fn lost(&mut self, why: io::Error) -> Result<Result<ToldResult, EvalError>, NoAnswer> {
        // From now on the pool can say nothing any more; what it has said is there.
        self.asked.connection.close_for_reading();
        loop {
            let now = Instant::now();
            let connection = &mut self.asked.connection;
            match connection.receive::<Answer>(ANSWER_MAX_BYTES, now) {
                Ok(Some(Received::Message(Answer::Working, _))) => self.began = Began::No,
                Ok(Some(Received::Message(Answer::Refused(why), _))) => {
                    return Err(NoAnswer::Refused(why));
                }
                Ok(Some(Received::Message(..))) => self.began = Began::Yes,
                Ok(Some(Received::Part(_))) => {}
                Ok(Some(Received::Closed) | None) | Err(_) => break,
            }
        }
        if self.began == Began::Open && self.asked.take_back() {
            self.began = Began::No;
        }
        match self.began {
            Began::Yes | Began::Open => Ok(Err(EvalError::Launch(
                "The pool ended or did not answer while the run was under way. The run may have had effects, so it was \
                 not made again."
                    .into(),
            ))),
            Began::No => Err(NoAnswer::System(why)),
        }
    }
}
