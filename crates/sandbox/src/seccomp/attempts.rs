//! Connections that are being made, each on its own thread, which may wait as long as the process
//! would.
//!
//! A thread that copies the process's descriptor has its own file descriptor table. The copy may be
//! of any file; closing one that the host also has open would release the host's locks on it
//! (fcntl(2), "Record locking").
#![allow(unsafe_code)]

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, OpenHow, ResolveFlag, fcntl, openat2};
use nix::libc::{self, c_int, c_ulong};
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    SockaddrIn, SockaddrIn6, SockaddrLike, UnixAddr, connect, getsockopt, setsockopt,
};
use nix::sys::stat::fstat;
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;

use super::listener::{Answering, Reply};
use super::lock;
use crate::acting::{Acting, For};
use crate::connections::Destination;
use crate::place::by_number;
use crate::{RunAs, system_calls};

/// Maximum number of concurrent connection attempts of one process.
const UNDER_WAY_MAX: usize = 32;

/// Maximum number of the host's connecting threads, for all processes together.
const THREADS_MAX: usize = 128;
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How often a thread that waits for a connection checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

type UnderWay = Mutex<Vec<Arc<Connecting>>>;

/// The attempts of the processes behind a filter.
#[derive(Clone, Default)]
pub(super) struct Attempts(Arc<UnderWay>);

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
                    own.tell(end, &under_way, Some(&answering));
                })?;
            }
            Way::Copied => {
                // Until the thread has its own file descriptor table, it uses ours.
                let (ready, has_own_table) = sync_channel(1);
                let (listener, words) = answering.parts();
                crate::thread::start(NAME, move || {
                    let _live = live;
                    let answering =
                        own_table(listener).map(|listener| Answering::new(listener, words));
                    let _ = ready.send(());
                    let answering = answering.as_ref().ok();
                    let end = match answering {
                        Some(answering) => own.copy_and_make(answering),
                        None => Some(Err(Errno::EAGAIN)),
                    };
                    own.tell(end, &under_way, answering);
                })?;
                let _ = has_own_table.recv();
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

/// One of the [`THREADS_MAX`] threads.
struct Live;

impl Live {
    fn begin() -> Option<Self> {
        let live = Self;
        (THREADS.fetch_add(1, Ordering::Relaxed) < THREADS_MAX).then_some(live)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
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
    ) -> Self {
        Self {
            process,
            thread,
            descriptor,
            destination,
            run_as,
            given_up: AtomicBool::new(false),
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
    fn tell(
        &self,
        end: Option<nix::Result<()>>,
        under_way: &UnderWay,
        answering: Option<&Answering>,
    ) {
        // The same lock order as in `Attempts::begin`.
        let mut under_way = lock(under_way);
        let mut state = lock(&self.state);
        let is_untold = end.is_some_and(|end| {
            let told = answering.is_some_and(|own| own.reply(state.call, Reply::of(end)));
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

    /// Connects as the process would have: a single attempt if its socket does not block, otherwise
    /// until the socket's own timeout. `None`: the connection is no longer wanted.
    fn make(&self, socket: &OwnedFd, inode: u64, answering: &Answering) -> Option<nix::Result<()>> {
        lock(&self.state).inode = Some(inode);
        if !self.is_wanted(answering) {
            return None;
        }
        if let Err(errno) = fits(socket.as_fd(), &self.destination) {
            return Some(Err(errno));
        }
        let Some(patience) = patience(socket) else {
            return Some(self.attempt(socket));
        };
        let until = (patience != Duration::ZERO).then(|| Instant::now() + patience);
        let end = self.attempt_until(socket, until, answering);
        let own = TimeVal::microseconds(patience.as_micros().try_into().unwrap_or(0));
        let _ = setsockopt(socket, SendTimeout, &own);
        end
    }

    fn is_wanted(&self, answering: &Answering) -> bool {
        !self.given_up.load(Ordering::Relaxed) && answering.waits(lock(&self.state).call)
    }

    fn attempt_until(
        &self,
        socket: &OwnedFd,
        until: Option<Instant>,
        answering: &Answering,
    ) -> Option<nix::Result<()>> {
        let look = TimeVal::milliseconds(LOOK.as_millis().try_into().unwrap_or(100));
        loop {
            // Set each time, since the process shares the socket. Restored at the end.
            let _ = setsockopt(socket, SendTimeout, &look);
            match self.attempt(socket) {
                Err(Errno::EINPROGRESS | Errno::EALREADY | Errno::EAGAIN | Errno::EINTR)
                    if until.is_none_or(|until| Instant::now() < until) && blocks(socket) =>
                {
                    if !self.is_wanted(answering) {
                        return None;
                    }
                }
                // The process has made only one attempt, for which this is the error.
                Err(Errno::EALREADY) => return Some(Err(Errno::EINPROGRESS)),
                end => return Some(end),
            }
        }
    }

    fn attempt(&self, socket: &OwnedFd) -> nix::Result<()> {
        let connect = |address: &dyn SockaddrLike| connect(socket.as_raw_fd(), address);
        match &self.destination {
            Destination::Internet(SocketAddr::V4(v4)) => connect(&SockaddrIn::from(*v4)),
            Destination::Internet(SocketAddr::V6(v6)) => connect(&SockaddrIn6::from(*v6)),
            Destination::Local(path) => {
                // Connects as the process's user: the peer sees these credentials (unix(7),
                // SO_PEERCRED), and that user's permissions apply.
                let _as = Acting::begin(self.run_as, For::Everything)?;
                let file = exactly(path)?;
                // Uses the file that was found, instead of looking up its name again.
                let found = by_number(file.as_fd());
                connect(&UnixAddr::new(found.as_str())?)
            }
        }
    }
}

/// Gives the calling thread its own file descriptor table with nothing but `listener`. Before
/// kernel 5.9 it keeps sharing the host's.
pub(super) fn own_table(listener: RawFd) -> nix::Result<OwnedFd> {
    let close_range = |first: RawFd, last: c_ulong, flags: u32| {
        // SAFETY: no pointer is passed; only copies are closed, since the first call unshares the
        // table.
        Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) })
    };
    let others = close_range(listener + 1, u32::MAX.into(), libc::CLOSE_RANGE_UNSHARE);
    if others.is_ok() {
        if let Ok(before) = c_ulong::try_from(listener - 1) {
            close_range(0, before, 0)?;
        }
        return Ok(system_calls::own_descriptor(listener));
    }
    // SAFETY: no pointer is passed.
    let copy = unsafe { libc::fcntl(listener, libc::F_DUPFD_CLOEXEC, 0) };
    Errno::result(copy).map(system_calls::own_descriptor)
}

/// How long a socket waits for a connection; zero: forever; `None`: not at all.
fn patience(socket: &OwnedFd) -> Option<Duration> {
    let patience = getsockopt(socket, SendTimeout).ok()?;
    let patience = u64::try_from(patience.num_microseconds()).ok()?;
    blocks(socket).then(|| Duration::from_micros(patience))
}

fn blocks(socket: &OwnedFd) -> bool {
    fcntl(socket, FcntlArg::F_GETFL)
        .is_ok_and(|flags| !OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK))
}

/// The file at a path, with no symbolic link on the way.
fn exactly(path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(nix::fcntl::AT_FDCWD, path, how)
}

/// Checks that a socket fits a destination; otherwise returns the error of connect(2).
fn fits(socket: BorrowedFd<'_>, destination: &Destination) -> nix::Result<()> {
    let option = |name| system_calls::socket_option(socket, libc::SOL_SOCKET, name);
    let (family, kind) = (option(libc::SO_DOMAIN)?, option(libc::SO_TYPE)?);
    let protocol = option(libc::SO_PROTOCOL)?;
    let fits = match destination {
        Destination::Internet(address) => {
            let own = match address {
                SocketAddr::V4(_) => libc::AF_INET,
                SocketAddr::V6(_) => libc::AF_INET6,
            };
            // With the network on, the filter permits UDP, too.
            family == own
                && [
                    (libc::SOCK_STREAM, libc::IPPROTO_TCP),
                    (libc::SOCK_DGRAM, libc::IPPROTO_UDP),
                ]
                .contains(&(kind, protocol))
        }
        Destination::Local(_) => family == libc::AF_UNIX && kind == libc::SOCK_STREAM,
    };
    fits.then_some(()).ok_or(Errno::EAFNOSUPPORT)
}
