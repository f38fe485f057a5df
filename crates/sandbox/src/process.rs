//! Guard: the process by itself. A session of its own, no terminal, no descriptor but its own,
//! no core file, and no life without its keeper.

#![allow(unsafe_code)]

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc::{self, c_long};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, getppid, setsid};

use crate::error::{Failure, Step};
use crate::{raw_descriptors, system_calls};

/// Where the process finds its end of the channel.
pub(crate) const CHANNEL: RawFd = 3;
/// Where a failed step is reported until `exec`, which closes it. The keeper puts it there.
pub(crate) const REPORT: RawFd = 4;
/// Where the process finds the lifeline until `exec`, which closes it.
pub(crate) const LIFELINE: RawFd = 5;
/// What becomes the process's descriptors must lie at or above this before, so that putting one
/// in place cannot overwrite another.
pub(crate) const LOWEST_SOURCE: RawFd = 10;

/// Files that a process makes are its own user's only, where they end with it.
const UMASK: Mode = Mode::S_IRWXG.union(Mode::S_IRWXO);

/// What becomes the descriptors of the process; all at or above [`LOWEST_SOURCE`].
#[derive(Clone, Copy)]
pub(crate) struct Descriptors {
    pub(crate) null: RawFd,
    pub(crate) stdout: RawFd,
    pub(crate) stderr: RawFd,
    pub(crate) channel: Option<RawFd>,
    /// The keeper's end of the lifeline, over which the host gets what the process makes for it.
    pub(crate) lifeline: RawFd,
}

/// Separates the calling process from its host. Async-signal-safe.
///
/// The signals have their default actions already; the keeper's are not changed before.
pub(crate) fn isolate(descriptors: &Descriptors, makes_real_files: bool) -> Result<(), Failure> {
    // The session's leader without a terminal: keys on the host's terminal do not reach it, and
    // a signal to its own process group does not reach the keeper.
    setsid().map_err(|e| Step::Session.failed(e))?;
    arrange(descriptors).map_err(|e| Step::Descriptors.failed(e))?;
    if !makes_real_files {
        umask(UMASK);
    }
    // A write beyond RLIMIT_FSIZE is to fail with EFBIG, not to kill.
    system_calls::ignore(Signal::SIGXFSZ).map_err(|e| Step::Signals.failed(e))
}

fn arrange(descriptors: &Descriptors) -> nix::Result<()> {
    raw_descriptors::put(descriptors.null, 0, false)?;
    raw_descriptors::put(descriptors.stdout, 1, false)?;
    raw_descriptors::put(descriptors.stderr, 2, false)?;
    match descriptors.channel {
        Some(channel) => raw_descriptors::put(channel, CHANNEL, false)?,
        None => raw_descriptors::close(CHANNEL),
    }
    raw_descriptors::put(descriptors.lifeline, LIFELINE, true)?;
    raw_descriptors::close_from(LIFELINE + 1)
}

/// Has the kernel take the calling process, and what it forks, before others where memory has run
/// out (proc(5), `oom_score_adj`: up to 1000): it can be had again. Where that is not to be had, it
/// is as any other.
pub(crate) fn be_expendable() {
    if let Ok(file) = raw_descriptors::open_for_writing(c"/proc/self/oom_score_adj") {
        let _ = raw_descriptors::write_all(file, b"500");
        raw_descriptors::close(file);
    }
}

/// Has the kernel kill the calling process when its keeper ends. After any change of user, which
/// would clear this again (prctl(2), `PR_SET_PDEATHSIG`). The keeper has one thread, so that
/// "parent" means the keeper as a whole.
pub(crate) fn die_with(keeper: Pid) -> Result<(), Failure> {
    let (option, signal) = (
        c_long::from(libc::PR_SET_PDEATHSIG),
        c_long::from(libc::SIGKILL),
    );
    // SAFETY: no pointer is passed.
    unsafe { system_calls::with_pass(libc::SYS_prctl, [option, signal, 0, 0, 0]) }
        .map_err(|e| Step::ParentWatch.failed(e))?;
    // It may have ended before the line above.
    if getppid() == keeper {
        Ok(())
    } else {
        Err(Step::ParentWatch.failed(Errno::ESRCH))
    }
}
