//! The connections that calls of connect(2) have asked the listener for, each made on its own
//! thread, which may wait as long as the process would.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use nix::libc::c_int;
use nix::sys::stat::fstat;
use nix::unistd::Pid;

use super::apart::Otherwise;
use super::attempt::{Attempt, Live};
use super::listener::{Answering, Reply};
use super::{apart, lock};
use crate::connections::Destination;
use crate::{Refusal, RunAs, system_calls};

/// Maximum number of concurrent connection attempts of one process.
pub(super) const UNDER_WAY_MAX: usize = 32;

type UnderWay = Mutex<Vec<Arc<Connecting>>>;

/// The attempts of the processes behind a filter.
#[derive(Clone, Default)]
pub(super) struct Attempts(Arc<UnderWay>);

/// Maximum number of refusals kept until they are taken.
const REFUSED_MAX: usize = 64;

/// The connections that threads have refused, with the processes that wanted them.
#[derive(Clone, Default)]
pub(super) struct RefusedLater(Arc<Mutex<Vec<(Pid, Refusal)>>>);

impl RefusedLater {
    fn note(&self, process: Pid, refusal: Refusal) {
        let new = (process, refusal);
        let mut refused = lock(&self.0);
        if refused.len() < REFUSED_MAX && !refused.contains(&new) {
            refused.push(new);
        }
    }

    pub(super) fn take(&self) -> Vec<(Pid, Refusal)> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// How a thread gets the socket.
pub(super) enum Way {
    /// It copies the process's descriptor.
    Copied,
    /// The host has made it ([`Sockets`](super::sockets::Sockets)).
    Made {
        /// A descriptor of the calling thread's table, which the new thread shares.
        socket: Arc<OwnedFd>,
        inode: u64,
    },
}

impl Attempts {
    /// Begins a connection, which answers the call; or has the one answer it that was begun by the
    /// same call before a signal interrupted it.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn begin(
        &self,
        connecting: Connecting,
        way: Way,
        answering: &Answering,
    ) -> nix::Result<()> {
        let mut under_way = lock(&self.0);
        if let Some(at) = under_way.iter().position(|other| other.is_for(&connecting)) {
            let call = connecting.call();
            if let Some(other) = under_way.get(at)
                && other.is_made_once_more(call, &way, answering)
            {
                if other.is_over() {
                    under_way.remove(at);
                }
                return Ok(());
            }
            under_way.remove(at);
        }
        let own = under_way
            .iter()
            .filter(|other| other.process == connecting.process && !other.is_over());
        let Some(live) = Live::begin().filter(|_| own.count() < UNDER_WAY_MAX) else {
            return Err(Errno::EAGAIN);
        };
        let connecting = Arc::new(connecting);
        under_way.push(Arc::clone(&connecting));
        drop(under_way);
        let begun = self.start(live, Arc::clone(&connecting), way, answering);
        if begun.is_err() {
            lock(&self.0).retain(|other| !Arc::ptr_eq(other, &connecting));
        }
        begun.map_err(|_| Errno::EAGAIN)
    }

    fn start(
        &self,
        live: Live,
        own: Arc<Connecting>,
        way: Way,
        answering: &Answering,
    ) -> std::io::Result<()> {
        let under_way = Arc::clone(&self.0);
        const NAME: &str = "altair-connect";
        match way {
            Way::Made { socket, inode } => {
                let answering = answering.clone();
                crate::thread::start(NAME, move || {
                    let _live = live;
                    let end = own.make(&socket, inode, &answering);
                    own.tell(end, &under_way, &answering);
                })?;
            }
            Way::Copied => {
                let words = answering.words();
                apart::start(
                    NAME,
                    answering.socket(),
                    Otherwise::Share,
                    move |listener| {
                        let _live = live;
                        let answering = Answering::new(listener, words);
                        let end = own.copy_and_make(&answering);
                        own.tell(end, &under_way, &answering);
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Gives up the attempts of these processes.
    pub(super) fn give_up(&self, of: impl Fn(Pid) -> bool) {
        lock(&self.0).retain(|connecting| {
            let is_wanted = !of(connecting.process);
            connecting.given_up.fetch_or(!is_wanted, Ordering::Relaxed);
            is_wanted
        });
    }
}

/// A connection that is being made.
pub(super) struct Connecting {
    process: Pid,
    /// The calling thread.
    thread: Pid,
    descriptor: c_int,
    destination: Destination,
    run_as: Option<RunAs>,
    given_up: AtomicBool,
    refused: RefusedLater,
    state: Mutex<State>,
}

struct State {
    /// The call to answer. If a signal interrupts it, it is made again with another id.
    call: u64,
    /// The socket's inode number, once it has been copied.
    inode: Option<u64>,
    /// The result, once there is one.
    end: Option<nix::Result<()>>,
}

impl Connecting {
    /// The connection of a process's descriptor that a call of `thread` asks for.
    pub(super) fn new(
        (process, thread): (Pid, Pid),
        descriptor: c_int,
        destination: Destination,
        run_as: Option<RunAs>,
        call: u64,
        refused: RefusedLater,
    ) -> Self {
        Self {
            process,
            thread,
            descriptor,
            destination,
            run_as,
            given_up: AtomicBool::new(false),
            refused,
            state: Mutex::new(State {
                call,
                inode: None,
                end: None,
            }),
        }
    }

    pub(super) fn process(&self) -> Pid {
        self.process
    }

    /// The descriptor, and the thread that uses it.
    pub(super) fn descriptor(&self) -> (Pid, c_int) {
        (self.thread, self.descriptor)
    }

    /// The call to answer.
    pub(super) fn call(&self) -> u64 {
        lock(&self.state).call
    }

    /// Whether it is the same call, made again.
    fn is_for(&self, other: &Self) -> bool {
        self.thread == other.thread
            && self.descriptor == other.descriptor
            && self.destination == other.destination
    }

    fn is_over(&self) -> bool {
        lock(&self.state).end.is_some()
    }

    /// Arranges the answer to a call that is made again; `false` if it is about another socket.
    fn is_made_once_more(&self, call: u64, way: &Way, answering: &Answering) -> bool {
        let mut state = lock(&self.state);
        let is_same = state.inode.is_none_or(|inode| match way {
            Way::Made { inode: other, .. } => inode == *other,
            Way::Copied => {
                let link = format!("/proc/{}/fd/{}", self.process, self.descriptor);
                std::fs::read_link(link)
                    .is_ok_and(|to| to == Path::new(&format!("socket:[{inode}]")))
            }
        });
        if is_same {
            match state.end {
                Some(end) => drop(answering.reply(call, Reply::of(end))),
                None => state.call = call,
            }
        }
        is_same
    }

    /// Answers the call.
    fn tell(&self, end: Option<nix::Result<()>>, under_way: &UnderWay, answering: &Answering) {
        // The same lock order as in `Attempts::begin`.
        let mut under_way = lock(under_way);
        let mut state = lock(&self.state);
        let is_untold = end.is_some_and(|end| {
            let told = answering.reply(state.call, Reply::of(end));
            state.end = Some(end);
            !told && end.is_ok() && !self.given_up.load(Ordering::Relaxed)
        });
        if !is_untold {
            under_way.retain(|other| !std::ptr::eq(Arc::as_ptr(other), self));
        }
    }

    fn copy_and_make(&self, answering: &Answering) -> Option<nix::Result<()>> {
        let copied = system_calls::descriptor_of(self.process, self.descriptor)
            .and_then(|socket| Ok((fstat(&socket)?.st_ino, socket)));
        match copied {
            Ok((inode, socket)) => self.make(&socket, inode, answering),
            Err(errno) => Some(Err(errno)),
        }
    }

    /// Connects as the process would have. `None`: the connection is no longer wanted.
    fn make(&self, socket: &OwnedFd, inode: u64, answering: &Answering) -> Option<nix::Result<()>> {
        lock(&self.state).inode = Some(inode);
        let attempt = Attempt {
            destination: &self.destination,
            run_as: self.run_as,
            refused: &|refusal| self.refused.note(self.process, refusal),
        };
        attempt.make(socket, &|| self.is_wanted(answering))
    }

    fn is_wanted(&self, answering: &Answering) -> bool {
        !self.given_up.load(Ordering::Relaxed) && answering.waits(lock(&self.state).call)
    }
}
