//! An isolated PHP: a process that lives on between entries and keeps its state.
//!
//! A runtime is the third kind of work of the child program, beside a run and a template. It starts
//! as a run does, cold or as the fork of a template, and serves one [`Order`] after another.

mod cause;
mod ear;
mod line;
mod start;

use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_sandbox::{Ended, Layer, Outgoing, Served, Session};

use crate::audit::{self, AuditedRun};
use crate::blocked::Context;
use crate::channel::{EntryOrder, Left, Order, SourceFile, encode_order};
use crate::directories::Directories;
use crate::guards::GuardStates;
use crate::observer::Observer;
use crate::result::{Blocked, FileChanges};
use crate::warm::Boot;
use crate::{EvalError, file_changes};
use ear::{Ear, Heard, SoftEnd};
pub(crate) use line::{LineEnd, LineRun};

pub use start::{RuntimeStart, project_here};

/// Bytes of a value that a host takes back where no memory limit says how much it can hold.
pub const VALUE_MAX_BYTES: u64 = 2 << 30;

/// How long the search for changed files may take.
const CHANGES_PATIENCE: Duration = Duration::from_millis(500);

/// A file that closures are made from, as the host has read it.
#[derive(Debug, Clone)]
pub struct Source<'s> {
    /// Its name, as in `__FILE__`.
    pub name: &'s [u8],
    /// Its text. Who gives the same again, gives a copy of this pointer.
    pub text: &'s Arc<[u8]>,
    /// Whether `<?` opens code.
    pub short_tags: bool,
}

/// A closure to enter.
#[derive(Debug)]
pub struct Entry<'s> {
    /// The file in which it stands.
    pub source: Source<'s>,
    /// Its number among the closures of that file.
    pub number: u32,
    /// Its first and its last line.
    pub lines: (u32, u32),
    /// Its arguments, encoded ([`by_value`](crate::by_value)).
    pub arguments: Vec<u8>,
    /// The deadline; `None`: that of the runtime.
    pub timeout: Option<Duration>,
    /// `memory_limit`, in bytes; `None`: that of the runtime.
    pub memory_limit_bytes: Option<u64>,
    /// The longest value to take back, in bytes.
    pub value_max_bytes: u64,
}

/// How an entry ended.
#[derive(Debug)]
pub enum Entered {
    /// The closure returned this value, encoded.
    Returned(Vec<u8>),
    /// The closure was cut short, for this reason. The runtime goes on.
    CutShort(String),
    /// The closure was not entered, or its value does not travel; why.
    Refused(String),
    /// The runtime has ended, for this reason.
    Ended(String),
}

/// What became of an order.
enum Asked {
    /// It is done.
    Left(Left),
    /// The process has ended.
    Ended(Box<Ended>),
    /// There is no process to ask.
    Unusable,
}

/// An isolated PHP. Dropping it ends it.
///
/// It belongs to the process that made it: in a fork of that process it cannot be used.
#[derive(Debug)]
pub struct Runtime {
    life: Life,
    heard: Heard,
    /// The files that it has, by their numbers.
    sources: Vec<SentSource>,
    guards: GuardStates,
    timeout: Duration,
    memory_limit_bytes: u64,
    context: Context,
    boot: Arc<Boot>,
    origin: &'static str,
    /// When it began to serve.
    began: Instant,
    audit: Option<AuditedRun>,
    /// Its layer may be in one of them.
    directories: Directories,
    owner: u32,
}

#[derive(Debug)]
enum Life {
    Live(Box<Session>),
    /// Why it has ended, and what it has written.
    Ended(String, Option<Layer>),
}

#[derive(Debug)]
struct SentSource {
    name: Vec<u8>,
    text: Arc<[u8]>,
    short_tags: bool,
}

impl SentSource {
    fn is(&self, source: &Source<'_>) -> bool {
        self.short_tags == source.short_tags
            && self.name == source.name
            && (Arc::ptr_eq(&self.text, source.text) || self.text == *source.text)
    }
}

impl Runtime {
    /// Enters a closure and waits for its end. The observer is shown its output as it is written.
    ///
    /// # Errors
    ///
    /// [`EvalError::Interrupted`] if the observer ended it. The runtime has ended, then.
    pub fn enter(
        &mut self,
        entry: Entry<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Entered, EvalError> {
        let mut packets = Vec::new();
        let known = self.sources.iter().position(|sent| sent.is(&entry.source));
        let source = known.unwrap_or(self.sources.len());
        let source = u32::try_from(source).unwrap_or(u32::MAX);
        if known.is_none() {
            packets = self.sent(&entry.source, source)?;
        }
        let order = Order::Enter(EntryOrder {
            source,
            number: entry.number,
            lines: entry.lines,
            bytes: entry.arguments.len() as u64,
            memory_limit_bytes: entry.memory_limit_bytes.unwrap_or(self.memory_limit_bytes),
            value_max_bytes: entry.value_max_bytes,
        });
        packets.extend(encoded(&order, Box::new(entry.arguments))?);
        self.heard.begin(entry.value_max_bytes);
        let timeout = entry.timeout.unwrap_or(self.timeout);
        match self.ask(packets, timeout, None, observer) {
            Asked::Left(left) => Ok(self.left(left)),
            Asked::Ended(ended) if ended.interrupted => Err(EvalError::Interrupted),
            Asked::Ended(_) | Asked::Unusable => {
                Ok(Entered::Ended(self.unusable().unwrap_or_default()))
            }
        }
    }

    /// Gives the process an order, and waits until it is done. `soft`: what ends the order before
    /// the process is ended.
    fn ask(
        &mut self,
        packets: Vec<Outgoing>,
        timeout: Duration,
        soft: Option<&mut SoftEnd>,
        observer: &mut dyn Observer,
    ) -> Asked {
        if !self.is_own() {
            return Asked::Unusable;
        }
        let Life::Live(session) = &mut self.life else {
            return Asked::Unusable;
        };
        session.give(packets, Instant::now() + timeout);
        // The time to unwind is none that the code was promised.
        let promised = match soft {
            Some(_) => self.timeout,
            None => timeout,
        };
        let mut ear = Ear::new(&mut self.heard, observer).ending_softly(soft);
        match session.serve(&mut ear) {
            // Nothing that it says from now on is the answer to what it is asked.
            Some(Served::Ready) if session.has_unsent() => {
                self.dismiss("it answered before it was asked");
                Asked::Unusable
            }
            Some(Served::Ready) => match self.heard.left.take() {
                Some(left) => Asked::Left(left),
                None => Asked::Unusable,
            },
            Some(Served::Ended(mut ended)) => {
                let layer = ended.layer.take();
                let why = cause::of_end(&ended, &self.heard.messages, Some(promised));
                self.end_audit(false, Some(why.clone()));
                self.life = Life::Ended(why, layer);
                Asked::Ended(ended)
            }
            None => Asked::Unusable,
        }
    }

    /// The packets that send a file, which has this number from now on.
    fn sent(&mut self, source: &Source<'_>, id: u32) -> Result<Vec<Outgoing>, EvalError> {
        let Source {
            name,
            text,
            short_tags,
        } = *source;
        let file = SourceFile {
            id,
            name: name.to_vec(),
            short_tags,
            bytes: text.len() as u64,
        };
        let packets = encoded(&Order::Keep(file), Box::new(Arc::clone(text)))?;
        self.sources.push(SentSource {
            name: name.to_vec(),
            text: Arc::clone(text),
            short_tags,
        });
        Ok(packets.into())
    }

    /// The outcome of an entry after which the runtime goes on.
    fn left(&mut self, left: Left) -> Entered {
        match left {
            Left::Returned if self.heard.is_overlong() => Entered::Refused(
                "its value is larger than the memory limits of the entry and the caller allow"
                    .into(),
            ),
            Left::Returned => Entered::Returned(self.heard.take_value()),
            Left::CutShort(ending) => Entered::CutShort(cause::of_ending(&ending)),
            Left::Refused(why) => Entered::Refused(cause::shown(&why)),
            Left::Ran { .. } | Left::Judged(_) | Left::Completed(_) => {
                Entered::Refused("its answer is of another order".into())
            }
        }
    }

    /// Why it cannot be used; `None` if it can.
    #[must_use]
    pub fn unusable(&self) -> Option<String> {
        if !self.is_own() {
            return Some("this process is a fork of the one that made it".into());
        }
        match &self.life {
            Life::Live(_) => None,
            Life::Ended(why, _) => Some(why.clone()),
        }
    }

    fn is_own(&self) -> bool {
        self.owner == std::process::id()
    }

    /// The files that it has changed so far; `None` if there are none, or if it has no layer.
    #[must_use]
    pub fn file_changes(&self) -> Option<FileChanges> {
        let layer = match &self.life {
            Life::Live(session) => session.child()?.layer(),
            Life::Ended(_, layer) => layer.as_ref(),
        };
        let since = self.heard.messages.boot_ended.filter(|_| !self.is_fork());
        let until = Instant::now() + CHANGES_PATIENCE;
        file_changes::of_run(self.boot.changes.as_ref(), layer, since, until)
    }

    /// What was refused so far, boot included.
    #[must_use]
    pub fn blocked(&self) -> Vec<Blocked> {
        self.heard
            .messages
            .refused
            .clone()
            .list(&self.context, false)
    }

    /// The state of each guard.
    #[must_use]
    pub fn guards(&self) -> &GuardStates {
        &self.guards
    }

    /// How it was started: `cold`, `first`, `warm` or `booted`, as `diagnostics.start` of an
    /// evaluation.
    #[must_use]
    pub fn origin(&self) -> &'static str {
        self.origin
    }

    fn is_fork(&self) -> bool {
        matches!(self.origin, "first" | "warm")
    }

    /// The deadline of an entry that asks for none.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// `memory_limit` of an entry that asks for none, in bytes.
    #[must_use]
    pub fn memory_limit_bytes(&self) -> u64 {
        self.memory_limit_bytes
    }

    /// Ends it: its shutdown functions and destructors run first, within the deadline of an entry.
    /// The observer is shown their output.
    pub fn close(&mut self, observer: &mut dyn Observer) {
        if !self.is_own() {
            return;
        }
        let closed = Life::Ended("it was closed".into(), None);
        if let Life::Live(session) = std::mem::replace(&mut self.life, closed) {
            let deadline = Instant::now() + self.timeout;
            drop(session.end(deadline, &mut Ear::new(&mut self.heard, observer)));
            self.end_audit(true, None);
        }
        self.directories = Directories::default();
    }

    /// Ends it without a word, for this reason.
    fn dismiss(&mut self, why: &str) {
        let ended = Life::Ended(why.to_owned(), None);
        if let Life::Live(session) = std::mem::replace(&mut self.life, ended) {
            let silent = &mut crate::Silent;
            let ended = session.end(Instant::now(), &mut Ear::new(&mut self.heard, silent));
            self.life = Life::Ended(why.to_owned(), ended.and_then(|ended| ended.layer));
        }
        self.end_audit(false, Some(why.to_owned()));
    }

    /// Records the end of an unsafe session. That the log cannot be written does not undo it.
    fn end_audit(&mut self, ok: bool, error: Option<String>) {
        let ending = audit::Ending {
            ok,
            error,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            exit_code: None,
            timed_out: false,
        };
        if let Some(record) = self.audit.take() {
            let _ = record.end(ending);
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.close(&mut crate::Silent);
    }
}

fn encoded(order: &Order, bytes: Box<dyn AsRef<[u8]> + Send>) -> Result<[Outgoing; 2], EvalError> {
    encode_order(order, bytes)
        .map_err(|error| EvalError::Launch(format!("An order cannot be encoded: {error}.")))
}

/// What a runtime's start hands over.
struct Started {
    session: Session,
    heard: Heard,
    guards: GuardStates,
    timeout: Duration,
    memory_limit_bytes: u64,
    context: Context,
    boot: Arc<Boot>,
    origin: &'static str,
    audit: Option<AuditedRun>,
    directories: Directories,
    began: Instant,
}

impl From<Started> for Runtime {
    fn from(started: Started) -> Self {
        Self {
            life: Life::Live(Box::new(started.session)),
            heard: started.heard,
            sources: Vec::new(),
            guards: started.guards,
            timeout: started.timeout,
            memory_limit_bytes: started.memory_limit_bytes,
            context: started.context,
            boot: started.boot,
            origin: started.origin,
            began: started.began,
            audit: started.audit,
            directories: started.directories,
            owner: std::process::id(),
        }
    }
}
