//! A started process as its host holds it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, Shutdown, recvmsg, send, shutdown};

use crate::error::{REPORT_BYTES, Report, decode};
use crate::guard::Guards;
use crate::view::{Layer, Layers};
use crate::{sweep, sys};

/// Receives one packet with the descriptor that came with it, if any, without waiting.
fn receive(lifeline: &OwnedFd, bytes: &mut [u8]) -> nix::Result<(usize, Option<OwnedFd>)> {
    let mut control = nix::cmsg_space!(std::os::fd::RawFd);
    let mut parts = [std::io::IoSliceMut::new(bytes)];
    let received = recvmsg::<()>(
        lifeline.as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut descriptor = None;
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = message {
            descriptor = fds.into_iter().map(sys::own_descriptor).next();
        }
    }
    Ok((received.bytes, descriptor))
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With this exit code, 0 to 255.
    Exited(i32),
    /// From this signal, by number.
    Signalled(i32),
}

/// How long the keeper may take to end everything before it is ended itself: a second more than
/// it tries.
pub(crate) const KEEPER_PATIENCE: Duration =
    sweep::SWEEP_LIMIT.saturating_add(Duration::from_secs(1));

/// Milliseconds between two looks at whether the keeper was stopped, while the start is awaited.
const STOP_CHECK_MS: u16 = 50;

/// How long the report on the start is awaited from a keeper that was stopped.
const STOPPED_PATIENCE: Duration = Duration::from_secs(1);

/// What connects the host to a started process.
pub(crate) struct Wired {
    pub(crate) pidfd: OwnedFd,
    pub(crate) lifeline: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// A started process, with everything that it starts. Dropping it ends all of them at once.
///
/// It may be sent to another thread; the thread that started it may end. In a fork of the host
/// dropping it does nothing.
#[derive(Debug)]
pub struct Child {
    /// The keeper.
    pidfd: OwnedFd,
    lifeline: OwnedFd,
    /// Taken by the supervision.
    streams: Option<(OwnedFd, OwnedFd)>,
    started: Instant,
    guards: Guards,
    /// What is under a layer, until the layer itself has come.
    layers: Option<Layers>,
    layer: Option<Layer>,
    /// The process that made this one.
    host: u32,
    collected: bool,
}

impl Child {
    pub(crate) fn new(
        wired: Wired,
        started: Instant,
        guards: Guards,
        layers: Option<Layers>,
    ) -> Self {
        Self {
            pidfd: wired.pidfd,
            lifeline: wired.lifeline,
            streams: Some((wired.stdout, wired.stderr)),
            started,
            guards,
            layers,
            layer: None,
            host: std::process::id(),
            collected: false,
        }
    }

    /// The guards of this process and what each does.
    #[must_use]
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// The process's throwaway layer, where it has one; once.
    pub fn take_layer(&mut self) -> Option<Layer> {
        self.layer.take()
    }

    /// When it was started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Readable when the process and everything that it started is gone.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// The host's ends of standard output and standard error, once.
    pub(crate) fn take_streams(&mut self) -> Option<(OwnedFd, OwnedFd)> {
        self.streams.take()
    }

    /// Waits until the program runs or could not be run. `None` when the keeper ended without a
    /// word.
    pub(crate) fn await_start(&mut self) -> Option<Report> {
        let mut give_up = None;
        loop {
            let mut fds = [
                PollFd::new(self.lifeline.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, STOP_CHECK_MS) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return None,
            }
            let ended = fds[1].any() == Some(true);
            let mut bytes = [0; REPORT_BYTES];
            match receive(&self.lifeline, &mut bytes) {
                Ok((REPORT_BYTES, _)) => return decode(bytes),
                // The layer, which comes before the report.
                Ok((_, Some(directory))) if self.layers.is_some() => {
                    self.layer = self
                        .layers
                        .take()
                        .map(|layers| Layer::new(directory, layers));
                    continue;
                }
                Err(Errno::EAGAIN | Errno::EINTR) if !ended => {}
                // Somebody else may hold a copy of the keeper's end, but the keeper is gone.
                Ok(_) | Err(_) => return None,
            }
            if self.revive_keeper() && give_up.is_none() {
                give_up = Some(Instant::now() + STOPPED_PATIENCE);
            }
            // Nothing before the program stops the keeper, so the program runs, and does so
            // again and again.
            if give_up.is_some_and(|until| Instant::now() >= until) {
                return Some(Ok(()));
            }
        }
    }

    /// Continues a keeper that was stopped, which a process of the same user can do where nothing
    /// forbids it. Gives whether it was.
    pub(crate) fn revive_keeper(&self) -> bool {
        let stopped = sys::is_stopped(self.pidfd.as_fd());
        if stopped {
            sys::signal_pidfd(self.pidfd.as_fd(), nix::libc::SIGCONT);
        }
        stopped
    }

    /// Has the keeper send a signal to the process.
    pub(crate) fn ask(&self, signal: i32) {
        if let Ok(signal) = u8::try_from(signal) {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            // A keeper that does not listen is ending already.
            let _ = send(self.lifeline.as_raw_fd(), &[signal], flags);
        }
    }

    /// Has the keeper end everything now.
    pub(crate) fn end(&self) {
        // Not by closing: a fork of the host may hold a copy.
        let _ = shutdown(self.lifeline.as_raw_fd(), Shutdown::Both);
        // The process may have stopped the keeper, where nothing forbids it.
        sys::signal_pidfd(self.pidfd.as_fd(), nix::libc::SIGCONT);
    }

    /// Kills the keeper, and through its parent's end the process.
    pub(crate) fn kill(&self) {
        sys::signal_pidfd(self.pidfd.as_fd(), nix::libc::SIGKILL);
    }

    /// Collects the keeper, waiting for its end. A status that another part of the host collected
    /// (with `__WALL`) counts as killed.
    pub(crate) fn collect(&mut self) -> Status {
        self.collected = true;
        sys::wait_pidfd(self.pidfd.as_fd()).unwrap_or(Status::Signalled(nix::libc::SIGKILL))
    }

    /// Whether the keeper ends before `until`.
    fn ends_before(&self, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) | Err(Errno::EINTR) if left.is_zero() => return false,
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return true,
                Err(_) => return false,
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.collected || self.host != std::process::id() {
            return;
        }
        self.end();
        if !self.ends_before(Instant::now() + KEEPER_PATIENCE) {
            self.kill();
        }
        self.collect();
    }
}
