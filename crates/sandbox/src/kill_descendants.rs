//! Ends everything below the keeper.
//!
//! As in the keeper, nothing here allocates, takes a lock or panics.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{self, c_int};

use crate::{procfs, raw_descriptors, system_calls};

/// How long the keeper tries to end what the process left behind. Normally this takes milliseconds;
/// only a process that the keeper may not or cannot kill takes longer.
pub(crate) const SWEEP_LIMIT: Duration = Duration::from_secs(3);
/// The sweep gives up after this many rounds in which every signal was refused: what is left runs
/// as another user.
const REFUSED_ROUNDS: u32 = 20;
/// Milliseconds between two rounds of the sweep if no child ends in between.
const ROUND_MS: c_int = 10;

/// Ends and collects every process below the keeper. Returns the raw wait status of the process if
/// it was collected here.
///
/// The keeper is the parent of all orphans below it, so ending its children repeatedly removes the
/// tree from the top, whatever sessions and forks a process used to hide.
pub(crate) fn sweep(known: Option<(c_int, RawFd)>, reach: Reach) -> Option<c_int> {
    let began = Instant::now();
    let (process, signals) = known.unwrap_or((-1, -1));
    let mut status = None;
    let mut refused_rounds = 0;
    // Most runs leave nothing behind; one call detects that.
    match system_calls::reap_one() {
        Ok(Some((pid, ended))) if pid == process => status = Some(ended),
        Ok(_) => {}
        Err(_) => return status,
    }
    while began.elapsed() < SWEEP_LIMIT && refused_rounds < REFUSED_ROUNDS {
        if reach.kill(process) {
            refused_rounds = 0;
        } else {
            refused_rounds += 1;
        }
        let mut progress = false;
        loop {
            match system_calls::reap_one() {
                Ok(Some((pid, ended))) => {
                    progress = true;
                    if pid == process {
                        status = Some(ended);
                    }
                }
                Ok(None) => break,
                // No children: all done.
                Err(_) => return status,
            }
        }
        if !progress {
            // Wait for the next child to end. The timeout is for orphans that come without a
            // signal.
            let mut fds = [libc::pollfd {
                fd: signals,
                events: libc::POLLIN,
                revents: 0,
            }];
            raw_descriptors::poll(&mut fds, ROUND_MS);
            while raw_descriptors::next_signal(signals).is_some() {}
        }
    }
    status
}

/// What the keeper can reach.
#[derive(Clone, Copy)]
pub(crate) enum Reach {
    /// Its children.
    Children,
    /// Everything in its pid namespace, of which it is the first process.
    Namespace,
}

impl Reach {
    /// Kills all of it. Returns `false` if there was some and none could be killed.
    fn kill(self, process: c_int) -> bool {
        match self {
            Self::Children => kill_children(process),
            Self::Namespace => {
                // `ESRCH` if it is alone.
                let _ = system_calls::kill(-1, libc::SIGKILL);
                true
            }
        }
    }
}

/// Kills all children of the keeper. Returns `false` if there were some and none could be killed.
fn kill_children(process: c_int) -> bool {
    let (mut seen, mut refused) = (0u32, 0u32);
    let listed = procfs::each_child(&mut |pid| {
        seen = seen.saturating_add(1);
        if system_calls::kill(pid, libc::SIGKILL) == Err(Errno::EPERM) {
            refused = refused.saturating_add(1);
        }
    });
    if !listed && process > 0 {
        // Without /proc: kill the process and its group. Its id is not reused for a group while
        // members of the group are left.
        let _ = system_calls::kill(process, libc::SIGKILL);
        let _ = system_calls::kill(-process, libc::SIGKILL);
    }
    seen == 0 || refused < seen
}
