//! A terminal between a host and a process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;

/// Both ends of a pseudoterminal (pty(7)).
#[derive(Debug)]
pub struct Pseudoterminal {
    /// The host's end: what it writes is typed, what it reads is shown.
    pub host: OwnedFd,
    /// The process's terminal.
    pub process: OwnedFd,
}

impl Pseudoterminal {
    /// Makes one of the same size as another terminal.
    ///
    /// # Errors
    /// If the system has none left.
    pub fn like(other: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        // SAFETY: no pointer is passed.
        let host = own(unsafe { libc::posix_openpt(flags) })?;
        let unlock: libc::c_int = 0;
        // SAFETY: the kernel reads the number, which outlives the call.
        Errno::result(unsafe {
            libc::ioctl(host.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlock)
        })?;
        // By descriptor, so that no other /dev/pts matters (ioctl_tty(2), `TIOCGPTPEER`).
        // SAFETY: this call takes flags.
        let process = own(unsafe { libc::ioctl(host.as_raw_fd(), libc::TIOCGPTPEER, flags) })?;
        let made = Self { host, process };
        made.resize_like(other);
        Ok(made)
    }

    /// Another copy of both ends.
    ///
    /// # Errors
    /// If the host has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            host: self.host.try_clone()?,
            process: self.process.try_clone()?,
        })
    }

    /// Takes over the size of another terminal. The process's foreground group gets `SIGWINCH` if it
    /// changes.
    pub fn resize_like(&self, other: BorrowedFd<'_>) {
        resize_like(self.host.as_fd(), other);
    }
}

/// Gives a terminal the size of another one, if that has one.
pub fn resize_like(terminal: BorrowedFd<'_>, other: BorrowedFd<'_>) {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the kernel fills in the struct, which outlives the call.
    let known = unsafe { libc::ioctl(other.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    if known == 0 {
        // SAFETY: the kernel reads the struct, which outlives the call.
        unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    }
}

fn own(fd: RawFd) -> nix::Result<OwnedFd> {
    let fd = Errno::result(fd)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
