//! The host's side: asks the pool, and starts one if it is asked often.

use std::borrow::Cow;
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
use serde::Serialize;

use crate::address::Address;
use crate::challenge::{self, Challenge};
use crate::connection::{Connection, Received};
use crate::known::{Kept, Known};
use crate::message::{
    ANSWER_MAX_BYTES, Again, Answer, Intent, Next, Order, Proof, Salted, State, Work, digest,
};
use crate::permit::Permit;
use crate::start;

/// How long a pool may take to answer before a host evaluates by itself.
const ANSWER_PATIENCE: Duration = Duration::from_millis(500);
/// How long a pool may take to look at a host that asks again and to prepare its run. It refuses after a
/// second.
const TAKING: Duration = Duration::from_millis(1500);
/// When a host looks whether the pool has done so; then after twice as long, and so on.
const LOOK: Duration = Duration::from_millis(1);
/// How long a pool may take to answer someone who can do nothing without it.
const PATIENCE: Duration = Duration::from_secs(5);
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
    /// Whether the host ends after a request.
    once: bool,
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
        Self {
            setting,
            beside,
            once: false,
        }
    }

    /// For a host that asks once: it need not remember the pool.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// What the pool holds.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn state(&self) -> Result<State, NoAnswer> {
        let mut asked = self.ask(&Work::State, |_| ())?;
        match asked.answer()? {
            Answer::State { json, next } => {
                asked.end(next);
                Ok(serde_json::from_slice(&json).map_err(io::Error::from)?)
            }
            _ => Err(unexpected().into()),
        }
    }

    /// Ends the pool, and with it every run. Returns when it has ended.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn stop(&self) -> Result<(), NoAnswer> {
        let mut asked = self.reach(|_| ())?.ask(&Work::Stop)?;
        match asked.answer()? {
            Answer::Stopping => {}
            _ => return Err(unexpected().into()),
        }
        let Asks::First(pool) = asked.pool else {
            return Err(unexpected().into());
        };
        let until = Instant::now() + ANSWERED;
        while !pool.has_ended()? {
            if Instant::now() >= until {
                return Err(io::Error::from(ErrorKind::TimedOut).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Connects to a pool that is not known. `if_none`: what is done where there is none.
    fn reach(&self, if_none: impl FnOnce(&Address)) -> Result<Reached, NoAnswer> {
        if self.setting == Setting::Off {
            return Err(NoAnswer::Off);
        }
        let own = Rights::own()?;
        own.check_filters()
            .map_err(|why| NoAnswer::Refused(why.to_string()))?;
        let address = Address::of(&own)?;
        let mut reached = Reached::at(own, &address);
        match &mut reached {
            Ok(reached) if !self.once => reached.known = Known::new(&address, &reached.pool),
            Err(NoAnswer::None) => if_none(&address),
            _ => {}
        }
        reached
    }

    /// Asks the pool for something: over the connection that this process keeps, over another one to
    /// the pool that it knows, or over one to whichever pool there is. `if_none`: what is done where
    /// there is none.
    fn ask(&self, work: &Work<'_>, if_none: impl FnOnce(&Address)) -> Result<Asked, NoAnswer> {
        let known = (self.setting != Setting::Off)
            .then(Known::recalled)
            .flatten();
        if let Some(mut known) = known {
            if let Some(kept) = known.kept()
                && let Ok(asked) = Asked::again(kept, work)
            {
                return Ok(asked.of(known));
            }
            if let Some(reached) = Reached::again(known) {
                return reached.ask(work);
            }
        }
        self.reach(if_none)?.ask(work)
    }

    /// Asks for a run. An error: nothing was run.
    fn run(
        &self,
        delegation: &Delegation,
        observer: &mut dyn Observer,
    ) -> Result<Result<EvalResult, EvalError>, NoAnswer> {
        let work = Work::Run {
            delegation: Cow::Borrowed(delegation),
            listens: observer.listens(),
        };
        let mut tries = 0;
        loop {
            let asked = self.ask(&work, |address| self.maybe_start(address))?;
            let is_kept = matches!(asked.pool, Asks::Again { .. });
            let mut run = Run {
                deadline: delegation.deadline() + GRACE + ANSWERED,
                heard: Instant::now(),
                began: match is_kept {
                    true => Began::Open,
                    false => Began::Yes,
                },
                patience: TAKING,
                look: LOOK,
                asked,
                next: None,
            };
            tries += 1;
            match run.answer(observer) {
                // The pool had no more use for the connection, and there may be another one.
                Err(NoAnswer::System(error))
                    if is_kept && tries == 1 && error.kind() == ErrorKind::UnexpectedEof => {}
                answer => {
                    let answer = answer?;
                    run.asked.end(run.next);
                    return Ok(answer);
                }
            }
        }
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

/// A pool that this process is connected to.
pub(crate) struct Reached {
    connection: Connection,
    pool: peer::Sender,
    /// This process's rights, which the pool must have. `None`: it has them, and may look into this
    /// process.
    own: Option<Box<Rights>>,
    /// What is remembered once the pool has answered.
    known: Option<Known>,
}

impl Reached {
    /// Connects to the pool that this process knows. `None` if it is not there any more.
    fn again(known: Known) -> Option<Self> {
        let (connection, pool) = connected(&known.address()?).ok()?;
        known.is(&pool).then_some(Self {
            connection,
            pool,
            own: None,
            known: Some(known),
        })
    }

    /// Connects to the pool at an address.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub(crate) fn at(own: Rights, address: &Address) -> Result<Self, NoAnswer> {
        let (connection, pool) = connected(address)?;
        Ok(Self {
            connection,
            pool,
            own: Some(Box::new(own)),
            known: None,
        })
    }

    /// Checks that the pool has this process's rights, no more and no less, if it is not known.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub(crate) fn check(&self) -> Result<(), NoAnswer> {
        let Some(own) = &self.own else {
            return Ok(());
        };
        let rights = Rights::of(self.pool.pid, self.pool.pidfd.as_fd())?;
        match own.difference(&rights) {
            None => Ok(()),
            Some(what) => Err(NoAnswer::Refused(format!(
                "it differs from the pool in its {what}"
            ))),
        }
    }

    /// Asks for something, and shows that this process may look into the pool. A pool that it does
    /// not know is told of it once it has shown that it may look into this process: one that poses as
    /// the pool may be confined in a way that `/proc` does not tell of.
    fn ask(mut self, work: &Work<'_>) -> Result<Asked, NoAnswer> {
        let until = Instant::now() + patience(work);
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|error| io::Error::other(error.to_string()))?;
        let salted = Salted {
            salt,
            work: work.clone(),
        };
        let work = postcard::to_allocvec(&salted).map_err(io::Error::other)?;
        let digest = digest(&work);
        let order = Order { work };
        let challenge = match self.own {
            None => None,
            Some(_) => Some(Challenge::new()?),
        };
        let shown = Inspectable::now();
        let descriptor = challenge.as_ref().map(Challenge::descriptor);
        let intent = Intent {
            descriptor,
            hides: shown.was_not,
            keeps: self.known.is_some(),
            digest,
        };
        self.tell(&intent, until)?;
        if challenge.is_none() {
            self.tell(&order, until)?;
        }
        // While the pool looks at this process.
        self.check()?;
        let (name, descriptor) = match self.connection.message(ANSWER_MAX_BYTES, until)? {
            Answer::Looked { name, descriptor } => (name, descriptor),
            Answer::Refused(why) => return Err(NoAnswer::Refused(why)),
            _ => return Err(unexpected().into()),
        };
        drop(shown);
        if let Some(challenge) = challenge {
            if !name.is_some_and(|name| challenge.is_met_by(&name)) {
                return Err(NoAnswer::Refused(
                    "it may not look into this process".into(),
                ));
            }
            self.tell(&order, until)?;
        }
        // Without a proof the pool says why it refuses.
        let name = challenge::look(self.pool.pid, descriptor).unwrap_or_default();
        self.tell(&Proof { name }, until)?;
        Ok(Asked {
            connection: self.connection,
            pool: Asks::First(self.pool),
            known: self.known,
            shown: None,
        })
    }

    /// Sends a message. Where the pool takes none any more, it has said why.
    fn tell(&mut self, message: &impl Serialize, until: Instant) -> Result<(), NoAnswer> {
        let Err(error) = self.connection.send(message, until) else {
            return Ok(());
        };
        loop {
            match self.connection.message(ANSWER_MAX_BYTES, Instant::now()) {
                Ok(Answer::Refused(why)) => return Err(NoAnswer::Refused(why)),
                Ok(_) => {}
                Err(_) => return Err(error.into()),
            }
        }
    }
}

/// A pool that was asked for something.
struct Asked {
    connection: Connection,
    pool: Asks,
    /// What is remembered once the pool has answered: whatever goes wrong, its rights or this
    /// process's may have changed.
    known: Option<Known>,
    /// Lets the pool look into this process until the pool is heard. `None`: it has looked.
    shown: Option<Inspectable>,
}

/// How it was asked.
enum Asks {
    /// Over a new connection.
    First(peer::Sender),
    /// Over one that was kept: its process id, and the [`Permit`].
    Again(i32, Permit),
}

impl Asked {
    /// Asks over a connection that was kept. An error: the pool has not got to know of it.
    fn again(kept: Kept, work: &Work<'_>) -> io::Result<Self> {
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
        let shown = Inspectable::now();
        let again = Again {
            name,
            work: work.clone(),
        };
        connection.send(&again, Instant::now() + ANSWER_PATIENCE)?;
        Ok(Self {
            connection,
            pool: Asks::Again(pool, permit),
            known: None,
            shown: Some(shown),
        })
    }

    fn of(mut self, known: Known) -> Self {
        self.known = Some(known);
        self
    }

    /// The answer, to what is answered at once.
    fn answer(&mut self) -> Result<Answer, NoAnswer> {
        let until = Instant::now() + PATIENCE;
        match self.connection.message(ANSWER_MAX_BYTES, until)? {
            Answer::Refused(why) => Err(NoAnswer::Refused(why)),
            answer => Ok(answer),
        }
    }

    /// Remembers the pool, and keeps the connection if the pool does.
    fn end(self, next: Option<Next>) {
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
    fn is_taken(&self) -> bool {
        match &self.pool {
            Asks::First(_) => true,
            Asks::Again(_, permit) => permit.is_taken(),
        }
    }

    /// Takes the run from a pool that has not begun it. `false`: the pool may have.
    fn take_back(&self) -> bool {
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
fn patience(work: &Work<'_>) -> Duration {
    match work {
        Work::Run { .. } => ANSWER_PATIENCE,
        Work::State | Work::Stop => PATIENCE,
    }
}

/// Connects to whoever listens at an address.
fn connected(address: &Address) -> Result<(Connection, peer::Sender), NoAnswer> {
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
    Ok((Connection::new(socket), pool))
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
    fn answer(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<Result<EvalResult, EvalError>, NoAnswer> {
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
                    self.asked.shown = None;
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
            self.asked.shown = None;
        } else {
            self.look = (self.look * 2).min(TICK);
        }
    }

    /// Takes an answer; returns the end of the run, if it is one.
    fn heard(
        &mut self,
        answer: Answer,
        observer: &mut dyn Observer,
    ) -> Option<Result<Result<EvalResult, EvalError>, NoAnswer>> {
        self.heard = Instant::now();
        self.asked.shown = None;
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
            Answer::Result { json, next } => Some(match serde_json::from_slice(&json) {
                Ok(result) => {
                    self.next = next;
                    let mut result: EvalResult = result;
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
    fn lost(&mut self, why: io::Error) -> Result<Result<EvalResult, EvalError>, NoAnswer> {
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
