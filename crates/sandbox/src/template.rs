//! A template as its host holds it: a process that forks others, on request.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, recvmsg, sendmsg};
use nix::unistd::{Pid, pipe2};

use crate::child::{Child, DESCRIPTORS_MAX, Status, Streams, descriptors};
use crate::seccomp::{self, Seccomp, Shared};
use crate::view::Layers;
use crate::{huge_pages, raw_descriptors, system_calls};

/// What the keeper says when a fork of the template has ended.
pub(crate) struct ForkEnded {
    pub(crate) pid: i32,
    /// The raw wait status.
    pub(crate) status: i32,
}

impl ForkEnded {
    const BYTES: usize = 8;

    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.pid.to_ne_bytes();
        let [e, f, g, h] = self.status.to_ne_bytes();
        [a, b, c, d, e, f, g, h]
    }

    fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self {
            pid: i32::from_ne_bytes([a, b, c, d]),
            status: i32::from_ne_bytes([e, f, g, h]),
        }
    }
}

/// What a template answers: the id of the fork, which comes with a descriptor of it, or what the
/// system said, negative; or 0, where what was asked is done.
pub(crate) const ANSWER_BYTES: usize = 4;
/// Bytes of the packet that tells a template that its boot is over: a random number by which its
/// filter knows it from then on.
pub(crate) const PASS_BYTES: usize = 8;
/// What asks it for a fork; the descriptors of the fork come with it. A packet without any tells
/// where huge pages may be ([`crate::huge_pages`]).
pub(crate) const ASK: &[u8] = b"f";

/// How long the end of a fork that has ended is awaited from the keeper.
const STATUS_PATIENCE: Duration = Duration::from_secs(2);

/// The filter of a template, and what opens it.
///
/// The template gets the filter before it boots ([`FirstGuard`](crate::FirstGuard)), and the rest when
/// it has: what is not in its memory, boot cannot find there.
pub struct Model {
    filter: Vec<u8>,
    pass: Pass,
}

/// What opens the filter of one template.
pub struct Pass([u8; PASS_BYTES]);

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pass(..)")
    }
}

impl Model {
    /// A filter of its own for one template, whose forks may do what `policy` permits.
    ///
    /// # Errors
    /// Where there is none for this architecture, or no random number to be had.
    pub fn new(policy: &Seccomp) -> io::Result<Self> {
        let mut pass = [0; PASS_BYTES];
        system_calls::random(&mut pass)?;
        Ok(Self {
            filter: seccomp::first(policy, u64::from_ne_bytes(pass))?,
            pass: Pass(pass),
        })
    }

    /// The packet that the template gets after its task, and what it gets when it has booted.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Pass) {
        (self.filter, self.pass)
    }
}

/// Why there is no fork.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// It is there, and could not do it.
    #[error("the template cannot: {}", .0.desc().to_lowercase())]
    Refused(Errno),
    /// The template has ended, or does not answer.
    #[error("the template is gone")]
    Gone,
    /// The host could not ask.
    #[error("{0}")]
    Host(#[from] io::Error),
}

/// A process that has got ready and forks others. Dropping the last copy ends it; its forks, which
/// hold one each, live on until then.
#[derive(Clone)]
pub struct Template(Arc<Held>);

pub(crate) struct Held {
    /// The keeper and, until it has ended, the template.
    child: Child,
    /// One request at a time.
    control: Mutex<OwnedFd>,
    listener: Option<Shared>,
    layers: Option<Layers>,
    /// Ends that the keeper has told and nobody has asked for yet.
    ended: Mutex<HashMap<i32, i32>>,
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").finish_non_exhaustive()
    }
}

impl Template {
    pub(crate) fn new(child: Child, control: OwnedFd, listener: Option<Shared>) -> Self {
        let layers = child.layers().cloned();
        Self(Arc::new(Held {
            child,
            control: Mutex::new(control),
            listener,
            layers,
            ended: Mutex::default(),
        }))
    }

    /// Whether it is there still, as far as can be told without asking it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let control = lock(&self.0.control);
        let mut fds = [PollFd::new(control.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready == 0)
    }

    /// Tells it that boot is over, and waits until it is ready to fork.
    ///
    /// # Errors
    /// [`ForkError`]. The template is of no use then.
    pub fn settle(&self, pass: Pass, until: Instant) -> Result<(), ForkError> {
        let control = lock(&self.0.control);
        raw_descriptors::send(control.as_raw_fd(), &pass.0);
        match self.0.answer(&control, until)? {
            Answer::Done => Ok(()),
            Answer::Refused(errno) => Err(ForkError::Refused(errno)),
            Answer::ForkedProcess(..) | Answer::Nothing => Err(ForkError::Gone),
        }
    }

    /// The template's process id.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.0.child.pid()
    }

    /// Has it fork, and gives the fork, which holds still until it gets its orders over `channel`
    /// ([`Fork`](crate::Fork)).
    ///
    /// # Errors
    /// [`ForkError`]. Without an answer before `until` the template is ended.
    pub fn fork(&self, channel: OwnedFd, until: Instant) -> Result<Child, ForkError> {
        let started = Instant::now();
        let (stdout, their_stdout) = pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from)?;
        let (stderr, their_stderr) = pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from)?;
        let fds = [&channel, &their_stdout, &their_stderr].map(AsRawFd::as_raw_fd);
        let control = lock(&self.0.control);
        // Before it is asked: another thread may be the one that the filter's question comes to.
        let leave = Leave::give(self.0.listener.as_ref());
        let sent = sendmsg::<()>(
            control.as_raw_fd(),
            &[IoSlice::new(ASK)],
            &[ControlMessage::ScmRights(&fds)],
            MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT,
            None,
        );
        match sent {
            Ok(_) => {}
            // Its end is closed, or full, as it does not read.
            Err(Errno::EPIPE | Errno::ECONNRESET | Errno::ENOTCONN | Errno::EAGAIN) => {
                return Err(ForkError::Gone);
            }
            // The host's own: it is no reason to do without the template.
            Err(errno) => return Err(ForkError::Refused(errno)),
        }
        let answer = self.0.answer(&control, until);
        let was_taken = leave.take_back();
        drop(control);
        let (pid, pidfd) = match answer? {
            Answer::ForkedProcess(pid, pidfd) if was_taken && self.0.has_fork(pid, &pidfd) => {
                (pid, pidfd)
            }
            Answer::Refused(errno) if !was_taken => return Err(ForkError::Refused(errno)),
            // It does not answer. What it may have made meanwhile ends with the last of its forks.
            Answer::Nothing => {
                self.end();
                return Err(ForkError::Gone);
            }
            // What it says is not so: it is not what it was made to be, and whatever it has made ends
            // with it.
            Answer::ForkedProcess(..) | Answer::Refused(_) | Answer::Done => {
                self.0.child.end();
                return Err(ForkError::Gone);
            }
        };
        Ok(Child::forked(
            ForkedProcess {
                pid,
                pidfd,
                namespace: OnceLock::new(),
                of: Arc::clone(&self.0),
            },
            Streams { stdout, stderr },
            started,
        ))
    }

    /// Has it use huge pages, once it has forked and has nothing else to do.
    pub fn use_huge_pages(&self) {
        // Worth nothing but time.
        let Some(Ok(packet)) = self.pid().map(huge_pages::packet_for) else {
            return;
        };
        if !packet.is_empty() {
            raw_descriptors::send(lock(&self.0.control).as_raw_fd(), &packet);
        }
    }

    /// Ends it. Its forks go on.
    pub fn end(&self) {
        // By its keeper, which knows whether it is there still.
        self.0.child.ask(libc::SIGKILL);
    }
}

/// What a template answers.
enum Answer {
    /// It has a fork: its id, and a descriptor of it.
    ForkedProcess(i32, OwnedFd),
    /// It has done what was asked.
    Done,
    /// It could not.
    Refused(Errno),
    /// It is gone, or says nothing that can be understood.
    Nothing,
}

/// The host's leave to make one fork.
struct Leave<'a>(Option<&'a Shared>);

impl<'a> Leave<'a> {
    fn give(listener: Option<&'a Shared>) -> Self {
        if let Some(listener) = listener {
            listener.forks().give_leave();
        }
        Self(listener)
    }

    /// Gives whether it was taken.
    fn take_back(self) -> bool {
        self.0
            .is_some_and(|listener| !listener.forks().take_leave())
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if let Some(listener) = self.0 {
            listener.forks().take_leave();
        }
    }
}

impl Held {
    /// Whether a process is a fork of the template, as the kernel says: the one that the descriptor is
    /// of, and a child of the template's keeper.
    fn has_fork(&self, pid: i32, pidfd: &OwnedFd) -> bool {
        let Some(parent) = self.child.keeper() else {
            return false;
        };
        system_calls::process_of(pidfd.as_fd()) == Some((pid, parent))
    }

    /// Waits for what the template says, and answers meanwhile what its filter asks.
    fn answer(&self, control: &OwnedFd, until: Instant) -> io::Result<Answer> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = vec![PollFd::new(control.as_fd(), PollFlags::POLLIN)];
            fds.extend(self.listener.as_ref().map(|listener| {
                let (socket, events) = listener.interest();
                PollFd::new(socket, events)
            }));
            match poll(&mut fds, timeout) {
                Ok(0) if left.is_zero() => return Ok(Answer::Nothing),
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            if let (Some(listener), Some(asks)) =
                (&self.listener, fds.get(1).and_then(PollFd::revents))
                && !asks.is_empty()
            {
                listener.serve(asks);
            }
            if fds.first().and_then(PollFd::any) != Some(true) {
                continue;
            }
            let mut bytes = [0; ANSWER_BYTES];
            let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_TRUNC;
            let message =
                match recvmsg::<()>(control.as_raw_fd(), &mut parts, Some(&mut space), flags) {
                    Ok(message) => message,
                    Err(Errno::EAGAIN | Errno::EINTR) => continue,
                    Err(_) => return Ok(Answer::Nothing),
                };
            let pidfd = descriptors(message.cmsgs()?).into_iter().next();
            match message.bytes {
                // Its end is closed.
                0 => return Ok(Answer::Nothing),
                ANSWER_BYTES => {}
                // Something else that it had to say.
                _ => continue,
            }
            return Ok(match (i32::from_ne_bytes(bytes), pidfd) {
                (pid @ 1.., Some(pidfd)) => Answer::ForkedProcess(pid, pidfd),
                (0, None) => Answer::Done,
                (errno @ ..0, None) => Answer::Refused(Errno::from_raw(errno.wrapping_neg())),
                _ => Answer::Nothing,
            });
        }
    }
}

/// A fork of a template, as a [`Child`] holds it.
pub(crate) struct ForkedProcess {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// Its mount namespace, once it has one of its own.
    namespace: OnceLock<Option<OwnedFd>>,
    of: Arc<Held>,
}

impl ForkedProcess {
    pub(crate) fn id(&self) -> Pid {
        Pid::from_raw(self.pid)
    }

    pub(crate) fn listener(&self) -> Option<&Shared> {
        self.of.listener.as_ref()
    }

    pub(crate) fn layers(&self) -> Option<&Layers> {
        self.of.layers.as_ref()
    }

    pub(crate) fn template(&self) -> &Child {
        &self.of.child
    }

    /// Takes hold of its mounts, which it has made: to take them down is work that the kernel would
    /// otherwise do before it says that the process has ended.
    pub(crate) fn hold_mounts(&self) {
        self.namespace
            .get_or_init(|| system_calls::mount_namespace(self.pidfd.as_fd()));
    }

    /// Lets go of them: by the keeper, which takes no descriptor, and has the kernel close it. The
    /// signal of the packet is none.
    pub(crate) fn release_mounts(&mut self) {
        if let Some(Some(namespace)) = self.namespace.take() {
            self.of.child.ask_with(&namespace);
        }
    }

    /// How it ended, which it has. What the keeper does not tell in time counts as killed.
    pub(crate) fn status(&self) -> Status {
        let until = Instant::now() + STATUS_PATIENCE;
        let mut ended = lock(&self.of.ended);
        loop {
            if let Some(status) = ended.remove(&self.pid) {
                return Status::of_wait(status);
            }
            let mut bytes = [0; ForkEnded::BYTES];
            match self.of.child.hear(&mut bytes, until) {
                Some(count) if count == bytes.len() => {
                    let end = ForkEnded::decode(bytes);
                    ended.insert(end.pid, end.status);
                }
                Some(_) => {}
                None => return Status::Signalled(libc::SIGKILL),
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
