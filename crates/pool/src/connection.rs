//! One end of a connection between a host and a pool: messages in packets, each in bounded time.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use altair_sandbox::peer::{self, Sender};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sys::socket::{MsgFlags, recv, send};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::message::PACKET_BYTES;

/// More packets of the same message follow this one.
const MORE: u8 = 0;
/// This packet ends a message.
const LAST: u8 = 1;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    /// Whether it asks who has sent a packet.
    asks: bool,
    /// The message that is coming, as far as it has.
    coming: Vec<u8>,
    buffer: Vec<u8>,
}

/// What has come.
#[derive(Debug)]
pub(crate) enum Received<M> {
    /// A message, and who has sent its last packet, if this end asks.
    Message(M, Option<Sender>),
    /// A part of one.
    Part(Option<Sender>),
    /// The other end is closed.
    Closed,
}

impl Connection {
    /// An end that knows who is at the other.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            asks: false,
            coming: Vec::new(),
            buffer: vec![0; PACKET_BYTES + 1],
        }
    }

    /// An end that asks who has sent each packet.
    ///
    /// # Errors
    /// What setsockopt(2) reports.
    pub(crate) fn asking(socket: OwnedFd) -> io::Result<Self> {
        peer::tell_senders(socket.as_fd())?;
        Ok(Self {
            asks: true,
            ..Self::new(socket)
        })
    }

    /// Sends a message. The other end must take it before `until`.
    ///
    /// # Errors
    /// `TimedOut`; `EPIPE` if the other end is closed.
    pub(crate) fn send<M: Serialize>(&self, message: &M, until: Instant) -> io::Result<()> {
        let content = postcard::to_allocvec(message).map_err(io::Error::other)?;
        let last = content.len().div_ceil(PACKET_BYTES).saturating_sub(1);
        for (at, chunk) in content.chunks(PACKET_BYTES).enumerate() {
            let flag = if at == last { LAST } else { MORE };
            self.send_packet(&[&[flag], chunk].concat(), until)?;
        }
        Ok(())
    }

    fn send_packet(&self, packet: &[u8], until: Instant) -> io::Result<()> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        loop {
            match send(self.socket.as_raw_fd(), packet, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    if !self.wait(PollFlags::POLLOUT, until)? && Instant::now() >= until {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits for the next packet, at most until then. `None`: nothing has come, or a signal has.
    ///
    /// # Errors
    /// `InvalidData` for what no end of this build sends, and for a message of more than `most`
    /// bytes.
    pub(crate) fn receive<M: DeserializeOwned>(
        &mut self,
        most: usize,
        until: Instant,
    ) -> io::Result<Option<Received<M>>> {
        if !self.wait(PollFlags::POLLIN, until)? {
            return Ok(None);
        }
        let received = match self.packet() {
            // The other end was closed before it had taken everything. What it has sent is there.
            Err(error) if error.raw_os_error() == Some(Errno::ECONNRESET as i32) => self.packet(),
            received => received,
        };
        let (count, sender) = received?;
        let Some((flag, chunk)) = self.buffer.get(..count).and_then(<[u8]>::split_first) else {
            return Ok(Some(Received::Closed));
        };
        // A part that holds nothing would never end.
        if self.coming.len() + chunk.len() > most || *flag == MORE && chunk.is_empty() {
            return Err(ErrorKind::InvalidData.into());
        }
        self.coming.extend_from_slice(chunk);
        if *flag == MORE {
            return Ok(Some(Received::Part(sender)));
        }
        let content = std::mem::take(&mut self.coming);
        let message = postcard::from_bytes(&content).map_err(|_| ErrorKind::InvalidData)?;
        Ok(Some(Received::Message(message, sender)))
    }

    /// Receives a packet, and who has sent it if this end asks.
    fn packet(&mut self) -> io::Result<(usize, Option<Sender>)> {
        if self.asks {
            return peer::receive(self.socket.as_fd(), &mut self.buffer);
        }
        // Descriptors that come with it are closed, as there is no room for them (unix(7)).
        loop {
            match recv(
                self.socket.as_raw_fd(),
                &mut self.buffer,
                MsgFlags::MSG_TRUNC,
            ) {
                Err(Errno::EINTR) => {}
                Ok(count) if count > self.buffer.len() => return Err(Errno::EMSGSIZE.into()),
                received => return Ok((received?, None)),
            }
        }
    }

    /// Waits for the next message of a peer that is known.
    ///
    /// # Errors
    /// As for [`Connection::receive`]; `TimedOut`; `UnexpectedEof` if the other end is closed.
    pub(crate) fn message<M: DeserializeOwned>(
        &mut self,
        most: usize,
        until: Instant,
    ) -> io::Result<M> {
        loop {
            match self.receive(most, until)? {
                Some(Received::Message(message, _)) => return Ok(message),
                Some(Received::Closed) => return Err(ErrorKind::UnexpectedEof.into()),
                Some(Received::Part(_)) | None if Instant::now() < until => {}
                Some(Received::Part(_)) | None => return Err(ErrorKind::TimedOut.into()),
            }
        }
    }

    /// Whether the other end says something or is closed, or its process has ended.
    pub(crate) fn is_over(&self, process: BorrowedFd<'_>) -> bool {
        self.await_more(process, Instant::now())
    }

    /// Waits until the other end says something or is closed, or its process has ended, of which
    /// another one may have the connection; at most until then. `false`: neither.
    pub(crate) fn await_more(&self, process: BorrowedFd<'_>, until: Instant) -> bool {
        let mut fds = [self.socket.as_fd(), process].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        loop {
            // poll(2) counts whole milliseconds.
            let left = until.saturating_duration_since(Instant::now());
            match ppoll(&mut fds, Some(left.into()), None) {
                Ok(0) | Err(Errno::EINTR) if Instant::now() < until => {}
                Ok(ready) => return ready > 0,
                Err(Errno::EINTR) => return false,
                // It is seen by whoever receives.
                Err(_) => return true,
            }
        }
    }

    /// Takes no further packets: the other end can send none from now on. What has come can still
    /// be received.
    pub(crate) fn close_for_reading(&self) {
        // Fails only if the other end is gone.
        let _ =
            nix::sys::socket::shutdown(self.socket.as_raw_fd(), nix::sys::socket::Shutdown::Read);
    }

    /// Waits until the socket is ready or the other end is gone. `false`: neither is, or a signal has
    /// come first.
    fn wait(&self, events: PollFlags, until: Instant) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.socket.as_fd(), events)];
        match poll(&mut fds, left(until)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// The time until then.
fn left(until: Instant) -> PollTimeout {
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => PollTimeout::ZERO,
        // Rounded up, so that it is no busy loop.
        left => PollTimeout::try_from(left.saturating_add(Duration::from_micros(999)))
            .unwrap_or(PollTimeout::MAX),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    use super::*;

    const MOST: usize = 4 * PACKET_BYTES;

    fn pair() -> (Connection, Connection) {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (one, other) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
        (Connection::new(one), Connection::new(other))
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    fn kind<M: std::fmt::Debug>(failed: io::Result<M>) -> ErrorKind {
        failed.unwrap_err().kind()
    }

    #[test]
    fn a_message_of_several_packets_arrives_whole() {
        let (here, mut there) = pair();
        let sent = vec![7_u8; 2 * PACKET_BYTES];
        here.send(&sent, soon()).unwrap();
        assert_eq!(there.message::<Vec<u8>>(MOST, soon()).unwrap(), sent);
    }

    #[test]
    fn a_longer_one_than_is_allowed_is_refused() {
        let (here, mut there) = pair();
        here.send(&vec![7_u8; PACKET_BYTES], soon()).unwrap();
        let received = there.message::<Vec<u8>>(PACKET_BYTES, soon());
        assert_eq!(kind(received), ErrorKind::InvalidData);
    }

    #[test]
    fn a_part_that_holds_nothing_is_refused() {
        let (here, mut there) = pair();
        here.send_packet(&[MORE], soon()).unwrap();
        assert_eq!(
            kind(there.message::<u8>(MOST, soon())),
            ErrorKind::InvalidData
        );
    }

    #[test]
    fn a_message_that_never_ends_is_not_waited_for() {
        let (here, mut there) = pair();
        let sender = std::thread::spawn(move || {
            // Until the other end is gone.
            while here.send_packet(&[MORE, 0], soon()).is_ok() {}
        });
        let received = there.message::<u8>(usize::MAX, soon());
        assert_eq!(kind(received), ErrorKind::TimedOut);
        drop(there);
        sender.join().unwrap();
    }

    #[test]
    fn the_end_of_the_other_side_is_no_message() {
        let (here, mut there) = pair();
        drop(here);
        assert_eq!(
            kind(there.message::<u8>(MOST, soon())),
            ErrorKind::UnexpectedEof
        );
    }
}
