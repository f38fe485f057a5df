//! A run on a thread of its own, and a way to wait for it that PHP can interrupt.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use altair_engine::{EvalError, EvalResult, Observer, Prepared, thread};
use altair_sandbox::Stream;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{pipe2, read, write};

use crate::zend::host::{self, Wants};

/// How long a wait lasts at most before the host's own code is looked after, in milliseconds:
/// with more than one thread in the host a signal may have interrupted another one.
const LOOK_AFTER_MS: u16 = 100;

/// Bytes of output that wait for the host at most. While there are that many, the run's streams
/// are not read on and the snippet waits: a flood is not to fill the host's memory because its
/// callback is slow.
const BACKLOG_BYTES: usize = 256 * 1024;

/// What the thread tells.
enum Event {
    Output(Stream, Vec<u8>),
    Done(Box<Result<EvalResult, EvalError>>),
}

/// What is done with a piece of output.
type OnOutput<'a> = dyn FnMut(Stream, &[u8]) -> Result<(), Wants> + 'a;

/// A thread that runs one evaluation after the other. Dropping it waits for the one that it is at.
pub struct Hand {
    /// Gone when the thread is to end.
    jobs: Option<Sender<(Prepared, Teller)>>,
    thread: Option<JoinHandle<()>>,
    /// The process that started it. In a fork there is no such thread.
    owner: u32,
}

impl Hand {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// Where there can be no further thread.
    pub fn start() -> io::Result<Self> {
        let (jobs, waiting) = channel::<(Prepared, Teller)>();
        let thread = thread::start("altair-eval", move || {
            for (prepared, mut teller) in waiting {
                let result = prepared.run(&mut teller);
                teller.tell(Event::Done(Box::new(result)));
            }
        })?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            owner: std::process::id(),
        })
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.jobs = None;
        match self.thread.take() {
            Some(thread) if self.owner == std::process::id() => {
                let _ = thread.join();
            }
            // A fork has no such thread to wait for.
            thread => std::mem::forget(thread),
        }
    }
}

/// A run that is under way on a thread. Dropping it ends the run.
pub struct Watched {
    events: Receiver<Event>,
    /// Has a byte in it for each event that waits.
    bell: OwnedFd,
    shared: Arc<Shared>,
    hand: Option<Hand>,
    /// The process that started it.
    owner: u32,
}

/// What both sides look at.
#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    /// Bytes of output that wait for the host.
    backlog: Mutex<usize>,
    taken: Condvar,
}

impl Shared {
    fn backlog(&self) -> MutexGuard<'_, usize> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_off(&self, bytes: usize) {
        *self.backlog() -= bytes;
        self.taken.notify_one();
    }

    /// Waits until there is room in the backlog. `false` where the run ends before there is.
    fn wait_for_room(&self, deadline: Instant) -> bool {
        let mut backlog = self.backlog();
        while *backlog >= BACKLOG_BYTES {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.cancelled.load(Ordering::Relaxed) {
                return false;
            }
            let look_up = Duration::from_millis(LOOK_AFTER_MS.into());
            let waited = self.taken.wait_timeout(backlog, left.min(look_up));
            backlog = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

pub struct Teller {
    events: Sender<Event>,
    bell: OwnedFd,
    shared: Arc<Shared>,
    tells_output: bool,
    deadline: Instant,
}

impl Teller {
    fn tell(&self, event: Event) {
        if self.events.send(event).is_ok() {
            let _ = write(&self.bell, &[0]);
        }
    }
}

impl Observer for Teller {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        if self.tells_output && self.shared.wait_for_room(self.deadline) {
            *self.shared.backlog() += chunk.len();
            self.tell(Event::Output(stream, chunk.to_vec()));
        }
        self.tick()
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.shared.cancelled.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl Watched {
    /// Starts a run.
    ///
    /// # Errors
    ///
    /// Where the host has no descriptor left.
    pub fn start(hand: Hand, prepared: Prepared, tells_output: bool) -> io::Result<Self> {
        let (bell, ringer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let (sender, events) = channel();
        let shared = Arc::new(Shared::default());
        let teller = Teller {
            events: sender,
            bell: ringer,
            shared: Arc::clone(&shared),
            tells_output,
            deadline: prepared.deadline(),
        };
        if let Some(jobs) = &hand.jobs {
            // The thread is there as long as the hand is; a panic of its shows as a run that broke
            // off.
            let _ = jobs.send((prepared, teller));
        }
        Ok(Self {
            events,
            bell,
            shared,
            hand: Some(hand),
            owner: std::process::id(),
        })
    }

    /// The thread of a run that is done, for another one.
    pub fn into_hand(mut self) -> Option<Hand> {
        self.hand.take()
    }

    /// Has the run end.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// What to poll for news.
    pub fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    /// The result, if it has come. Output is passed over.
    pub fn try_result(&mut self) -> Option<Result<EvalResult, EvalError>> {
        self.next_result(&mut |_, _| Ok(())).ok().flatten()
    }

    fn next_result(
        &mut self,
        on_output: &mut OnOutput<'_>,
    ) -> Result<Option<Result<EvalResult, EvalError>>, Wants> {
        if self.owner != std::process::id() {
            return Ok(Some(Err(EvalError::Launch(
                "The run was started by the process that this one is a fork of, and only that one can wait for it."
                    .into(),
            ))));
        }
        loop {
            let _ = read(&self.bell, &mut [0]);
            match self.events.try_recv() {
                Ok(Event::Output(stream, chunk)) => {
                    self.shared.take_off(chunk.len());
                    on_output(stream, &chunk)?;
                }
                Ok(Event::Done(result)) => return Ok(Some(*result)),
                Err(std::sync::mpsc::TryRecvError::Empty) => return Ok(None),
                // The thread has panicked.
                Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                    return Ok(Some(Err(EvalError::Launch(
                        "The evaluation broke off.".into(),
                    ))));
                }
            }
        }
    }

    /// Waits for the result, handing on output as it comes.
    pub fn wait(
        &mut self,
        mut on_output: impl FnMut(Stream, &[u8]) -> Result<(), Wants>,
    ) -> Result<Result<EvalResult, EvalError>, Wants> {
        loop {
            if let Some(result) = self.next_result(&mut on_output)? {
                return Ok(result);
            }
            wait_for(&[self])?;
        }
    }
}

/// Waits until one of the runs has news, or the host's own code has had its turn.
pub fn wait_for(runs: &[&Watched]) -> Result<(), Wants> {
    let mut bells: Vec<PollFd<'_>> = runs
        .iter()
        .map(|run| PollFd::new(run.bell().as_fd(), PollFlags::POLLIN))
        .collect();
    let _ = poll(&mut bells, PollTimeout::from(LOOK_AFTER_MS));
    host::interrupts()
}

impl Drop for Watched {
    fn drop(&mut self) {
        // The thread is waited for after this.
        self.cancel();
    }
}
