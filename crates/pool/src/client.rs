//! The host's side: asks the pool, and starts one if it is asked often.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use altair_engine::{Delegation, Elsewhere, EvalError, EvalResult, GRACE, Observer};
use altair_sandbox::{Rights, Stream, peer};
use nix::sys::prctl;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::address::Address;
use crate::challenge::{self, Challenge};
use crate::connection::{Connection, Received};
use crate::message::{ANSWER_MAX_BYTES, Answer, State, Work};
use crate::start;

/// How long a pool may take to answer before a host evaluates by itself.
const ANSWER_PATIENCE: Duration = Duration::from_millis(500);
/// How long a pool that has begun to work may be silent.
const SILENCE: Duration = Duration::from_secs(2);
/// How often the observer is asked.
const TICK: Duration = Duration::from_millis(100);
/// How long a pool may take, after a run's deadline, to end it and to answer.
const ANSWERED: Duration = Duration::from_secs(10);

/// The variable that says which pool is asked where no ini setting does: `auto`, `off`, or the path
/// of the program that starts one.
pub const VARIABLE: &str = "ALTAIR_EVAL_POOL";

/// Which pool a host asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Setting {
    /// The one that is there, and one is started by the program `altair` beside the host's own file
    /// or on its search path.
    #[default]
    Auto,
    /// None.
    Off,
    /// The one that is there, and one is started by this program; an absolute path.
    Program(PathBuf),
}

impl Setting {
    /// The setting that a text names: `off`, which PHP makes an empty text of, a path, or `auto`,
    /// which is what the variable [`VARIABLE`] says.
    #[must_use]
    pub fn named(text: &OsStr) -> Self {
        let of_variable = || std::env::var_os(VARIABLE).filter(|text| !text.is_empty());
        match Self::of(text) {
            Self::Auto => of_variable().map_or(Self::Auto, |text| Self::of(&text)),
            named => named,
        }
    }

    fn of(text: &OsStr) -> Self {
        match text.to_str().map(str::trim) {
            Some("" | "off" | "0" | "no" | "false") => Self::Off,
            Some("auto" | "1" | "on") => Self::Auto,
            _ => Self::Program(text.into()),
        }
    }
}

/// Asks the pool of its user.
#[derive(Debug, Clone)]
pub struct Client {
    setting: Setting,
    /// The host's own file.
    beside: Option<PathBuf>,
}

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

impl Client {
    /// Asks as `setting` says. `beside`: the host's own file.
    #[must_use]
    pub fn new(setting: Setting, beside: Option<PathBuf>) -> Self {
        Self { setting, beside }
    }

    /// What the pool holds.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn state(&self) -> Result<State, NoAnswer> {
        match self.ask(Work::State)? {
            Answer::State(json) => Ok(serde_json::from_slice(&json).map_err(io::Error::from)?),
            _ => Err(unexpected().into()),
        }
    }

    /// Ends the pool, and with it every run. Returns when it has ended.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn stop(&self) -> Result<(), NoAnswer> {
        let (mut connection, pool) = self.reach(|_| ())?;
        let until = Instant::now() + ANSWER_PATIENCE;
        ask(&mut connection, &pool, &Work::Stop)?;
        match connection.message(ANSWER_MAX_BYTES, until)? {
            Answer::Stopping => {}
            Answer::Refused(why) => return Err(NoAnswer::Refused(why)),
            _ => return Err(unexpected().into()),
        }
        let until = Instant::now() + ANSWERED;
        while !pool.has_ended()? {
            if Instant::now() >= until {
                return Err(io::Error::from(ErrorKind::TimedOut).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn ask(&self, work: Work) -> Result<Answer, NoAnswer> {
        let (mut connection, pool) = self.reach(|_| ())?;
        let until = Instant::now() + ANSWER_PATIENCE;
        let _shown = Inspectable::now();
        ask(&mut connection, &pool, &work)?;
        match connection.message(ANSWER_MAX_BYTES, until)? {
            Answer::Refused(why) => Err(NoAnswer::Refused(why)),
            answer => Ok(answer),
        }
    }

    /// Connects, and checks that the pool has this process's rights, no more and no less.
    /// `if_none`: what is done where there is no pool.
    fn reach(
        &self,
        if_none: impl FnOnce(&Address),
    ) -> Result<(Connection, peer::Sender), NoAnswer> {
        if self.setting == Setting::Off {
            return Err(NoAnswer::Off);
        }
        let own = Rights::own()?;
        own.check_filters()
            .map_err(|why| NoAnswer::Refused(why.to_string()))?;
        let address = Address::of(&own)?;
        let connected = connect(&own, &address);
        if matches!(connected, Err(NoAnswer::None)) {
            if_none(&address);
        }
        connected
    }

    /// Asks for a run. An error: nothing was run.
    fn run(
        &self,
        delegation: &Delegation,
        observer: &mut dyn Observer,
    ) -> Result<Result<EvalResult, EvalError>, NoAnswer> {
        let (mut connection, pool) = self.reach(|address| self.maybe_start(address))?;
        let work = Work::Run {
            delegation: Box::new(delegation.clone()),
            listens: observer.listens(),
        };
        let shown = Inspectable::now();
        ask(&mut connection, &pool, &work)?;
        let mut run = Run {
            connection,
            shown: Some(shown),
            deadline: delegation.deadline() + GRACE + ANSWERED,
            heard: Instant::now(),
            began: false,
        };
        run.answer(observer)
    }

    /// Starts a pool if it was asked for before, not long ago.
    fn maybe_start(&self, address: &Address) {
        if std::env::var_os("CI").is_some() || !address.stamp() {
            return;
        }
        let program = match &self.setting {
            Setting::Off => None,
            Setting::Program(path) => Some(path.clone()).filter(|path| path.is_absolute()),
            Setting::Auto => {
                let path = std::env::var_os("PATH");
                start::program(self.beside.as_deref(), path.as_deref())
            }
        };
        if let Some(program) = program {
            start::start(&program, address);
        }
    }
}

/// Connects to the pool at an address, and checks that it has this process's rights, no more and no
/// less.
///
/// # Errors
/// [`NoAnswer`].
pub(crate) fn connect(
    own: &Rights,
    address: &Address,
) -> Result<(Connection, peer::Sender), NoAnswer> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket =
        socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).map_err(io::Error::from)?;
    match nix::sys::socket::connect(socket.as_raw_fd(), &address.socket()?) {
        Ok(()) => {}
        Err(nix::errno::Errno::ENOENT | nix::errno::Errno::ECONNREFUSED) => {
            return Err(NoAnswer::None);
        }
        Err(errno) => return Err(io::Error::from(errno).into()),
    }
    let pool = peer::listener_of(socket.as_fd())?;
    let rights = Rights::of(pool.pid, pool.pidfd.as_fd())?;
    if let Some(what) = own.difference(&rights) {
        return Err(NoAnswer::Refused(format!(
            "it differs from the pool in its {what}"
        )));
    }
    let mut connection = Connection::new(socket)?;
    check_look(&mut connection)?;
    Ok((connection, pool))
}

/// Has the pool show that it may look into this process. A process that poses as the pool may be
/// confined in a way that `/proc` does not tell of.
fn check_look(connection: &mut Connection) -> Result<(), NoAnswer> {
    let until = Instant::now() + ANSWER_PATIENCE;
    let challenge = Challenge::new()?;
    let descriptor = challenge.descriptor();
    let _shown = Inspectable::now();
    connection.send(&Work::Look { descriptor }, until)?;
    match connection.message(ANSWER_MAX_BYTES, until)? {
        Answer::Seen(name) if challenge.is_met_by(&name) => Ok(()),
        Answer::Seen(_) => Err(NoAnswer::Refused(
            "it may not look into this process".into(),
        )),
        Answer::Refused(why) => Err(NoAnswer::Refused(why)),
        _ => Err(unexpected().into()),
    }
}

/// Asks for something, and shows that this process may look into the pool.
fn ask(connection: &mut Connection, pool: &peer::Sender, work: &Work) -> Result<(), NoAnswer> {
    let until = Instant::now() + ANSWER_PATIENCE;
    connection.send(work, until)?;
    match connection.message(ANSWER_MAX_BYTES, until)? {
        Answer::Challenge { descriptor } => {
            let proof = challenge::look(pool.pid, descriptor)?;
            Ok(connection.send(&proof, until)?)
        }
        Answer::Refused(why) => Err(NoAnswer::Refused(why)),
        _ => Err(unexpected().into()),
    }
}

impl Elsewhere for Client {
    fn carry_out(
        &self,
        delegation: &Delegation,
        observer: &mut dyn Observer,
    ) -> Option<Result<EvalResult, EvalError>> {
        self.run(delegation, observer).ok()
    }
}

/// A run that the pool was asked for.
struct Run {
    connection: Connection,
    /// Until the pool has looked.
    shown: Option<Inspectable>,
    /// When there must be an answer.
    deadline: Instant,
    /// When the pool was last heard.
    heard: Instant,
    /// Whether the run may have had effects.
    began: bool,
}

impl Run {
    fn answer(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<Result<EvalResult, EvalError>, NoAnswer> {
        loop {
            let received = self
                .connection
                .receive::<Answer>(ANSWER_MAX_BYTES, Instant::now() + TICK);
            match received {
                Ok(Some(Received::Message(answer, _))) => {
                    if let Some(end) = self.heard(answer, observer) {
                        return end;
                    }
                }
                Ok(Some(Received::Part(_))) => self.heard = Instant::now(),
                Ok(Some(Received::Closed)) => return self.lost(ErrorKind::UnexpectedEof.into()),
                Ok(None) => {
                    if self.is_overdue() {
                        return self.lost(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return self.lost(error),
            }
            if observer.tick().is_break() {
                return Ok(Err(EvalError::Interrupted));
            }
        }
    }

    /// Takes an answer; returns the end of the run, if it is one.
    fn heard(
        &mut self,
        answer: Answer,
        observer: &mut dyn Observer,
    ) -> Option<Result<Result<EvalResult, EvalError>, NoAnswer>> {
        self.heard = Instant::now();
        self.shown = None;
        match answer {
            Answer::Accepted | Answer::Working => None,
            Answer::Begins => {
                self.began = true;
                match observer.begins() {
                    ControlFlow::Continue(()) => None,
                    ControlFlow::Break(()) => Some(Ok(Err(EvalError::Interrupted))),
                }
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
            Answer::Result(json) => Some(match serde_json::from_slice(&json) {
                Ok(json) => {
                    let mut result = EvalResult::from_json(json);
                    result.diagnostics.pool = true;
                    Ok(Ok(result))
                }
                Err(error) => self.lost(error.into()),
            }),
            Answer::Failed {
                is_request,
                message,
            } => Some(Ok(Err(match is_request {
                true => EvalError::InvalidRequest(message),
                false => EvalError::Launch(message),
            }))),
            Answer::Refused(why) if !self.began => Some(Err(NoAnswer::Refused(why))),
            Answer::Refused(_)
            | Answer::Challenge { .. }
            | Answer::State(_)
            | Answer::Seen(_)
            | Answer::Stopping => Some(self.lost(unexpected())),
        }
    }

    fn is_overdue(&self) -> bool {
        match self.began {
            true => Instant::now() >= self.deadline,
            false => self.heard.elapsed() >= SILENCE,
        }
    }

    /// No answer will come. The run may have had effects if the pool has said that it begins, and it
    /// is not made again then.
    fn lost(&mut self, why: io::Error) -> Result<Result<EvalResult, EvalError>, NoAnswer> {
        // From now on the pool cannot say so any more; what it has said is there.
        self.connection.close_for_reading();
        while !self.began {
            let now = Instant::now();
            match self.connection.receive::<Answer>(ANSWER_MAX_BYTES, now) {
                Ok(Some(Received::Message(answer, _))) => {
                    self.began = matches!(answer, Answer::Begins);
                }
                Ok(Some(Received::Part(_))) => {}
                Ok(Some(Received::Closed) | None) | Err(_) => break,
            }
        }
        match self.began {
            true => Ok(Err(EvalError::Launch(
                "The pool ended or did not answer while the run was under way. The run may have had effects, so it was \
                 not made again."
                    .into(),
            ))),
            false => Err(NoAnswer::System(why)),
        }
    }
}

fn unexpected() -> io::Error {
    ErrorKind::InvalidData.into()
}

/// Lets processes of its own user look into this one as long as it lives (prctl(2),
/// `PR_SET_DUMPABLE`): workers of php-fpm, which have changed their user, let nobody look, and the
/// pool must see that they are not confined.
struct Inspectable {
    was_not: bool,
}

impl Inspectable {
    fn now() -> Self {
        let was_not = prctl::get_dumpable().is_ok_and(|dumpable| !dumpable);
        if was_not {
            let _ = prctl::set_dumpable(true);
        }
        Self { was_not }
    }
}

impl Drop for Inspectable {
    fn drop(&mut self) {
        if self.was_not {
            let _ = prctl::set_dumpable(false);
        }
    }
}
