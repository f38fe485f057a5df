//! Connections that a process may make: the host makes them, each on a thread of its own, which may
//! wait as long as the process would.
//!
//! What the process names is copied once, looked at, and used; what it changes afterwards (the
//! address in its memory, what its descriptor is) changes nothing (seccomp_unotify(2) says why a
//! call must not go on after a look at its memory).
#![allow(unsafe_code)]

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, OpenHow, ResolveFlag, fcntl, openat2};
use nix::libc::{self, c_int, c_long, seccomp_notif};
use nix::sys::prctl;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    Shutdown, SockaddrIn, SockaddrIn6, SockaddrLike, UnixAddr, connect, getsockopt, setsockopt,
    shutdown,
};
use nix::sys::stat::fstat;
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;

use super::listener::{Answering, Reply};
use super::{memory, threads};
use crate::connections::{Connections, Destination};
use crate::{Refusal, RunAs, sys};

/// Connections of one process that are under way at once.
const UNDER_WAY_MAX: usize = 32;

/// How often a thread that waits for a connection looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Where the processes behind a filter may connect to, and what is under way.
pub(crate) struct Connector {
    to: Connections,
    /// Whom they run as, where that is not whom the host runs as.
    run_as: Option<RunAs>,
    under_way: Mutex<Vec<(Pid, Weak<Connecting>)>>,
    /// Sockets that are connected, and whose process does not know: a signal has interrupted its
    /// call, which it makes once more.
    untold: Arc<Mutex<Vec<(Pid, Inode)>>>,
    owner: u32,
}

/// What tells a socket from all others: the number of its inode.
type Inode = u64;

/// Sockets that are remembered as connected.
const UNTOLD_MAX: usize = 64;

/// What becomes of a call.
pub(super) enum Decision {
    /// A thread answers it, or nobody waits for an answer.
    Taken,
    /// It fails, as it would have without a filter.
    Fails(Errno),
    /// It is refused.
    Refused(Option<Refusal>),
}

impl Connector {
    pub(crate) fn new(to: Connections, run_as: Option<RunAs>) -> Self {
        Self {
            to,
            run_as,
            under_way: Mutex::default(),
            untold: Arc::default(),
            owner: std::process::id(),
        }
    }

    /// Whether there is an address of IPv6 to connect to.
    pub(super) fn has_v6(&self) -> bool {
        self.to.internet || self.to.addresses.iter().any(SocketAddr::is_ipv6)
    }

    /// Decides about a call of connect(2), and has it made where it may be.
    pub(super) fn decide(&self, call: &seccomp_notif, answering: &Answering) -> Decision {
        let thread = Pid::from_raw(call.pid.cast_signed());
        let [descriptor, address, length, ..] = call.data.args;
        let Some(address) = memory::socket_address(thread, address, length) else {
            return Decision::Refused(Some(Refusal::Connect { to: None }));
        };
        let to = address.to_string();
        let Some(destination) = self.to.destination(&address) else {
            return Decision::Refused(super::describe::connect(Some(to)));
        };
        let process = threads::process_of(thread).unwrap_or(thread);
        // As the kernel takes it: the lower half.
        let socket = match sys::descriptor_of(process, descriptor as c_int) {
            Ok(socket) => socket,
            Err(Errno::EBADF) => return Decision::Fails(Errno::EBADF),
            Err(errno) => {
                let because = format!("pidfd_getfd(): {}", errno.desc().to_lowercase());
                return Decision::Refused(Some(Refusal::Unserved { to, because }));
            }
        };
        // Only now: what was read so far could have been another process's, of the same id.
        if !answering.waits(call.id) {
            return Decision::Taken;
        }
        if let Err(errno) = fits(socket.as_fd(), &destination) {
            return Decision::Fails(errno);
        }
        let socket_of = (process, fstat(&socket).map_or(0, |stat| stat.st_ino));
        if self.was_untold(socket_of) {
            answering.reply(call.id, Reply::Done);
            return Decision::Taken;
        }
        match self.begin(Connecting::new(socket, destination, self.run_as), process) {
            Some(connecting) => {
                let (id, answering) = (call.id, answering.clone());
                let untold = Arc::clone(&self.untold);
                let begun = crate::thread::start("altair-connect", move || {
                    let result = connecting.complete();
                    let told =
                        answering.reply(id, result.map_or_else(Reply::Fail, |()| Reply::Done));
                    let mut untold = untold.lock().unwrap_or_else(PoisonError::into_inner);
                    if result.is_ok() && !told && untold.len() < UNTOLD_MAX {
                        untold.push(socket_of);
                    }
                });
                begun.map_or(Decision::Fails(Errno::EAGAIN), |_| Decision::Taken)
            }
            None => Decision::Fails(Errno::EAGAIN),
        }
    }

    fn was_untold(&self, socket: (Pid, Inode)) -> bool {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let before = untold.len();
        untold.retain(|other| *other != socket);
        untold.len() < before
    }

    /// Notes a connection that is about to be made; `None`: there are too many.
    fn begin(&self, connecting: Connecting, process: Pid) -> Option<Arc<Connecting>> {
        let mut under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|(_, connecting)| connecting.strong_count() > 0);
        if under_way.iter().filter(|(of, _)| *of == process).count() >= UNDER_WAY_MAX {
            return None;
        }
        let connecting = Arc::new(connecting);
        under_way.push((process, Arc::downgrade(&connecting)));
        Some(connecting)
    }

    /// Gives up what is under way for a process that has ended.
    pub(super) fn forget(&self, process: Pid) {
        self.give_up(|of| of == process);
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.retain(|(of, _)| *of != process);
    }

    fn give_up(&self, of: impl Fn(Pid) -> bool) {
        // A fork of the host has no such threads, but copies of their descriptors.
        if self.owner != std::process::id() {
            return;
        }
        let under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        under_way
            .iter()
            .filter(|(process, _)| of(*process))
            .filter_map(|(_, connecting)| connecting.upgrade())
            .for_each(|connecting| connecting.give_up());
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.give_up(|_| true);
    }
}

/// A connection that is being made.
struct Connecting {
    /// The host's copy of the process's socket.
    socket: OwnedFd,
    destination: Destination,
    run_as: Option<RunAs>,
    given_up: AtomicBool,
}

impl Connecting {
    fn new(socket: OwnedFd, destination: Destination, run_as: Option<RunAs>) -> Self {
        Self {
            socket,
            destination,
            run_as,
            given_up: AtomicBool::new(false),
        }
    }

    fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        // Ends an attempt by TCP at once.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }

    /// Makes it, as the process would have: at once where its socket does not block, else for as long
    /// as the socket's own time for it.
    fn complete(&self) -> nix::Result<()> {
        let Some(patience) = self.patience() else {
            return self.attempt();
        };
        // The time is the socket's, not ours: it is put back. A process that changes it meanwhile has
        // its own connection wait longer or shorter.
        let look = TimeVal::milliseconds(LOOK.as_millis().try_into().unwrap_or(100));
        setsockopt(&self.socket, SendTimeout, &look)?;
        let until = (patience != Duration::ZERO).then(|| Instant::now() + patience);
        let result = self.attempt_until(until);
        let own = TimeVal::microseconds(patience.as_micros().try_into().unwrap_or(0));
        let _ = setsockopt(&self.socket, SendTimeout, &own);
        result
    }

    fn attempt_until(&self, until: Option<Instant>) -> nix::Result<()> {
        loop {
            match self.attempt() {
                Err(Errno::EINPROGRESS | Errno::EALREADY | Errno::EAGAIN | Errno::EINTR)
                    if !self.given_up.load(Ordering::Relaxed)
                        && until.is_none_or(|until| Instant::now() < until)
                        && self.blocks() => {}
                // What the process would have been told, whose only attempt this is.
                Err(Errno::EALREADY) => return Err(Errno::EINPROGRESS),
                result => return result,
            }
        }
    }

    /// How long the process's socket waits for a connection, zero for ever; `None`: not at all.
    fn patience(&self) -> Option<Duration> {
        let patience = getsockopt(&self.socket, SendTimeout).ok()?;
        let patience = u64::try_from(patience.num_microseconds()).ok()?;
        self.blocks().then(|| Duration::from_micros(patience))
    }

    fn blocks(&self) -> bool {
        fcntl(&self.socket, FcntlArg::F_GETFL)
            .is_ok_and(|flags| !OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK))
    }

    fn attempt(&self) -> nix::Result<()> {
        match &self.destination {
            Destination::Internet(SocketAddr::V4(v4)) => self.connect(&SockaddrIn::from(*v4)),
            Destination::Internet(SocketAddr::V6(v6)) => self.connect(&SockaddrIn6::from(*v6)),
            Destination::Local(path) => {
                // Who asks is whom the other end is told of (unix(7), SO_PEERCRED).
                let _as = self.run_as.map(Acting::begin).transpose()?;
                let file = exactly(path)?;
                // By the file that was found, and not by its name once more.
                let found = format!("/proc/self/fd/{}", file.as_raw_fd());
                self.connect(&UnixAddr::new(found.as_str())?)
            }
        }
    }

    fn connect(&self, address: &dyn SockaddrLike) -> nix::Result<()> {
        connect(self.socket.as_raw_fd(), address)
    }
}

/// The file at a path, with no symbolic link on the way.
fn exactly(path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(nix::fcntl::AT_FDCWD, path, how)
}

/// Whether a socket is one for a destination; else what connect(2) would say.
fn fits(socket: BorrowedFd<'_>, destination: &Destination) -> nix::Result<()> {
    let option = |name| sys::socket_option(socket, libc::SOL_SOCKET, name);
    let (family, kind) = (option(libc::SO_DOMAIN)?, option(libc::SO_TYPE)?);
    let protocol = option(libc::SO_PROTOCOL)?;
    let fits = match destination {
        Destination::Internet(address) => {
            let own = match address {
                SocketAddr::V4(_) => libc::AF_INET,
                SocketAddr::V6(_) => libc::AF_INET6,
            };
            // With the network on, the filter lets the process have UDP, too.
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

/// The calling thread acts as another user, in no other group, until this is dropped; then it is to
/// end, as it does not get its groups back.
///
/// Its real and its saved user stay the host's: nobody but those who may do it to the host can send
/// it a signal or look into it. What the kernel forbids to look into for the change's sake is the
/// host as a whole, and is allowed again (prctl(2), PR_SET_DUMPABLE).
struct Acting {
    before: c_long,
}

/// Whether the host could be looked into before the first of these.
static DUMPABLE: OnceLock<bool> = OnceLock::new();

impl Acting {
    fn begin(user: RunAs) -> nix::Result<Self> {
        DUMPABLE.get_or_init(|| prctl::get_dumpable().unwrap_or(false));
        let before = nix::unistd::geteuid().as_raw().into();
        let acting = Self { before };
        // The C library's own calls would change all threads.
        // SAFETY: no pointer is passed; a list of no groups is at null.
        unsafe {
            Errno::result(libc::syscall(libc::SYS_setgroups, 0, 0))?;
            Errno::result(libc::syscall(libc::SYS_setresgid, -1, user.gid, -1))?;
            Errno::result(libc::syscall(libc::SYS_setresuid, -1, user.uid, -1))?;
        }
        Ok(acting)
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        // SAFETY: no pointer is passed.
        unsafe { libc::syscall(libc::SYS_setresuid, -1, self.before, -1) };
        if DUMPABLE.get() == Some(&true) {
            let _ = prctl::set_dumpable(true);
        }
    }
}
