//! What the kernel grants a process of its resources, so that a process that works for another one
//! gets no more than that one.
#![allow(unsafe_code)]

use std::io;

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The resources whose limits a process passes on (getrlimit(2)). Not `RLIMIT_CORE`, which each
/// child sets for itself so that nobody gets its memory.
const RESOURCES: [libc::__rlimit_resource_t; 15] = [
    libc::RLIMIT_CPU,
    libc::RLIMIT_FSIZE,
    libc::RLIMIT_DATA,
    libc::RLIMIT_STACK,
    libc::RLIMIT_RSS,
    libc::RLIMIT_NPROC,
    libc::RLIMIT_NOFILE,
    libc::RLIMIT_MEMLOCK,
    libc::RLIMIT_AS,
    libc::RLIMIT_LOCKS,
    libc::RLIMIT_SIGPENDING,
    libc::RLIMIT_MSGQUEUE,
    libc::RLIMIT_NICE,
    libc::RLIMIT_RTPRIO,
    libc::RLIMIT_RTTIME,
];

/// Resource limits, niceness and processors of a process.
#[derive(Clone)]
pub struct Standing {
    limits: [libc::rlimit; RESOURCES.len()],
    /// -20 to 19; higher is less.
    niceness: c_int,
    processors: CpuSet,
}

impl std::fmt::Debug for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Standing").finish_non_exhaustive()
    }
}

impl Standing {
    /// That of a process.
    ///
    /// # Errors
    /// `EPERM` for a process of another user; `ESRCH` if it has ended.
    pub fn of(pid: i32) -> io::Result<Self> {
        let unset = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        let mut limits = [unset; RESOURCES.len()];
        for (resource, limit) in RESOURCES.into_iter().zip(&mut limits) {
            *limit = exchange(pid, resource, None)?;
        }
        Ok(Self {
            limits,
            niceness: niceness(pid)?,
            processors: sched_getaffinity(Pid::from_raw(pid))?,
        })
    }

    /// Whether two are granted the same.
    #[must_use]
    pub fn is_equal_to(&self, other: &Self) -> bool {
        let limits = self.limits.iter().zip(&other.limits);
        let mut limits = limits
            .map(|(own, other)| (own.rlim_cur, own.rlim_max) == (other.rlim_cur, other.rlim_max));
        limits.all(|is_equal| is_equal)
            && self.niceness == other.niceness
            && self.processors == other.processors
    }

    /// Takes from a process what is more than this.
    ///
    /// # Errors
    /// As for [`Standing::of`]; `EINVAL` if no processor is left.
    pub fn lower(&self, pid: i32) -> io::Result<()> {
        let other = Self::of(pid)?;
        let limits = RESOURCES.into_iter().zip(&self.limits).zip(&other.limits);
        for ((resource, most), has) in limits {
            let lower = libc::rlimit {
                rlim_cur: has.rlim_cur.min(most.rlim_cur),
                rlim_max: has.rlim_max.min(most.rlim_max),
            };
            if (lower.rlim_cur, lower.rlim_max) != (has.rlim_cur, has.rlim_max) {
                exchange(pid, resource, Some(lower))?;
            }
        }
        if self.niceness > other.niceness {
            let id = libc::id_t::try_from(pid).map_err(|_| Errno::ESRCH)?;
            // SAFETY: no pointer is passed.
            Errno::result(unsafe { libc::setpriority(libc::PRIO_PROCESS, id, self.niceness) })?;
        }
        if self.processors != other.processors {
            let mut both = CpuSet::new();
            for processor in 0..CpuSet::count() {
                if self.processors.is_set(processor)? && other.processors.is_set(processor)? {
                    both.set(processor)?;
                }
            }
            sched_setaffinity(Pid::from_raw(pid), &both)?;
        }
        Ok(())
    }
}

/// Reads a limit of a process, and sets it (prlimit(2)).
fn exchange(
    pid: i32,
    resource: libc::__rlimit_resource_t,
    new: Option<libc::rlimit>,
) -> nix::Result<libc::rlimit> {
    let mut old = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `new` is null or a limit that outlives the call; the kernel writes `old`.
    Errno::result(unsafe { libc::prlimit(pid, resource, new, &raw mut old) })?;
    Ok(old)
}

fn niceness(pid: i32) -> nix::Result<c_int> {
    let id = libc::id_t::try_from(pid).map_err(|_| Errno::ESRCH)?;
    // -1 is a niceness, too.
    Errno::clear();
    // SAFETY: no pointer is passed.
    let niceness = unsafe { libc::getpriority(libc::PRIO_PROCESS, id) };
    match Errno::last() {
        Errno::UnknownErrno => Ok(niceness),
        errno if niceness == -1 => Err(errno),
        _ => Ok(niceness),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_lowered_and_never_raised() {
        let mut sleeper = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = sleeper.id().cast_signed();
        let mut standing = Standing::of(0).unwrap();
        let files = RESOURCES
            .iter()
            .position(|resource| *resource == libc::RLIMIT_NOFILE)
            .unwrap();
        standing.limits[files] = libc::rlimit {
            rlim_cur: 7,
            rlim_max: 8,
        };
        standing.niceness += 3;
        standing.lower(pid).unwrap();
        let lowered = Standing::of(pid).unwrap();
        assert_eq!(lowered.limits[files].rlim_cur, 7);
        assert_eq!(lowered.niceness, standing.niceness);

        Standing::of(0).unwrap().lower(pid).unwrap();
        let still = Standing::of(pid).unwrap();
        assert_eq!(still.limits[files].rlim_max, 8);
        assert_eq!(still.niceness, standing.niceness);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
