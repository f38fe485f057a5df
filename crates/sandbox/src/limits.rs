//! Guard: resource limits.

use std::ffi::CStr;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::rlim_t;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::GuardState;
use crate::error::{Failure, Step};
use crate::{procfs, raw_descriptors};

/// Resource limits of one process; what it starts inherits them. `None` leaves a limit as the
/// host has it.
///
/// A limit is only ever tightened: where the host's own is lower, that one stays. The limit for
/// core files (`RLIMIT_CORE`) is always 1: no core file is that small, and unlike with 0 the kernel
/// does not start a program either that takes it (core(5); `do_coredump` in fs/coredump.c).
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
    /// Signals that may wait to be delivered (`RLIMIT_SIGPENDING`), with those of all other processes
    /// of its user. Each takes kernel memory, and a timer needs one.
    pub pending_signals: Option<u64>,
    /// Open descriptors at a time (`RLIMIT_NOFILE`). What hands descriptors to its host takes this
    /// limit by itself and last ([`FinalGuards`](crate::FinalGuards)): a descriptor is not sent where
    /// more of its user's are under way, whosoever, than the sender may have open (unix(7),
    /// `ETOOMANYREFS`).
    pub descriptors: Option<u64>,
    /// Locks on ranges of files (fcntl(2), `F_SETLK`), which no limit of the kernel's counts: the host
    /// looks what there is, after 100 ms and then once a second at least, and ends a process that has
    /// more.
    pub file_locks: Option<usize>,
}

/// When the host first looks how many file locks a process has; twice as long after that each time, up
/// to [`LOOK_AFTER_MAX`].
pub(crate) const LOOK_AFTER: Duration = Duration::from_millis(100);
pub(crate) const LOOK_AFTER_MAX: Duration = Duration::from_secs(1);

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
pub(crate) struct PreparedLimits(Vec<Entry>);

impl PreparedLimits {
    /// Works the values out from what the host itself has.
    pub(crate) fn new(limits: &Limits) -> nix::Result<Self> {
        let cpu_hard = limits
            .cpu_seconds
            .map(|soft| soft.saturating_add(CPU_GRACE_SECONDS));
        let wanted = [
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
                Step::PendingSignalLimit,
                Resource::RLIMIT_SIGPENDING,
                limits.pending_signals,
                limits.pending_signals,
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

/// Has the kernel make no core file of the calling process, nor give its memory to a program, for as
/// long as it lives and whatever it executes.
pub(crate) fn no_core() -> nix::Result<()> {
    // Where the kernel starts a program all the same, there is no memory for it to take (core(5),
    // "Controlling which mappings are written to the core dump").
    if let Ok(file) = raw_descriptors::open_for_writing(CORE_FILTER) {
        let _ = raw_descriptors::write_all(file, b"0");
        raw_descriptors::close(file);
    }
    match setrlimit(Resource::RLIMIT_CORE, CORE_BYTES, CORE_BYTES) {
        // The host's own is 0, and it may not raise it.
        Err(Errno::EPERM) => setrlimit(Resource::RLIMIT_CORE, 0, 0),
        set => set,
    }
}

/// As many bytes as no core file has.
const CORE_BYTES: rlim_t = 1;

/// Which of a process's memory is in a core file.
const CORE_FILTER: &CStr = c"/proc/self/coredump_filter";

/// What keeps [`no_core`] from doing all that it is to; `None`: nothing.
pub(crate) fn why_a_core() -> Option<&'static str> {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).ok()?;
    let filter = std::fs::OpenOptions::new()
        .write(true)
        .open("/proc/self/coredump_filter");
    if filter.is_ok() {
        return None;
    }
    let is_piped = std::fs::read("/proc/sys/kernel/core_pattern")
        .is_ok_and(|pattern| pattern.starts_with(b"|"));
    let may_raise = caps::has_cap(
        None,
        caps::CapSet::Effective,
        caps::Capability::CAP_SYS_RESOURCE,
    )
    .unwrap_or(false);
    (hard < CORE_BYTES && is_piped && !may_raise).then_some(
        "no core files: the machine's core_pattern is a program, which gets the memory of a process \
         that crashes where its limit is 0, and the host's own hard limit (ulimit -Hc) keeps it there",
    )
}

/// Lets the calling process have as many descriptors as it may ever, so that one more can be sent. Gives
/// how many it could have before.
pub(crate) fn room_for_descriptors() -> Option<rlim_t> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).ok()?;
    Some(soft)
}

/// Lets the calling process have so many descriptors at a time. `for_now`: it may take more again.
pub(crate) fn limit_descriptors(descriptors: u64, for_now: bool) -> nix::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let soft = descriptors.min(hard);
    setrlimit(
        Resource::RLIMIT_NOFILE,
        soft,
        if for_now { hard } else { soft },
    )
}

/// Sets the limits of the calling process. Async-signal-safe: nothing but system calls.
pub(crate) fn apply(prepared: &PreparedLimits) -> Result<(), Failure> {
    for entry in &prepared.0 {
        setrlimit(entry.resource, entry.soft, entry.hard).map_err(|e| entry.step.failed(e))?;
    }
    Ok(())
}

/// Whether the limits are in force once the process runs.
pub(crate) fn state(limits: &Limits) -> GuardState {
    if *limits == Limits::default() {
        GuardState::LeftOut {
            because: "the policy sets no limit".into(),
        }
    } else if limits.file_locks.is_some() && !procfs::is_mounted() {
        GuardState::Degraded {
            to: "all but file locks, which nobody counts: /proc is not mounted".into(),
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
        let prepared = PreparedLimits::new(&limits).unwrap();
        let entry = prepared.0.last().unwrap();
        assert_eq!((entry.soft, entry.hard), own);
    }

    #[test]
    fn no_core_is_the_one_limit_that_is_always_set() {
        let prepared = PreparedLimits::new(&Limits::default()).unwrap();
        assert!(prepared.0.is_empty());
        // In a process of its own, whose limits are nobody else's.
        let mut shell = std::process::Command::new("/bin/sh");
        // SAFETY: system calls only.
        #[allow(unsafe_code)]
        unsafe {
            use std::os::unix::process::CommandExt;
            shell.pre_exec(|| no_core().map_err(Into::into));
        }
        let output = shell
            .args(["-c", "cat /proc/self/limits"])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        let fields: Vec<&str> = line.unwrap().split_whitespace().collect();
        assert_eq!(fields[4..6], ["1", "1"]);
    }

    #[test]
    fn processor_time_leaves_a_second_between_the_signal_and_the_kill() {
        let limits = Limits {
            cpu_seconds: Some(7),
            ..Limits::default()
        };
        let prepared = PreparedLimits::new(&limits).unwrap();
        let entry = prepared.0.last().unwrap();
        assert_eq!((entry.soft, entry.hard), (7, 8));
    }
}
