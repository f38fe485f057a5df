//! Between the person's terminal and the command's: keys go to a pseudoterminal, so that nothing of
//! the command's reaches the person's own terminal but its output.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use altair_sandbox::{Pseudoterminal, resize_like};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::{pipe2, read};

use super::signals::Resizer;
use crate::failure::{Failure, reason};

/// Bytes read at a time.
pub const CHUNK_BYTES: usize = 4096;

/// Relays keys until it is dropped, which also gives the terminal its own mode back.
pub struct Relay {
    terminal: Pseudoterminal,
    before: Termios,
    /// Closing it ends the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Begins to relay what is typed on standard input, which is a terminal.
    ///
    /// # Errors
    /// If the system has no pseudoterminal left.
    pub fn begin() -> Result<Self, Failure> {
        let stdin = io::stdin();
        let failed = |error: io::Error| {
            Failure::new(format!(
                "no terminal can be made for the command: {}",
                reason(&error)
            ))
        };
        let terminal = Pseudoterminal::like(stdin.as_fd()).map_err(failed)?;
        let before = tcgetattr(stdin.as_fd()).map_err(|errno| failed(errno.into()))?;
        // The command's terminal behaves as the person's did.
        let _ = tcsetattr(&terminal.process, SetArg::TCSANOW, &before);
        let (stopped, stop) = pipe2(OFlag::O_CLOEXEC).map_err(|errno| failed(errno.into()))?;
        let typed = terminal.host.try_clone().map_err(failed)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(stdin.as_fd(), SetArg::TCSANOW, &raw).map_err(|errno| failed(errno.into()))?;
        let thread = std::thread::spawn(move || keys(&typed, &stopped));
        Ok(Self {
            terminal,
            before,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The command's terminal.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub fn terminal(&self) -> Result<Pseudoterminal, Failure> {
        self.terminal
            .try_clone()
            .map_err(|error| Failure::new(format!("no descriptor is left: {}", reason(&error))))
    }

    /// Takes over the size of the person's terminal when it changes.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub fn resizer(&self) -> Result<Resizer, Failure> {
        let terminal = self.terminal()?;
        Ok(Arc::new(move || {
            resize_like(terminal.host.as_fd(), io::stdin().as_fd())
        }))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSADRAIN, &self.before);
    }
}

/// Passes keys on until `stopped` is closed.
fn keys(typed: &OwnedFd, stopped: &OwnedFd) {
    let stdin = io::stdin();
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        let mut fds = [
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
            PollFd::new(stopped.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
        if fds[1].any() == Some(true) {
            return;
        }
        if fds[0].any() != Some(true) {
            continue;
        }
        match read(stdin.as_fd(), &mut chunk) {
            Ok(0) | Err(Errno::EIO) => return,
            Ok(count) => {
                let mut rest = chunk.get(..count).unwrap_or_default();
                while !rest.is_empty() {
                    match nix::unistd::write(typed, rest) {
                        Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                        Err(Errno::EINTR) => {}
                        Err(_) => return,
                    }
                }
            }
            Err(_) => {}
        }
    }
}
