//! A pool that was asked for something, and what it answers at once.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use altair_sandbox::peer;

use crate::challenge;
use crate::connection::Connection;
use crate::known::{Kept, Known};
use crate::message::{ANSWER_MAX_BYTES, Again, Answer, Next, Work};
use crate::permit::Permit;

/// How long a pool may take to answer before a host evaluates by itself.
const ANSWER_PATIENCE: Duration = Duration::from_millis(500);
/// How long a pool may take to answer someone who can do nothing without it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a pool has not answered.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// None is asked.
    #[error("altair_eval.pool is off")]
    Off,
    /// There is none.
    #[error("no pool is running")]
    None,
    /// It does not serve this process.
    #[error("{0}")]
    Refused(String),
    /// It could not be reached, or does not answer.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// A pool that was asked for something.
pub(crate) struct Asked {
    pub connection: Connection,
    pub pool: Asks,
    /// What is remembered once the pool has answered: whatever goes wrong, its rights or this
    /// process's may have changed.
    pub known: Option<Known>,
}

/// How it was asked.
pub(crate) enum Asks {
    /// Over a new connection.
    First(peer::Sender),
    /// Over one that was kept: its process id, and the [`Permit`].
    Again(i32, Permit),
}

impl Asked {
    /// Asks over a connection that was kept. An error: the pool has not got to know of it.
    pub(crate) fn again(kept: Kept, work: &Work<'_>) -> io::Result<Self> {
        let Kept {
            connection,
            pool,
            proof,
            permit,
            ..
        } = kept;
        // Without a proof the pool says why it refuses.
        let name = challenge::look(pool, proof).unwrap_or_default();
        permit.lay()?;
        let again = Again {
            name,
            work: work.clone(),
        };
        connection.send(&again, Instant::now() + ANSWER_PATIENCE)?;
        Ok(Self {
            connection,
            pool: Asks::Again(pool, permit),
            known: None,
        })
    }

    pub(crate) fn of(mut self, known: Known) -> Self {
        self.known = Some(known);
        self
    }

    /// The answer, to what is answered at once.
    pub(crate) fn answer(&mut self) -> Result<Answer, NoAnswer> {
        let until = Instant::now() + PATIENCE;
        match self.connection.message(ANSWER_MAX_BYTES, until)? {
            Answer::Refused(why) => Err(NoAnswer::Refused(why)),
            answer => Ok(answer),
        }
    }

    /// Remembers the pool, and keeps the connection if the pool does.
    pub(crate) fn end(self, next: Option<Next>) {
        let Some(mut known) = self.known else {
            return;
        };
        if let Some(next) = next
            && let Some((pool, permit)) = self.pool.permit(next.permit, &self.connection)
        {
            known.keep(Kept {
                by: std::process::id(),
                connection: self.connection,
                pool,
                proof: next.proof,
                permit,
            });
        }
        known.remember();
    }

    /// Whether the pool makes the run, and nobody else.
    pub(crate) fn is_taken(&self) -> bool {
        match &self.pool {
            Asks::First(_) => true,
            Asks::Again(_, permit) => permit.is_taken(),
        }
    }

    /// Takes the run from a pool that has not begun it. `false`: the pool may have.
    pub(crate) fn take_back(&self) -> bool {
        match &self.pool {
            Asks::First(_) => false,
            Asks::Again(_, permit) => permit.take(),
        }
    }
}

impl Asks {
    /// The pool's process id, and the permit of the next request.
    fn permit(self, descriptor: i32, connection: &Connection) -> Option<(i32, Permit)> {
        match self {
            Self::First(pool) => {
                let permit = Permit::of(pool.pid, descriptor).ok()?;
                // Another process may have had the pool's id when it was opened, or another connection
                // that descriptor: not as long as this one is open.
                (!connection.is_over(pool.pidfd.as_fd())).then_some((pool.pid, permit))
            }
            Self::Again(pool, permit) => Some((pool, permit)),
        }
    }
}

/// How long a pool may take until it is known whether it does something.
pub(crate) fn patience(work: &Work<'_>) -> Duration {
    match work {
        Work::Run { .. } => ANSWER_PATIENCE,
        Work::State | Work::Stop => PATIENCE,
    }
}

pub(crate) fn unexpected() -> io::Error {
    ErrorKind::InvalidData.into()
}
