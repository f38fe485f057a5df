//! Limits the processes and threads of a command whose user the kernel does not count: root
//! (`copy_process` in kernel/fork.c exempts it from `RLIMIT_NPROC`).

use std::collections::BTreeSet;
use std::fs;

use nix::libc::seccomp_data;

use super::call::{Answer, Call, When, holds};
use super::threads::Verdict;

/// The processes below a command's keeper.
pub(super) struct Processes {
    keeper: i32,
    /// The command itself, where the kernel does not end everything with it: what is left then may
    /// make no process that the keeper would have to find.
    command: Option<i32>,
    most: Option<usize>,
    /// How many may be made before they are counted again.
    room: usize,
}

impl Processes {
    pub(super) fn new(keeper: i32, command: Option<i32>, most: Option<usize>) -> Self {
        Self {
            keeper,
            command,
            most,
            room: 0,
        }
    }

    pub(super) fn most(&self) -> usize {
        self.most.unwrap_or(usize::MAX)
    }

    /// Decides about a call that may make a process or a thread. The flags are in a register, which
    /// cannot change while the caller waits.
    pub(super) fn verdict(&mut self, call: &Call, data: &seccomp_data) -> Verdict {
        let Answer::AllowIf(When::Counted(rules), _) = call.answer else {
            return Verdict::NoThread;
        };
        if !holds(rules, &data.args) {
            return Verdict::NoThread;
        }
        if self.command.is_some_and(has_ended) {
            return Verdict::TooLate;
        }
        if self.room == 0 {
            let most = self.most();
            self.room = most.saturating_sub(count(self.keeper, most));
        }
        match self.room.checked_sub(1) {
            Some(left) => {
                self.room = left;
                Verdict::Continue
            }
            None => Verdict::TooMany,
        }
    }
}

/// Whether a process has ended, whether or not it has been collected.
fn has_ended(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name before the state may hold anything (proc_pid_stat(5)).
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_none_or(|state| state.starts_with(['Z', 'X']))
}

/// The processes and threads below a process, at most `most`. If `/proc` does not tell, there may
/// already be too many.
///
/// No process is made meanwhile, as each has to ask. But one whose parent ends moves to the keeper,
/// or to a subreaper, and may be missed there. So they are gone through until nobody new is found.
fn count(process: i32, most: usize) -> usize {
    let mut seen = BTreeSet::new();
    loop {
        let before = seen.len();
        if !look(process, most, &mut seen) {
            return most;
        }
        if seen.len() == before {
            return before;
        }
    }
}

/// Adds the processes and threads below a process (proc_tid_children(5)). Returns `false` if there
/// are `most`, or if the process has none of its own.
fn look(process: i32, most: usize, seen: &mut BTreeSet<i32>) -> bool {
    let mut waiting = vec![process];
    while let Some(next) = waiting.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{next}/task")) else {
            // It has ended, or /proc is not there.
            if next == process {
                return false;
            }
            continue;
        };
        for thread in threads.flatten() {
            if next != process
                && let Some(id) = thread.file_name().to_str().and_then(|id| id.parse().ok())
            {
                seen.insert(id);
            }
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            waiting.extend(
                children
                    .split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            );
            if seen.len() >= most {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_below_a_process_are_counted() {
        let own = std::process::id().cast_signed();
        let mut sleeper = std::process::Command::new("/bin/sh")
            .args(["-c", "/bin/sleep 60 & /bin/sleep 60; :"])
            .spawn()
            .unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
        let below = sleeper.id().cast_signed();
        while count(below, 100) != 2 {
            assert!(std::time::Instant::now() < until, "{}", count(below, 100));
            std::thread::yield_now();
        }
        assert!(count(own, 100) >= 3);
        assert_eq!(count(below, 1), 1);
        assert_eq!(count(i32::MAX, 100), 100);
        let found = fs::read_to_string(format!("/proc/{below}/task/{below}/children")).unwrap();
        for pid in found.split_ascii_whitespace() {
            nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid.parse().unwrap()),
                nix::sys::signal::Signal::SIGKILL,
            )
            .unwrap();
        }
        let _ = sleeper.kill();
        sleeper.wait().unwrap();
    }
}
