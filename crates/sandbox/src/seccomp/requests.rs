//! The host's end of the requests by a process's own handler ([`super::handler`]), where its filter
//! can have no listener.
//!
//! A request is a packet: its kind, then an address or a path. With it comes the end of a socket pair
//! for the answer, and the socket that is to be connected. The process may send anything. All that
//! is done to the socket is what [`Attempt`] does to one of the right kind. The decision uses the
//! host's copy of the address.
//!
//! A thread receives them, in a file descriptor table of its own ([`apart`]), and there is none
//! without. It ends when the process's end of the socket closes, and at the latest when [`Requests`] is
//! dropped: a process can put both ends of what it shares with the host on their way to the host,
//! where they stay open without it. No descriptor is kept after its request is answered.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, Shutdown, recvmsg, sendmsg, shutdown};

use super::apart::Otherwise;
use super::attempt::{Attempt, Live};
use super::attempts::UNDER_WAY_MAX;
use super::listener::dummy;
use super::{apart, describe, lock, memory, opened};
use crate::child::{DESCRIPTORS_MAX, descriptors};
use crate::connections::{Connections, Destination};
use crate::{Refusal, RunAs, system_calls};

/// The kind of a request, its first byte.
pub(super) mod kind {
    /// To connect the socket to the address that follows.
    pub(crate) const CONNECT: u8 = b'c';
    /// To open the file with the path that follows, or to say that it is none of the host's.
    pub(crate) const OPEN: u8 = b'o';
    /// To give any descriptor, if there is an IPv6 address to connect to
    /// ([`asks_for_v6`](crate::seccomp::describe::asks_for_v6)).
    pub(crate) const PROBE_V6: u8 = b'6';
}

/// Size of the longest request: a kind, and an address as the kernel accepts it.
const REQUEST_BYTES: usize = 1 + size_of::<libc::sockaddr_storage>();

/// Maximum number of refusals kept until they are taken.
const REFUSED_MAX: usize = 64;

/// The requests of a process. None is answered after it is dropped.
pub(crate) struct Requests {
    socket: OwnedFd,
    refused: Arc<Mutex<Vec<Refusal>>>,
    is_over: Arc<AtomicBool>,
    /// The process that made it. A fork of that process leaves the socket alone.
    owner: u32,
}

impl Requests {
    /// Answers what comes over `socket` until the process has ended.
    ///
    /// # Errors
    /// If there can be no thread for it, or none with a file descriptor table of its own: then what
    /// the process asks for fails.
    pub(crate) fn serve(
        socket: OwnedFd,
        to: Connections,
        run_as: Option<RunAs>,
    ) -> io::Result<Self> {
        let requests = Self {
            socket,
            refused: Arc::default(),
            is_over: Arc::default(),
            owner: std::process::id(),
        };
        let server = Server {
            to,
            run_as,
            refused: Arc::clone(&requests.refused),
            under_way: Arc::new(()),
            is_over: Arc::clone(&requests.is_over),
        };
        let kept = requests.socket.as_fd();
        // What a process sends would count towards the host's own limit, and be closed in its table.
        apart::start("altair-requests", kept, Otherwise::Fail, move |socket| {
            while let Ok(request) = Request::receive(&socket)
                && !server.is_over.load(Ordering::Relaxed)
            {
                if let Some(request) = request {
                    server.answer(request);
                }
            }
        })?;
        Ok(requests)
    }

    /// Takes the connections that were refused.
    pub(crate) fn take_refused(&self) -> Vec<Refusal> {
        std::mem::take(&mut *lock(&self.refused))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            self.is_over.store(true, Ordering::Relaxed);
            // Wakes the thread.
            let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
        }
    }
}

/// What a process asks for.
struct Request {
    bytes: [u8; REQUEST_BYTES],
    length: usize,
    reply: Reply,
    socket: Option<OwnedFd>,
}

impl Request {
    /// Receives the next one. `None`: it is none.
    ///
    /// # Errors
    /// No further one will come.
    fn receive(from: &OwnedFd) -> nix::Result<Option<Self>> {
        let mut bytes = [0; REQUEST_BYTES];
        let mut control = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let received = recvmsg::<()>(from.as_raw_fd(), &mut parts, Some(&mut control), flags);
        let message = match received {
            Err(Errno::EINTR) => return Ok(None),
            received => received?,
        };
        // Fails if the table is full. What did come is then closed with it: the process has lost its
        // own host, and nobody else's.
        let mut given = descriptors(message.cmsgs()?).into_iter();
        let (length, is_cut) = (message.bytes, message.flags.contains(MsgFlags::MSG_TRUNC));
        if length == 0 {
            // The end, or what looks like it.
            return Err(Errno::EPIPE);
        }
        let Some(reply) = given.next().and_then(Reply::new).filter(|_| !is_cut) else {
            return Ok(None);
        };
        Ok(Some(Self {
            bytes,
            length,
            reply,
            socket: given.next(),
        }))
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The way of the answer.
struct Reply(OwnedFd);

impl Reply {
    /// `None`: it is no end of a pair for packets, or an earlier answer has not been read. That would
    /// keep what the host has made for it, and by one way a process could have any number kept.
    fn new(end: OwnedFd) -> Option<Self> {
        let option = |name| system_calls::socket_option(end.as_fd(), libc::SOL_SOCKET, name);
        let kind = (option(libc::SO_DOMAIN), option(libc::SO_TYPE));
        let is_pair = kind == (Ok(libc::AF_UNIX), Ok(libc::SOCK_SEQPACKET));
        (is_pair && system_calls::has_all_read(end.as_fd())).then_some(Self(end))
    }

    /// Whether the process still waits.
    fn is_awaited(&self) -> bool {
        !system_calls::has_hung_up(self.0.as_fd())
    }

    /// Answers, once and for all.
    fn give(self, answer: nix::Result<Option<OwnedFd>>) {
        let (errno, descriptor) = match answer {
            Ok(descriptor) => (0, descriptor),
            Err(errno) => (errno as i32, None),
        };
        let numbers: Vec<RawFd> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&numbers)];
        let control = rights.get(..numbers.len()).unwrap_or_default();
        let packet = errno.to_ne_bytes();
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let packet = [IoSlice::new(&packet)];
        // Fails for a process that does not wait.
        let _ = sendmsg::<()>(self.0.as_raw_fd(), &packet, control, flags, None);
    }
}

/// What the thread has.
struct Server {
    to: Connections,
    run_as: Option<RunAs>,
    refused: Arc<Mutex<Vec<Refusal>>>,
    /// Each attempt under way holds it.
    under_way: Arc<()>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    fn answer(&self, request: Request) {
        let answer = match request.bytes().split_first() {
            Some((&kind::CONNECT, address)) => match self.decide(address) {
                Ok(destination) => return self.begin(request, destination),
                Err(refusal) => {
                    // Before the answer: afterwards, the process may end.
                    if let Some(refusal) = refusal {
                        note(&self.refused, refusal);
                    }
                    Err(Errno::EPERM)
                }
            },
            Some((&kind::OPEN, path)) => opened::content_of(&self.to.files, path)
                .ok_or(Errno::ENOENT)
                .and_then(opened::sealed),
            Some((&kind::PROBE_V6, [])) if self.to.has_v6() => dummy(),
            _ => Err(Errno::EPERM),
        };
        request.reply.give(answer.map(Some));
    }

    fn decide(&self, address: &[u8]) -> Result<Destination, Option<Refusal>> {
        let Some(address) = memory::parsed(address) else {
            return Err(Some(Refusal::Connect { to: None }));
        };
        let destination = self.to.destination(&address);
        destination.ok_or_else(|| describe::connect(Some(address.to_string())))
    }

    /// Connects on a thread of its own, which may wait as long as the process would.
    fn begin(&self, request: Request, destination: Destination) {
        let Request { reply, socket, .. } = request;
        let is_free = Arc::strong_count(&self.under_way) <= UNDER_WAY_MAX;
        let (Some(live), Some(socket)) = (Live::begin().filter(|_| is_free), socket) else {
            return reply.give(Err(Errno::EAGAIN));
        };
        let (run_as, under_way) = (self.run_as, Arc::clone(&self.under_way));
        let (is_over, refused) = (Arc::clone(&self.is_over), Arc::clone(&self.refused));
        // If there can be no thread, the process sees the pair closed.
        let _ = crate::thread::start("altair-connect", move || {
            let _counted = (live, under_way);
            let attempt = Attempt {
                destination: &destination,
                run_as,
                refused: &|refusal| note(&refused, refusal),
            };
            let is_wanted = || !is_over.load(Ordering::Relaxed) && reply.is_awaited();
            let end = attempt.make(&socket, &is_wanted);
            // Before the answer: if the process then closes the socket, its peer sees that.
            drop(socket);
            if let Some(end) = end {
                reply.give(end.map(|()| None));
            }
        });
    }
}

fn note(refused: &Mutex<Vec<Refusal>>, new: Refusal) {
    let mut refused = lock(refused);
    if refused.len() < REFUSED_MAX && !refused.contains(&new) {
        refused.push(new);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use nix::sys::socket::recv;

    use super::*;
    use crate::channel_pair;

    /// Whether a request is answered.
    fn is_answered(process: &OwnedFd) -> bool {
        let (own, theirs) = channel_pair().unwrap();
        let descriptors = [theirs.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let packet = [IoSlice::new(b"x")];
        let sent = sendmsg::<()>(
            process.as_raw_fd(),
            &packet,
            &rights,
            MsgFlags::MSG_NOSIGNAL,
            None,
        );
        drop(theirs);
        let mut answer = [0; 4];
        sent.is_ok() && recv(own.as_raw_fd(), &mut answer, MsgFlags::empty()) == Ok(4)
    }

    #[test]
    fn they_end_where_the_host_drops_them_and_not_in_a_fork_of_it() {
        for (owner, goes_on) in [(std::process::id(), false), (0, true)] {
            let (host, process) = channel_pair().unwrap();
            let mut requests = Requests::serve(host, Connections::default(), None).unwrap();
            assert!(is_answered(&process));
            requests.owner = owner;
            drop(requests);
            assert_eq!(is_answered(&process), goes_on);
        }
    }
}
