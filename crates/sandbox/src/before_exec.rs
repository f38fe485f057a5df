//! The guards that a process takes right before its program is executed, in the form of system
//! calls: everything that allocates is done in the host.

use std::os::fd::RawFd;

use crate::error::{Failure, Step};
use crate::landlock::{self, PreparedRules};
use crate::limits;
use crate::raw_descriptors;
use crate::seccomp::PreparedFilter;
use crate::{FinalGuards, GuardState, SpawnError, Taken};

/// The packet with which a process hands over its filter's listener.
pub(crate) const LISTENER: u8 = b'L';

/// Final guards, prepared for system calls.
pub(crate) struct PreparedGuards {
    landlock: Option<PreparedRules>,
    seccomp: Option<PreparedFilter>,
    descriptors: Option<u64>,
}

/// The states of guards once they are taken. A guard that the kernel has and that cannot be taken is
/// an error.
pub(crate) fn states(wanted: &FinalGuards) -> Taken {
    Taken {
        landlock: wanted.landlock.as_ref().map(|_| landlock::expected()),
        seccomp: wanted.seccomp.as_ref().map(|_| GuardState::InForce),
        limits: None,
    }
}

/// The state of a filter without a listener.
pub(crate) fn unheard() -> GuardState {
    GuardState::Degraded {
        to: "no connections to services, no count of processes where the kernel has none, and no \
             reports of refused calls: another program already has the seccomp listener for this \
             process"
            .into(),
    }
}

impl PreparedGuards {
    /// Prepares the guards of a process.
    ///
    /// # Errors
    /// If a path holds a NUL byte, or there is no filter for this machine.
    pub(crate) fn new(guards: &FinalGuards) -> Result<Self, SpawnError> {
        let seccomp = guards.seccomp.as_ref();
        Ok(Self {
            landlock: guards
                .landlock
                .as_ref()
                .map(PreparedRules::new)
                .transpose()?
                .flatten(),
            seccomp: seccomp
                .map(PreparedFilter::new)
                .transpose()
                .map_err(|source| SpawnError::Host {
                    what: "its filter of system calls cannot be made",
                    source,
                })?,
            descriptors: guards.descriptors,
        })
    }

    /// Takes them, for good, and sends the filter's listener over `lifeline`. Async-signal-safe.
    pub(crate) fn take(&self, lifeline: RawFd) -> Result<(), Failure> {
        if let Some(rules) = &self.landlock {
            rules.take().map_err(|e| Step::Landlock.failed(e))?;
        }
        if let Some(filter) = &self.seccomp
            && let Some(listener) = filter.take().map_err(|e| Step::Seccomp.failed(e))?
        {
            let sent = raw_descriptors::send_with(lifeline, &[LISTENER], &[listener]);
            raw_descriptors::close(listener);
            sent.map_err(|e| Step::Seccomp.failed(e))?;
        }
        match self.descriptors {
            Some(descriptors) => limits::limit_descriptors(descriptors, false)
                .map_err(|e| Step::DescriptorLimit.failed(e)),
            None => Ok(()),
        }
    }
}
