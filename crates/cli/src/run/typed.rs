//! What is typed for a command that has no terminal, such as one whose output goes to a pipe.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use altair_command::Stdin;
use altair_sandbox::{input_pipe, write_quietly};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{pipe2, read};

use super::relay::CHUNK_BYTES;
use crate::failure::{Failure, reason};

/// Passes on what is typed until it is dropped: what is typed afterwards is for this program, such as
/// the answer to a question.
pub struct Typed {
    /// Closing it ends the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Typed {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The command's standard input if it has no terminal. A file or a pipe is passed on as it is; what
/// is typed on a terminal goes through a pipe, so that the command has no hold of the terminal.
///
/// # Errors
/// If no descriptor is left.
pub fn standard_input() -> Result<(Stdin, Option<Typed>), Failure> {
    let failed =
        |error: io::Error| Failure::new(format!("no pipe can be made: {}", reason(&error)));
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Ok(match stdin.as_fd().try_clone_to_owned() {
            Ok(descriptor) => (Stdin::Descriptor(descriptor), None),
            // Closed.
            Err(_) => (Stdin::Empty, None),
        });
    }
    let (theirs, own) = input_pipe().map_err(failed)?;
    let (stopped, stop) = pipe2(OFlag::O_CLOEXEC).map_err(|errno| failed(errno.into()))?;
    let thread = std::thread::spawn(move || pass_on(own.as_fd(), stopped.as_fd()));
    let typed = Typed {
        stop: Some(stop),
        thread: Some(thread),
    };
    Ok((Stdin::Descriptor(theirs), Some(typed)))
}

/// Passes on what is typed until `stopped` is closed, input ends or nobody reads any more.
fn pass_on(to: BorrowedFd<'_>, stopped: BorrowedFd<'_>) {
    let mut chunk = [0; CHUNK_BYTES];
    while waits_for(io::stdin().as_fd(), PollFlags::POLLIN, stopped) {
        let count = match read(io::stdin().as_fd(), &mut chunk) {
            Ok(0) => return,
            Ok(count) => count,
            Err(Errno::EINTR | Errno::EAGAIN) => continue,
            Err(_) => return,
        };
        let mut rest = chunk.get(..count).unwrap_or_default();
        while !rest.is_empty() {
            match write_quietly(to, rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(Errno::EAGAIN) if waits_for(to, PollFlags::POLLOUT, stopped) => {}
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }
}

/// Waits until a descriptor is ready; `false` once `stopped` is closed.
fn waits_for(descriptor: BorrowedFd<'_>, events: PollFlags, stopped: BorrowedFd<'_>) -> bool {
    loop {
        let mut fds = [
            PollFd::new(stopped, PollFlags::POLLIN),
            PollFd::new(descriptor, events),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return false,
        }
        let [is_over, is_ready] = fds.map(|fd| fd.any() == Some(true));
        if is_over || is_ready {
            return !is_over;
        }
    }
}
