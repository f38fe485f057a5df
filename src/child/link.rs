//! The child's end of the channel.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use altair_engine::channel::{
    Message, PACKET_BYTES, SECRET_BYTES, Secret, Task, TaskReader, encode_message,
};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, getpid};

use crate::zend::ffi;

/// The channel, and what makes our messages genuine on it.
pub struct Link {
    socket: OwnedFd,
    secret: Option<Secret>,
    /// The process that the host has started. A fork of it (an unsafe run may fork) has the same
    /// memory, but nothing to say.
    owner: Pid,
}

impl Link {
    /// Takes the descriptor over and keeps it from whatever this process starts.
    #[allow(unsafe_code)]
    pub fn open(descriptor: RawFd) -> io::Result<Self> {
        if descriptor < 0 {
            return Err(Errno::EBADF.into());
        }
        // SAFETY: the host has put the channel under this descriptor, and nothing else in this
        // process knows of it.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        Ok(Self {
            socket,
            secret: None,
            owner: getpid(),
        })
    }

    /// Waits for the task.
    pub fn receive(&self) -> io::Result<Task> {
        let mut reader = TaskReader::default();
        let mut packet = vec![0; PACKET_BYTES + SECRET_BYTES + 1];
        loop {
            match recv(self.socket.as_raw_fd(), &mut packet, MsgFlags::empty()) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => match reader.push(&packet[..len]) {
                    Ok(Some(task)) => return Ok(task),
                    Ok(None) => {}
                    Err(error) => return Err(io::Error::other(error)),
                },
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sets what makes messages genuine.
    pub fn authenticate(&mut self, secret: Secret) {
        self.secret = Some(secret);
    }

    /// The secret, once there is one.
    pub fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// The socket.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a message. Where that fails there is no host left to hear it.
    pub fn send(&self, message: &Message) {
        if getpid() != self.owner {
            return;
        }
        let packets = self
            .secret
            .as_ref()
            .map(|secret| encode_message(secret, message));
        for packet in packets.into_iter().flatten().flatten() {
            send_packet(self.socket(), &packet);
        }
    }

    /// Tells a host of another version what it has started, as a PHP without the extension would.
    #[allow(unsafe_code)]
    pub fn say_who_we_are(&self) {
        // SAFETY: a constant of the shim's.
        let version = unsafe { CStr::from_ptr(ffi::altair_php_version()) }.to_string_lossy();
        // SAFETY: reads a constant.
        let zts = i32::from(unsafe { ffi::altair_php_is_zts() });
        let facts = serde_json::json!({
            "version": version, "sapi": "cli", "zts": zts, "debug": 0, "loaded": true,
        });
        send_packet(self.socket(), facts.to_string().as_bytes());
    }
}

/// Sends one packet, waiting where there is no room: a snippet may have made the socket
/// non-blocking. Usable in a signal handler.
pub fn send_packet(socket: BorrowedFd<'_>, packet: &[u8]) {
    loop {
        match send(socket.as_raw_fd(), packet, MsgFlags::MSG_NOSIGNAL) {
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let _ = poll(
                    &mut [PollFd::new(socket, PollFlags::POLLOUT)],
                    PollTimeout::NONE,
                );
            }
            _ => return,
        }
    }
}

/// Now, in nanoseconds of the clock that the host reads, too.
pub fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec().unsigned_abs() * 1_000_000_000 + now.tv_nsec().unsigned_abs()
    })
}

/// Ends the process at once.
#[allow(unsafe_code)]
pub fn leave(status: i32) -> ! {
    // SAFETY: does not return.
    unsafe { nix::libc::_exit(status) }
}
