//! What a process reads from its standard input.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{pipe2, write};

use crate::system_calls;

/// Bytes written at a time: what a pipe holds by default (pipe(7)).
const WRITE_BYTES: usize = 64 * 1024;

/// Bytes for a process's standard input, written as fast as it reads them.
#[derive(Debug)]
pub struct Input {
    pipe: OwnedFd,
    bytes: Vec<u8>,
    written: usize,
}

impl Input {
    /// Makes a pipe for `bytes`. The second value is the process's end
    /// ([`Stdio::Captured`](crate::Stdio)).
    ///
    /// # Errors
    /// If the host has no descriptor left.
    pub fn new(bytes: Vec<u8>) -> std::io::Result<(Self, OwnedFd)> {
        let (theirs, pipe) = input_pipe()?;
        let written = 0;
        Ok((
            Self {
                pipe,
                bytes,
                written,
            },
            theirs,
        ))
    }

    pub(crate) fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Writes what fits. Returns whether everything is written, or the process reads no more.
    pub(crate) fn feed(&mut self) -> bool {
        let rest = self.bytes.get(self.written..).unwrap_or_default();
        let next = rest.get(..WRITE_BYTES).unwrap_or(rest);
        if next.is_empty() {
            return true;
        }
        match write_quietly(self.pipe.as_fd(), next) {
            Ok(count) => {
                self.written += count;
                self.written >= self.bytes.len()
            }
            Err(Errno::EAGAIN | Errno::EINTR) => false,
            Err(_) => true,
        }
    }
}

/// A pipe for a process's standard input: `(the process's end, the host's end)`. The host's end does
/// not block; write to it with [`write_quietly`].
///
/// # Errors
/// If the host has no descriptor left.
pub fn input_pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (theirs, own) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&own, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((theirs, own))
}

/// Writes once, without the signal that the kernel sends for a pipe that nobody reads
/// (pipe(7), `SIGPIPE`): it would end a host that does not ignore it.
///
/// # Errors
/// What write(2) reports: `EPIPE` for such a pipe.
pub fn write_quietly(pipe: BorrowedFd<'_>, bytes: &[u8]) -> nix::Result<usize> {
    let mut signal = SigSet::empty();
    signal.add(Signal::SIGPIPE);
    let before = signal.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let was_pending = system_calls::is_pending(Signal::SIGPIPE);
    let written = write(pipe, bytes);
    if written == Err(Errno::EPIPE) && !was_pending {
        system_calls::take_pending(&signal);
    }
    // Does not fail for a mask that was in force before.
    let _ = before.thread_set_mask();
    written
}
