//! The host's side of a template: a process that forks on request.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::socket::{ControlMessage, MsgFlags, recvmsg, sendmsg};
use nix::unistd::{Pid, pipe2};

use crate::child::{Child, DESCRIPTORS_MAX, Status, Streams, descriptors};
use crate::procfs::{Progress, StatFile};
use crate::seccomp::{self, Seccomp, Shared};
use crate::view::Layers;
use crate::{huge_pages, raw_descriptors, system_calls};

/// The keeper's report that a fork of the template has ended.
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

/// A template's answer: the id of the fork, sent with a pidfd of it; or a negated `errno`; or 0 if
/// the request is done.
pub(crate) const ANSWER_BYTES: usize = 4;
/// Bytes of the packet that tells a template that its boot is over. It holds a random number by
/// which the filter recognizes the template from then on.
pub(crate) const PASS_BYTES: usize = 8;
/// Requests a fork; the descriptors of the fork come with it. A packet without descriptors lists
/// where huge pages may be ([`crate::huge_pages`]).
pub(crate) const ASK: &[u8] = b"f";

/// What a fork is sent before its orders, to alert it. No packet of orders is as short.
pub(crate) const ALERT: &[u8] = b"a";

/// How long to wait for the keeper's report on a fork that has ended.
const STATUS_PATIENCE: Duration = Duration::from_secs(2);

/// The filter of a template, and the pass that opens it.
///
/// The template gets the filter before it boots ([`FirstGuard`](crate::FirstGuard)), and the pass
/// after: boot cannot find in memory what is not there yet.
pub struct Model {
    filter: Vec<u8>,
    pass: Pass,
}

/// The number that opens the filter of one template.
pub struct Pass([u8; PASS_BYTES]);

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pass(..)")
    }
}

impl Model {
    /// A new filter for one template, whose forks may do what `policy` permits.
    ///
    /// # Errors
    /// If there is no filter for this architecture, or no random number.
    pub fn new(policy: &Seccomp) -> io::Result<Self> {
        let [mut pass, mut recording] = [[0; PASS_BYTES]; 2];
        system_calls::random(&mut pass)?;
        system_calls::random(&mut recording)?;
        let passes = seccomp::Passes {
            set_up: u64::from_ne_bytes(pass),
            recording: u64::from_ne_bytes(recording),
        };
        Ok(Self {
            filter: seccomp::first(policy, passes)?,
            pass: Pass(pass),
        })
    }

    /// The packet that the template gets after its task, and the pass that it gets after boot.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Pass) {
        (self.filter, self.pass)
    }
}

/// Why a fork failed.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The template is alive but could not fork.
    #[error("the template cannot: {}", .0.desc().to_lowercase())]
    Refused(Errno),
    /// The template has ended, or does not answer.
    #[error("the template is gone")]
    Gone,
    /// The host could not send the request.
    #[error("{0}")]
    Host(#[from] io::Error),
}

/// A process that is ready and forks on request. Dropping the last copy ends it; each fork holds a
/// copy.
#[derive(Clone)]
pub struct Template(Arc<Held>);

pub(crate) struct Held {
    /// The keeper and, until it ends, the template.
    child: Child,
    control: OwnedFd,
    /// Held while the template has a request: one at a time.
    asking: Mutex<()>,
    listener: Option<Shared>,
    layers: Option<Layers>,
    ends: Mutex<Ends>,
}

/// The ends of forks, as their keeper reports them.
#[derive(Default)]
struct Ends {
    /// Those that nobody has asked for yet.
    reported: HashMap<i32, i32>,
    /// Forks whose end nobody will ask for.
    forgotten: Vec<i32>,
}

impl Ends {
    fn take_note(&mut self, end: &ForkEnded) {
        match self.forgotten.iter().position(|pid| *pid == end.pid) {
            Some(at) => drop(self.forgotten.swap_remove(at)),
            None => drop(self.reported.insert(end.pid, end.status)),
        }
    }
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
            control,
            asking: Mutex::default(),
            listener,
            layers,
            ends: Mutex::default(),
        }))
    }

    /// Whether the template is alive, as far as the host can tell without asking it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !system_calls::has_hung_up(self.0.control.as_fd())
    }

    /// Tells the template that boot is over, and waits until it is ready to fork.
    ///
    /// # Errors
    /// [`ForkError`]. The template is then unusable.
    pub fn settle(&self, pass: Pass, until: Instant) -> Result<(), ForkError> {
        let _asking = lock(&self.0.asking);
        raw_descriptors::send(self.0.control.as_raw_fd(), &pass.0);
        match self
            .0
            .answer(until.saturating_duration_since(Instant::now()))?
        {
            Answer::Done => Ok(()),
            Answer::Refused(errno) => Err(ForkError::Refused(errno)),
            Answer::ForkedProcess(..) | Answer::Nothing => Err(ForkError::Gone),
        }
    }

    /// Whether it and its forks have files in directories of the host, which outlive them.
    #[must_use]
    pub fn has_host_files(&self) -> bool {
        self.0.child.renewal().is_none()
    }

    /// The template's process id.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.0.child.pid()
    }

    /// Makes the template fork and returns the fork, which waits for its orders over `channel`
    /// ([`Fork`](crate::Fork)).
    ///
    /// # Errors
    /// [`ForkError`]. If no answer comes for `patience`, the template is ended. That others ask it
    /// first does not count.
    pub fn fork(&self, channel: OwnedFd, patience: Duration) -> Result<Child, ForkError> {
        let started = Instant::now();
        let (stdout, their_stdout) = pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from)?;
        let (stderr, their_stderr) = pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from)?;
        let fds = [&channel, &their_stdout, &their_stderr].map(AsRawFd::as_raw_fd);
        let asking = lock(&self.0.asking);
        // Before the request: the filter may notify another thread of the host.
        let leave = Leave::give(self.0.listener.as_ref());
        let sent = sendmsg::<()>(
            self.0.control.as_raw_fd(),
            &[IoSlice::new(ASK)],
            &[ControlMessage::ScmRights(&fds)],
            MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT,
            None,
        );
        match sent {
            Ok(_) => {}
            // Its end is closed, or full because it does not read.
            Err(Errno::EPIPE | Errno::ECONNRESET | Errno::ENOTCONN | Errno::EAGAIN) => {
                return Err(ForkError::Gone);
            }
            // The error is the host's own; the template stays usable.
            Err(errno) => return Err(ForkError::Refused(errno)),
        }
        let answer = self.0.answer(patience);
        let was_taken = leave.take_back();
        drop(asking);
        let (pid, pidfd) = match answer? {
            Answer::ForkedProcess(pid, pidfd) if was_taken && self.0.has_fork(pid, &pidfd) => {
                (pid, pidfd)
            }
            Answer::Refused(errno) if !was_taken => return Err(ForkError::Refused(errno)),
            // It does not answer. A fork that it still makes ends with the last of its forks.
            Answer::Nothing => {
                self.end();
                return Err(ForkError::Gone);
            }
            // The answer is false, so the template is compromised. End it and all of its forks.
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
                processors: OnceLock::new(),
                of: Arc::clone(&self.0),
            },
            Streams {
                stdout,
                stderr: Some(stderr),
            },
            started,
        ))
    }

    /// Tells the template to use huge pages once it has forked and is idle.
    pub fn use_huge_pages(&self) {
        // Failure costs only time.
        let Some(Ok(packet)) = self.pid().map(huge_pages::packet_for) else {
            return;
        };
        if !packet.is_empty() {
            raw_descriptors::send(self.0.control.as_raw_fd(), &packet);
        }
    }

    /// Ends the template. Its forks continue.
    pub fn end(&self) {
        // Through its keeper, which knows whether the template still exists.
        self.0.child.ask(libc::SIGKILL);
    }
}

/// The longest time between two looks for an answer.
const LOOK_MAX: Duration = Duration::from_millis(50);

/// A template's answer.
enum Answer {
    /// It made a fork: the fork's id, and a pidfd of it.
    ForkedProcess(i32, OwnedFd),
    /// It did what was requested.
    Done,
    /// It could not.
    Refused(Errno),
    /// It is gone, or its answer makes no sense.
    Nothing,
}

/// The host's permission to make one fork.
struct Leave<'a>(Option<&'a Shared>);

impl<'a> Leave<'a> {
    fn give(listener: Option<&'a Shared>) -> Self {
        if let Some(listener) = listener {
            listener.forks().give_leave();
        }
        Self(listener)
    }

    /// Returns whether the permission was used.
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
    /// Takes note of the ends that the keeper has reported, without waiting for one.
    fn hear_ends(&self, ends: &mut Ends) {
        let mut bytes = [0; ForkEnded::BYTES];
        while let Some(count) = self.child.hear(&mut bytes, Instant::now()) {
            if count == bytes.len() {
                ends.take_note(&ForkEnded::decode(bytes));
            }
        }
    }

    /// Asks the kernel whether a process is a fork of the template: `pidfd` refers to it, and its
    /// parent is the template's keeper.
    fn has_fork(&self, pid: i32, pidfd: &OwnedFd) -> bool {
        let Some(parent) = self.child.keeper() else {
            return false;
        };
        system_calls::process_of(pidfd.as_fd()) == Some((pid, parent))
    }

    /// Waits for the template's answer and serves its filter meanwhile. Time in which this process was
    /// stopped, or got no processor, is none that the template has had.
    fn answer(&self, patience: Duration) -> io::Result<Answer> {
        let mut left = patience;
        let mut looked = Instant::now();
        loop {
            let now = Instant::now();
            left = left.saturating_sub((now - looked).min(LOOK_MAX));
            looked = now;
            let timeout = PollTimeout::try_from(left.min(LOOK_MAX)).unwrap_or(PollTimeout::MAX);
            let mut fds = vec![PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
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
            let message = match recvmsg::<()>(
                self.control.as_raw_fd(),
                &mut parts,
                Some(&mut space),
                flags,
            ) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => continue,
                Err(_) => return Ok(Answer::Nothing),
            };
            let pidfd = descriptors(message.cmsgs()?).into_iter().next();
            match message.bytes {
                // Its end is closed.
                0 => return Ok(Answer::Nothing),
                ANSWER_BYTES => {}
                // Another packet.
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

/// A fork of a template, as held by a [`Child`].
pub(crate) struct ForkedProcess {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// Its mount namespace, once it has its own.
    namespace: OnceLock<Option<OwnedFd>>,
    /// The processors that it may use, if it was kept from one of them.
    processors: OnceLock<Option<CpuSet>>,
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

    /// Holds the mounts that the fork has made. Otherwise the kernel would unmount them before it
    /// reports the end of the process.
    pub(crate) fn hold_mounts(&self) {
        if self.of.child.renewal().is_none() {
            return;
        }
        self.namespace
            .get_or_init(|| system_calls::mount_namespace(self.pidfd.as_fd()));
    }

    /// Releases the mounts through the keeper: it accepts no descriptor, so the kernel closes the
    /// one sent to it. The packet's signal is 0, which sends none.
    pub(crate) fn release_mounts(&mut self) {
        if let Some(Some(namespace)) = self.namespace.take() {
            self.of.child.ask_with(&namespace);
        }
    }

    /// The wait status of a fork that has ended. It counts as killed if the report comes too late.
    pub(crate) fn status(&self) -> Status {
        let until = Instant::now() + STATUS_PATIENCE;
        let mut ends = lock(&self.of.ends);
        loop {
            if let Some(status) = ends.reported.remove(&self.pid) {
                return Status::of_wait(status);
            }
            let mut bytes = [0; ForkEnded::BYTES];
            match self.of.child.hear(&mut bytes, until) {
                Some(count) if count == bytes.len() => ends.take_note(&ForkEnded::decode(bytes)),
                Some(_) => {}
                None => return Status::Signalled(libc::SIGKILL),
            }
        }
    }

    /// What the kernel tells of the fork, if it has not been collected.
    pub(crate) fn stat(&self) -> Option<StatFile> {
        let stat = StatFile::of(self.pid)?;
        // While it is not collected, the id was its own.
        system_calls::is_there(self.pidfd.as_fd()).then_some(stat)
    }

    /// How far the fork has come.
    pub(crate) fn progress(&self, stat: &StatFile) -> Option<Progress> {
        stat.progress(self.of.child.keeper()?)
    }

    /// Has a fork that waits for its orders wake on another processor than this thread's, until it
    /// [`may_return`](Self::may_return). The kernel may wake the one where the other runs, which then has
    /// to wait.
    pub(crate) fn wake_elsewhere(&self) {
        if let Some(all) = self.processors.get_or_init(|| self.own_processors()) {
            self.leave_this_one(all);
        }
    }

    /// Has a fork that has nothing left to do end on another processor than this thread's. Its memory
    /// would be freed first there, which may take longer than the run.
    pub(crate) fn leave_processor(&self) {
        if let Some(all) = self.own_processors() {
            self.leave_this_one(&all);
        }
    }

    /// The processors that it may use now.
    fn own_processors(&self) -> Option<CpuSet> {
        sched_getaffinity(self.id()).ok()
    }

    /// Lets it use `all` without this thread's processor. Where there is no other one, or the host may
    /// not, it costs only time.
    fn leave_this_one(&self, all: &CpuSet) {
        let Some(before) = self.own_processors() else {
            return;
        };
        let mut others = *all;
        let is_off = sched_getcpu().and_then(|own| others.unset(own)).is_ok();
        if !is_off || sched_setaffinity(self.id(), &others).is_err() {
            return;
        }
        // While it is not collected, the id was its own. Otherwise it may have become another's.
        if !system_calls::is_there(self.pidfd.as_fd()) {
            let _ = sched_setaffinity(self.id(), &before);
        }
    }

    /// Lets it use all processors that it might use before it was kept from one. It goes on where it is.
    pub(crate) fn may_return(&self) {
        if let Some(Some(before)) = self.processors.get()
            && system_calls::is_there(self.pidfd.as_fd())
        {
            let _ = sched_setaffinity(self.id(), before);
        }
    }

    /// Lets go of a fork that is ending. Its keeper collects it.
    pub(crate) fn forget(&self) {
        let mut ends = lock(&self.of.ends);
        // Before its own end is noted, those before it are.
        self.of.hear_ends(&mut ends);
        if ends.reported.remove(&self.pid).is_none() {
            ends.forgotten.push(self.pid);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
