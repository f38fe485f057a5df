//! The last guards: the ones that a process takes by itself, once its program runs and before it
//! runs anything that is not to be trusted.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::landlock::Landlock;
use crate::seccomp::Seccomp;
use crate::{GuardState, channel, landlock, limits, seccomp};

/// The guards that the program takes for itself, as plain data that a host can send to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalGuards {
    /// Paths, ports, abstract sockets and signals; `None`: not taken.
    pub landlock: Option<Landlock>,
    /// System calls; `None`: not taken.
    pub seccomp: Option<Seccomp>,
    /// Open descriptors at a time ([`Limits::descriptors`](crate::Limits::descriptors)): the last of
    /// all limits, taken when nothing is sent to the host any more.
    pub descriptors: Option<u64>,
}

/// What became of the last guards. `None`: not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Of Landlock.
    pub landlock: Option<GuardState>,
    /// Of seccomp.
    pub seccomp: Option<GuardState>,
    /// Of the limits, where one of them could not be taken.
    pub limits: Option<GuardState>,
}

impl FinalGuards {
    /// Takes them, for good: Landlock, whose set-up seccomp forbids, and then seccomp.
    ///
    /// The calling process should have one thread: Landlock is not taken where there is a second
    /// one, which would stay free of it. seccomp covers all threads.
    ///
    /// `channel` is the process's end of the [channel](crate::channel_pair), over which the host
    /// comes to learn of refused calls ([`Observer::refused`](crate::Observer::refused)). One
    /// packet is sent over it, also where no guard is taken: after it the host takes no
    /// descriptor from the process any more. It is nothing to any other reader.
    pub fn take(&self, channel: Option<BorrowedFd<'_>>) -> Taken {
        let landlock = self.landlock.as_ref().map(|rules| {
            if !seccomp::has_one_thread() {
                GuardState::Missing {
                    because: "a second thread runs already, which would stay free of it".into(),
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
            // Our copy is closed with this: whoever holds it could permit what it is asked.
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

    /// Takes the limit for descriptors, for good. [`FinalGuards::take`] has done it; a fork of a
    /// template has a descriptor to send after it has taken the others.
    ///
    /// # Errors
    /// What setrlimit(2) says.
    pub fn limit_descriptors(&self) -> std::io::Result<()> {
        match self.descriptors {
            Some(descriptors) => Ok(limits::limit_descriptors(descriptors, false)?),
            None => Ok(()),
        }
    }
}

/// A filter whose listener the host did not get: what it would have been asked about fails.
fn unheard(state: GuardState, errno: Errno) -> GuardState {
    match state {
        GuardState::InForce => GuardState::Degraded {
            to: format!(
                "no connection, no thread and no word on what is refused: the listener could not be \
                 handed over ({})",
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
