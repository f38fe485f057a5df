//! The pool's side of one connection: whom it serves, and one evaluation.

use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_engine::{
    Delegated, Delegator, EvalError, EvalResult, Evaluation, GRACE, Observer, Pool,
};
use altair_sandbox::Stream;
use altair_sandbox::peer::{self, Sender};
use serde::de::DeserializeOwned;

use crate::challenge::Challenge;
use crate::connection::{Connection, Received};
use crate::host::Seen;
use crate::message::{
    Again, Answer, Intent, Next, ORDER_MAX_BYTES, Order, Proof, SHORT_MAX_BYTES, Salted, Work,
    digest,
};
use crate::named::{self, Checked};
use crate::permit::Permit;
use crate::server::{Held, Place};

/// How long a host may take to ask once it is connected. What it shows of its rights is of this
/// time.
const ASK_PATIENCE: Duration = Duration::from_secs(1);
/// How long a host may take to read what ends the connection.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// How long a host takes to read its result and to do something with it, as a rule.
const TAKEN: Duration = Duration::from_micros(400);
/// How often a host is told that its boot is under way.
const BEAT: Duration = Duration::from_millis(100);

/// How long a host may be silent that keeps its connection.
const KEPT: Duration = Duration::from_secs(60);

const BY_ANOTHER: &str = "another process has connected";
const MAY_NOT_LOOK: &str = "it may not look into the pool";
const TOO_LONG: &str = "the pool took too long to prepare its run";
const TOO_MANY: &str = "it has too many runs under way";

/// What a request was about.
#[derive(Debug)]
pub(crate) enum Served {
    /// A run, or what is there.
    Done,
    /// The host was refused; why.
    Refused(String),
    /// The pool is to end.
    Stop,
}

/// One connection, as long as its host asks over it. It is closed before what is kept for it: as long as
/// it is open, the descriptors that the host was told of are the connection's.
#[derive(Debug)]
pub(crate) struct Conversation<'h> {
    connection: Connection,
    /// The id of the process that has connected.
    connector: i32,
    /// That process, once it has asked.
    host: Option<Sender>,
    seen: Seen,
    /// What that process has named, and may name.
    named: Option<Checked>,
    /// Whether it was last granted what the pool is, so that a fork need not be lowered.
    is_equal: bool,
    held: &'h Held,
    kept: Option<Kept<'h>>,
}

/// What a connection has that is kept.
#[derive(Debug)]
struct Kept<'h> {
    _place: Place<'h>,
    /// The one that the host was told of: its name is the proof of the next request.
    next: Challenge,
    /// The one after it, made while nobody waits.
    spare: Option<Challenge>,
    /// Who makes the run of a request.
    permit: Permit,
}

impl Kept<'_> {
    /// The challenge of the request that has come.
    fn take(&mut self) -> io::Result<Challenge> {
        let next = self.spare.take().map_or_else(Challenge::new, Ok)?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    /// What the host needs for its next request.
    fn next(&self) -> Next {
        Next {
            proof: self.next.descriptor(),
            permit: self.permit.descriptor(),
        }
    }
}

impl<'h> Conversation<'h> {
    /// # Errors
    /// What the kernel reports of the connection.
    pub(crate) fn new(socket: OwnedFd, held: &'h Held) -> io::Result<Self> {
        Ok(Self {
            connector: peer::pid_of_other_end(socket.as_fd())?,
            connection: Connection::asking(socket)?,
            host: None,
            seen: Seen::default(),
            named: None,
            is_equal: false,
            held,
            kept: None,
        })
    }

    /// Serves the first request.
    ///
    /// # Errors
    /// What a host does wrong, and what the kernel reports.
    pub(crate) fn first(&mut self) -> io::Result<Served> {
        let held = self.held;
        let Self {
            connection,
            connector,
            seen,
            is_equal,
            ..
        } = self;
        let until = Instant::now() + ASK_PATIENCE;
        let (intent, sender) = message::<Intent>(connection, SHORT_MAX_BYTES, until)?;
        // A connection may be inherited, and root may name another process as the sender.
        if sender.pid != *connector {
            return refuse(connection, BY_ANOTHER.into());
        }
        if sender.pid <= 0 {
            return refuse(connection, "it is in another pid namespace".into());
        }
        let shown = intent.shows.map(|shows| seen.shown(&sender, &shows, held));
        let name = match shown.transpose() {
            Ok(name) => name,
            Err(why) => return refuse(connection, why),
        };
        // Another process may have had its id when the pool looked.
        if sender.has_ended()? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let challenge = Challenge::new()?;
        let descriptor = challenge.descriptor();
        let looked = Answer::Looked { name, descriptor };
        // A new process takes longer to look at: it looks for its proof meanwhile.
        connection.send(&looked, until)?;
        let delegator = match seen.look(&sender, held) {
            Ok(delegator) => delegator,
            Err(why) => return refuse(connection, why),
        };

        let is_of_sender =
            |by: &Sender| Ok::<_, io::Error>(by.pid == sender.pid && !sender.has_ended()?);
        let (Order { work }, by) = message(connection, ORDER_MAX_BYTES, until)?;
        if !is_of_sender(&by)? || digest(&work) != intent.digest {
            return Err(ErrorKind::InvalidData.into());
        }
        let Salted { work, .. } =
            postcard::from_bytes(&work).map_err(|_| ErrorKind::InvalidData)?;
        let Ok(_running) = held.running_if(&work, sender.pid) else {
            return refuse(connection, TOO_MANY.into());
        };
        // While the host looks for its proof.
        *is_equal = delegator.standing.is_none();
        let prepared = prepare(work, Arc::clone(&held.pool), *is_equal);
        let (Proof { name }, by) = message(connection, SHORT_MAX_BYTES, until)?;
        if !is_of_sender(&by)? {
            return Err(ErrorKind::InvalidData.into());
        }
        // A sandbox that `/proc` does not tell of keeps the host from looking into the pool.
        if !challenge.is_met_by(&name) {
            return refuse(connection, MAY_NOT_LOOK.into());
        }
        if Instant::now() >= until {
            return refuse(connection, TOO_LONG.into());
        }
        drop(challenge);
        self.host = Some(sender);
        self.carry_out(prepared, delegator, intent.keeps)
    }

    /// Waits for the next request; at most for a while. `false`: there will be none.
    pub(crate) fn awaits_another(&self) -> bool {
        let (Some(_), Some(host)) = (&self.kept, &self.host) else {
            return false;
        };
        (self.connection).await_more(host.pidfd.as_fd(), Instant::now() + KEPT)
    }

    /// Serves a further request. The pool looks at the host again, and the host brings another proof.
    ///
    /// # Errors
    /// As for [`Conversation::first`].
    pub(crate) fn further(&mut self) -> io::Result<Served> {
        let until = Instant::now() + ASK_PATIENCE;
        if self
            .host
            .as_ref()
            .is_none_or(|host| host.has_ended().unwrap_or(true))
        {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (again, sender) = message::<Again>(&mut self.connection, ORDER_MAX_BYTES, until)?;
        let Again { name, work } = again;
        if sender.pid != self.connector {
            return self.refuse(BY_ANOTHER.into());
        }
        let challenge = match &mut self.kept {
            Some(kept) => kept.take()?,
            None => return Err(ErrorKind::InvalidData.into()),
        };
        if !challenge.is_met_by(&name) {
            return self.refuse(MAY_NOT_LOOK.into());
        }
        if self.is_given_up() {
            return Err(ErrorKind::TimedOut.into());
        }
        let held = self.held;
        let Ok(_running) = held.running_if(&work, sender.pid) else {
            return self.refuse(TOO_MANY.into());
        };
        // Of this nothing is told before the host is known to be served. First, as a fork wakes and gets
        // ready then while the pool looks. It has no code yet.
        let prepared = prepare(work, Arc::clone(&held.pool), self.is_equal);
        let delegator = match self.seen.look(&sender, held) {
            Ok(delegator) => delegator,
            Err(why) => return self.refuse(why),
        };
        self.is_equal = delegator.standing.is_none();
        if Instant::now() >= until {
            return self.refuse(TOO_LONG.into());
        }
        // From here on the host does not.
        if !self.kept.as_ref().is_some_and(|kept| kept.permit.take()) {
            return Err(ErrorKind::TimedOut.into());
        }
        self.carry_out(prepared, delegator, true)
    }

    /// Whether the host has waited for too long and makes the run by itself.
    fn is_given_up(&self) -> bool {
        (self.kept.as_ref()).is_none_or(|kept| kept.permit.is_taken())
    }

    fn refuse(&mut self, why: String) -> io::Result<Served> {
        self.kept = None;
        refuse(&self.connection, why)
    }

    /// Checks what the host has named for the pool to start. Of the same process it is checked once.
    fn check_named(&mut self, prepared: &Prepared) -> io::Result<Result<(), String>> {
        let Prepared::Run {
            evaluation: Ok(evaluation),
            ..
        } = prepared
        else {
            return Ok(Ok(()));
        };
        let (loaded, host) = (evaluation.loaded(), self.host.as_ref());
        let checked = Some(Checked::of(&loaded));
        if self.named != checked {
            let host = host.ok_or(ErrorKind::InvalidData)?;
            if let Err(why) = named::check(&loaded, host.pid) {
                return Ok(Err(why));
            }
            // Another process may have had its id meanwhile.
            if host.has_ended()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.named = checked;
        }
        Ok(Ok(()))
    }

    /// Does what a host asks for that is served.
    fn carry_out(&mut self, prepared: Prepared, of: Delegator, keeps: bool) -> io::Result<Served> {
        if let Err(why) = self.check_named(&prepared)? {
            return self.refuse(why);
        }
        if !keeps {
            self.kept = None;
        } else if self.kept.is_none()
            && let Some(place) = self.held.place()
            // Without descriptors the connection is not kept.
            && let (Ok(next), Ok(permit)) = (Challenge::new(), Permit::new())
        {
            self.kept = Some(Kept {
                _place: place,
                next,
                spare: None,
                permit,
            });
        }
        let connection = &self.connection;
        let host = self.host.as_ref().ok_or(ErrorKind::InvalidData)?;
        let next = self.kept.as_ref().map(Kept::next);
        let last = || Instant::now() + LAST_PATIENCE;
        let is_answered = match prepared {
            Prepared::Run {
                evaluation: Ok(evaluation),
                listens,
            } => run(evaluation.of(of), (connection, host), listens, next)?,
            // Whatever keeps it from beginning is the host's to find by itself.
            Prepared::Run {
                evaluation: Err(error),
                ..
            } => {
                connection.send(&Answer::Refused(error.to_string()), last())?;
                false
            }
            Prepared::State => {
                let json = serde_json::to_vec(&self.held.state()).map_err(io::Error::other)?;
                connection.send(&Answer::State { json, next }, last())?;
                true
            }
            Prepared::Stop => {
                connection.send(&Answer::Stopping, last())?;
                return Ok(Served::Stop);
            }
        };
        match &mut self.kept {
            Some(kept) if is_answered => kept.spare = Challenge::new().ok(),
            kept => *kept = None,
        }
        Ok(Served::Done)
    }
}

/// What a host asks for, as far as it is made ready before it is begun.
enum Prepared {
    Run {
        evaluation: Result<Box<Delegated>, EvalError>,
        listens: bool,
    },
    State,
    Stop,
}

/// `takes_spare`: as for [`Delegation::prepare`](altair_engine::Delegation::prepare).
fn prepare(work: Work<'_>, pool: Arc<Pool>, takes_spare: bool) -> Prepared {
    match work {
        Work::Run {
            delegation,
            listens,
        } => {
            let delegation = delegation.into_owned();
            Prepared::Run {
                evaluation: delegation.prepare(pool, takes_spare).map(Box::new),
                listens,
            }
        }
        Work::State => Prepared::State,
        Work::Stop => Prepared::Stop,
    }
}

fn refuse(connection: &Connection, why: String) -> io::Result<Served> {
    let until = Instant::now() + LAST_PATIENCE;
    connection.send(&Answer::Refused(why.clone()), until)?;
    Ok(Served::Refused(why))
}

/// Receives a message. All of it is of one process.
fn message<M: DeserializeOwned>(
    connection: &mut Connection,
    most: usize,
    until: Instant,
) -> io::Result<(M, Sender)> {
    let mut first: Option<Sender> = None;
    loop {
        let (sender, message) = match connection.receive(most, until)? {
            None if Instant::now() < until => continue,
            None => return Err(ErrorKind::TimedOut.into()),
            Some(Received::Part(_)) if Instant::now() >= until => {
                return Err(ErrorKind::TimedOut.into());
            }
            Some(Received::Closed) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(Received::Part(sender)) => (sender, None),
            Some(Received::Message(message, sender)) => (sender, Some(message)),
        };
        let sender = sender.ok_or(ErrorKind::InvalidData)?;
        if first.as_ref().is_some_and(|first| first.pid != sender.pid) {
            return Err(ErrorKind::InvalidData.into());
        }
        let of = first.get_or_insert(sender);
        if let Some(message) = message {
            // The pidfd of the first packet: from then on nobody else has its id.
            let pidfd = of.pidfd.as_fd().try_clone_to_owned()?;
            return Ok((message, Sender { pid: of.pid, pidfd }));
        }
    }
}

/// Carries out an evaluation and tells how it ended. Whether there was a result.
fn run(
    evaluation: Evaluation,
    (connection, process): (&Connection, &Sender),
    listens: bool,
    next: Option<Next>,
) -> io::Result<bool> {
    let mut host = Host {
        connection,
        process,
        listens,
        next,
        began: false,
        told: None,
        until: evaluation.deadline() + GRACE,
        answered: Ok(()),
    };
    // To find the addresses of services may take long, and the host is to know that nothing has begun.
    let is_gone = !evaluation.services().is_empty() && host.tick().is_break();
    if is_gone {
        return Err(ErrorKind::BrokenPipe.into());
    }
    let failed = match evaluation.run(&mut host) {
        Ok(_) => return host.answered.map(|()| true),
        Err(error) if !host.began => Answer::Refused(error.to_string()),
        Err(EvalError::InvalidRequest(message)) => Answer::Failed {
            is_request: true,
            message,
        },
        Err(error) => Answer::Failed {
            is_request: false,
            message: error.to_string(),
        },
    };
    connection.send(&failed, Instant::now() + LAST_PATIENCE)?;
    Ok(false)
}

/// The host, as the observer of its run. Its death ends the run.
struct Host<'c> {
    connection: &'c Connection,
    /// Its process. What is forked from it has the connection, too.
    process: &'c Sender,
    listens: bool,
    next: Option<Next>,
    /// The run may have effects.
    began: bool,
    /// When it was last told anything.
    told: Option<Instant>,
    /// How long it may take to read output.
    until: Instant,
    /// Whether it could be given its result.
    answered: io::Result<()>,
}

impl Host<'_> {
    fn is_gone(&self) -> bool {
        self.connection.is_over(self.process.pidfd.as_fd())
    }

    fn tell(&mut self, answer: &Answer, until: Instant) -> ControlFlow<()> {
        self.told = Some(Instant::now());
        match self.connection.send(answer, until) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

impl Observer for Host<'_> {
    fn begins(&mut self) -> ControlFlow<()> {
        self.began = true;
        match self.told {
            // It takes it for begun as long as it is told nothing else.
            None if self.is_gone() => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
            // If it has given up, it runs it by itself: it must not run here as well.
            Some(_) => self.tell(&Answer::Begins, Instant::now() + ASK_PATIENCE),
        }
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        if !self.listens {
            return ControlFlow::Continue(());
        }
        let answer = Answer::Output {
            is_error: stream == Stream::Stderr,
            chunk: chunk.to_vec(),
        };
        // A host that does not read delays its own run, as a full pipe would.
        self.tell(&answer, self.until)
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.is_gone() {
            return ControlFlow::Break(());
        }
        let is_due = self.told.is_none_or(|told| told.elapsed() >= BEAT);
        match !self.began && is_due {
            true => self.tell(&Answer::Working, Instant::now() + ASK_PATIENCE),
            false => ControlFlow::Continue(()),
        }
    }

    fn answered(&mut self, result: &EvalResult) {
        let answer = Answer::Result {
            json: result.told().0,
            next: self.next,
        };
        let until = Instant::now() + LAST_PATIENCE;
        self.answered = self.connection.send(&answer, until);
        // The next fork is made when the host is done: it could have to wait for a processor.
        match self.next {
            Some(_) => {
                let until = Instant::now() + TAKEN;
                self.connection
                    .await_more(self.process.pidfd.as_fd(), until);
            }
            // It closes the connection when it has read.
            None => std::thread::sleep(TAKEN),
        }
    }
}
