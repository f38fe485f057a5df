//! The pool's side of one connection: whom it serves, and one evaluation.

use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_engine::{Delegation, Delegator, EvalError, GRACE, Observer};
use altair_sandbox::peer::{self, Sender};
use altair_sandbox::{Rights, Standing, Stream};
use serde::de::DeserializeOwned;

use crate::challenge::{self, Challenge};
use crate::connection::{Connection, Received};
use crate::message::{ASK_MAX_BYTES, Answer, PROOF_MAX_BYTES, Work};
use crate::server::Held;

/// How long a host may take to ask once it is connected. What it shows of its rights is of this
/// time.
const ASK_PATIENCE: Duration = Duration::from_secs(1);
/// How long a host may take to read what ends the connection.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// How often a host is told that its boot is under way.
const BEAT: Duration = Duration::from_millis(100);

const BY_ANOTHER: &str = "another process has connected";

/// What a connection was about.
pub(crate) enum Served {
    /// A run, or what is there.
    Done,
    /// The host was refused; why.
    Refused(String),
    /// The pool is to end.
    Stop,
}

/// Serves one connection to its end.
pub(crate) fn serve(socket: OwnedFd, held: &Arc<Held>) -> io::Result<Served> {
    let connector = peer::pid_of_other_end(socket.as_fd())?;
    let mut connection = Connection::new(socket)?;
    let until = Instant::now() + ASK_PATIENCE;
    let last = || Instant::now() + LAST_PATIENCE;
    let (mut work, mut sender) = message(&mut connection, ASK_MAX_BYTES, until)?;
    if let Work::Look { descriptor } = work {
        match challenge::look(sender.pid, descriptor) {
            _ if sender.pid != connector => return refuse(&connection, BY_ANOTHER.into()),
            Ok(name) => connection.send(&Answer::Seen(name), until)?,
            Err(error) => {
                let why = format!("the pool may not look into it ({error})");
                return refuse(&connection, why);
            }
        }
        (work, sender) = message(&mut connection, ASK_MAX_BYTES, until)?;
    }
    let mut rights = check(connector, &sender, &held.rights);
    if rights.is_ok() {
        rights = challenge(&mut connection, &sender, until)?;
    }
    if let Err(why) = rights {
        return refuse(&connection, why);
    }
    match work {
        Work::Run {
            delegation,
            listens,
        } => {
            let running = held.running(sender.pid);
            let delegator = match (delegator(&sender), running.is_some()) {
                (Ok(delegator), true) => delegator,
                (Ok(_), false) => {
                    return refuse(&connection, "it has too many runs under way".into());
                }
                (Err(error), _) => return refuse(&connection, error.to_string()),
            };
            connection.send(&Answer::Accepted, until)?;
            let answer = run(*delegation, delegator, &connection, listens, held);
            connection.send(&answer, last())?;
            Ok(Served::Done)
        }
        Work::State => {
            let state = serde_json::to_vec(&held.state()).map_err(io::Error::other)?;
            connection.send(&Answer::State(state), last())?;
            Ok(Served::Done)
        }
        Work::Look { .. } => Err(ErrorKind::InvalidData.into()),
        Work::Stop => {
            connection.send(&Answer::Stopping, last())?;
            Ok(Served::Stop)
        }
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
            Some(Received::Closed) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(Received::Part(sender)) => (sender, None),
            Some(Received::Message(message, sender)) => (sender, Some(message)),
        };
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

/// Has a host that has asked show that it may look into the pool: a sandbox that `/proc` does not
/// tell of refuses that.
fn challenge(
    connection: &mut Connection,
    asked: &Sender,
    until: Instant,
) -> io::Result<Result<(), String>> {
    let challenge = Challenge::new()?;
    let descriptor = challenge.descriptor();
    connection.send(&Answer::Challenge { descriptor }, until)?;
    let (proof, sender) = message::<String>(connection, PROOF_MAX_BYTES, until)?;
    if sender.pid != asked.pid || asked.has_ended()? {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(match challenge.is_met_by(&proof) {
        true => Ok(()),
        false => Err("it may not look into the pool".into()),
    })
}

/// Checks that a host has the pool's rights, no more and no less.
fn check(connector: i32, sender: &Sender, own: &Rights) -> Result<(), String> {
    if sender.pid <= 0 {
        return Err("it is in another pid namespace".into());
    }
    // A connection may be inherited, and root may name another process as the sender.
    if sender.pid != connector {
        return Err(BY_ANOTHER.into());
    }
    let rights = Rights::of(sender.pid, sender.pidfd.as_fd())
        .map_err(|error| format!("the pool may not look into it ({error})"))?;
    match own.difference(&rights) {
        Some(what) => Err(format!("it differs from the pool in its {what}")),
        None => rights.check_filters().map_err(|why| why.to_string()),
    }
}

/// What a run of this host gets at most.
fn delegator(sender: &Sender) -> io::Result<Delegator> {
    Ok(Delegator {
        standing: Standing::of(sender.pid)?,
        umask: umask_of(sender.pid)?,
    })
}

/// A process's umask (proc_pid_status(5), since Linux 4.7).
fn umask_of(pid: i32) -> io::Result<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let umask = umask.and_then(|umask| u32::from_str_radix(umask.trim(), 8).ok());
    umask.ok_or_else(|| io::Error::other("the kernel does not tell its umask"))
}

/// Carries out an evaluation. Whatever keeps it from beginning is the host's to find by itself.
fn run(
    delegation: Delegation,
    delegator: Delegator,
    connection: &Connection,
    listens: bool,
    held: &Held,
) -> Answer {
    let mut host = Host {
        connection,
        listens,
        began: false,
        told: Instant::now(),
        until: Instant::now(),
    };
    let evaluation = match delegation.prepare(Arc::clone(&held.pool), delegator) {
        Ok(evaluation) => evaluation,
        Err(error) => return Answer::Refused(error.to_string()),
    };
    host.until = evaluation.deadline() + GRACE;
    match evaluation.run(&mut host) {
        Ok(result) => Answer::Result(result.to_json().to_string().into_bytes()),
        Err(error) if !host.began => Answer::Refused(error.to_string()),
        Err(EvalError::InvalidRequest(message)) => Answer::Failed {
            is_request: true,
            message,
        },
        Err(error) => Answer::Failed {
            is_request: false,
            message: error.to_string(),
        },
    }
}

/// The host, as the observer of its run. Its death ends the run.
struct Host<'c> {
    connection: &'c Connection,
    listens: bool,
    /// It was told that the run has effects.
    began: bool,
    /// When it was last told anything.
    told: Instant,
    /// How long it may take to read output.
    until: Instant,
}

impl Host<'_> {
    fn tell(&mut self, answer: &Answer, until: Instant) -> ControlFlow<()> {
        self.told = Instant::now();
        match self.connection.send(answer, until) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

impl Observer for Host<'_> {
    fn begins(&mut self) -> ControlFlow<()> {
        // A host that has given up runs it by itself: it must not run here as well.
        self.began = true;
        self.tell(&Answer::Begins, Instant::now() + ASK_PATIENCE)
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
        if self.connection.is_closed() {
            return ControlFlow::Break(());
        }
        match !self.began && self.told.elapsed() >= BEAT {
            true => self.tell(&Answer::Working, Instant::now() + ASK_PATIENCE),
            false => ControlFlow::Continue(()),
        }
    }
}
