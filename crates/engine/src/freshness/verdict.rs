//! Compares what a template saw with what is there.

use std::sync::LazyLock;

use altair_sandbox::{Identity, Look, Way};
use nix::libc;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_getres, clock_gettime};

use super::What;
use super::stat::Stat;

/// A tick of the kernel's clock for file timestamps, in nanoseconds; at most 10 ms
/// (`CONFIG_HZ=100`).
pub(super) fn tick_ns() -> i64 {
    static TICK_NS: LazyLock<i64> = LazyLock::new(|| {
        clock_getres(ClockId::CLOCK_REALTIME_COARSE).map_or(10_000_000, |tick| tick.tv_nsec())
    });
    *TICK_NS
}

/// Two ticks: a file that is changed twice within one has the same timestamps after both.
fn racy_ns() -> i64 {
    2 * tick_ns()
}

/// The coarsest timestamps of a file system: two seconds, FAT. They are whole seconds.
const WHOLE_SECONDS_NS: i64 = 2_000_000_000;

/// Whether the look found a regular file.
pub(super) fn at_file(look: &Look) -> bool {
    look.found
        .is_some_and(|found| found.mode & libc::S_IFMT == libc::S_IFREG)
}

/// How the host differs from `look`, if it does. `launched_ns`: when the template was launched.
pub(super) fn differs(look: &Look, now: Option<&Stat>, launched_ns: i64) -> Option<What> {
    let (found, now) = match (&look.found, now) {
        (None, None) => return None,
        (None, Some(_)) => return Some(What::Appeared),
        (Some(_), None) => return Some(What::Gone),
        (Some(found), Some(now)) => (found, now),
    };
    let is = now.identity();
    if found.mode != is.mode {
        return Some(What::Different);
    }
    if look.way == Way::Passed {
        return None;
    }
    if now.is_directory() {
        // A directory in or below which the process wrote belongs to its layer, with the layer's
        // times. In the host's own, no name has come or gone since before the launch.
        if found.ctime_ns >= launched_ns && is.ctime_ns < launched_ns {
            return None;
        }
    }
    if *found != is {
        return Some(What::Different);
    }
    racy(found, look.at_ns).then_some(What::Racy)
}

/// Whether a file could have been changed after it was looked at, without a trace.
///
/// A change always sets the ctime to the current time. The mtime can be set to any time: only one
/// close to the look may be that of a change.
fn racy(found: &Identity, at_ns: i64) -> bool {
    racy_ctime(found.ctime_ns, at_ns)
        || at_ns.abs_diff(found.mtime_ns) < margin(found.mtime_ns).unsigned_abs()
}

/// Whether what changes a file from now on gives it another ctime than this one, which it has now.
pub(crate) fn is_settled(ctime_ns: i64) -> bool {
    let now = clock_gettime(ClockId::CLOCK_REALTIME);
    now.is_ok_and(|now| !racy_ctime(ctime_ns, now.num_nanoseconds()))
}

fn racy_ctime(ctime_ns: i64, at_ns: i64) -> bool {
    at_ns.saturating_sub(ctime_ns) < margin(ctime_ns)
}

fn margin(stamp_ns: i64) -> i64 {
    if stamp_ns % 1_000_000_000 == 0 {
        WHOLE_SECONDS_NS + racy_ns()
    } else {
        racy_ns()
    }
}
