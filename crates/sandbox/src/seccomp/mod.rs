//! Guard: seccomp. System calls are permitted by a table ([`calls`]); all others are refused.
//!
//! Entry by another architecture's calls (32-bit ones on x86-64) ends the process; those of x32
//! have numbers that are in no line of the table.
//!
//! Calls that a user would recognise as an attempt are put before a listener in the host, which
//! refuses each and makes it known. Two things it decides: whether a process may have a further
//! thread ([`threads`]), which no filter could, as it cannot count, and whether a process is
//! connected where it wants to be ([`connect`]), which no filter could, as it cannot look at an
//! address. When it is gone, the calls fail all the same.

mod call;
mod calls;
mod connect;
mod describe;
mod filter;
mod fork_setup;
mod install;
mod listener;
mod memory;
mod never;
mod number_search;
mod threads;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::unistd::getpid;
use seccompiler::BpfProgram;
use serde::{Deserialize, Serialize};

use crate::GuardState;
pub(crate) use connect::Connector;
use filter::{Ask, For};
pub(crate) use fork_setup::FORK;
pub use install::has_one_thread;
pub(crate) use listener::{Listener, Shared};
pub use never::ROOT_ONLY_CALLS;

/// Which system calls are permitted, beside those that every computation needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seccomp {
    /// Outbound Internet sockets (TCP and UDP), not listening ones.
    pub network: bool,
    /// Outbound TCP sockets, which the host connects to what it permits
    /// ([`Connections`](crate::Connections)).
    pub tcp: bool,
    /// Sockets that the host connects to such as have a path, where it permits them.
    pub local: bool,
    /// Changing the mode, owner and times of files, and removing their extended attributes. Landlock
    /// does not govern these: only behind a private root.
    pub metadata: bool,
    /// With that, setting extended attributes: only where writes go to a layer. On a real file the
    /// attributes of overlayfs's own (`user.overlay.*`) would decide what later layers show of it.
    pub attributes: bool,
}

/// Takes it for the calling process, all of its threads. With `listen`, the second value is for
/// the host to learn of refused calls, where the kernel gives one: there can only be one listener
/// over a process, and a container may have its own.
pub(crate) fn take(policy: &Seccomp, listen: bool) -> (GuardState, Option<OwnedFd>) {
    match try_take(policy, listen) {
        Ok(None) if listen && (policy.tcp || policy.local) => (
            GuardState::Degraded {
                to:
                    "no connection to any service: the host cannot listen to this process, another \
                     program does"
                        .into(),
            },
            None,
        ),
        Ok(listener) => (GuardState::InForce, listener),
        Err(error) => (missing(&error), None),
    }
}

/// The filter of a template for the template to take ([`take_first`]), as one packet.
///
/// # Errors
/// Where there is none for this architecture.
pub(crate) fn first(policy: &Seccomp, pass: u64) -> io::Result<Vec<u8>> {
    let program = filter::compile(policy, For::Template { pass }, Ask::Listener);
    Ok(install::to_bytes(&program.map_err(io::Error::other)?))
}

/// Takes the filter of a template for the calling process, which the host sends over `channel`, and
/// gives its listener.
///
/// # Errors
/// Where there is none with a listener: the forks of a template cannot do without.
pub(crate) fn take_first(channel: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    nix::sys::prctl::set_no_new_privs()?;
    Ok(install::from_host(channel)?)
}

/// The filter that closes the set-up of a fork, for each fork to take.
pub(crate) struct Closing(BpfProgram);

impl Closing {
    /// Compiles it.
    ///
    /// # Errors
    /// Where there is none for this architecture.
    pub(crate) fn new(pass: u64) -> io::Result<Self> {
        fork_setup::closing(pass)
            .map(Self)
            .map_err(io::Error::other)
    }

    /// Takes it for the calling process.
    pub(crate) fn take(&self) -> GuardState {
        match install::in_addition(&self.0) {
            Ok(()) => GuardState::InForce,
            Err(errno) => missing(&errno.into()),
        }
    }
}

fn missing(error: &io::Error) -> GuardState {
    GuardState::Missing {
        because: match error.raw_os_error() {
            Some(errno) if errno == Errno::ENOSYS as i32 => {
                "the kernel has no system call filters, or a filter further out hides them".into()
            }
            Some(errno) => format!(
                "the kernel does not take the filter: {}",
                Errno::from_raw(errno).desc().to_lowercase()
            ),
            None => format!("there is no filter for this machine: {error}"),
        },
    }
}

fn try_take(policy: &Seccomp, listen: bool) -> io::Result<Option<OwnedFd>> {
    let own = getpid().as_raw().unsigned_abs();
    let compile = |ask| filter::compile(policy, For::Process(own), ask).map_err(io::Error::other);
    // Who is not root may take a filter only so (seccomp(2)).
    nix::sys::prctl::set_no_new_privs()?;
    if listen && let Ok(listener) = install::with_listener(&compile(Ask::Listener)?) {
        return Ok(Some(listener));
    }
    install::alone(&compile(Ask::Nobody)?)?;
    Ok(None)
}
