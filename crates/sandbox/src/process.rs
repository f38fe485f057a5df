//! Guard: isolation of the process. It has its own session, no terminal, only its own descriptors
//! and no core file, and does not outlive its keeper.

#![allow(unsafe_code)]

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc::{self, c_long};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, getppid, setsid};

use crate::error::{Failure, Step};
use crate::{Made, raw_descriptors, system_calls};

/// Where the process finds its end of the channel.
pub(crate) const CHANNEL: RawFd = 3;
/// Where a failed step is reported until `exec`, which closes it. The keeper puts it there.
pub(crate) const REPORT: RawFd = 4;
/// Where the process finds the lifeline until `exec`, which closes it.
pub(crate) const LIFELINE: RawFd = 5;
/// Where the process waits for its keeper's byte before `exec`, which closes it; only if the keeper
/// becomes a program itself ([`Descriptors::gate`]).
pub(crate) const GATE: RawFd = 6;
/// Descriptors that will be put in place must be at or above this number, so that putting one in
/// place cannot overwrite another.
pub(crate) const LOWEST_SOURCE: RawFd = 10;

/// Gives only the process's own user access to files that it makes, if they end with it.
const UMASK: Mode = Mode::S_IRWXG.union(Mode::S_IRWXO);

/// The sources of the process's descriptors; all at or above [`LOWEST_SOURCE`].
#[derive(Clone, Copy)]
pub(crate) struct Descriptors {
    pub(crate) null: RawFd,
    /// Standard input.
    pub(crate) input: RawFd,
    /// Whether standard input is the host's, not an empty one.
    pub(crate) has_input: bool,
    /// Whether the standard streams are a terminal.
    pub(crate) has_terminal: bool,
    pub(crate) stdout: RawFd,
    pub(crate) stderr: RawFd,
    pub(crate) channel: Option<RawFd>,
    /// The keeper's end of the lifeline, over which the process sends the host what it makes for
    /// it.
    pub(crate) lifeline: RawFd,
    /// Readable once the keeper no longer shares the host's memory, which the program must not find
    /// in another process of its namespace. `None` if the keeper never does.
    pub(crate) gate: Option<RawFd>,
}

/// Separates the calling process from its host. Async-signal-safe.
///
/// The keeper has already set all signals to their default actions.
pub(crate) fn isolate(descriptors: &Descriptors, made: Made) -> Result<(), Failure> {
    // A session leader without a terminal: keys on the host's terminal do not reach it, and a
    // signal to its own process group does not reach the keeper.
    setsid().map_err(|e| Step::Session.failed(e))?;
    arrange(descriptors).map_err(|e| Step::Descriptors.failed(e))?;
    if descriptors.has_terminal {
        system_calls::control_terminal(0).map_err(|e| Step::Session.failed(e))?;
    }
    match made {
        Made::ForItself => drop(umask(UMASK)),
        Made::AsByHost => {}
        Made::Without(mask) => drop(umask(Mode::from_bits_truncate(mask))),
    }
    // A write beyond RLIMIT_FSIZE must fail with EFBIG, not kill the process.
    system_calls::ignore(Signal::SIGXFSZ).map_err(|e| Step::Signals.failed(e))
}

fn arrange(descriptors: &Descriptors) -> nix::Result<()> {
    raw_descriptors::put(descriptors.input, 0, false)?;
    raw_descriptors::put(descriptors.stdout, 1, false)?;
    raw_descriptors::put(descriptors.stderr, 2, false)?;
    match descriptors.channel {
        Some(channel) => raw_descriptors::put(channel, CHANNEL, false)?,
        None => raw_descriptors::close(CHANNEL),
    }
    raw_descriptors::put(descriptors.lifeline, LIFELINE, true)?;
    if let Some(gate) = descriptors.gate {
        raw_descriptors::put(gate, GATE, true)?;
        return raw_descriptors::close_from(GATE + 1);
    }
    raw_descriptors::close_from(LIFELINE + 1)
}

/// Makes the kernel's out-of-memory killer prefer the calling process and its forks (proc(5),
/// `oom_score_adj`: up to 1000): they can be made again. On failure they rank like any other
/// process.
pub(crate) fn be_expendable() {
    if let Ok(file) = raw_descriptors::open_for_writing(c"/proc/self/oom_score_adj") {
        let _ = raw_descriptors::write_all(file, b"500");
        raw_descriptors::close(file);
    }
}

/// Makes the kernel kill the calling process when its keeper ends. Called after any change of user,
/// which clears this (prctl(2), `PR_SET_PDEATHSIG`). The keeper has one thread, so its "parent"
/// thread is the whole keeper.
pub(crate) fn die_with(keeper: Pid) -> Result<(), Failure> {
    let (option, signal) = (
        c_long::from(libc::PR_SET_PDEATHSIG),
        c_long::from(libc::SIGKILL),
    );
    // SAFETY: no pointer is passed.
    unsafe { system_calls::with_pass(libc::SYS_prctl, [option, signal, 0, 0, 0]) }
        .map_err(|e| Step::ParentWatch.failed(e))?;
    // The keeper may have ended before the call.
    if getppid() == keeper {
        Ok(())
    } else {
        Err(Step::ParentWatch.failed(Errno::ESRCH))
    }
}
