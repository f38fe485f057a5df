//! Booting a template: on a thread of its own, so that it goes on when the call that began it does
//! not wait any more.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use altair_sandbox::{Captured, Ended, MadeReady, Refusal, Status, Stream, Supervision};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe2;

use super::booted_template::{BootedTemplate, MadeFrom, look};
use super::template_start::TemplateStart;
use super::{BOOT_LIMIT, Failed};
use crate::bounds::{GRACE, OUTPUT_LIMIT, stop_signal};
use crate::channel::{BootReport, Message, MessageReader};
use crate::child_messages::ChildMessages;
use crate::file_changes;
use crate::guards::GuardStates;
use crate::observer::Observer;
use crate::result::Phase;
use altair_sandbox::thread;

/// Milliseconds after which a waiting call looks up.
const LOOK_AFTER_MS: u16 = 100;

/// How a boot came out.
#[derive(Debug)]
pub(super) enum Result {
    Template(Box<BootedTemplate>),
    Failed(Box<Failed>),
    /// There is no template to be had here.
    Unable(String),
}

/// A boot that goes on, and who waits for it.
pub(super) struct Booting {
    shared: Arc<Shared>,
    /// Readable once it is over.
    over: OwnedFd,
    thread: Option<JoinHandle<()>>,
    owner: u32,
    /// How long it is before another is tried, where this one comes to nothing.
    pause: Duration,
}

#[derive(Default)]
struct Shared {
    /// Nobody wants it any more.
    cancelled: AtomicBool,
    /// How often somebody wanted to know where it is.
    asked: AtomicU32,
    /// The call that began it has given up.
    given_up: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the boot has printed, as far as it is kept.
    printed: Vec<(Stream, Vec<u8>)>,
    heard: ChildMessages,
    over: bool,
    /// What came out, until somebody takes it.
    result: Option<Result>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Booting {
    /// Begins.
    ///
    /// # Errors
    /// Where the host has no thread or no descriptor left.
    pub(super) fn begin(start: TemplateStart) -> io::Result<Self> {
        let (over, ringer) = pipe2(OFlag::O_CLOEXEC)?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = thread::start("altair-boot", move || {
            let result = boot(start, &own);
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

    /// Sets how long it is before another is tried, where this one comes to nothing.
    pub(super) fn after(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// Waits until it is over or `until`, handing on what the boot prints. Gives whether it is over;
    /// `Break` where the observer has had enough.
    pub(super) fn wait(
        &self,
        until: Instant,
        observer: &mut dyn Observer,
    ) -> ControlFlow<(), bool> {
        let mut shown = 0;
        loop {
            let (output, is_over) = {
                let state = lock(&self.shared.state);
                let new = state.printed.get(shown..).unwrap_or_default().to_vec();
                (new, state.over)
            };
            shown += output.len();
            for (stream, chunk) in output {
                observer.output(stream, &chunk)?;
            }
            if is_over {
                return ControlFlow::Continue(true);
            }
            observer.tick()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return ControlFlow::Continue(false);
            }
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let timeout = left.min(PollTimeout::from(LOOK_AFTER_MS));
            let mut fds = [PollFd::new(self.over.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, timeout);
        }
    }

    /// The deadline of a call that waits has passed: asks where the boot is, waits `until` for the
    /// answer, and gives what there is to say. The boot goes on.
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
                interrupted: false,
                stdout: captured(&state.printed, Stream::Stdout),
                stderr: captured(&state.printed, Stream::Stderr),
                layer: None,
                elapsed: std::time::Duration::ZERO,
            },
            heard,
            guards: GuardStates::new(),
            changes: None,
            message: Some(format!(
                "Boot took longer. It goes on in the background, for {} s at most: a later call of this Evaluator finds it done.",
                BOOT_LIMIT.as_secs()
            )),
        }
    }

    /// What came out; once. It is for the call that began it, and for others only when that one
    /// has given up.
    pub(super) fn result(&self, is_maker: bool) -> Option<Result> {
        if !is_maker && !self.shared.given_up.load(Ordering::Relaxed) {
            // It is about to take it.
            let _ = poll(&mut [], PollTimeout::from(1u8));
            return None;
        }
        lock(&self.shared.state).result.take()
    }

    /// The call that began it does not wait any more.
    pub(super) fn give_up(&self) {
        self.shared.given_up.store(true, Ordering::Relaxed);
    }

    /// Ends it.
    pub(super) fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Drop for Booting {
    fn drop(&mut self) {
        self.cancel();
        match self.thread.take() {
            Some(thread) if self.owner == std::process::id() => {
                let _ = thread.join();
            }
            // A fork of the host has no such thread to wait for.
            thread => std::mem::forget(thread),
        }
    }
}

/// What was printed to one stream.
fn captured(printed: &[(Stream, Vec<u8>)], stream: Stream) -> Captured {
    let mut captured = Captured::default();
    for (_, chunk) in printed.iter().filter(|(of, _)| *of == stream) {
        captured.head.extend_from_slice(chunk);
        captured.total += chunk.len() as u64;
    }
    captured.head.truncate(OUTPUT_LIMIT);
    captured
}

/// Listens to a boot.
struct Ear<'a> {
    shared: &'a Shared,
    reader: MessageReader,
    booted: Option<BootReport>,
    /// All other messages.
    heard: ChildMessages,
    told: u32,
}

impl altair_sandbox::Observer for Ear<'_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        let mut state = lock(&self.shared.state);
        // As much as is shown in the end; the rest is counted by the supervision.
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
            // There is no snippet.
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
        if self.shared.cancelled.load(Ordering::Relaxed) || self.heard.has_threads {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn is_ready(&self) -> bool {
        self.booted.is_some()
    }

    fn signal(&mut self) -> Option<i32> {
        let asked = self.shared.asked.load(Ordering::Relaxed);
        let told = std::mem::replace(&mut self.told, asked);
        // Once it has booted, what it would say is no answer to what it is asked.
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
        readable,
        launched_ns,
        private,
        named,
    } = start;
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
    };
    let made = child.make_ready(supervision, &mut ear);
    let Ear {
        booted, mut heard, ..
    } = ear;
    if let Some(why) = heard.unable.take() {
        return Result::Unable(why);
    }
    match (made, booted) {
        (MadeReady::Ready(ready), Some(booted)) => {
            let from = MadeFrom {
                root,
                readable,
                private,
                launched_ns,
                named,
            };
            match look(ready, booted, heard, guards, &from, pass) {
                Ok(template) => Result::Template(Box::new(template)),
                Err(error) => Result::Unable(format!("the template cannot be looked at: {error}")),
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
