//! The last guards: the ones that a process takes by itself, once its program runs and before it
//! runs anything that is not to be trusted.

use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};

use crate::landlock::Landlock;
use crate::seccomp::Seccomp;
use crate::{GuardState, channel, landlock, seccomp};

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
        if let Some(channel) = channel {
            // Our copy is closed with this: whoever holds it could permit what it is asked.
            channel::hand_over(channel, listener);
        }
        Taken { landlock, seccomp }
    }
}
