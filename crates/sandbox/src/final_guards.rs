//! The last guards: the ones that a process takes by itself, once its program runs and before it
//! runs anything that is not to be trusted.

use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};

use crate::landlock::Landlock;
use crate::seccomp::Seccomp;
use crate::{GuardState, landlock, seccomp};

/// The guards that the program takes for itself, as plain data that a host can send to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalGuards {
    /// Paths, ports, abstract sockets and signals; `None`: not taken.
    pub landlock: Option<Landlock>,
    /// System calls; `None`: not taken.
    pub seccomp: Option<Seccomp>,
}

/// What became of the last guards. `None`: not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Of Landlock.
    pub landlock: Option<GuardState>,
    /// Of seccomp.
    pub seccomp: Option<GuardState>,
}

impl FinalGuards {
    /// Takes them, for good: Landlock, whose set-up seccomp forbids, and then seccomp.
    ///
    /// The calling process must have one thread, and `no_new_privs`. `channel` is its end of the
    /// [channel](crate::channel_pair), over which refused calls are made known to the host
    /// ([`Observer::refused`](crate::Observer::refused)).
    pub fn take(&self, channel: Option<BorrowedFd<'_>>) -> Taken {
        Taken {
            landlock: self.landlock.as_ref().map(landlock::take),
            seccomp: self
                .seccomp
                .as_ref()
                .map(|filter| seccomp::take(filter, channel)),
        }
    }
}
