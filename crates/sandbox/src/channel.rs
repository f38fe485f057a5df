//! The packet socket between host and process.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, Shutdown, SockFlag, SockType, getsockopt, recv,
    recvmsg, send, sendmsg, setsockopt, shutdown, socketpair, sockopt,
};

use crate::buffer::Buffer;
use crate::child::{DESCRIPTORS_MAX, descriptors};
use crate::seccomp::Answerer;
use crate::{limits, system_calls};

/// Bytes of the largest packet accepted from a process, 64 KiB. A larger one is dropped.
pub const MAX_PACKET_BYTES: usize = 64 * 1024;

/// Packets received in one round, so that a flooded channel starves neither the output nor the
/// deadline.
const PACKETS_A_ROUND: usize = 16;

/// Packets received after the process has ended. Far more than the kernel queues
/// (`net.unix.max_dgram_qlen`, 10 by default). Bounds a socket that another process holds and
/// keeps filling.
const PACKETS_AT_THE_END: usize = 4096;

/// The packet with which a process hands over its filter's listener, or reports that there is
/// none. The host accepts a descriptor only with this packet or the next one.
const HAND_OVER: &[u8] = b"altair-sandbox: the listener of my filter";
/// The packet with which it hands over the socket of its own handler instead.
const HAND_OVER_HANDLER: &[u8] = b"altair-sandbox: the socket of my handler";

/// [`HAND_OVER`] must come within this many packets. A program sends few before it takes its
/// guards.
const PACKETS_BEFORE_HAND_OVER: usize = 8;

/// Makes a channel: `(the host's end, the process's end)`.
///
/// Both are `SOCK_SEQPACKET` sockets: packets arrive whole and in order, and each side sees the
/// other close. Both close on `exec` ([`Launch::channel`](crate::Launch::channel) gives the
/// process its own copy) and block; [`Child::supervise`](crate::Child::supervise) never blocks
/// on the host's.
///
/// # Errors
/// If the host has no descriptor left, or may not make a Unix socket.
pub fn channel_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (host, process) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    Ok((host, process))
}

/// Hands what answers the calling process's filter to the host, or reports that there is nothing.
///
/// # Errors
/// What sendmsg(2) reports; the host is then told that there is none. It is no error if the host
/// is gone.
pub(crate) fn hand_over(channel: BorrowedFd<'_>, answerer: Option<Answerer>) -> nix::Result<()> {
    let (packet, listener) = match answerer {
        Some(Answerer::Listener(listener)) => (HAND_OVER, Some(listener)),
        Some(Answerer::Handler(socket)) => (HAND_OVER_HANDLER, Some(socket)),
        None => (HAND_OVER, None),
    };
    let descriptors: Vec<_> = listener.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let control = rights.get(..descriptors.len()).unwrap_or_default();
    let packet = [IoSlice::new(packet)];
    let send = |control| loop {
        let flags = MsgFlags::MSG_NOSIGNAL;
        match sendmsg::<()>(channel.as_raw_fd(), &packet, control, flags, None) {
            Err(Errno::EINTR) => {}
            sent => break sent.map(drop),
        }
    };
    let before = listener
        .as_ref()
        .and_then(|_| limits::room_for_descriptors());
    let sent = send(control);
    if let Some(before) = before {
        let _ = limits::limit_descriptors(before, true);
    }
    match sent {
        Ok(()) | Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(()),
        Err(errno) => send(&[]).and(Err(errno)),
    }
}

/// What a host gives a process over the channel.
pub enum Outgoing {
    /// One packet.
    Packet(Vec<u8>),
    /// Bytes in packets of their own, which are not copied before they are sent.
    Parts(Parts),
}

/// Bytes that are sent in packets.
pub struct Parts {
    /// What each packet begins with.
    pub prefix: &'static [u8],
    /// The bytes.
    pub bytes: Box<dyn AsRef<[u8]> + Send>,
    /// How many of them a packet holds at most; not 0.
    pub each: usize,
    /// How many were sent.
    pub sent: usize,
}

impl Outgoing {
    fn largest_packet(&self) -> usize {
        match self {
            Self::Packet(packet) => packet.len(),
            Self::Parts(parts) => parts.prefix.len() + parts.each,
        }
    }

    /// Sends the next packet. Returns whether it was the last.
    fn send_next(&mut self, socket: &OwnedFd) -> nix::Result<bool> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        match self {
            Self::Packet(packet) => send(socket.as_raw_fd(), packet, flags).map(|_| true),
            Self::Parts(parts) => {
                let left = (*parts.bytes)
                    .as_ref()
                    .get(parts.sent..)
                    .unwrap_or_default();
                let Some(next) = left.chunks(parts.each).next() else {
                    return Ok(true);
                };
                let packet = [IoSlice::new(parts.prefix), IoSlice::new(next)];
                sendmsg::<()>(socket.as_raw_fd(), &packet, &[], flags, None)?;
                let is_last = next.len() == left.len();
                parts.sent += next.len();
                Ok(is_last)
            }
        }
    }
}

/// The host's end while the process runs. No operation blocks or raises `SIGPIPE`.
pub(crate) struct Channel {
    /// `None` once the process's end is closed and everything from it is read.
    socket: Option<OwnedFd>,
    outbox: VecDeque<Outgoing>,
    /// Whether something could not be sent.
    is_broken: bool,
    buffer: Buffer,
    hand_over: HandOver,
    layer: Option<OwnedFd>,
}

/// The state of the hand-over of the filter's listener.
enum HandOver {
    /// The process is a fork and uses its template's listener. The directory of its layer may come
    /// with the first packet.
    Layer,
    /// The listener may come with one of this many packets.
    Awaited(usize),
    /// It has come but has not been taken.
    Come(Answerer),
    /// No descriptor is accepted any more. A process could otherwise fill the host's descriptor
    /// table, or make it close a descriptor that is slow to close.
    Over,
}

impl Channel {
    /// Sends `outbox` over `socket` as fast as the process reads it.
    pub(crate) fn new(socket: Option<OwnedFd>, outbox: Vec<Vec<u8>>, of_fork: bool) -> Self {
        if let (Some(socket), Some(largest)) = (&socket, outbox.iter().map(Vec::len).max()) {
            make_room(socket, largest);
        }
        let buffer = match &socket {
            Some(_) => Buffer::new(MAX_PACKET_BYTES),
            None => Buffer::new(0),
        };
        let mut channel = Self {
            socket,
            outbox: outbox.into_iter().map(Outgoing::Packet).collect(),
            is_broken: false,
            buffer,
            hand_over: match of_fork {
                true => HandOver::Layer,
                false => HandOver::Awaited(PACKETS_BEFORE_HAND_OVER),
            },
            layer: None,
        };
        // A process that waits for it need not wait for the first look at the socket.
        channel.send();
        channel
    }

    /// Whether something could not be sent: the process does not listen any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Tells the process that nothing more comes. What it sends can still be read.
    pub(crate) fn close(&mut self) {
        self.outbox.clear();
        if let Some(socket) = &self.socket {
            // Fails only for a socket whose other end is closed.
            let _ = shutdown(socket.as_raw_fd(), Shutdown::Write);
        }
    }

    /// Sends more, after what waits.
    pub(crate) fn give(&mut self, more: Vec<Outgoing>) {
        let largest = more.iter().map(Outgoing::largest_packet).max();
        if let (Some(socket), Some(largest)) = (&self.socket, largest) {
            make_room(socket, largest);
        }
        self.outbox.extend(more);
    }

    /// Whether packets wait to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Takes the directory of the layer that a template's fork has sent, if it has come.
    pub(crate) fn layer(&mut self) -> Option<OwnedFd> {
        self.layer.take()
    }

    /// Returns the host's end of the channel when supervision is over.
    pub(crate) fn into_socket(self) -> Option<OwnedFd> {
        self.socket
    }

    /// Takes what answers the process's filter, if it has come.
    pub(crate) fn answerer(&mut self) -> Option<Answerer> {
        match std::mem::replace(&mut self.hand_over, HandOver::Over) {
            HandOver::Come(answerer) => Some(answerer),
            other => {
                self.hand_over = other;
                None
            }
        }
    }

    /// The descriptor and events to poll.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let mut events = PollFlags::POLLIN;
        if !self.outbox.is_empty() {
            events |= PollFlags::POLLOUT;
        }
        self.socket.as_ref().map(|socket| (socket.as_fd(), events))
    }

    /// Sends and receives what `ready` allows, at most one round.
    pub(crate) fn serve(&mut self, ready: PollFlags, taken: &mut dyn FnMut(&[u8])) {
        if ready.contains(PollFlags::POLLOUT) {
            self.send();
        }
        self.receive(PACKETS_A_ROUND, taken);
    }

    /// Receives what a process left behind when it ended.
    pub(crate) fn drain(&mut self, taken: &mut dyn FnMut(&[u8])) {
        self.receive(PACKETS_AT_THE_END, taken);
    }

    fn send(&mut self) {
        let Some(socket) = &self.socket else { return };
        while let Some(next) = self.outbox.front_mut() {
            match next.send_next(socket) {
                Ok(true) => {
                    self.outbox.pop_front();
                }
                Ok(false) => {}
                Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => return,
                // The process no longer listens, or the packet can never be sent. The later packets
                // would make no sense without it.
                Err(_) => {
                    self.outbox.clear();
                    self.is_broken = true;
                }
            }
        }
    }

    fn receive(&mut self, at_most: usize, taken: &mut dyn FnMut(&[u8])) {
        for _ in 0..at_most {
            let Some(socket) = &self.socket else { return };
            let to = (&mut self.hand_over, &mut self.layer);
            match receive_one(socket, &mut self.buffer, to) {
                // An empty packet looks like the end, and may lie before a full one.
                Ok(0) => {
                    if system_calls::has_hung_up(socket.as_fd())
                        && !system_calls::has_bytes(socket.as_fd())
                    {
                        self.socket = None;
                    }
                }
                Ok(length) => {
                    // The packet's full length, even if it did not fit.
                    if let Some(packet) = self.buffer.get(..length) {
                        taken(packet);
                    }
                }
                Err(Errno::EAGAIN) => return,
                // ECONNRESET: the peer closed with packets of ours unread. It is reported once, and
                // what the peer sent before can still be read.
                Err(Errno::EINTR | Errno::ECONNRESET) => {}
                Err(_) => self.socket = None,
            }
        }
    }
}

/// Makes the socket's buffer large enough for a packet.
fn make_room(socket: &OwnedFd, packet: usize) {
    /// A packet that fits in the smallest buffer that there can be, 2048 bytes with the bookkeeping
    /// (socket(7), `SO_SNDBUF`).
    const FITS: usize = 1024;
    if packet <= FITS {
        return;
    }
    // A buffer that is larger already holds several of them, and needs fewer turns.
    if getsockopt(socket, sockopt::SndBuf).is_ok_and(|room| room / 2 >= packet.saturating_add(4096))
    {
        return;
    }
    // A packet must fit in the buffer whole, with the kernel's bookkeeping (for which the kernel
    // doubles the value). `wmem_max` limits this; if it is too low, sending fails.
    let _ = setsockopt(socket, sockopt::SndBuf, &(packet.saturating_add(4096)));
}

/// What a packet hands over, if it is for that.
fn kind_of(packet: Option<&[u8]>) -> Option<fn(OwnedFd) -> Answerer> {
    match packet? {
        HAND_OVER => Some(Answerer::Listener),
        HAND_OVER_HANDLER => Some(Answerer::Handler),
        _ => None,
    }
}

/// Receives one packet and returns its length; stores a listener that comes with it. The hand-over
/// packet itself is not delivered: `EINTR`, as if nothing had come.
fn receive_one(
    socket: &OwnedFd,
    buffer: &mut [u8],
    (hand_over, layer): (&mut HandOver, &mut Option<OwnedFd>),
) -> nix::Result<usize> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
    if matches!(hand_over, HandOver::Come(_) | HandOver::Over) {
        // No room for descriptors: the kernel closes those that are sent.
        return recv(socket.as_raw_fd(), buffer, flags);
    }
    let mut control = nix::cmsg_space!([std::os::fd::RawFd; DESCRIPTORS_MAX]);
    let mut packet = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut packet,
        Some(&mut control),
        flags | MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let length = message.bytes;
    // Keeps at most one.
    let descriptors = descriptors(message.cmsgs().into_iter().flatten());
    match hand_over {
        HandOver::Layer => {
            *layer = descriptors.into_iter().next();
            *hand_over = HandOver::Over;
        }
        HandOver::Awaited(_) if kind_of(buffer.get(..length)).is_some() => {
            let answerer = kind_of(buffer.get(..length))
                .zip(descriptors.into_iter().next())
                .map(|(of, descriptor)| of(descriptor));
            *hand_over = answerer.map_or(HandOver::Over, HandOver::Come);
            return Err(Errno::EINTR);
        }
        HandOver::Awaited(packets) => match packets.checked_sub(1) {
            Some(left) => *packets = left,
            None => *hand_over = HandOver::Over,
        },
        HandOver::Come(_) | HandOver::Over => {}
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Sends a packet, with a descriptor.
    fn send_with(process: &OwnedFd, packet: &[u8]) {
        let descriptors = [process.as_raw_fd()];
        sendmsg::<()>(
            process.as_raw_fd(),
            &[IoSlice::new(packet)],
            &[ControlMessage::ScmRights(&descriptors)],
            MsgFlags::empty(),
            None,
        )
        .unwrap();
    }

    /// The packets that the host receives.
    fn packets(channel: &mut Channel) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        channel.drain(&mut |packet| taken.push(packet.to_vec()));
        taken
    }

    #[test]
    fn the_listener_comes_with_its_own_packet_once() {
        let (host, process) = channel_pair().unwrap();
        let mut channel = Channel::new(Some(host), Vec::new(), false);
        send_with(&process, b"another");
        assert_eq!(packets(&mut channel), [b"another".to_vec()]);
        assert!(channel.answerer().is_none());
        let listener = Answerer::Listener(process.try_clone().unwrap());
        hand_over(process.as_fd(), Some(listener)).unwrap();
        assert!(packets(&mut channel).is_empty());
        assert!(matches!(channel.answerer(), Some(Answerer::Listener(_))));
        assert!(channel.answerer().is_none());
        send_with(&process, HAND_OVER);
        assert_eq!(packets(&mut channel), [HAND_OVER.to_vec()]);
        assert!(channel.answerer().is_none());
    }

    #[test]
    fn none_comes_after_it_was_said_that_none_comes() {
        let (host, process) = channel_pair().unwrap();
        let mut channel = Channel::new(Some(host), Vec::new(), false);
        hand_over(process.as_fd(), None).unwrap();
        assert!(packets(&mut channel).is_empty());
        send_with(&process, HAND_OVER);
        assert_eq!(packets(&mut channel), [HAND_OVER.to_vec()]);
        assert!(channel.answerer().is_none());
    }

    #[test]
    fn none_comes_after_too_many_other_packets() {
        let (host, process) = channel_pair().unwrap();
        let mut channel = Channel::new(Some(host), Vec::new(), false);
        for _ in 0..=PACKETS_BEFORE_HAND_OVER {
            send_with(&process, b"another");
            packets(&mut channel);
        }
        send_with(&process, HAND_OVER);
        assert_eq!(packets(&mut channel), [HAND_OVER.to_vec()]);
        assert!(channel.answerer().is_none());
    }
}
