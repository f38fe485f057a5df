//! The child's end of the channel.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use altair_engine::channel::{Code, Message, PACKET_BYTES, Secret, TaskReader, encode_message};
use altair_sandbox::look_for_packet;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, recv, send, sendmsg};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, getpid};
use serde::de::DeserializeOwned;

use crate::zend::child::Build;
use crate::zend::process::take_descriptor;

/// The channel before the task arrives.
pub struct Link {
    socket: OwnedFd,
    opened_ns: u64,
}

impl Link {
    /// Takes ownership of the descriptor and sets close-on-exec.
    pub fn open(descriptor: RawFd) -> io::Result<Self> {
        if descriptor < 0 {
            return Err(Errno::EBADF.into());
        }
        let opened_ns = monotonic_ns();
        let socket = take_descriptor(descriptor);
        fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        Ok(Self { socket, opened_ns })
    }

    /// When the descriptor was taken, in nanoseconds of `CLOCK_MONOTONIC`, as the host's times.
    pub fn opened_ns(&self) -> u64 {
        self.opened_ns
    }

    /// Waits for the task, or for its code.
    pub fn receive<M: DeserializeOwned>(&self) -> io::Result<M> {
        receive(&self.socket)
    }

    /// Tells a host of another version what it has started, in the format of a PHP without the
    /// extension.
    pub fn say_who_we_are(&self) {
        let build = Build::get();
        let facts = serde_json::json!({
            "version": build.version,
            "sapi": "cli",
            "zts": i32::from(build.zts),
            "debug": i32::from(build.debug),
            "loaded": true,
        });
        send_packet(&self.socket, facts.to_string().as_bytes());
    }

    /// The channel with the secret that authenticates its messages. It lives as long as the
    /// process, since a signal handler and an exit handler use it last.
    pub fn with_secret(self, secret: Secret) -> &'static Voice {
        Box::leak(Box::new(Voice {
            socket: self.socket,
            secret,
            owner: getpid(),
        }))
    }
}

/// Sends the child's messages.
pub struct Voice {
    socket: OwnedFd,
    secret: Secret,
    /// The process that the host has started. A fork of it (an unsafe run may fork) must not send.
    owner: Pid,
}

impl Voice {
    /// The secret that authenticates messages.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The channel itself.
    pub fn channel(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a message. If that fails, the host is gone.
    pub fn send(&self, message: &Message) {
        for packet in encode_message(&self.secret, message).unwrap_or_default() {
            self.send_packet(&packet);
        }
    }

    /// Sends a message of one packet with a descriptor, which the host only accepts with the first
    /// packet of a template's fork. A message of several packets is sent without it.
    ///
    /// # Errors
    /// Why the descriptor cannot be sent. Then nothing was sent.
    pub fn send_with(&self, message: &Message, descriptor: &OwnedFd) -> nix::Result<()> {
        let packets = encode_message(&self.secret, message).unwrap_or_default();
        let [packet] = packets.as_slice() else {
            packets.iter().for_each(|packet| self.send_packet(packet));
            return Ok(());
        };
        let descriptors = [descriptor.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let parts = [IoSlice::new(packet)];
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::MSG_NOSIGNAL);
        let sent = when_there_is_room(&self.socket, || {
            sendmsg::<()>(socket, &parts, &rights, flags, None)
        });
        match sent {
            // The host is gone.
            Ok(_) | Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Waits for the code of the task: for a moment without sleeping, as it is about to come. `None` if
    /// the host is gone, or wants nothing of this child any more.
    pub fn receive_code(&self) -> Option<Code> {
        look_for_packet(self.socket.as_fd());
        receive(&self.socket).ok()
    }

    /// Waits for the host's next packet that `read` makes something of. `None` once the host has
    /// closed the channel.
    pub fn receive<R>(&self, mut read: impl FnMut(&[u8]) -> Option<R>) -> Option<R> {
        let mut packet = vec![0; PACKET_BYTES + 1];
        loop {
            match recv(self.socket.as_raw_fd(), &mut packet, MsgFlags::empty()) {
                Ok(0) | Err(Errno::ECONNRESET) => return None,
                Ok(len) => {
                    if let Some(read) = packet.get(..len).and_then(&mut read) {
                        return Some(read);
                    }
                }
                Err(Errno::EINTR) => {}
                // Code may have made the socket non-blocking.
                Err(Errno::EAGAIN) => {
                    let more = PollFd::new(self.socket.as_fd(), PollFlags::POLLIN);
                    let _ = poll(&mut [more], PollTimeout::NONE);
                }
                Err(_) => return None,
            }
        }
    }

    /// Sends one packet. Usable in a signal handler.
    pub fn send_packet(&self, packet: &[u8]) {
        if getpid() == self.owner {
            send_packet(&self.socket, packet);
        }
    }
}

/// Waits for what a host gives before anything of the application runs.
fn receive<M: DeserializeOwned>(socket: &OwnedFd) -> io::Result<M> {
    let mut reader = TaskReader::default();
    let mut packet = Vec::new();
    loop {
        // Exactly as long as the packet, since each page that a fork writes to is copied.
        let ask = MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC;
        let length = recv(socket.as_raw_fd(), &mut [], ask).unwrap_or(PACKET_BYTES + 1);
        packet.resize(length, 0);
        match recv(socket.as_raw_fd(), &mut packet, MsgFlags::empty()) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => match reader.push(&packet[..len]) {
                Ok(Some(given)) => return Ok(given),
                Ok(None) => {}
                Err(error) => return Err(io::Error::other(error)),
            },
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends one packet.
fn send_packet(socket: &OwnedFd, packet: &[u8]) {
    let _ = when_there_is_room(socket, || {
        send(socket.as_raw_fd(), packet, MsgFlags::MSG_NOSIGNAL)
    });
}

/// Sends something, and waits for room: a snippet may have made the socket non-blocking.
fn when_there_is_room(
    socket: &OwnedFd,
    mut send: impl FnMut() -> nix::Result<usize>,
) -> nix::Result<usize> {
    loop {
        match send() {
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let room = PollFd::new(socket.as_fd(), PollFlags::POLLOUT);
                let _ = poll(&mut [room], PollTimeout::NONE);
            }
            sent => return sent,
        }
    }
}

/// The current time, in nanoseconds of `CLOCK_MONOTONIC`.
fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec().unsigned_abs() * 1_000_000_000 + now.tv_nsec().unsigned_abs()
    })
}
