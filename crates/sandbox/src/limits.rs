//! Guard: resource limits.

use nix::libc::rlim_t;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::GuardState;
use crate::error::{Failure, Step};

/// Resource limits of one process; what it starts inherits them. `None` leaves a limit as the
/// host has it.
///
/// A limit is only ever tightened: where the host's own is lower, that one stays. The limit for
/// core files (`RLIMIT_CORE`) is always 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of private writable memory (`RLIMIT_DATA`). Does not count shared anonymous memory,
    /// memfds and System V segments.
    pub data_bytes: Option<u64>,
    /// Bytes of address space (`RLIMIT_AS`): of everything that is mapped, read-only and shared too.
    /// Private memory that is filled and then made read-only does not count as data any more
    /// (`mprotect_fixup` in mm/mprotect.c); this bounds it.
    pub address_space_bytes: Option<u64>,
    /// Seconds of processor time (`RLIMIT_CPU`): `SIGXCPU` when they are used up, `SIGKILL` one
    /// second later for a process that ignores it.
    pub cpu_seconds: Option<u64>,
    /// Bytes of the largest file that can be written (`RLIMIT_FSIZE`). A write beyond it fails
    /// with `EFBIG`; the signal `SIGXFSZ` is ignored from the start.
    pub file_size_bytes: Option<u64>,
    /// Open descriptors at a time (`RLIMIT_NOFILE`).
    pub descriptors: Option<u64>,
}

/// How long a process that ignores `SIGXCPU` lives on, in seconds of processor time.
const CPU_GRACE_SECONDS: u64 = 1;

/// One limit to set, with the step that a failure is reported as.
struct Entry {
    step: Step,
    resource: Resource,
    soft: rlim_t,
    hard: rlim_t,
}

/// The limits to set, worked out in the host so that the child only makes the system calls.
pub(crate) struct Prepared(Vec<Entry>);

impl Prepared {
    /// Works the values out from what the host itself has.
    pub(crate) fn new(limits: &Limits) -> nix::Result<Self> {
        let cpu_hard = limits
            .cpu_seconds
            .map(|soft| soft.saturating_add(CPU_GRACE_SECONDS));
        let wanted = [
            (Step::CoreLimit, Resource::RLIMIT_CORE, Some(0), Some(0)),
            (
                Step::DataLimit,
                Resource::RLIMIT_DATA,
                limits.data_bytes,
                limits.data_bytes,
            ),
            (
                Step::AddressSpaceLimit,
                Resource::RLIMIT_AS,
                limits.address_space_bytes,
                limits.address_space_bytes,
            ),
            (
                Step::CpuLimit,
                Resource::RLIMIT_CPU,
                limits.cpu_seconds,
                cpu_hard,
            ),
            (
                Step::FileSizeLimit,
                Resource::RLIMIT_FSIZE,
                limits.file_size_bytes,
                limits.file_size_bytes,
            ),
            (
                Step::DescriptorLimit,
                Resource::RLIMIT_NOFILE,
                limits.descriptors,
                limits.descriptors,
            ),
        ];
        let mut entries = Vec::with_capacity(wanted.len());
        for (step, resource, soft, hard) in wanted {
            let (Some(soft), Some(hard)) = (soft, hard) else {
                continue;
            };
            let (own_soft, own_hard) = getrlimit(resource)?;
            entries.push(Entry {
                step,
                resource,
                soft: soft.min(own_soft),
                hard: hard.min(own_hard),
            });
        }
        Ok(Self(entries))
    }
}

/// Sets the limits of the calling process. Async-signal-safe: nothing but system calls.
pub(crate) fn apply(prepared: &Prepared) -> Result<(), Failure> {
    for entry in &prepared.0 {
        setrlimit(entry.resource, entry.soft, entry.hard).map_err(|e| entry.step.failed(e))?;
    }
    Ok(())
}

/// Whether the limits are in force once the process runs.
pub(crate) fn state(limits: &Limits) -> GuardState {
    if *limits == Limits::default() {
        GuardState::Missing {
            because: "the policy sets no limit".into(),
        }
    } else {
        GuardState::InForce
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_limit_above_the_hosts_own_leaves_the_hosts_own() {
        let own = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let limits = Limits {
            descriptors: Some(u64::MAX),
            ..Limits::default()
        };
        let prepared = Prepared::new(&limits).unwrap();
        let entry = prepared.0.last().unwrap();
        assert_eq!((entry.soft, entry.hard), own);
    }

    #[test]
    fn no_core_file_is_the_one_limit_that_is_always_set() {
        let prepared = Prepared::new(&Limits::default()).unwrap();
        assert_eq!(prepared.0.len(), 1);
        assert_eq!(prepared.0[0].resource, Resource::RLIMIT_CORE);
        assert_eq!((prepared.0[0].soft, prepared.0[0].hard), (0, 0));
    }

    #[test]
    fn processor_time_leaves_a_second_between_the_signal_and_the_kill() {
        let limits = Limits {
            cpu_seconds: Some(7),
            ..Limits::default()
        };
        let prepared = Prepared::new(&limits).unwrap();
        let entry = prepared.0.last().unwrap();
        assert_eq!((entry.soft, entry.hard), (7, 8));
    }
}
