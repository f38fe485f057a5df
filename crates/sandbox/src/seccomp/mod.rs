//! Guard: seccomp. System calls are permitted by a table ([`calls`]); all others are refused.
//!
//! A call by another architecture's entry (32-bit on x86-64) kills the process; x32 calls have
//! numbers that are not in the table.
//!
//! Calls that a user would recognise as an attempt go to a listener in the host, which refuses and
//! reports them. The listener also decides what a filter cannot: whether a process may
//! have another thread ([`threads`]), since a filter cannot count, and whether a connection is
//! permitted ([`connect`]), and whether a command may take a name or a port of the host's network
//! ([`bind`]), since a filter cannot read an address in memory. Where the host lacks
//! rights or mounts, it also makes the sockets ([`sockets`]) and opens the files by which names are
//! looked up ([`opened`]). When the listener is gone, these calls still fail.

mod apart;
mod attempt;
mod attempts;
mod bind;
mod call;
mod calls;
mod connect;
mod describe;
mod filter;
mod fork_setup;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod handler;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "handler_unsupported.rs"]
mod handler;
mod install;
mod listener;
mod memory;
mod never;
mod number_search;
mod opened;
mod prepared;
mod processes;
mod requests;
mod sockets;
mod threads;
mod trap;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::unistd::getpid;
use seccompiler::BpfProgram;
use serde::{Deserialize, Serialize};

use crate::GuardState;
pub(crate) use connect::Connector;
use filter::{Ask, For};
pub(crate) use fork_setup::{FORK, Passes};
pub use install::has_one_thread;
pub(crate) use listener::{Listener, Shared};
pub use never::ROOT_ONLY_CALLS;
pub(crate) use prepared::PreparedFilter;
pub(crate) use requests::Requests;
pub use sockets::may_copy_descriptors;
pub(crate) use trap::Trap;

/// Which system calls are permitted, besides those that every computation needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seccomp {
    /// Outbound Internet sockets (TCP and UDP), not listening ones.
    pub network: bool,
    /// Outbound TCP sockets, which the host connects to permitted addresses
    /// ([`Connections`](crate::Connections)).
    pub tcp: bool,
    /// Sockets that the host connects to permitted Unix socket paths.
    pub local: bool,
    /// The host makes the sockets that it connects, and keeps copies of them: where it may not copy
    /// those of the process ([`may_copy_descriptors`](crate::may_copy_descriptors)). Needs Linux
    /// 5.9; before it, no connection is made.
    pub sockets_by_host: bool,
    /// The host opens [`Connections::files`](crate::Connections::files) in place of the process.
    pub files_by_host: bool,
    /// Changing the mode, owner and times of files, and removing their extended attributes.
    /// Landlock does not govern these: use it only behind a private root.
    pub metadata: bool,
    /// With `metadata`, setting extended attributes: use it only if writes go to a layer. On real
    /// files, overlayfs's own attributes (`user.overlay.*`) would affect what later layers show.
    pub attributes: bool,
    /// For a command: it may start programs and processes, and what else programs need.
    pub command: Option<Command>,
}

impl Seccomp {
    /// Whether the host connects sockets, or looks at connections.
    fn host_connects(&self) -> bool {
        let own_network = self.command.as_ref().is_some_and(|own| own.own_network);
        !self.network || self.local || own_network
    }

    /// Whether there is a service that only the host can connect to.
    fn has_services(&self) -> bool {
        (self.tcp || self.local) && self.host_connects()
    }
}

/// What a filter permits a command, besides starting programs and processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// Signals may go to any process: use it only in a pid namespace of its own, or where Landlock
    /// keeps signals in.
    pub signals: bool,
    /// System V IPC and message queues: use it only in an IPC namespace of its own.
    pub ipc: bool,
    /// The network is its own ([`Spaces`](crate::Spaces)): the host looks at connections, to tell
    /// those that leave it.
    pub own_network: bool,
    /// Memory that [`Limits::data_bytes`](crate::Limits) does not count.
    pub uncounted_memory: bool,
    /// Processes and threads that it may have in all, counted by the host: for a user whose
    /// processes the kernel does not count, which is root. Calls that are answered before the
    /// processes of other calls exist may exceed it.
    pub processes: Option<usize>,
}

/// What answers the filter of a process, as the process hands it to the host.
pub(crate) enum Answerer {
    /// The listener, by which the host also learns of refused calls.
    Listener(OwnedFd),
    /// The host's end of the socket over which the process's own handler asks ([`Requests`]).
    Handler(OwnedFd),
}

/// Installs the filter on all threads of the calling process. With `listen`, the second value is
/// the listener, if the kernel provides one: a process can have only one listener, and a container
/// may have its own. Then, if the policy has services, a handler of the process's own stands in.
pub(crate) fn take(policy: &Seccomp, listen: bool) -> (GuardState, Option<Answerer>) {
    match try_take(policy, listen) {
        Ok(None) if listen && policy.has_services() => (
            GuardState::Degraded {
                to: "no connection to any service: another program already has the seccomp \
                     listener for this process"
                    .into(),
            },
            None,
        ),
        Ok(listener) => (GuardState::InForce, listener),
        Err(error) => (missing(&error), None),
    }
}

/// The filter that a template installs ([`take_first`]), and the recorder's pass, as one packet.
///
/// # Errors
/// If there is no filter for this architecture.
pub(crate) fn first(policy: &Seccomp, passes: Passes) -> io::Result<Vec<u8>> {
    let program = filter::compile(policy, For::Template(passes), Ask::Listener);
    let mut packet = install::to_bytes(&program.map_err(io::Error::other)?);
    packet.extend(passes.recording.to_ne_bytes());
    Ok(packet)
}

/// Installs on the calling process the template's filter that the host sends over `channel`, and
/// returns its listener. From then on, the process shows the recorder's pass
/// ([`system_calls::with_pass`](crate::system_calls::with_pass)).
///
/// # Errors
/// If there is no listener: the forks of a template cannot do without.
pub(crate) fn take_first(channel: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    nix::sys::prctl::set_no_new_privs()?;
    Ok(install::from_host(channel)?)
}

/// The filter that each fork installs to end its set-up.
pub(crate) struct Closing(BpfProgram);

impl Closing {
    /// Compiles it.
    ///
    /// # Errors
    /// If there is no filter for this architecture.
    pub(crate) fn new(pass: u64) -> io::Result<Self> {
        fork_setup::closing(pass)
            .map(Self)
            .map_err(io::Error::other)
    }

    /// Installs it on the calling process.
    pub(crate) fn take(&self) -> GuardState {
        match install::in_addition(&self.0) {
            Ok(()) => GuardState::InForce,
            Err(errno) => missing(&errno.into()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing(error: &io::Error) -> GuardState {
    GuardState::Missing {
        because: match error.raw_os_error() {
            Some(errno) if errno == Errno::ENOSYS as i32 => {
                "the kernel has no system call filters, or an outer filter hides them".into()
            }
            Some(errno) => format!(
                "the kernel rejects the filter: {}",
                Errno::from_raw(errno).desc().to_lowercase()
            ),
            None => format!("there is no filter for this machine: {error}"),
        },
    }
}

fn try_take(policy: &Seccomp, listen: bool) -> io::Result<Option<Answerer>> {
    let own = getpid().as_raw().unsigned_abs();
    let compile = |ask| filter::compile(policy, For::Process(own), ask).map_err(io::Error::other);
    // Unprivileged processes need no_new_privs to install a filter (seccomp(2)).
    nix::sys::prctl::set_no_new_privs()?;
    if listen && let Ok(listener) = install::with_listener(&compile(Ask::Listener)?) {
        return Ok(Some(Answerer::Listener(listener)));
    }
    if listen
        && policy.has_services()
        && let Ok(host) = handler::begin()
    {
        install::alone(&compile(Ask::Handler)?)?;
        return Ok(Some(Answerer::Handler(host)));
    }
    install::alone(&compile(Ask::Nobody)?)?;
    Ok(None)
}
