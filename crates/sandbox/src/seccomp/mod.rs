//! Guard: seccomp. System calls are permitted by a table ([`calls`]); all others are refused.
//!
//! Entry by another architecture's calls (32-bit ones on x86-64) ends the process; those of x32
//! have numbers that are in no line of the table.
//!
//! Calls that a user would recognise as an attempt are put before a listener in the host, which
//! refuses each and makes it known. One thing it decides: whether a process may have a further
//! thread ([`threads`]), which no filter could, as it cannot count. When it is gone, the calls
//! fail all the same.

mod call;
mod calls;
mod describe;
mod filter;
mod install;
mod listener;
mod memory;
mod search;
mod threads;

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::unistd::getpid;
use serde::{Deserialize, Serialize};

use crate::GuardState;
use filter::Ask;
pub use install::has_one_thread;
pub(crate) use listener::Listener;

/// Which system calls are permitted, beside those that every computation needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seccomp {
    /// Outbound Internet sockets (TCP and UDP), not listening ones.
    pub network: bool,
    /// Changing the mode, owner, times and extended attributes of files. Landlock does not govern
    /// these: only behind a private root.
    pub metadata: bool,
}

/// Takes it for the calling process, all of its threads. With `listen`, the second value is for
/// the host to learn of refused calls, where the kernel gives one: there can only be one listener
/// over a process, and a container may have its own.
pub(crate) fn take(policy: &Seccomp, listen: bool) -> (GuardState, Option<OwnedFd>) {
    match try_take(policy, listen) {
        Ok(listener) => (GuardState::InForce, listener),
        Err(error) => (
            GuardState::Missing {
                because: match error.raw_os_error() {
                    Some(errno) if errno == Errno::ENOSYS as i32 => {
                        "the kernel has no system call filters, or a filter further out hides them"
                            .into()
                    }
                    Some(errno) => format!(
                        "the kernel does not take the filter: {}",
                        Errno::from_raw(errno).desc().to_lowercase()
                    ),
                    None => format!("there is no filter for this machine: {error}"),
                },
            },
            None,
        ),
    }
}

fn try_take(policy: &Seccomp, listen: bool) -> io::Result<Option<OwnedFd>> {
    let own = getpid().as_raw().unsigned_abs();
    let compile = |ask| filter::compile(policy, own, ask).map_err(io::Error::other);
    // Who is not root may take a filter only so (seccomp(2)).
    nix::sys::prctl::set_no_new_privs()?;
    if listen && let Ok(listener) = install::with_listener(&compile(Ask::Listener)?) {
        return Ok(Some(listener));
    }
    install::alone(&compile(Ask::Nobody)?)?;
    Ok(None)
}
