//! The packet socket between host and process.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socketpair, sockopt,
};

use crate::sys;

/// Bytes of the largest packet that is taken from a process, 64 KiB. A larger one is dropped.
/// The buffer for it is made anew for each run: a much larger one would cost more in page faults
/// than all the rest of the host's part.
pub const MAX_PACKET_BYTES: usize = 64 * 1024;

/// Packets that are taken in one round, so that a flooded channel starves neither the output nor
/// the deadline.
const PACKETS_A_ROUND: usize = 16;

/// Packets that are taken after the process has ended. Far above what the kernel queues
/// (`net.unix.max_dgram_qlen`, 10 by default), and a bound for a socket that somebody else
/// holds and keeps on filling.
const PACKETS_AT_THE_END: usize = 4096;

/// Makes a channel: `(the host's end, the process's end)`.
///
/// Both are `SOCK_SEQPACKET` sockets: packets arrive whole and in order, and the end of one side
/// is seen by the other. Both close on `exec` ([`Launch::channel`](crate::Launch::channel) hands
/// the process its own copy) and block; [`Child::supervise`](crate::Child::supervise) never
/// blocks on the host's.
///
/// # Errors
/// When the host has no descriptor left, or may not make a Unix socket.
pub fn channel_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (host, process) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    Ok((host, process))
}

/// The host's end while the process runs. Nothing here blocks, or raises `SIGPIPE`.
pub(crate) struct Channel {
    /// Gone once the process's end is closed and read empty.
    socket: Option<OwnedFd>,
    outbox: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Channel {
    /// Sends `outbox` over `socket` as the process takes it.
    pub(crate) fn new(socket: Option<OwnedFd>, outbox: Vec<Vec<u8>>) -> Self {
        if let (Some(socket), Some(largest)) = (&socket, outbox.iter().map(Vec::len).max()) {
            // A packet must fit in the buffer whole, beside the kernel's bookkeeping (which the
            // kernel doubles the value for). As far as `wmem_max` allows; else sending says so.
            let _ = setsockopt(socket, sockopt::SndBuf, &(largest.saturating_add(4096)));
        }
        let buffer = match &socket {
            Some(_) => vec![0; MAX_PACKET_BYTES],
            None => Vec::new(),
        };
        Self {
            socket,
            outbox: outbox.into(),
            buffer,
        }
    }

    /// What to poll, and for what.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let mut events = PollFlags::POLLIN;
        if !self.outbox.is_empty() {
            events |= PollFlags::POLLOUT;
        }
        self.socket.as_ref().map(|socket| (socket.as_fd(), events))
    }

    /// Does what `ready` allows, at most one round's worth.
    pub(crate) fn serve(&mut self, ready: PollFlags, taken: &mut dyn FnMut(&[u8])) {
        if ready.contains(PollFlags::POLLOUT) {
            self.send();
        }
        self.receive(PACKETS_A_ROUND, taken);
    }

    /// Takes what a process that has ended left behind.
    pub(crate) fn drain(&mut self, taken: &mut dyn FnMut(&[u8])) {
        self.receive(PACKETS_AT_THE_END, taken);
    }

    fn send(&mut self) {
        let Some(socket) = &self.socket else { return };
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        while let Some(packet) = self.outbox.front() {
            match send(socket.as_raw_fd(), packet, flags) {
                Ok(_) => {
                    self.outbox.pop_front();
                }
                Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => return,
                // The process does not listen any more, which is its own business, or the
                // packet can never be sent; the rest would make no sense without it.
                Err(_) => self.outbox.clear(),
            }
        }
    }

    fn receive(&mut self, at_most: usize, taken: &mut dyn FnMut(&[u8])) {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        // An empty packet looks like the end, and may lie before a full one: only a row of empty
        // answers that is longer than any queue, from a peer that has hung up, is the end.
        let mut empty_in_a_row = 0;
        for _ in 0..at_most {
            let Some(socket) = &self.socket else { return };
            match recv(socket.as_raw_fd(), &mut self.buffer, flags) {
                Ok(0) => {
                    empty_in_a_row += 1;
                    if empty_in_a_row == PACKETS_A_ROUND && sys::has_hung_up(socket.as_fd()) {
                        self.socket = None;
                    }
                }
                Ok(length) => {
                    empty_in_a_row = 0;
                    // With MSG_TRUNC the length is the packet's own, also when it did not fit.
                    if let Some(packet) = self.buffer.get(..length) {
                        taken(packet);
                    }
                }
                Err(Errno::EAGAIN) => return,
                // ECONNRESET: the peer closed with packets of ours unread. It is said once, and
                // what the peer itself sent before is still to be read.
                Err(Errno::EINTR | Errno::ECONNRESET) => {}
                Err(_) => self.socket = None,
            }
        }
    }
}
