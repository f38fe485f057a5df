//! A child that shows what nobody can see of this process: the kernel lets nobody look into a process
//! that has changed its user, as workers of web servers have (prctl(2), `PR_SET_DUMPABLE`).
//!
//! It is in the same namespaces and under the same restrictions, which a child takes over, and has
//! nothing else of this process: it executes another program and has no environment and no
//! descriptors. So others of the user may look into it as into any process.
#![allow(unsafe_code)]

use std::convert::Infallible;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::stat::Mode;
use nix::unistd::pipe2;

use crate::raw_descriptors;
use crate::spawn::lift;
use crate::system_calls::{self, Cloned};

/// Reads its input until that ends, which it does not as long as the witness is needed. On every
/// system; one without it has no witnesses.
const PROGRAM: &CStr = c"/bin/cat";

/// How long its start is waited for; it takes microseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// Such a child, as long as this lives. Its end is told to this process as that of any child.
#[derive(Debug)]
pub struct Witness {
    pid: i32,
    pidfd: OwnedFd,
    /// The input that does not end before this process does.
    _input: OwnedFd,
}

impl Witness {
    /// The number at which it has the descriptor that it shows.
    pub const SHOWS: RawFd = 1;

    /// Starts one that shows a descriptor. It has executed its program when this returns.
    ///
    /// # Errors
    /// If the system refuses a process or a descriptor.
    pub fn start(shows: BorrowedFd<'_>) -> io::Result<Self> {
        let null = lift(&open(
            c"/dev/null",
            OFlag::O_RDWR | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?)?;
        let (input, kept) = pipe2(OFlag::O_CLOEXEC)?;
        let (input, shows) = (lift(&input)?, lift(&shows.try_clone_to_owned()?)?);
        let [input, shows, null] = [&input, &shows, &null].map(AsRawFd::as_raw_fd);
        // The signal handlers of this process must not run in the child, which has its memory.
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        // SAFETY: the child makes only async-signal-safe calls and does not return.
        let cloned = match unsafe { system_calls::clone_unnoticed(libc::CLONE_VFORK) } {
            Ok(Cloned::Child) => {
                let _ = become_witness([input, shows, null]);
                system_calls::exit_now(127)
            }
            Ok(Cloned::Parent(pid, pidfd)) => Ok((pid, pidfd)),
            Err(errno) => Err(errno),
        };
        // Does not fail for a mask that was in force before.
        let _ = mask.thread_set_mask();
        let (pid, pidfd) = cloned?;
        await_program(pid, pidfd.as_fd());
        Ok(Self {
            pid,
            pidfd,
            _input: kept,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // A process of the same user may have stopped it.
        system_calls::signal_pidfd(self.pidfd.as_fd(), libc::SIGKILL);
        let _ = system_calls::wait_pidfd(self.pidfd.as_fd());
    }
}

/// Waits until it has executed its program, or has ended. clone(2) returns a moment earlier: the kernel
/// takes the memory away before it drops capabilities and lets others look (fs/exec.c,
/// `begin_new_exec`). A process has arguments again after that.
fn await_program(pid: i32, pidfd: BorrowedFd<'_>) {
    let until = Instant::now() + PATIENCE;
    let is_program = || {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments == PROGRAM.to_bytes_with_nul()
    };
    while !is_program() && Instant::now() < until {
        let ended = poll(&mut [PollFd::new(pidfd, PollFlags::POLLIN)], 1u8);
        if ended.is_ok_and(|count| count > 0) {
            return;
        }
    }
}

/// Returns only on failure.
fn become_witness(standard: [RawFd; 3]) -> nix::Result<Infallible> {
    system_calls::default_signals();
    for (fd, number) in standard.into_iter().zip(0..) {
        raw_descriptors::put(fd, number, false)?;
    }
    raw_descriptors::close_from(3)?;
    // Ends with the thread that has started it, also when a process of the same user has stopped it.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    nix::unistd::chdir(c"/")?;
    system_calls::unblock_signals()?;
    let nothing = [std::ptr::null()];
    // SAFETY: both lists end with a null pointer; the name is a C string.
    Err(unsafe { system_calls::exec(PROGRAM, &[PROGRAM.as_ptr(), nothing[0]], &nothing) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn it_has_nothing_of_its_parents_but_what_it_shows() {
        let (left_open, _end) = nix::unistd::pipe().unwrap();
        assert!(left_open.as_raw_fd() > 2);
        let shown = system_calls::memory_file(c"shown").unwrap();

        let witness = Witness::start(shown.as_fd()).unwrap();

        let at = std::path::PathBuf::from(format!("/proc/{}", witness.pid()));
        let name = std::fs::read_link(at.join("fd/1")).unwrap();
        assert_eq!(name.as_os_str(), "/memfd:shown (deleted)");
        assert_eq!(std::fs::read_dir(at.join("fd")).unwrap().count(), 3);
        assert!(std::fs::read(at.join("environ")).unwrap().is_empty());
        assert_eq!(std::fs::read_link(at.join("cwd")).unwrap().as_os_str(), "/");
        let own = std::fs::read_link("/proc/self/exe").unwrap();
        assert_ne!(std::fs::read_link(at.join("exe")).unwrap(), own);
        drop(witness);
        assert!(!at.exists());
    }
}
