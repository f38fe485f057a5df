//! Runs evaluations on threads, and waits for them in a way that PHP can interrupt.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// The maximum wait before the host's pending interrupts are handled, in milliseconds. With several
/// threads in the host, a signal may have interrupted another one.
const LOOK_AFTER_MS: u16 = 100;

/// Maximum bytes of output that wait for the host. At this limit, the run's streams are not read
/// and the snippet waits, so that a slow callback does not let output fill the host's memory.
const BACKLOG_BYTES: usize = 256 * 1024;

/// The error in a fork of the process that started a run.
pub fn lost() -> EvalError {
    EvalError::Launch(
        "This process was forked after the run was started; only the original process can wait for it."
            .into(),
    )
}

/// An event of a run.
pub enum Event<D> {
    /// A piece of output.
    Output(Stream, Vec<u8>),
    /// The end.
    Done(Box<D>),
}

/// An event, with the number of its run.
pub type Told<J> = (usize, Event<<J as Job>::Done>);

/// Work of a thread.
pub trait Job: Send + 'static {
    /// What it gives.
    type Done: Send + 'static;
    /// When it has to be over.
    fn deadline(&self) -> Instant;
    /// Does it.
    fn run(self, observer: &mut dyn Observer) -> Self::Done;
    /// What it gives if it broke off.
    fn broken_off() -> Self::Done;
}

impl Job for Evaluation {
    type Done = Result<EvalResult, EvalError>;

    fn deadline(&self) -> Instant {
        Self::deadline(self)
    }

    fn run(self, observer: &mut dyn Observer) -> Self::Done {
        Self::run(self, observer)
    }

    fn broken_off() -> Self::Done {
        Err(EvalError::Launch("The evaluation broke off.".into()))
    }
}

/// What a host waits on besides events, and what it does when it is ready.
pub trait Aside {
    /// The descriptor, and for what it waits.
    fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)>;
    /// Called when it may be ready.
    ///
    /// # Errors
    ///
    /// Why the call must end.
    fn serve(&mut self) -> Result<(), Wants>;
    /// Called after every wait.
    fn look(&mut self) {}
}

/// Nothing.
pub struct NothingAside;

impl Aside for NothingAside {
    fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        None
    }

    fn serve(&mut self) -> Result<(), Wants> {
        Ok(())
    }
}

/// Threads that take runs from one queue. Dropping it ends the runs and waits for them.
pub struct Crew<J: Job> {
    shared: Arc<Shared<J>>,
    events: Receiver<Told<J>>,
    /// For threads that are started later.
    sender: Sender<Told<J>>,
    /// A pipe with a byte for each waiting event.
    bell: OwnedFd,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
    tells_output: bool,
    /// The process of the threads.
    owner: u32,
}

struct Shared<J> {
    queue: Mutex<Queue<J>>,
    /// Signals that the queue has a run, or is closed.
    called: Condvar,
    cancelled: AtomicBool,
    /// Bytes of output that wait for the host.
    backlog: Mutex<usize>,
    taken: Condvar,
    ringer: OwnedFd,
}

struct Queue<J> {
    /// Each with its number.
    runs: VecDeque<(usize, J)>,
    /// The number of idle threads.
    idle: usize,
    is_over: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J> Default for Queue<J> {
    fn default() -> Self {
        Self {
            runs: VecDeque::new(),
            idle: 0,
            is_over: false,
        }
    }
}

impl<J: Job> Shared<J> {
    /// Waits for the next run. `None` if the queue is closed.
    fn next(&self) -> Option<(usize, J)> {
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

    /// Waits for room in the backlog. `false` if the run ends first.
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

/// Sends the events of a run to the host.
struct Teller<J: Job> {
    number: usize,
    events: Sender<Told<J>>,
    shared: Arc<Shared<J>>,
    tells_output: bool,
    deadline: Instant,
}

impl<J: Job> Teller<J> {
    fn tell(&self, event: Event<J::Done>) {
        if self.events.send((self.number, event)).is_ok() {
            let _ = write(&self.shared.ringer, &[0]);
        }
    }

    fn run(mut self, prepared: J) {
        let result = catch_unwind(AssertUnwindSafe(|| prepared.run(&mut self)));
        let broken = |_| J::broken_off();
        self.tell(Event::Done(Box::new(result.unwrap_or_else(broken))));
    }
}

impl<J: Job> Observer for Teller<J> {
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

impl<J: Job> Crew<J> {
    /// At most `threads_max` threads, each started when it is needed.
    ///
    /// # Errors
    ///
    /// If the host has no descriptor left.
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

    /// Queues a run for the next free thread. Its events carry `number`.
    ///
    /// # Errors
    ///
    /// If no thread could be started at all.
    pub fn start(&mut self, number: usize, prepared: J) -> io::Result<()> {
        if !self.is_own() {
            return Ok(()); // `next` reports it
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
                // The existing threads are enough.
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

    /// Waits for the next event of any run, and handles the host's pending interrupts meanwhile.
    /// `None` in a fork of the process that started the runs; host code may have forked.
    pub fn next(&mut self) -> Result<Option<Told<J>>, Wants> {
        self.next_beside(&mut NothingAside)
    }

    /// The same, and serves something else meanwhile.
    pub fn next_beside(&mut self, aside: &mut dyn Aside) -> Result<Option<Told<J>>, Wants> {
        while self.is_own() {
            if let Ok((number, event)) = self.events.try_recv() {
                if let Event::Output(_, chunk) = &event {
                    self.shared.take_off(chunk.len());
                }
                return Ok(Some((number, event)));
            }
            let mut fds = vec![PollFd::new(self.bell.as_fd(), PollFlags::POLLIN)];
            if let Some((descriptor, events)) = aside.interest() {
                fds.push(PollFd::new(descriptor, events));
            }
            let _ = poll(&mut fds, PollTimeout::from(LOOK_AFTER_MS));
            let is_ready = |index: usize| fds.get(index).and_then(PollFd::any) == Some(true);
            let (rung, ready) = (is_ready(0), is_ready(1));
            if rung {
                // Reads the bytes of several events together; the loop finds them all.
                let _ = read(&self.bell, &mut [0; 64]);
            }
            aside.look();
            if ready {
                aside.serve()?;
            }
            host::interrupts()?;
        }
        Ok(None)
    }

    /// Tells all runs to end, without waiting.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Ends all runs, and waits for them.
    pub fn end(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if !self.is_own() {
            // A fork does not have these threads, and one of them may have held a lock or been
            // sending.
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

impl<J: Job> Drop for Crew<J> {
    fn drop(&mut self) {
        self.end();
    }
}
