//! What a process reads from its standard input.

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{pipe2, read, write};

use crate::{system_calls, thread};

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

/// The process's end of a pipe with what a file holds from its position on, which stays as it is: others
/// who share it go on from there.
///
/// # Errors
/// If the host has no descriptor or no thread left.
pub fn input_from_file(mut file: File) -> io::Result<OwnedFd> {
    let mut at = file.stream_position()?;
    input_from(move |chunk| {
        let count = file.read_at(chunk, at)?;
        at += count as u64;
        Ok(count)
    })
}

/// The process's end of a pipe with what comes over a socket, a terminal, a device or a pipe with a name.
///
/// # Errors
/// If the host has no descriptor or no thread left.
pub fn input_from_stream(stream: OwnedFd) -> io::Result<OwnedFd> {
    input_from(move |chunk| {
        loop {
            match read(&stream, chunk) {
                Err(Errno::EAGAIN) => wait(stream.as_fd(), PollFlags::POLLIN),
                Err(Errno::EINTR) => {}
                other => return Ok(other?),
            }
        }
    })
}

/// A pipe that a thread fills with what `source` gives, until that is at its end or fails, or nobody reads
/// any more. The thread may then still wait for `source`: it ends with the host.
fn input_from(
    mut source: impl FnMut(&mut [u8]) -> io::Result<usize> + Send + 'static,
) -> io::Result<OwnedFd> {
    let (theirs, own) = input_pipe()?;
    thread::start("altair-input", move || {
        let mut chunk = vec![0; WRITE_BYTES];
        while let Ok(count @ 1..) = source(&mut chunk) {
            let mut rest = chunk.get(..count).unwrap_or_default();
            while !rest.is_empty() {
                match write_quietly(own.as_fd(), rest) {
                    Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                    Err(Errno::EAGAIN) => wait(own.as_fd(), PollFlags::POLLOUT),
                    Err(Errno::EINTR) => {}
                    Err(_) => return,
                }
            }
        }
    })?;
    Ok(theirs)
}

fn wait(descriptor: BorrowedFd<'_>, events: PollFlags) {
    let _ = poll(&mut [PollFd::new(descriptor, events)], PollTimeout::NONE);
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
