//! Limits the threads of a process. Otherwise it could use up the thread ids of the whole machine,
//! which no per-process limit counts: `RLIMIT_NPROC` is per user.

use std::fs;

use nix::errno::Errno;
use nix::libc::seccomp_data;
use nix::unistd::Pid;

use super::call::{Answer, Call, When, holds};

/// Maximum number of threads of a process: far more than PHP's libraries start by themselves, and
/// few for the machine. Calls that are answered before the threads of other calls exist may double
/// it.
pub(super) const THREADS_MAX: usize = 64;

/// The decision about a call that may make a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It makes a permitted thread.
    Continue,
    /// It would exceed the limit.
    TooMany,
    /// It makes a process of a command that has ended.
    TooLate,
    /// It makes no thread.
    NoThread,
}

/// The error for [`Verdict::TooMany`], the same as for the system's own limit (clone(2)).
pub(super) const NO_ROOM: Errno = Errno::EAGAIN;

/// Decides about a call of the thread `pid`. The flags are in a register: unlike memory, it cannot
/// change while the thread waits.
pub(super) fn verdict(call: &Call, pid: Pid, data: &seccomp_data) -> Verdict {
    let Answer::AllowIf(When::Counted(rules), _) = call.answer else {
        return Verdict::NoThread;
    };
    match holds(rules, &data.args) {
        false => Verdict::NoThread,
        // If /proc does not tell, there may already be too many.
        true if count(pid).is_none_or(|count| count >= THREADS_MAX) => Verdict::TooMany,
        true => Verdict::Continue,
    }
}

/// The number of threads of a thread's process.
fn count(pid: Pid) -> Option<usize> {
    status(pid, "Threads:")?.parse().ok()
}

/// The process of a thread.
pub(super) fn process_of(thread: Pid) -> Option<Pid> {
    status(thread, "Tgid:")?.parse().ok().map(Pid::from_raw)
}

/// A field of `/proc/<pid>/status` of a thread (proc(5)).
fn status(pid: Pid, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_threads_of_a_process_are_counted() {
        let own = Pid::this();
        let before = count(own).unwrap();
        let (stay, go) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || go.recv());
        // Other tests of this program start and end threads concurrently.
        assert!(before >= 1 && count(own).unwrap() >= 2);
        drop(stay);
        assert!(thread.join().unwrap().is_err());
        assert_eq!(count(Pid::from_raw(i32::MAX)), None);
    }
}
