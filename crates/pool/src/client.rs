//! The host's side: asks the pool, and starts one if it is asked often.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use altair_engine::{
    Delegation, Elsewhere, Environment, EvalError, Observer, ToldResult, variable,
};
use altair_sandbox::{Rights, Witness, peer};
use nix::sys::prctl;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::Serialize;

use crate::address::Address;
use crate::asked::{Asked, Asks, NoAnswer, patience, unexpected};
use crate::challenge::{self, Challenge};
use crate::connection::Connection;
use crate::known::Known;
use crate::message::{
    ANSWER_MAX_BYTES, Answer, Intent, Order, Proof, Salted, Shows, State, Work, digest,
};
use crate::run::Run;
use crate::start;

/// How long a pool that was stopped may take to end.
const STOPPED: Duration = Duration::from_secs(10);

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
    /// which is what the variable [`VARIABLE`] said when the host was started.
    #[must_use]
    pub fn named(text: &OsStr, started_with: &[(OsString, OsString)]) -> Self {
        let of_variable = variable(started_with, VARIABLE).filter(|text| !text.is_empty());
        match Self::of(text) {
            Self::Auto => of_variable.map_or(Self::Auto, Self::of),
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

/// A process that changed its user needs a child to be looked at, which is worth it only once.
const HIDDEN: &str =
    "nobody may look into this process, and it is none that keeps its connection to the pool";

/// Asks the pool of its user.
#[derive(Debug, Clone)]
pub struct Client {
    setting: Setting,
    /// The host's own file.
    beside: Option<PathBuf>,
    /// The environment that the host was started with: it says where the program is, and the program is
    /// started with it. The host may have changed its own since, and be no more than a guest of whoever
    /// has started it.
    started_with: Environment,
    /// Whether the host ends after a request.
    once: bool,
}

impl Client {
    /// Asks as `setting` says. `beside`: the host's own file. `started_with`: the environment that the host
    /// was started with.
    #[must_use]
    pub fn new(setting: Setting, beside: Option<PathBuf>, started_with: Environment) -> Self {
        Self {
            setting,
            beside,
            started_with,
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
        let until = Instant::now() + STOPPED;
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
    ) -> Result<Result<ToldResult, EvalError>, NoAnswer> {
        let work = Work::Run {
            delegation: Cow::Borrowed(delegation),
            listens: observer.listens(),
        };
        let mut tries = 0;
        loop {
            let asked = self.ask(&work, |address| self.maybe_start(address))?;
            let is_kept = matches!(asked.pool, Asks::Again { .. });
            let mut run = Run::new(asked, delegation.deadline());
            tries += 1;
            match run.answer(observer) {
                // The pool had no more use for the connection, and there may be another one.
                Err(NoAnswer::System(error))
                    if is_kept && tries == 1 && error.kind() == ErrorKind::UnexpectedEof => {}
                answer => {
                    let answer = answer?;
                    run.end();
                    return Ok(answer);
                }
            }
        }
    }

    /// Starts a pool if it was asked for before, not long ago.
    fn maybe_start(&self, address: &Address) {
        let started_with = &self.started_with;
        if variable(started_with, "CI").is_some() || !address.stamp() {
            return;
        }
        let program = match &self.setting {
            Setting::Off => None,
            Setting::Program(path) => Some(path.clone()).filter(|path| path.is_absolute()),
            Setting::Auto => start::program(self.beside.as_deref(), variable(started_with, "PATH")),
        };
        if let Some(program) = program {
            start::start(&program, address, started_with);
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
        let is_hidden = !prctl::get_dumpable().map_err(io::Error::from)?;
        if is_hidden && self.known.is_none() {
            return Err(NoAnswer::Refused(HIDDEN.into()));
        }
        let shown = match is_hidden || self.own.is_some() {
            true => Some(Shown::new(is_hidden)?),
            false => None,
        };
        let intent = Intent {
            shows: shown.as_ref().map(Shown::told),
            keeps: self.known.is_some(),
            digest,
        };
        self.tell(&intent, until)?;
        if shown.is_none() {
            self.tell(&order, until)?;
        }
        // While the pool looks at this process.
        self.check()?;
        let (name, descriptor) = match self.connection.message(ANSWER_MAX_BYTES, until)? {
            Answer::Looked { name, descriptor } => (name, descriptor),
            Answer::Refused(why) => return Err(NoAnswer::Refused(why)),
            _ => return Err(unexpected().into()),
        };
        if let Some(Shown { challenge, .. }) = shown {
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

/// What this process shows to a pool that looks: a name that only those find who may look into it.
struct Shown {
    challenge: Challenge,
    /// Shows it in place of this process, which nobody may look into.
    witness: Option<Witness>,
}

impl Shown {
    fn new(is_hidden: bool) -> io::Result<Self> {
        let challenge = Challenge::new()?;
        let witness = is_hidden.then(|| Witness::start(challenge.as_fd()));
        Ok(Self {
            witness: witness.transpose()?,
            challenge,
        })
    }

    fn told(&self) -> Shows {
        match &self.witness {
            Some(witness) => Shows {
                witness: Some(witness.pid()),
                descriptor: Witness::SHOWS,
            },
            None => Shows {
                witness: None,
                descriptor: self.challenge.descriptor(),
            },
        }
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
    ) -> Option<Result<ToldResult, EvalError>> {
        self.run(delegation, observer).ok()
    }
}
