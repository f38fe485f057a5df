//! How the host makes one connection: on a socket of the process's, as the process would.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, OpenHow, ResolveFlag, fcntl, openat2};
use nix::libc;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    SockaddrIn, SockaddrIn6, SockaddrLike, UnixAddr, connect, getsockopt, setsockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::acting::{Acting, For};
use crate::connections::Destination;
use crate::place::by_number;
use crate::{RunAs, system_calls};

/// Maximum number of the host's connecting threads, for all processes together.
const THREADS_MAX: usize = 128;
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How often a thread that waits for a connection checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// One of the [`THREADS_MAX`] threads.
pub(super) struct Live;

impl Live {
    /// `None`: there are too many.
    pub(super) fn begin() -> Option<Self> {
        let live = Self;
        (THREADS.fetch_add(1, Ordering::Relaxed) < THREADS_MAX).then_some(live)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection to a permitted destination.
pub(super) struct Attempt<'a> {
    pub(super) destination: &'a Destination,
    /// The user that the process runs as, if different from the host's.
    pub(super) run_as: Option<RunAs>,
}

impl Attempt<'_> {
    /// Connects as the process would have: a single attempt if its socket does not block, otherwise
    /// until the socket's own timeout. `None`: the connection is no longer wanted.
    pub(super) fn make(
        &self,
        socket: &OwnedFd,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<nix::Result<()>> {
        if !is_wanted() {
            return None;
        }
        if let Err(errno) = fits(socket.as_fd(), self.destination) {
            return Some(Err(errno));
        }
        let Some(patience) = patience(socket) else {
            return Some(self.attempt(socket));
        };
        let until = (patience != Duration::ZERO).then(|| Instant::now() + patience);
        let end = self.attempt_until(socket, until, is_wanted);
        let own = TimeVal::microseconds(patience.as_micros().try_into().unwrap_or(0));
        let _ = setsockopt(socket, SendTimeout, &own);
        end
    }

    fn attempt_until(
        &self,
        socket: &OwnedFd,
        until: Option<Instant>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<nix::Result<()>> {
        let look = TimeVal::milliseconds(LOOK.as_millis().try_into().unwrap_or(100));
        loop {
            // Set each time, since the process shares the socket. Restored at the end. It can set
            // another one right before the call, which then waits as long as the kernel does: there
            // is no connect(2) with a timeout of its own.
            let _ = setsockopt(socket, SendTimeout, &look);
            match self.attempt(socket) {
                Err(Errno::EINPROGRESS | Errno::EALREADY | Errno::EAGAIN | Errno::EINTR)
                    if until.is_none_or(|until| Instant::now() < until) && blocks(socket) =>
                {
                    if !is_wanted() {
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
        match self.destination {
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
