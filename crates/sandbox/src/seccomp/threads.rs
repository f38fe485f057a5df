//! How many threads a process may have. Without a bound it could take the thread ids of the whole
//! machine, which no limit of the process counts: `RLIMIT_NPROC` is the user's.

use std::fs;

use nix::errno::Errno;
use nix::libc::seccomp_data;
use nix::unistd::Pid;

use super::call::{Answer, Call, When, holds};

/// Threads that a process may have: far more than PHP's libraries start by themselves, and few to
/// the machine. Calls that are answered before the threads of others have come to life may make it
/// twice as many.
pub(super) const THREADS_MAX: usize = 64;

/// What is to be done about a call that may make a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It makes a thread, and may.
    Continue,
    /// It makes a thread too many.
    TooMany,
    /// It makes no thread.
    NoThread,
}

/// What the caller of [`Verdict::TooMany`] gets: as where the system has no room (clone(2)).
pub(super) const NO_ROOM: Errno = Errno::EAGAIN;

/// Decides about a call of the thread `pid`. The flags are in a register, which nobody changes
/// while the thread waits: unlike what is in memory, they are the same when it goes on.
pub(super) fn verdict(call: &Call, pid: Pid, data: &seccomp_data) -> Verdict {
    let Answer::AllowIf(When::Counted(rules), _) = call.answer else {
        return Verdict::NoThread;
    };
    match holds(rules, &data.args) {
        false => Verdict::NoThread,
        // Where /proc does not tell, there may be too many already.
        true if count(pid).is_none_or(|count| count >= THREADS_MAX) => Verdict::TooMany,
        true => Verdict::Continue,
    }
}

/// The threads of the process that a thread is of.
fn count(pid: Pid) -> Option<usize> {
    status(pid, "Threads:")?.parse().ok()
}

/// The process that a thread is of.
pub(super) fn process_of(thread: Pid) -> Option<Pid> {
    status(thread, "Tgid:")?.parse().ok().map(Pid::from_raw)
}

/// A line of what proc(5) tells of a thread and its process.
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
        // Other tests of this program start and end threads meanwhile.
        assert!(before >= 1 && count(own).unwrap() >= 2);
        drop(stay);
        assert!(thread.join().unwrap().is_err());
        assert_eq!(count(Pid::from_raw(i32::MAX)), None);
    }
}
