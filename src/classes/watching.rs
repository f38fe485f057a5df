//! A run on a thread of its own, and a way to wait for it that PHP can interrupt.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use altair_engine::{EvalError, EvalResult, Observer, Prepared};
use altair_sandbox::Stream;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::{pipe2, read, write};

use crate::zend::host::{self, Wants};

/// How long a wait lasts at most before the host's own code is looked after, in milliseconds:
/// with more than one thread in the host a signal may have interrupted another one.
const LOOK_AFTER_MS: u16 = 100;

/// What the thread tells.
enum Event {
    Output(Stream, Vec<u8>),
    Done(Box<Result<EvalResult, EvalError>>),
}

/// What is done with a piece of output.
type OnOutput<'a> = dyn FnMut(Stream, &[u8]) -> Result<(), Wants> + 'a;

/// A run that is under way on a thread. Dropping it ends the run.
pub struct Watched {
    events: Receiver<Event>,
    /// Has a byte in it for each event that waits.
    bell: OwnedFd,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The process that started it. In a fork there is no such thread.
    owner: u32,
}

struct Teller {
    events: Sender<Event>,
    bell: OwnedFd,
    cancelled: Arc<AtomicBool>,
    tells_output: bool,
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
        if self.tells_output {
            self.tell(Event::Output(stream, chunk.to_vec()));
        }
        self.tick()
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl Watched {
    /// Starts a run.
    pub fn start(prepared: Prepared, tells_output: bool) -> io::Result<Self> {
        let (bell, ringer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let (sender, events) = channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut teller = Teller {
            events: sender,
            bell: ringer,
            cancelled: Arc::clone(&cancelled),
            tells_output,
        };
        // The host's signal handlers are PHP's: none of them may run on this thread, which
        // inherits the mask it is started under.
        let mut before = SigSet::empty();
        pthread_sigmask(
            SigmaskHow::SIG_SETMASK,
            Some(&SigSet::all()),
            Some(&mut before),
        )?;
        let thread = std::thread::Builder::new()
            .name("altair-eval".into())
            .spawn(move || {
                let result = prepared.run(&mut teller);
                teller.tell(Event::Done(Box::new(result)));
            });
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        Ok(Self {
            events,
            bell,
            cancelled,
            thread: Some(thread?),
            owner: std::process::id(),
        })
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
                Ok(Event::Output(stream, chunk)) => on_output(stream, &chunk)?,
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
        self.cancelled.store(true, Ordering::Relaxed);
        match self.thread.take() {
            Some(thread) if self.owner == std::process::id() => {
                let _ = thread.join();
            }
            // A fork has no such thread to wait for.
            thread => std::mem::forget(thread),
        }
    }
}
