//! The last guards: those that a process takes itself when its program runs, before it runs
//! untrusted code.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::landlock::Landlock;
use crate::seccomp::Seccomp;
use crate::{GuardState, channel, landlock, limits, seccomp};

/// The guards that the program takes itself, as plain data that a host can send to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalGuards {
    /// Paths, ports, abstract sockets and signals; `None`: not taken.
    pub landlock: Option<Landlock>,
    /// System calls; `None`: not taken.
    pub seccomp: Option<Seccomp>,
    /// Descriptors open at a time ([`Limits::descriptors`](crate::Limits::descriptors)). The last
    /// of all limits, taken once no more descriptors are sent to the host.
    pub descriptors: Option<u64>,
}

/// The states of the last guards. `None`: not requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Landlock.
    pub landlock: Option<GuardState>,
    /// seccomp.
    pub seccomp: Option<GuardState>,
    /// The limits, if one of them could not be taken.
    pub limits: Option<GuardState>,
}

impl FinalGuards {
    /// Takes the guards, for good: Landlock, whose setup seccomp forbids, and then seccomp.
    ///
    /// The calling process should have one thread: with a second one, which it would not cover,
    /// Landlock is not taken. seccomp covers all threads.
    ///
    /// `channel` is the process's end of the [channel](crate::channel_pair), over which the host
    /// learns of refused calls ([`Observer::refused`](crate::Observer::refused)). One packet is
    /// sent over it even if no guard is taken: after it the host accepts no descriptor from the
    /// process. Other readers can ignore this packet.
    pub fn take(&self, channel: Option<BorrowedFd<'_>>) -> Taken {
        let landlock = self.landlock.as_ref().map(|rules| {
            if !seccomp::has_one_thread() {
                GuardState::Missing {
                    because: "a second thread is already running, which it would not cover".into(),
                }
            } else {
                landlock::take(rules)
            }
        });
        let (seccomp, listener) = match &self.seccomp {
            Some(policy) => {
                let (state, listener) = seccomp::take(policy, channel.is_some());
                (Some(state), listener)
            }
            None => (None, None),
        };
        let told = match channel {
            // This closes our copy: a process that holds it could permit the calls it is asked
            // about.
            Some(channel) => channel::hand_over(channel, listener),
            None => Ok(()),
        };
        let seccomp = match told {
            Ok(()) => seccomp,
            Err(errno) => seccomp.map(|state| unheard(state, errno)),
        };
        let limits = self.limit_descriptors().err().map(unlimited);
        Taken {
            landlock,
            seccomp,
            limits,
        }
    }

    /// Takes the limit for descriptors, for good. [`FinalGuards::take`] already does this. A fork
    /// of a template calls it later, as it sends a descriptor after it has taken the other guards.
    ///
    /// # Errors
    /// What setrlimit(2) reports.
    pub fn limit_descriptors(&self) -> std::io::Result<()> {
        match self.descriptors {
            Some(descriptors) => Ok(limits::limit_descriptors(descriptors, false)?),
            None => Ok(()),
        }
    }
}

/// The state of a filter whose listener the host did not get: the calls it would answer fail.
fn unheard(state: GuardState, errno: Errno) -> GuardState {
    match state {
        GuardState::InForce => GuardState::Degraded {
            to: format!(
                "no connections, no threads and no reports of refused calls: the listener could \
                 not be handed over ({})",
                errno.desc().to_lowercase()
            ),
        },
        other => other,
    }
}

fn unlimited(error: std::io::Error) -> GuardState {
    GuardState::Degraded {
        to: format!("all but descriptors: {error}"),
    }
}
