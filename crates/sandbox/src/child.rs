//! The host's side of a started process.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, Shutdown, recvmsg, send, shutdown};

use crate::before_exec::{self, LISTENER};
use crate::error::{REPORT_BYTES, Report, decode};
use crate::guard_state::Guards;
use crate::keeper::Verdict;
use crate::launch::Role;
use crate::seccomp::{Connector, Listener, Requests};
use crate::template::{ALERT, ForkedProcess};
use crate::view::{self, IdMaps, Layer, Layers, MAP_REQUEST_BYTES, Renewal};
use crate::{
    Connections, Refusal, RunAs, kill_descendants, procfs, raw_descriptors, system_calls, thread,
};

/// Receives one packet and the descriptor that came with it, if any, without waiting.
fn receive(lifeline: &OwnedFd, bytes: &mut [u8]) -> nix::Result<(usize, Option<OwnedFd>)> {
    let mut control = nix::cmsg_space!([std::os::fd::RawFd; DESCRIPTORS_MAX]);
    let mut parts = [std::io::IoSliceMut::new(bytes)];
    let received = recvmsg::<()>(
        lifeline.as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    Ok((
        received.bytes,
        descriptors(received.cmsgs()?).into_iter().next(),
    ))
}

/// The most descriptors in one packet (`SCM_MAX_FD` of net/scm.h). With less room, the kernel
/// would install as many as fit and not tell which.
pub(crate) const DESCRIPTORS_MAX: usize = 253;

/// Takes over all descriptors that came with a packet. Those that the caller drops are closed.
pub(crate) fn descriptors(messages: impl Iterator<Item = ControlMessageOwned>) -> Vec<OwnedFd> {
    messages
        .filter_map(|message| match message {
            ControlMessageOwned::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .map(system_calls::own_descriptor)
        .collect()
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With this exit code, 0 to 255.
    Exited(i32),
    /// From this signal, by number.
    Signalled(i32),
}

impl Status {
    /// Decodes a raw wait status.
    pub(crate) fn of_wait(status: i32) -> Self {
        match nix::libc::WIFSIGNALED(status) {
            true => Self::Signalled(nix::libc::WTERMSIG(status)),
            false => Self::Exited(nix::libc::WEXITSTATUS(status)),
        }
    }
}

/// How long the keeper may take to end everything before it is killed: one second more than its
/// own limit.
pub(crate) const KEEPER_PATIENCE: Duration =
    kill_descendants::SWEEP_LIMIT.saturating_add(Duration::from_secs(1));

/// How long a start may take. It normally takes some milliseconds of system calls.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(5);

/// Milliseconds between two checks for a stopped keeper during the start.
pub(crate) const STOP_CHECK_MS: u16 = 50;

/// How long to wait for the report on the start after the keeper was found stopped.
const STOPPED_PATIENCE: Duration = Duration::from_secs(1);

/// The time between two looks at a keeper that nobody waits for.
const COLLECT_AFTER: Duration = Duration::from_millis(5);

/// The host's ends of standard output and standard error.
#[derive(Debug)]
pub(crate) struct Streams {
    /// The host's end of the terminal, if the process has one.
    pub(crate) stdout: OwnedFd,
    /// `None` if the process has a terminal, which takes both.
    pub(crate) stderr: Option<OwnedFd>,
}

/// What connects the host to a started process.
pub(crate) struct Wired {
    /// The keeper's id.
    pub(crate) keeper: i32,
    pub(crate) pidfd: OwnedFd,
    pub(crate) lifeline: OwnedFd,
    pub(crate) streams: Streams,
    /// Whether the process has its own pid namespace, of which the keeper is the first process.
    pub(crate) has_own_pids: bool,
    /// Whether the keeper is a program of its own, not a copy of the host.
    pub(crate) is_program: bool,
}

/// The parts of the policy that the host itself enforces while the process runs.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Where it may connect to.
    pub(crate) connections: Connections,
    /// The user that the process runs as, if not the host's.
    pub(crate) run_as: Option<RunAs>,
    /// The most file locks it may have.
    pub(crate) file_locks: Option<usize>,
    /// The most processes and threads it may have, if the host counts them.
    pub(crate) processes: Option<usize>,
}

/// A started process and everything that it starts. Dropping it ends all of them at once.
///
/// It may be sent to another thread, and the thread that started it may end. Dropping it in a
/// fork of the host does nothing.
#[derive(Debug)]
pub struct Child {
    hold: Hold,
    /// `None` once the supervision has taken them.
    streams: Option<Streams>,
    started: Instant,
    guards: Guards,
    /// The directories below the layer.
    layers: Option<Layers>,
    /// What a fork needs to mount its own view.
    renewal: Option<Renewal>,
    role: Role,
    kept: Kept,
    layer: Option<Layer>,
    /// The listener of a filter that the process took before its program ran.
    listener: Option<OwnedFd>,
    has_own_pids: bool,
    /// The keeper is a program of its own, which ends at once.
    is_program: bool,
    /// The process's id as reported by its keeper; 0 if the keeper could not report.
    pid: i32,
    /// The id of the process that made this `Child`.
    host: u32,
    collected: bool,
    /// How a command ended, once its keeper has said so.
    verdict: Option<Status>,
}

/// How the host controls a process.
enum Hold {
    /// Through its keeper.
    Keeper {
        pid: i32,
        pidfd: OwnedFd,
        lifeline: OwnedFd,
    },
    /// Directly: it is a fork of a template, and its filter lets it start no process.
    Itself(ForkedProcess),
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Keeper { .. } => "Keeper",
            Self::Itself(_) => "Itself",
        })
    }
}

impl Child {
    pub(crate) fn new(
        wired: Wired,
        started: Instant,
        guards: Guards,
        layers: Option<Layers>,
        renewal: Option<Renewal>,
        role: Role,
        kept: Kept,
    ) -> Self {
        Self {
            hold: Hold::Keeper {
                pid: wired.keeper,
                pidfd: wired.pidfd,
                lifeline: wired.lifeline,
            },
            streams: Some(wired.streams),
            started,
            guards,
            layers,
            renewal,
            role,
            kept,
            layer: None,
            listener: None,
            has_own_pids: wired.has_own_pids,
            is_program: wired.is_program,
            pid: 0,
            host: std::process::id(),
            collected: false,
            verdict: None,
        }
    }

    /// Makes the `Child` of a template's fork.
    pub(crate) fn forked(forked: ForkedProcess, streams: Streams, started: Instant) -> Self {
        let guards = forked.template().guards.clone();
        let layers = forked.layers().cloned();
        let pid = forked.pid;
        let kept = Kept {
            file_locks: forked.template().kept.file_locks,
            ..Kept::default()
        };
        Self {
            hold: Hold::Itself(forked),
            streams: Some(streams),
            started,
            guards,
            layers,
            renewal: None,
            role: Role::Program,
            kept,
            layer: None,
            listener: None,
            has_own_pids: false,
            is_program: false,
            pid,
            host: std::process::id(),
            collected: false,
            verdict: None,
        }
    }

    /// The guards of this process and their states.
    #[must_use]
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// What the process needs so that its forks can have their own view; `None` without a private
    /// root.
    #[must_use]
    pub fn renewal(&self) -> Option<&Renewal> {
        self.renewal.as_ref()
    }

    /// The process's id in the host's pid namespace, not as reported by the process. `None` if its
    /// keeper was stopped before it could report.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        (self.pid > 0).then_some(self.pid)
    }

    /// The id of its keeper, which is the parent of the process and of its forks.
    pub(crate) fn keeper(&self) -> Option<i32> {
        match &self.hold {
            Hold::Keeper { pid, .. } => (*pid > 0).then_some(*pid),
            Hold::Itself(_) => None,
        }
    }

    /// Returns the limit if the process has more file locks than that.
    pub(crate) fn too_many_locks(&self) -> Option<usize> {
        let most = self.kept.file_locks?;
        procfs::has_more_locks(self.pid()?, most).then_some(most)
    }

    /// Makes the listener for the process's filter.
    pub(crate) fn listener(&self, socket: OwnedFd) -> Option<Listener> {
        let connector = Connector::new(self.kept.connections.clone(), self.kept.run_as);
        match self.role {
            Role::Template => Listener::of_template(socket, connector, self.pid()),
            Role::Program => Listener::new(socket, connector),
            Role::Command => {
                let (keeper, most) = (self.keeper(), self.kept.processes);
                Listener::of_command(socket, connector, keeper, self.pid(), most)
            }
        }
    }

    /// Answers the requests of the process's own handler.
    ///
    /// # Errors
    /// What to report if nobody can: the process itself believes that it is served.
    pub(crate) fn requests(&self, socket: OwnedFd) -> Result<Requests, Refusal> {
        let served = Requests::serve(socket, self.kept.connections.clone(), self.kept.run_as);
        served.map_err(|error| Refusal::Unserved {
            to: "any service".into(),
            because: format!("there can be no thread for it: {error}"),
        })
    }

    /// Adapts the state of a filter that the process took before its program ran to whether its
    /// listener has come.
    pub(crate) fn note_listener(&mut self) {
        if let Some(state) = &mut self.guards.before_exec.seccomp
            && self.listener.is_none()
        {
            *state = before_exec::unheard();
        }
    }

    /// Takes the listener of the filter that the process took before its program ran, if there is
    /// one.
    pub(crate) fn take_listener(&mut self) -> Option<Listener> {
        let socket = self.listener.take()?;
        self.listener(socket)
    }

    /// The directories below the process's layer.
    pub(crate) fn layers(&self) -> Option<&Layers> {
        self.layers.as_ref()
    }

    /// Takes the process's throwaway layer. `None` if it has none or it was taken before.
    pub fn take_layer(&mut self) -> Option<Layer> {
        self.layer.take()
    }

    /// The process's throwaway layer as it is now, while nobody has taken it.
    #[must_use]
    pub fn layer(&self) -> Option<&Layer> {
        self.layer.as_ref()
    }

    /// Takes the directory of the layer, which the process has sent.
    pub(crate) fn has_layer(&mut self, directory: OwnedFd) {
        if let Some(layers) = &self.layers {
            self.layer = Some(Layer::new(directory, layers.clone()));
        }
    }

    /// The fork, if the process is a fork of a template.
    pub(crate) fn fork(&self) -> Option<&ForkedProcess> {
        match &self.hold {
            Hold::Keeper { .. } => None,
            Hold::Itself(forked) => Some(forked),
        }
    }

    /// Tells a fork of a template, by the host's end of its channel, that its orders are about to come. It
    /// wakes on another processor than this thread's, which may take as long as to prepare them, and
    /// looks for them for a moment without sleeping. It must not have got any orders yet. Failure costs
    /// only time.
    pub fn alert(&self, channel: BorrowedFd<'_>) {
        if let Some(fork) = self.fork() {
            fork.wake_elsewhere();
        }
        raw_descriptors::send(channel.as_raw_fd(), ALERT);
    }

    /// The same process, whose time counts from now: it was made before it was wanted. One that was alerted
    /// may use all its processors again.
    #[must_use]
    pub fn begun_now(mut self) -> Self {
        self.started = Instant::now();
        if let Some(fork) = self.fork() {
            fork.may_return();
        }
        self
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let mut fds = [PollFd::new(self.pidfd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready == 0)
    }

    /// Lets go of a fork that is ending.
    pub(crate) fn forget(&mut self) {
        if let Hold::Itself(forked) = &self.hold {
            forked.forget();
            self.collected = true;
        }
    }

    /// When the process was started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// A descriptor that is readable once the process and everything that it started has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        match &self.hold {
            Hold::Keeper { pidfd, .. } => pidfd.as_fd(),
            Hold::Itself(forked) => forked.pidfd.as_fd(),
        }
    }

    /// Takes the host's ends of standard output and standard error. `None` after the first call.
    pub(crate) fn take_streams(&mut self) -> Option<Streams> {
        self.streams.take()
    }

    /// Waits until the program runs or failed to start. `None` if the keeper ended without a report
    /// or the time ran out. `maps` are the id maps that the process will request.
    pub(crate) fn await_start(&mut self, maps: Option<&IdMaps>) -> Option<Report> {
        let mut give_up = None;
        let until = Instant::now() + START_PATIENCE;
        let is_mapped = maps.is_some_and(|maps| self.map_keeper(maps));
        loop {
            // The process's user can stop it or make it access a file system that does not answer.
            if Instant::now() >= until {
                self.kill();
                return None;
            }
            let Hold::Keeper {
                pidfd, lifeline, ..
            } = &self.hold
            else {
                return Some(Ok(0));
            };
            let mut fds = [
                PollFd::new(lifeline.as_fd(), PollFlags::POLLIN),
                PollFd::new(pidfd.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, STOP_CHECK_MS) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return None,
            }
            let ended = fds[1].any() == Some(true);
            let mut bytes = [0; REPORT_BYTES];
            match receive(lifeline, &mut bytes) {
                Ok((REPORT_BYTES, _)) => {
                    let report = decode(bytes);
                    // The keeper of another pid namespace knows no other id.
                    if let Some(Ok(pid)) = report
                        && !self.has_own_pids
                    {
                        self.pid = pid;
                    }
                    return report;
                }
                Ok((MAP_REQUEST_BYTES, None)) if let Some(maps) = maps => {
                    let [a, b, c, d, ..] = bytes;
                    let process = match (self.has_own_pids, self.keeper()) {
                        (true, Some(keeper)) => keeper,
                        _ => i32::from_ne_bytes([a, b, c, d]),
                    };
                    if !is_mapped {
                        answer_maps(lifeline, view::map_ids(process, maps));
                    }
                    continue;
                }
                Ok((1, Some(listener))) if bytes.first() == Some(&LISTENER) => {
                    self.listener = Some(listener);
                    continue;
                }
                // The layer's directory, which comes before the report.
                Ok((_, Some(directory))) if self.layers.is_some() => {
                    self.has_layer(directory);
                    continue;
                }
                Err(Errno::EAGAIN | Errno::EINTR) if !ended => {}
                // Another process may hold a copy of the keeper's end, but the keeper is gone.
                Ok(_) | Err(_) => return None,
            }
            if self.revive_keeper() && give_up.is_none() {
                give_up = Some(Instant::now() + STOPPED_PATIENCE);
            }
            // No step before the program stops the keeper. So the program runs, and stops it again
            // and again.
            if give_up.is_some_and(|until| Instant::now() >= until) {
                return Some(Ok(0));
            }
        }
    }

    /// Maps the ids of a keeper in a user namespace of its own before it asks, so that it need not
    /// wait. Returns false if it has to ask: the keeper of a host that has changed its user first
    /// has to let its maps be written.
    fn map_keeper(&self, maps: &IdMaps) -> bool {
        let (Hold::Keeper { lifeline, .. }, true, Some(keeper)) =
            (&self.hold, self.has_own_pids, self.keeper())
        else {
            return false;
        };
        let mapped = view::map_ids(keeper, maps);
        let is_mapped = mapped.is_ok();
        if is_mapped {
            answer_maps(lifeline, mapped);
        }
        is_mapped
    }

    /// Continues a keeper that was stopped. A process of the same user can stop it if nothing
    /// forbids that. Returns whether it was stopped.
    pub(crate) fn revive_keeper(&self) -> bool {
        let Hold::Keeper { pidfd, .. } = &self.hold else {
            return false; // behind a filter that forbids it
        };
        let stopped = system_calls::is_stopped(pidfd.as_fd());
        if stopped {
            system_calls::signal_pidfd(pidfd.as_fd(), nix::libc::SIGCONT);
        }
        stopped
    }

    /// Sends a signal to the process.
    pub(crate) fn ask(&self, signal: i32) {
        match &self.hold {
            Hold::Keeper { lifeline, .. } => {
                if let Ok(signal) = u8::try_from(signal) {
                    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                    // A keeper that does not listen is already ending.
                    let _ = send(lifeline.as_raw_fd(), &[signal], flags);
                }
            }
            Hold::Itself(forked) => system_calls::signal_pidfd(forked.pidfd.as_fd(), signal),
        }
    }

    /// Sends a descriptor to the keeper, which does not receive it, so the kernel closes it.
    pub(crate) fn ask_with(&self, descriptor: &OwnedFd) {
        if let Hold::Keeper { lifeline, .. } = &self.hold {
            let _ =
                raw_descriptors::send_with(lifeline.as_raw_fd(), &[0], &[descriptor.as_raw_fd()]);
        }
    }

    /// Called when the process's mounts are made.
    pub(crate) fn hold_mounts(&self) {
        if let Hold::Itself(forked) = &self.hold {
            forked.hold_mounts();
        }
    }

    /// Called when the process has ended.
    pub(crate) fn release_mounts(&mut self) {
        if let Hold::Itself(forked) = &mut self.hold {
            forked.release_mounts();
        }
    }

    /// Receives the keeper's next packet and returns its length; `None` if none comes before
    /// `until`.
    pub(crate) fn hear(&self, bytes: &mut [u8], until: Instant) -> Option<usize> {
        let Hold::Keeper { lifeline, .. } = &self.hold else {
            return None;
        };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(lifeline.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) if left.is_zero() => return None,
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(_) => return None,
            }
            match receive(lifeline, bytes) {
                Ok((0, _)) => return None,
                Ok((count, _)) => return Some(count),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// Ends everything now.
    pub(crate) fn end(&self) {
        match &self.hold {
            Hold::Keeper {
                pidfd, lifeline, ..
            } => {
                // Not by closing it: a fork of the host may hold a copy.
                let _ = shutdown(lifeline.as_raw_fd(), Shutdown::Both);
                // The process may have stopped the keeper, if nothing forbids that.
                system_calls::signal_pidfd(pidfd.as_fd(), nix::libc::SIGCONT);
            }
            Hold::Itself(_) => self.kill(),
        }
    }

    /// Kills the keeper. The process dies with it.
    pub(crate) fn kill(&self) {
        system_calls::signal_pidfd(self.pidfd(), nix::libc::SIGKILL);
    }

    /// Where a command's keeper says how the command ended.
    pub(crate) fn verdict_interest(&self) -> Option<BorrowedFd<'_>> {
        match (&self.hold, self.role) {
            (Hold::Keeper { lifeline, .. }, Role::Command) => Some(lifeline.as_fd()),
            _ => None,
        }
    }

    /// Takes what a command's keeper has said. `true`: nothing of the command is left.
    pub(crate) fn hear_verdict(&mut self) -> bool {
        if let (Hold::Keeper { lifeline, .. }, Role::Command, None) =
            (&self.hold, self.role, self.verdict)
        {
            self.verdict = verdict(lifeline);
        }
        self.verdict.is_some()
    }

    /// Waits for the keeper's end and collects it; after a verdict, a thread does. If another part of
    /// the host has collected it (with `__WALL`), it counts as killed.
    pub(crate) fn collect(&mut self) -> Status {
        self.collected = true;
        if self.hear_verdict()
            && !self.is_program
            && let (Some(status), Some(keeper)) = (self.verdict, self.keeper())
        {
            collect_aside(keeper);
            return status;
        }
        match &self.hold {
            Hold::Keeper { pidfd, .. } => {
                let status = system_calls::wait_pidfd(pidfd.as_fd());
                // It may have said it at last; the first process of a pid namespace cannot end by a
                // signal of its own.
                let status = match (self.hear_verdict(), self.has_own_pids) {
                    (true, _) => self.verdict,
                    (false, true) => None,
                    (false, false) => status,
                };
                status.unwrap_or(Status::Signalled(nix::libc::SIGKILL))
            }
            Hold::Itself(forked) => forked.status(),
        }
    }

    /// Whether nobody need wait for its end: it is a template or a fork whose files are all in its
    /// private root, and go with it.
    fn ends_alone(&self) -> bool {
        match &self.hold {
            Hold::Keeper { pid, .. } => {
                self.role == Role::Template && self.renewal.is_some() && *pid > 0
            }
            Hold::Itself(forked) => forked.template().renewal.is_some(),
        }
    }

    /// Whether the process ends before `until`.
    fn ends_before(&self, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(self.pidfd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) | Err(Errno::EINTR) if left.is_zero() => return false,
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return true,
                Err(_) => return false,
            }
        }
    }
}

/// Tells a process whether its ids are mapped.
pub(crate) fn answer_maps(lifeline: &OwnedFd, mapped: std::io::Result<()>) {
    let errno = mapped
        .err()
        .map_or(0, |error| error.raw_os_error().unwrap_or(Errno::EIO as i32));
    raw_descriptors::send(lifeline.as_raw_fd(), &errno.to_ne_bytes());
}

/// Collects a keeper that is ending, and kills it if it takes too long: its process may stop it. Its
/// id is its own until then, so no descriptor is needed, which the host would see for a moment.
fn collect_aside(keeper: i32) {
    let collect = move || {
        let until = Instant::now() + KEEPER_PATIENCE;
        while !system_calls::has_child_ended(keeper) && Instant::now() < until {
            std::thread::sleep(COLLECT_AFTER);
        }
        let _ = system_calls::kill(keeper, nix::libc::SIGKILL);
        let _ = system_calls::wait_child(keeper);
    };
    if thread::start("altair-collect", collect).is_err() {
        collect();
    }
}

/// How the process ended, as its keeper has said at last. `None` if the keeper was ended.
fn verdict(lifeline: &OwnedFd) -> Option<Status> {
    let mut bytes = [0; REPORT_BYTES];
    loop {
        match receive(lifeline, &mut bytes) {
            Ok((Verdict::BYTES, _)) => return Verdict::decode(bytes),
            Ok((0, _)) | Err(Errno::EAGAIN) => return None,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return None,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.collected || self.host != std::process::id() {
            return;
        }
        self.end();
        if self.ends_alone() {
            return match &self.hold {
                Hold::Keeper { pid, .. } => collect_aside(*pid),
                Hold::Itself(forked) => forked.forget(),
            };
        }
        if !self.ends_before(Instant::now() + KEEPER_PATIENCE) {
            self.kill();
        }
        match &self.hold {
            Hold::Keeper { .. } => drop(self.collect()),
            Hold::Itself(forked) => forked.forget(),
        }
    }
}
