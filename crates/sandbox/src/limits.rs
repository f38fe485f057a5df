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

/// Resource limits of one process, inherited by what it starts. `None` leaves the host's limit.
///
/// A limit is only ever tightened: if the host's own limit is lower, that one stays. The limit for
/// core files (`RLIMIT_CORE`) is always 1. No core file is that small, and unlike with 0 the kernel
/// does not start a core dump program either (core(5); `do_coredump` in fs/coredump.c).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of private writable memory (`RLIMIT_DATA`). Does not count shared anonymous memory,
    /// memfds and System V segments.
    pub data_bytes: Option<u64>,
    /// Bytes of address space (`RLIMIT_AS`): all mappings, read-only and shared ones included.
    /// Private memory that is filled and then made read-only no longer counts as data
    /// (`mprotect_fixup` in mm/mprotect.c); this limit bounds it.
    pub address_space_bytes: Option<u64>,
    /// Seconds of processor time (`RLIMIT_CPU`): `SIGXCPU` when they are used up, `SIGKILL` one
    /// second later for a process that ignores it.
    pub cpu_seconds: Option<u64>,
    /// Bytes of the largest file that can be written (`RLIMIT_FSIZE`). A write beyond it fails
    /// with `EFBIG`; the signal `SIGXFSZ` is ignored from the start.
    pub file_size_bytes: Option<u64>,
    /// Pending signals (`RLIMIT_SIGPENDING`), together with those of all other processes of its
    /// user. Each takes kernel memory, and a timer needs one.
    pub pending_signals: Option<u64>,
    /// Descriptors open at a time (`RLIMIT_NOFILE`). A process that sends descriptors to its host
    /// sets this limit itself, last ([`FinalGuards`](crate::FinalGuards)): sending fails if its
    /// user has more descriptors in flight, from any process, than the sender may have open
    /// (unix(7), `ETOOMANYREFS`).
    pub descriptors: Option<u64>,
    /// Processes and threads of its user (`RLIMIT_NPROC`), together with those of all other
    /// processes of this user in the same user namespace. The kernel does not count root's.
    pub processes: Option<u64>,
    /// Locks on ranges of files (fcntl(2), `F_SETLK`). No kernel limit counts them, so the host
    /// does: after 100 ms, and then at least once a second. It ends a process that has more.
    pub file_locks: Option<usize>,
}

/// When the host first counts a process's file locks. The interval doubles each time, up to
/// [`LOOK_AFTER_MAX`].
pub(crate) const LOOK_AFTER: Duration = Duration::from_millis(100);
pub(crate) const LOOK_AFTER_MAX: Duration = Duration::from_secs(1);

/// How long a process that ignores `SIGXCPU` survives, in seconds of processor time.
const CPU_GRACE_SECONDS: u64 = 1;

/// One limit to set, and the step that a failure is reported as.
struct Entry {
    step: Step,
    resource: Resource,
    soft: rlim_t,
    hard: rlim_t,
}

/// The limits to set, computed in the host so that the child only makes system calls.
pub(crate) struct PreparedLimits(Vec<Entry>);

impl PreparedLimits {
    /// Computes the values from the host's own limits.
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
            (
                Step::ProcessLimit,
                Resource::RLIMIT_NPROC,
                limits.processes,
                limits.processes,
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

/// Prevents core files of the calling process, and core dump programs from getting its memory, for
/// its lifetime and whatever it executes. A process that shares its host's memory would change the
/// host's filter; for it, the limit is enough if it can be set ([`has_core_limit`]).
pub(crate) fn no_core(shares_memory: bool) -> nix::Result<()> {
    // If the kernel starts a core dump program anyway, there is no memory for it to read (core(5),
    // "Controlling which mappings are written to the core dump").
    if !shares_memory && let Ok(file) = raw_descriptors::open_for_writing(CORE_FILTER) {
        let _ = raw_descriptors::write_all(file, b"0");
        raw_descriptors::close(file);
    }
    match setrlimit(Resource::RLIMIT_CORE, CORE_BYTES, CORE_BYTES) {
        // The host's own limit is 0, and it may not raise it.
        Err(Errno::EPERM) => setrlimit(Resource::RLIMIT_CORE, 0, 0),
        set => set,
    }
}

/// Whether the host may set the limit that prevents core files and core dump programs alike.
pub(crate) fn has_core_limit() -> bool {
    getrlimit(Resource::RLIMIT_CORE).is_ok_and(|(_, hard)| hard >= CORE_BYTES)
}

/// Fewer bytes than any core file has.
const CORE_BYTES: rlim_t = 1;

/// Selects the memory of a process that goes into a core file.
const CORE_FILTER: &CStr = c"/proc/self/coredump_filter";

/// Why [`no_core`] cannot prevent every core dump; `None` if it can.
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
        "no core files: the machine's core_pattern is a program, which gets the memory of a \
         crashing process whose limit is 0, and the host's own hard limit (ulimit -Hc) is 0",
    )
}

/// Raises the calling process's soft limit for descriptors to the hard limit, so that one more can
/// be sent. Returns the previous soft limit.
pub(crate) fn room_for_descriptors() -> Option<rlim_t> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).ok()?;
    Some(soft)
}

/// Limits the calling process's open descriptors. `for_now`: it may raise the limit again.
pub(crate) fn limit_descriptors(descriptors: u64, for_now: bool) -> nix::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let soft = descriptors.min(hard);
    setrlimit(
        Resource::RLIMIT_NOFILE,
        soft,
        if for_now { hard } else { soft },
    )
}

/// Sets the limits of the calling process. Async-signal-safe: it only makes system calls.
pub(crate) fn apply(prepared: &PreparedLimits) -> Result<(), Failure> {
    for entry in &prepared.0 {
        setrlimit(entry.resource, entry.soft, entry.hard).map_err(|e| entry.step.failed(e))?;
    }
    Ok(())
}

/// Whether the limits are in force when the process runs.
pub(crate) fn state(limits: &Limits) -> GuardState {
    if *limits == Limits::default() {
        GuardState::LeftOut {
            because: "the policy sets no limit".into(),
        }
    } else if limits.file_locks.is_some()
        && let Some(why) = procfs::why_unseen()
    {
        GuardState::Degraded {
            to: format!("all but file locks, which cannot be counted: {why}"),
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
        // In a separate process, whose limits affect no other test.
        let mut shell = std::process::Command::new("/bin/sh");
        // SAFETY: system calls only.
        #[allow(unsafe_code)]
        unsafe {
            use std::os::unix::process::CommandExt;
            shell.pre_exec(|| no_core(false).map_err(Into::into));
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
