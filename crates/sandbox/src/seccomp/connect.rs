//! Connections that a process may make: the host makes them, each on its own thread, which may wait
//! as long as the process would.
//!
//! The address and the descriptor are copied once, checked and then used, so later changes by the
//! process have no effect (seccomp_unotify(2) explains why a call must not continue after its
//! memory was checked).
//!
//! The thread has its own file descriptor table. The copied descriptor may be any file; closing one
//! that the host also has open would release the host's locks on it (fcntl(2), "Record locking").
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, OpenHow, ResolveFlag, fcntl, openat2};
use nix::libc::{self, c_int, c_ulong, seccomp_notif};
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    SockaddrIn, SockaddrIn6, SockaddrLike, UnixAddr, connect, getsockopt, setsockopt,
};
use nix::sys::stat::fstat;
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;

use super::listener::{Answering, Reply};
use super::{memory, threads};
use crate::acting::{Acting, For};
use crate::connections::{Address, Connections, Destination};
use crate::place::by_number;
use crate::{Refusal, RunAs, procfs, system_calls};

/// Maximum number of concurrent connection attempts of one process.
const UNDER_WAY_MAX: usize = 32;

/// Maximum number of the host's connecting threads, for all processes together.
const THREADS_MAX: usize = 128;
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of addresses noted for one process.
const UNMET_MAX: usize = 64;

/// How often a thread that waits for a connection checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Where the processes behind a filter may connect to, and the attempts under way.
pub(crate) struct Connector {
    to: Connections,
    /// The user they run as, if different from the host's.
    run_as: Option<RunAs>,
    under_way: Arc<UnderWay>,
    /// Addresses in the process's own network to which it has connected while nobody was there.
    unmet: Mutex<BTreeSet<SocketAddr>>,
    owner: u32,
}

type UnderWay = Mutex<Vec<Arc<Connecting>>>;

/// The decision about a call.
pub(super) enum Decision {
    /// A thread answers it, or the caller no longer waits.
    Taken,
    /// The process makes it.
    Made,
    /// It fails, as it would have without a filter.
    Fails(Errno),
    /// It is refused.
    Refused(Option<Refusal>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connector {
    pub(crate) fn new(to: Connections, run_as: Option<RunAs>) -> Self {
        Self {
            to,
            run_as,
            under_way: Arc::default(),
            unmet: Mutex::default(),
            owner: std::process::id(),
        }
    }

    /// Whether there is an IPv6 address to connect to.
    pub(super) fn has_v6(&self) -> bool {
        self.to.internet || self.to.addresses.iter().any(SocketAddr::is_ipv6)
    }

    /// Decides about a call of connect(2), and has it made if permitted.
    pub(super) fn decide(&self, call: &seccomp_notif, answering: &Answering) -> Decision {
        let thread = Pid::from_raw(call.pid.cast_signed());
        let [descriptor, address, length, ..] = call.data.args;
        let Some(address) = memory::socket_address(thread, address, length) else {
            return Decision::Refused(Some(Refusal::Connect { to: None }));
        };
        // Whatever the address is by the time that the kernel reads it again, it is one of the
        // process's own network.
        if let Address::Internet(own) = address
            && self.to.is_to_itself(&address)
        {
            self.note(own, thread);
            return Decision::Made;
        }
        let to = address.to_string();
        let Some(destination) = self.to.destination(&address) else {
            return Decision::Refused(super::describe::connect(Some(to)));
        };
        let process = threads::process_of(thread).unwrap_or(thread);
        if let Err(errno) = system_calls::may_copy_descriptors(process) {
            let because = format!("pidfd_getfd(): {}", errno.desc().to_lowercase());
            return Decision::Refused(Some(Refusal::Unserved { to, because }));
        }
        // Checked only now: what was read so far could be from another process that reused the id.
        if !answering.waits(call.id) {
            return Decision::Taken;
        }
        self.take(
            Connecting {
                process,
                thread,
                // Like the kernel, uses the lower half.
                descriptor: descriptor as c_int,
                destination,
                run_as: self.run_as,
                given_up: AtomicBool::new(false),
                state: Mutex::new(State {
                    call: call.id,
                    inode: None,
                    end: None,
                }),
            },
            answering,
        )
    }

    /// Notes whether the process meets itself at an address. If not, it probably means a service of
    /// the machine.
    fn note(&self, address: SocketAddr, thread: Pid) {
        let mut unmet = lock(&self.unmet);
        if procfs::is_bound(thread.as_raw(), address.port()) {
            unmet.remove(&address);
        } else if unmet.len() < UNMET_MAX {
            unmet.insert(address);
        }
    }

    /// Takes the connections that failed because the process's own network has no such service.
    pub(super) fn take_unmet(&self) -> impl Iterator<Item = Refusal> + use<> {
        std::mem::take(&mut *lock(&self.unmet))
            .into_iter()
            .map(|to| Refusal::Connect {
                to: Some(to.to_string()),
            })
    }

    fn take(&self, connecting: Connecting, answering: &Answering) -> Decision {
        let mut under_way = lock(&self.under_way);
        if let Some(at) = under_way.iter().position(|other| other.is_for(&connecting)) {
            let call = lock(&connecting.state).call;
            if let Some(other) = under_way.get(at)
                && other.is_made_once_more(call, answering)
            {
                if other.is_over() {
                    under_way.remove(at);
                }
                return Decision::Taken;
            }
            under_way.remove(at);
        }
        let own = under_way
            .iter()
            .filter(|other| other.process == connecting.process && !other.is_over());
        let Some(live) = Live::begin().filter(|_| own.count() < UNDER_WAY_MAX) else {
            return Decision::Fails(Errno::EAGAIN);
        };
        let connecting = Arc::new(connecting);
        under_way.push(Arc::clone(&connecting));
        drop(under_way);
        // Until the thread has its own file descriptor table, it uses ours.
        let (ready, own_table) = sync_channel(1);
        let (under_way, own) = (Arc::clone(&self.under_way), Arc::clone(&connecting));
        let (listener, words) = answering.parts();
        let begun = crate::thread::start("altair-connect", move || {
            let _live = live;
            own.serve(&under_way, listener, words, &ready);
        });
        if begun.is_err() {
            lock(&self.under_way).retain(|other| !Arc::ptr_eq(other, &connecting));
            return Decision::Fails(Errno::EAGAIN);
        }
        let _ = own_table.recv();
        Decision::Taken
    }

    /// Gives up the attempts of a process that has ended.
    pub(super) fn forget(&self, process: Pid) {
        self.give_up(|of| of == process);
    }

    fn give_up(&self, of: impl Fn(Pid) -> bool) {
        // A fork of the host has no such threads.
        if self.owner != std::process::id() {
            return;
        }
        lock(&self.under_way).retain(|connecting| {
            let is_wanted = !of(connecting.process);
            connecting.given_up.fetch_or(!is_wanted, Ordering::Relaxed);
            is_wanted
        });
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.give_up(|_| true);
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
struct Connecting {
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
    fn is_made_once_more(&self, call: u64, answering: &Answering) -> bool {
        let mut state = lock(&self.state);
        let is_same = state.inode.is_none_or(|inode| {
            let link = format!("/proc/{}/fd/{}", self.process, self.descriptor);
            std::fs::read_link(link).is_ok_and(|to| to == Path::new(&format!("socket:[{inode}]")))
        });
        if is_same {
            match state.end {
                Some(end) => drop(answering.reply(call, Reply::of(end))),
                None => state.call = call,
            }
        }
        is_same
    }

    /// The thread's main function.
    fn serve(&self, under_way: &UnderWay, listener: RawFd, words: usize, ready: &SyncSender<()>) {
        let answering = own_table(listener).map(|listener| Answering::new(listener, words));
        let _ = ready.send(());
        let answering = answering.as_ref().ok();
        let end = match answering {
            Some(answering) => self.make(answering),
            None => Some(Err(Errno::EAGAIN)),
        };
        // The same lock order as in `Connector::take`.
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

    /// Connects as the process would have: a single attempt if its socket does not block, otherwise
    /// until the socket's own timeout. `None`: the connection is no longer wanted.
    fn make(&self, answering: &Answering) -> Option<nix::Result<()>> {
        let socket = match system_calls::descriptor_of(self.process, self.descriptor) {
            Ok(socket) => socket,
            Err(errno) => return Some(Err(errno)),
        };
        lock(&self.state).inode = fstat(&socket).ok().map(|stat| stat.st_ino);
        if !self.is_wanted(answering) {
            return None;
        }
        if let Err(errno) = fits(socket.as_fd(), &self.destination) {
            return Some(Err(errno));
        }
        let Some(patience) = patience(&socket) else {
            return Some(self.attempt(&socket));
        };
        let until = (patience != Duration::ZERO).then(|| Instant::now() + patience);
        let end = self.attempt_until(&socket, until, answering);
        let own = TimeVal::microseconds(patience.as_micros().try_into().unwrap_or(0));
        let _ = setsockopt(&socket, SendTimeout, &own);
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
fn own_table(listener: RawFd) -> nix::Result<OwnedFd> {
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
