//! How the host makes one connection: on a socket of the process's, as the process would. If only a
//! project's word permits it, the host looks first who listens there.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, connect, getsockopt,
    setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::acting::{Acting, For};
use crate::connections::{Destination, Target};
use crate::who_listens::{
    Listener, Word, connect_as, exactly, is_of_this_machine, leads_elsewhere, listeners_at, own_id,
    peer_of, probe,
};
use crate::{Refusal, RunAs, system_calls};

/// Maximum number of the host's connecting threads, for all processes together.
const THREADS_MAX: usize = 128;
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How often a thread that waits for a connection checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// How long to wait for who answers at an address of this machine at which nobody listens.
const ANSWER: Duration = Duration::from_secs(5);

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
    /// Takes why it is refused, before that is answered.
    pub(super) refused: &'a dyn Fn(Refusal),
}

/// A destination that was found: all that follows leads there.
enum Found {
    Internet(SocketAddr),
    Local(OwnedFd),
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
        let found = fits(socket.as_fd(), self.destination).and_then(|()| self.find());
        let found = match found {
            Ok(found) => found,
            Err(errno) => return Some(Err(errno)),
        };
        let patience = patience(socket);
        let until = patience
            .filter(|patience| *patience != Duration::ZERO)
            .map(|patience| Instant::now() + patience);
        if let Err(errno) = self.is_permitted(&found, patience.is_some(), until, is_wanted)? {
            return Some(Err(errno));
        }
        let Some(patience) = patience else {
            return Some(self.attempt(socket, &found));
        };
        let end = self.attempt_until(socket, &found, until, is_wanted);
        let own = TimeVal::microseconds(patience.as_micros().try_into().unwrap_or(0));
        let _ = setsockopt(socket, SendTimeout, &own);
        end
    }

    fn find(&self) -> nix::Result<Found> {
        Ok(match &self.destination.target {
            Target::Internet(address) => Found::Internet(*address),
            Target::Local(path) => {
                let _as = Acting::begin(self.run_as, For::Everything)?;
                Found::Local(exactly(path)?)
            }
        })
    }

    /// Whether the word suffices for whoever listens. Until then nothing of the process's is connected.
    fn is_permitted(
        &self,
        found: &Found,
        blocks: bool,
        until: Option<Instant>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<nix::Result<()>> {
        match self.destination.word {
            Word::User => return Some(Ok(())),
            Word::Insufficient => return Some(self.refuse(None)),
            Word::Project => {}
        }
        let own = own_id(self.run_as);
        let (listeners, port) = match found {
            Found::Internet(address) => {
                match self.listeners(found, *address, own, until, is_wanted)? {
                    Ok(listeners) => (listeners, Some(address.port())),
                    Err(errno) => return Some(Err(errno)),
                }
            }
            Found::Local(_) => {
                let probe = match probe(blocks) {
                    Ok(probe) => probe,
                    Err(errno) => return Some(Err(errno)),
                };
                let connected = match blocks {
                    true => self.attempt_until(&probe, found, until, is_wanted)?,
                    false => self.attempt(&probe, found),
                };
                match connected.and_then(|()| peer_of(&probe)) {
                    Ok(uid) => (vec![Listener::of(uid, own)], None),
                    Err(errno) => return Some(Err(errno)),
                }
            }
        };
        let refused = listeners
            .into_iter()
            .find(|listener| !listener.takes_projects_word(port));
        Some(match refused {
            Some(listener) => self.refuse(Some(listener)),
            None => Ok(()),
        })
    }

    /// Those who listen at an address of this machine, all of whom must be permitted.
    ///
    /// If nobody does, the address is translated (a container's published port), or nobody answers. A
    /// socket of the host's own tells: otherwise a process that tries again and again would be connected to
    /// whoever begins to listen between the look and the connection.
    fn listeners(
        &self,
        found: &Found,
        address: SocketAddr,
        own: u32,
        until: Option<Instant>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<nix::Result<Vec<Listener>>> {
        let seen = listeners_at(address, own);
        if !seen.is_empty() || !is_of_this_machine(address) {
            return Some(Ok(seen));
        }
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::Inet,
            SocketAddr::V6(_) => AddressFamily::Inet6,
        };
        let probe = socket(
            family,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::Tcp,
        );
        let probe = match probe {
            Ok(probe) => probe,
            Err(errno) => return Some(Err(errno)),
        };
        let latest = Instant::now() + ANSWER;
        let until = until.map_or(latest, |until| until.min(latest));
        Some(
            match self.attempt_until(&probe, found, Some(until), is_wanted)? {
                Ok(()) => match listeners_at(address, own) {
                    seen if seen.is_empty() && !leads_elsewhere(&probe, address) => {
                        // Whoever it was has gone.
                        Err(Errno::ECONNREFUSED)
                    }
                    seen => Ok(seen),
                },
                Err(Errno::EINPROGRESS | Errno::EALREADY) => Err(Errno::ETIMEDOUT),
                Err(errno) => Err(errno),
            },
        )
    }

    fn refuse(&self, listener: Option<Listener>) -> nix::Result<()> {
        (self.refused)(Refusal::NotByProject {
            to: self.destination.target.to_string(),
            listener,
        });
        Err(Errno::EPERM)
    }

    fn attempt_until(
        &self,
        socket: &OwnedFd,
        found: &Found,
        until: Option<Instant>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<nix::Result<()>> {
        let look = TimeVal::milliseconds(LOOK.as_millis().try_into().unwrap_or(100));
        loop {
            // Set each time, since the process shares the socket. Restored at the end. It can set
            // another one right before the call, which then waits as long as the kernel does: there
            // is no connect(2) with a timeout of its own.
            let _ = setsockopt(socket, SendTimeout, &look);
            match self.attempt(socket, found) {
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

    fn attempt(&self, socket: &OwnedFd, found: &Found) -> nix::Result<()> {
        match found {
            Found::Internet(SocketAddr::V4(v4)) => {
                connect(socket.as_raw_fd(), &SockaddrIn::from(*v4))
            }
            Found::Internet(SocketAddr::V6(v6)) => {
                connect(socket.as_raw_fd(), &SockaddrIn6::from(*v6))
            }
            Found::Local(file) => connect_as(socket, file, self.run_as),
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

/// Checks that a socket fits a destination; otherwise returns the error of connect(2).
fn fits(socket: BorrowedFd<'_>, destination: &Destination) -> nix::Result<()> {
    let option = |name| system_calls::socket_option(socket, libc::SOL_SOCKET, name);
    let (family, kind) = (option(libc::SO_DOMAIN)?, option(libc::SO_TYPE)?);
    let protocol = option(libc::SO_PROTOCOL)?;
    let fits = match destination.target {
        Target::Internet(address) => {
            let own = match address {
                SocketAddr::V4(_) => libc::AF_INET,
                SocketAddr::V6(_) => libc::AF_INET6,
            };
            let is_tcp = (kind, protocol) == (libc::SOCK_STREAM, libc::IPPROTO_TCP);
            // With the network on, the filter permits UDP, too.
            let is_udp = (kind, protocol) == (libc::SOCK_DGRAM, libc::IPPROTO_UDP);
            family == own && (is_tcp || is_udp && destination.word == Word::User)
        }
        Target::Local(_) => family == libc::AF_UNIX && kind == libc::SOCK_STREAM,
    };
    fits.then_some(()).ok_or(Errno::EAFNOSUPPORT)
}
