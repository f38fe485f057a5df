//! Who makes a run that a host has asked for over a connection that it keeps: the pool, or, if that
//! takes too long to begin, the host itself. A byte in a pipe decides. The host lays it down with its
//! request, and whoever takes it makes the run. To take it wakes nobody, as a message would.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{pipe2, read, write};

/// One end of the pipe, which can be read from. The host's end can be written to, too.
#[derive(Debug)]
pub(crate) struct Permit(OwnedFd);

impl Permit {
    /// The pool's, for a connection.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        // Whoever opens the pipe by its descriptor gets another end of it, with flags of its own.
        let (end, _) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        Ok(Self(end))
    }

    /// The host's end of the pool's pipe, by the pool's process id and its descriptor
    /// (proc_pid_fd(5)). The connection must be seen to be open afterwards.
    ///
    /// # Errors
    /// If it cannot be opened; `EINVAL` for what is no pipe.
    pub(crate) fn of(pool: i32, descriptor: i32) -> io::Result<Self> {
        let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let path = format!("/proc/{pool}/fd/{descriptor}");
        let end = open(path.as_str(), flags, Mode::empty())?;
        match SFlag::from_bits_truncate(fstat(&end)?.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFIFO => Ok(Self(end)),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// The number of the descriptor.
    pub(crate) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Lays down the byte.
    ///
    /// # Errors
    /// `EAGAIN` if the pipe is full. That the pool is gone is none: the host could read the byte itself.
    pub(crate) fn lay(&self) -> io::Result<()> {
        loop {
            match write(&self.0, &[0]) {
                Err(Errno::EINTR) => {}
                written => return Ok(written.map(drop)?),
            }
        }
    }

    /// Takes the byte; `false` if the other side has taken it.
    pub(crate) fn take(&self) -> bool {
        loop {
            match read(&self.0, &mut [0]) {
                Err(Errno::EINTR) => {}
                taken => return taken == Ok(1),
            }
        }
    }

    /// Whether it does not lie there any more.
    pub(crate) fn is_taken(&self) -> bool {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        let looked = poll(&mut fds, PollTimeout::ZERO);
        // That the other side is gone is told, too.
        let lies = fds[0]
            .revents()
            .is_some_and(|of| of.contains(PollFlags::POLLIN));
        looked.is_ok() && !lies
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_of_both_takes_it() {
        let pool = Permit::new().unwrap();
        let host = Permit::of(std::process::id().cast_signed(), pool.descriptor()).unwrap();
        assert!(!pool.take() && !host.take());
        for (first, second) in [(&pool, &host), (&host, &pool)] {
            host.lay().unwrap();
            assert!(!host.is_taken());
            assert!(first.take() && !second.take());
            assert!(host.is_taken());
        }
    }

    #[test]
    fn of_a_side_that_is_gone_nothing_is_taken() {
        let pool = Permit::new().unwrap();
        let host = Permit::of(std::process::id().cast_signed(), pool.descriptor()).unwrap();
        host.lay().unwrap();
        assert!(pool.take());
        drop(host);
        assert!(!pool.take() && pool.is_taken());
    }
}
