//! Boots a template on a thread of its own, so that the boot continues if the call that began it
//! stops waiting.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use altair_sandbox::{Captured, Ended, MadeReady, Refusal, Status, Stream, Supervision};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, shutdown};
use nix::unistd::pipe2;

use super::booted_template::{BootedTemplate, MadeFrom, look};
use super::template_start::TemplateStart;
use super::wait::Wait;
use super::{BOOT_LIMIT, Failed};
use crate::bounds::{GRACE, OUTPUT_LIMIT, stop_signal};
use crate::channel::{BootReport, Message, MessageReader};
use crate::child_messages::ChildMessages;
use crate::file_changes;
use crate::guards::GuardStates;
use crate::observer::Observer;
use crate::result::Phase;
use altair_sandbox::thread;

/// The interval in milliseconds at which a waiting call checks for new output.
const LOOK_AFTER_MS: u16 = 100;

/// The result of a boot.
#[derive(Debug)]
pub(super) enum Result {
    Template(Box<BootedTemplate>),
    Failed(Box<Failed>),
    /// No template can be made here.
    Unable(String),
    /// Nobody needed it any more.
    Cancelled,
}

/// A boot under way, and the state shared with those that wait for it.
pub(super) struct Booting {
    shared: Arc<Shared>,
    /// Readable once the boot is over.
    over: OwnedFd,
    thread: Option<JoinHandle<()>>,
    owner: u32,
    /// The pause before another attempt, if this one fails.
    pause: Duration,
}

struct Shared {
    /// What precedes the boot.
    wait: Wait,
    /// The boot is no longer needed.
    cancelled: AtomicBool,
    /// How often a waiting call asked for the current position.
    asked: AtomicU32,
    /// No call that began it waits for it.
    given_up: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The output of boot, as far as it is kept.
    printed: Vec<(Stream, Vec<u8>)>,
    heard: ChildMessages,
    /// While it boots: the host's end of its channel. To close it wakes who supervises the boot.
    channel: Option<OwnedFd>,
    over: bool,
    /// The result, until a call takes it.
    result: Option<Result>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Booting {
    /// Begins a boot, for the call that asks for it.
    ///
    /// # Errors
    /// If the host has no thread or descriptor left.
    pub(super) fn begin(start: TemplateStart) -> io::Result<Self> {
        Self::after_wait(Wait::none(), || Ok(start))
    }

    /// Begins a boot that no call waits for, a while from now.
    ///
    /// # Errors
    /// As for [`begin`](Self::begin).
    pub(super) fn begin_later(
        start: impl FnOnce() -> std::result::Result<TemplateStart, String> + Send + 'static,
    ) -> io::Result<Self> {
        let booting = Self::after_wait(Wait::begun(), start)?;
        booting.give_up();
        Ok(booting)
    }

    fn after_wait(
        wait: Wait,
        start: impl FnOnce() -> std::result::Result<TemplateStart, String> + Send + 'static,
    ) -> io::Result<Self> {
        let (over, ringer) = pipe2(OFlag::O_CLOEXEC)?;
        let shared = Arc::new(Shared {
            wait,
            cancelled: AtomicBool::default(),
            asked: AtomicU32::default(),
            given_up: AtomicBool::default(),
            state: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let thread = thread::start("altair-boot", move || {
            if !own.wait.pass() {
                return;
            }
            let result = match start() {
                Ok(start) => boot(start, &own),
                Err(why) => Result::Unable(why),
            };
            let mut state = lock(&own.state);
            state.result = Some(result);
            state.over = true;
            drop(state);
            drop(ringer);
        })?;
        Ok(Self {
            shared,
            over,
            thread: Some(thread),
            owner: std::process::id(),
            pause: Duration::ZERO,
        })
    }

    /// Sets the pause before another attempt, if this one fails.
    pub(super) fn after(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// Returns whether the boot has yet to begin.
    pub(super) fn is_to_come(&self) -> bool {
        self.shared.wait.is_under_way()
    }

    /// Has a boot that is to come begin now, for the call that asks. `false` if it is not to come:
    /// what it has read may be older than that call.
    pub(super) fn take_over(&self) -> bool {
        let is_taken = self.shared.wait.cut_short();
        if is_taken {
            self.shared.given_up.store(false, Ordering::Relaxed);
        }
        is_taken
    }

    /// Waits until the boot is over or until `until`, and passes its output on: as it comes to the
    /// call that began it, and to others only if they wait no longer, since their run shows it
    /// again. Returns whether it is over; `Break` if the observer stops the wait.
    pub(super) fn wait(
        &self,
        is_maker: bool,
        until: Instant,
        observer: &mut dyn Observer,
    ) -> ControlFlow<(), bool> {
        let mut shown = 0;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let (output, is_over) = {
                let state = lock(&self.shared.state);
                let shows = is_maker || left.is_zero() && !state.over;
                let new = state.printed.get(shown..).filter(|_| shows);
                (new.unwrap_or_default().to_vec(), state.over)
            };
            shown += output.len();
            for (stream, chunk) in output {
                observer.output(stream, &chunk)?;
            }
            if is_over {
                return ControlFlow::Continue(true);
            }
            observer.tick()?;
            if left.is_zero() {
                return ControlFlow::Continue(false);
            }
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let timeout = left.min(PollTimeout::from(LOOK_AFTER_MS));
            let mut fds = [PollFd::new(self.over.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, timeout);
        }
    }

    /// Handles the deadline of a waiting call: asks for the boot's current position, waits until
    /// `until` for the answer, and returns what is known. The boot continues.
    pub(super) fn time_out(&self, until: Instant) -> Failed {
        lock(&self.shared.state).heard.stopped = None;
        self.shared.asked.fetch_add(1, Ordering::Relaxed);
        while Instant::now() < until && lock(&self.shared.state).heard.stopped.is_none() {
            let mut fds = [PollFd::new(self.over.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, PollTimeout::from(1u8));
        }
        let state = lock(&self.shared.state);
        let heard = ChildMessages {
            entered_ns: state.heard.entered_ns,
            stopped: state.heard.stopped.clone(),
            ..ChildMessages::default()
        };
        Failed {
            ended: Ended {
                status: Status::Exited(0),
                timed_out: true,
                idled: false,
                interrupted: false,
                undelivered: false,
                stdout: captured(&state.printed, Stream::Stdout),
                stderr: captured(&state.printed, Stream::Stderr),
                layer: None,
                elapsed: std::time::Duration::ZERO,
            },
            heard,
            guards: GuardStates::new(),
            changes: None,
            message: Some(format!(
                "Boot took longer. It goes on in the background, for at most {} s: a later call of this Evaluator can use the result.",
                BOOT_LIMIT.as_secs()
            )),
        }
    }

    /// The result, once. It belongs to the call that began the boot, and to others only if that
    /// call has given up.
    pub(super) fn result(&self, is_maker: bool) -> Option<Result> {
        if !is_maker && !self.shared.given_up.load(Ordering::Relaxed) {
            // That call is about to take it.
            let _ = poll(&mut [], PollTimeout::from(1u8));
            return None;
        }
        lock(&self.shared.state).result.take()
    }

    /// The result, once, of a boot that is nobody's and that is over.
    pub(super) fn unclaimed(&self) -> Option<Result> {
        let is_nobodys = self.shared.given_up.load(Ordering::Relaxed);
        let taken = || lock(&self.shared.state).result.take();
        is_nobodys.then(taken).flatten()
    }

    /// The call that began it stops waiting.
    pub(super) fn give_up(&self) {
        self.shared.given_up.store(true, Ordering::Relaxed);
    }

    /// Ends the boot.
    pub(super) fn cancel(&self) {
        if self.owner != std::process::id() {
            return; // its thread, which may have held a lock, is not in a fork of the host
        }
        self.shared.cancelled.store(true, Ordering::Relaxed);
        self.shared.wait.call_off();
        if let Some(channel) = &lock(&self.shared.state).channel {
            let _ = shutdown(channel.as_raw_fd(), Shutdown::Both);
        }
    }
}

impl Drop for Booting {
    fn drop(&mut self) {
        self.cancel();
        match self.thread.take() {
            Some(thread) if self.owner == std::process::id() => {
                let _ = thread.join();
            }
            // A fork of the host does not have this thread, so there is nothing to join.
            thread => std::mem::forget(thread),
        }
    }
}

/// The output to one stream.
fn captured(printed: &[(Stream, Vec<u8>)], stream: Stream) -> Captured {
    let mut captured = Captured::default();
    for (_, chunk) in printed.iter().filter(|(of, _)| *of == stream) {
        captured.head.extend_from_slice(chunk);
        captured.total += chunk.len() as u64;
    }
    captured.head.truncate(OUTPUT_LIMIT);
    captured
}

/// Receives the messages of a boot.
struct Ear<'a> {
    shared: &'a Shared,
    reader: MessageReader,
    booted: Option<BootReport>,
    /// All other messages.
    heard: ChildMessages,
    told: u32,
}

impl Ear<'_> {
    fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }
}

impl altair_sandbox::Observer for Ear<'_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        let mut state = lock(&self.shared.state);
        // Keeps as much as is shown in the end; the supervision counts the rest.
        let kept: usize = state.printed.iter().map(|(_, chunk)| chunk.len()).sum();
        if kept < 2 * OUTPUT_LIMIT {
            state.printed.push((stream, chunk.to_vec()));
        }
        ControlFlow::Continue(())
    }

    fn packet(&mut self, packet: &[u8]) {
        match self.reader.push(packet) {
            Some(Message::Booted(booted)) if self.booted.is_none() => self.booted = Some(booted),
            Some(Message::Stopped {
                location,
                memory_peak_bytes,
                ..
            }) => {
                let stopped = (Phase::Boot, location, memory_peak_bytes);
                lock(&self.shared.state).heard.stopped = Some(stopped);
            }
            // A template has no snippet.
            Some(Message::Ready { .. }) => {}
            message => {
                if let Some(Message::Entered { at_ns }) = message {
                    lock(&self.shared.state).heard.entered_ns = Some(at_ns);
                }
                self.heard.take(message, packet);
            }
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        self.heard.refused.call(refusal);
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.heard.has_threads {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn is_ready(&self) -> bool {
        // Or not needed: then nobody waits for its end.
        self.booted.is_some() || self.is_cancelled()
    }

    fn signal(&mut self) -> Option<i32> {
        let asked = self.shared.asked.load(Ordering::Relaxed);
        let told = std::mem::replace(&mut self.told, asked);
        // After boot, its answer would no longer be about the boot.
        (asked != told && self.booted.is_none()).then(stop_signal)
    }
}

fn boot(start: TemplateStart, shared: &Shared) -> Result {
    let TemplateStart {
        child,
        channel,
        outbox,
        secret,
        pass,
        guards,
        root,
        files,
        launched_ns,
        private,
        named,
        names_project,
    } = start;
    lock(&shared.state).channel = channel.try_clone().ok();
    let mut ear = Ear {
        shared,
        reader: MessageReader::new(secret),
        booted: None,
        heard: ChildMessages::default(),
        told: 0,
    };
    let supervision = Supervision {
        deadline: Supervision::deadline_after(BOOT_LIMIT),
        stop_signal: None,
        grace: std::time::Duration::ZERO,
        output_limit: OUTPUT_LIMIT,
        outbox,
        channel: Some(channel),
        idle: None,
        input: None,
        leaves_end: false,
        looks: Duration::ZERO,
    };
    let made = child.make_ready(supervision, &mut ear);
    lock(&shared.state).channel = None;
    let Ear {
        booted, mut heard, ..
    } = ear;
    if let Some(why) = heard.unable.take() {
        return Result::Unable(why);
    }
    match (made, booted) {
        // What this drops is let go of like a template, and not waited for.
        (_, None) if shared.cancelled.load(Ordering::Relaxed) => Result::Cancelled,
        (MadeReady::Ready(ready), Some(booted)) => {
            let from = MadeFrom {
                root,
                files: Arc::new(files),
                private,
                launched_ns,
                named,
                names_project,
            };
            match look(ready, booted, heard, guards, from, pass) {
                Ok(template) => Result::Template(Box::new(template)),
                Err(error) => Result::Unable(format!("the template cannot be inspected: {error}")),
            }
        }
        (MadeReady::Ended(ended), _) if heard.entered_ns.is_some() || ended.timed_out => {
            let until = Instant::now() + GRACE;
            let layer = ended.layer.as_ref();
            let changes = layer.and_then(|layer| file_changes::list(layer, until));
            Result::Failed(Box::new(Failed {
                ended,
                heard,
                guards,
                changes,
                message: None,
            }))
        }
        _ => Result::Unable("the template did not start".into()),
    }
}
