//! Runs on threads of their own, and a way to wait for them that PHP can interrupt.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use altair_engine::{EvalError, EvalResult, Evaluation, Observer};
use altair_sandbox::Stream;
use altair_sandbox::thread;
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

/// What is to be said in a fork of the process that started a run.
pub fn lost() -> EvalError {
    EvalError::Launch(
        "The run was started by the process that this one is a fork of, and only that one can wait for it."
            .into(),
    )
}

/// What a run tells.
pub enum Event {
    /// A piece of output.
    Output(Stream, Vec<u8>),
    /// Its end.
    Done(Box<Result<EvalResult, EvalError>>),
}

/// Threads that take runs from one queue. Dropping them ends the runs, and waits for that.
pub struct Crew {
    shared: Arc<Shared>,
    events: Receiver<(usize, Event)>,
    /// For the threads that are still to be started.
    sender: Sender<(usize, Event)>,
    /// Has a byte in it for each event that waits.
    bell: OwnedFd,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
    tells_output: bool,
    /// The process that has the threads.
    owner: u32,
}

struct Shared {
    queue: Mutex<Queue>,
    /// There is a run in the queue, or never again.
    called: Condvar,
    cancelled: AtomicBool,
    /// Bytes of output that wait for the host.
    backlog: Mutex<usize>,
    taken: Condvar,
    ringer: OwnedFd,
}

#[derive(Default)]
struct Queue {
    /// Each with its number.
    runs: VecDeque<(usize, Evaluation)>,
    /// Threads that have nothing to do.
    idle: usize,
    is_over: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The next run. `None`: there is none to come.
    fn next(&self) -> Option<(usize, Evaluation)> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_over {
                return None;
            }
            if let Some(run) = queue.runs.pop_front() {
                return Some(run);
            }
            queue.idle += 1;
            queue = self
                .called
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    fn take_off(&self, bytes: usize) {
        *lock(&self.backlog) -= bytes;
        self.taken.notify_one();
    }

    /// Waits until there is room in the backlog. `false` where the run ends before there is.
    fn wait_for_room(&self, deadline: Instant) -> bool {
        let mut backlog = lock(&self.backlog);
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

/// Tells the host of a run.
struct Teller {
    number: usize,
    events: Sender<(usize, Event)>,
    shared: Arc<Shared>,
    tells_output: bool,
    deadline: Instant,
}

impl Teller {
    fn tell(&self, event: Event) {
        if self.events.send((self.number, event)).is_ok() {
            let _ = write(&self.shared.ringer, &[0]);
        }
    }

    fn run(mut self, prepared: Evaluation) {
        let result = catch_unwind(AssertUnwindSafe(|| prepared.run(&mut self)));
        let broken = |_| Err(EvalError::Launch("The evaluation broke off.".into()));
        self.tell(Event::Done(Box::new(result.unwrap_or_else(broken))));
    }
}

impl Observer for Teller {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        if self.tells_output && self.shared.wait_for_room(self.deadline) {
            *lock(&self.shared.backlog) += chunk.len();
            self.tell(Event::Output(stream, chunk.to_vec()));
        }
        self.tick()
    }

    fn listens(&self) -> bool {
        self.tells_output
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.shared.cancelled.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl Crew {
    /// So many threads at most, each of which is started when it has something to do.
    ///
    /// # Errors
    ///
    /// Where the host has no descriptor left.
    pub fn new(threads_max: usize, tells_output: bool) -> io::Result<Self> {
        let (bell, ringer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let (sender, events) = channel();
        Ok(Self {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                called: Condvar::new(),
                cancelled: AtomicBool::new(false),
                backlog: Mutex::default(),
                taken: Condvar::new(),
                ringer,
            }),
            events,
            sender,
            bell,
            threads: Vec::new(),
            threads_max,
            tells_output,
            owner: std::process::id(),
        })
    }

    fn is_own(&self) -> bool {
        self.owner == std::process::id()
    }

    /// Has a run made, as soon as a thread is free. Its events come with `number`.
    ///
    /// # Errors
    ///
    /// Where there can be no thread at all.
    pub fn start(&mut self, number: usize, prepared: Evaluation) -> io::Result<()> {
        if !self.is_own() {
            return Ok(()); // `next` tells
        }
        let needs_thread = {
            let mut queue = lock(&self.shared.queue);
            queue.runs.push_back((number, prepared));
            queue.idle < queue.runs.len()
        };
        self.shared.called.notify_one();
        if needs_thread && self.threads.len() < self.threads_max {
            match self.hire() {
                Ok(thread) => self.threads.push(thread),
                Err(error) if self.threads.is_empty() => return Err(error),
                // Those that are there do it, too.
                Err(_) => self.threads_max = self.threads.len(),
            }
        }
        Ok(())
    }

    fn hire(&self) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let (events, tells_output) = (self.sender.clone(), self.tells_output);
        thread::start("altair-eval", move || {
            while let Some((number, prepared)) = shared.next() {
                let teller = Teller {
                    number,
                    events: events.clone(),
                    shared: Arc::clone(&shared),
                    tells_output,
                    deadline: prepared.deadline(),
                };
                teller.run(prepared);
            }
        })
    }

    /// Waits for the next event of any run that was started, handing the host's own code its turn.
    /// `None` in a fork of the process that started them, which that code may have become.
    pub fn next(&mut self) -> Result<Option<(usize, Event)>, Wants> {
        while self.is_own() {
            if let Ok((number, event)) = self.events.try_recv() {
                if let Event::Output(_, chunk) = &event {
                    self.shared.take_off(chunk.len());
                }
                return Ok(Some((number, event)));
            }
            let mut bell = [PollFd::new(self.bell.as_fd(), PollFlags::POLLIN)];
            if poll(&mut bell, PollTimeout::from(LOOK_AFTER_MS)).is_ok_and(|rung| rung > 0) {
                // At once for all events that the loop is going to find.
                let _ = read(&self.bell, &mut [0; 64]);
            }
            host::interrupts()?;
        }
        Ok(None)
    }

    /// Has all runs end, before anything waits for that.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Ends all runs, and waits for that.
    pub fn end(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if !self.is_own() {
            // A fork has no such threads to wait for, and one of them may have had a lock, or have
            // been about to send.
            std::mem::forget(threads);
            let events = std::mem::replace(&mut self.events, channel().1);
            std::mem::forget(events);
            return;
        }
        self.cancel();
        let mut queue = lock(&self.shared.queue);
        queue.is_over = true;
        queue.runs.clear();
        drop(queue);
        self.shared.called.notify_all();
        self.shared.taken.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end();
    }
}
