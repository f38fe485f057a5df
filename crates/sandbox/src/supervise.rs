//! Supervises a process to its end: its output, its channel and its deadline.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::Refusal;
use crate::buffer::Buffer;
use crate::channel::{Channel, Outgoing};
use crate::child::{Child, KEEPER_PATIENCE, Status};
use crate::exiting::Exiting;
use crate::input::Input;
use crate::limits::{LOOK_AFTER, LOOK_AFTER_MAX};
use crate::output::{Captured, Read, Stream, Tap};
use crate::precise_timers::PreciseTimers;
use crate::seccomp::{Answerer, Listener, Requests, Shared};
use crate::template::{ForkedProcess, Template};
use crate::view::Layer;

/// How to supervise a process.
#[derive(Debug)]
pub struct Supervision {
    /// The time by which the process must have ended.
    pub deadline: Instant,
    /// The number of the signal sent to the process at the deadline so that it can report. With
    /// `None` it is killed at once.
    pub stop_signal: Option<i32>,
    /// Time between the stop signal and the forced end of all its processes.
    pub grace: Duration,
    /// Bytes kept from the head of each stream. The rest is read and counted.
    pub output_limit: usize,
    /// Packets to send to the process over the channel, in order, as fast as it reads them. Each
    /// should fit the socket's buffer (`net.core.wmem_max`, 208 KiB by default). If one cannot be
    /// sent, it and all later ones are dropped.
    pub outbox: Vec<Vec<u8>>,
    /// The host's end of the channel ([`channel_pair`](crate::channel_pair)).
    pub channel: Option<OwnedFd>,
    /// The longest time without output; after it, the process is ended as at the deadline.
    pub idle: Option<Duration>,
    /// What the process reads from its standard input.
    pub input: Option<Input>,
    /// Whether the fork of a template need not have ended: its run is over once the observer has
    /// heard everything ([`Observer::has_heard_all`]) and only the kernel's work on the process is
    /// left. Its memory is freed, and its descriptors are closed, a moment later. A process with
    /// other threads, and one whose status may not be read, is waited for in any case.
    pub leaves_end: bool,
    /// For how long, from its start, the supervising thread looks at intervals for what comes, instead of
    /// being woken by it. The process need not wake it then, which takes a tenth of a short run, and the
    /// kernel cannot wake it on the processor of the process, where one of them would have to wait. Not at all
    /// where others run beside it: it would take time from them.
    pub looks: Duration,
}

impl Supervision {
    /// Returns the moment `timeout` from now, or a year from now if the clock cannot represent it.
    #[must_use]
    pub fn deadline_after(timeout: Duration) -> Instant {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        let now = Instant::now();
        now.checked_add(timeout).unwrap_or_else(|| now + YEAR)
    }
}

/// Watches a process while it runs. The supervising thread makes all calls.
pub trait Observer {
    /// Takes a chunk of output as it is read. `Break` ends the process.
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()>;

    /// Takes one packet from the channel.
    fn packet(&mut self, packet: &[u8]);

    /// Takes a system call that the process's filter refused. Only calls that matter to a user are
    /// reported, and repeated ones may be left out.
    fn refused(&mut self, refusal: Refusal) {
        let _ = refusal;
    }

    /// Called after every wake-up, a signal to the host included, and at least every 100 ms.
    /// `Break` ends the process.
    fn tick(&mut self) -> ControlFlow<()>;

    /// Whether the process has nothing more to say.
    fn has_heard_all(&self) -> bool {
        false
    }

    /// Whether the template is ready. Asked after every packet.
    fn is_ready(&self) -> bool {
        false
    }

    /// A signal number to send to the process.
    fn signal(&mut self) -> Option<i32> {
        None
    }
}

/// How a supervised process ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code or signal.
    pub status: Status,
    /// The deadline had passed when its end was seen, whatever the status.
    pub timed_out: bool,
    /// Whether it was silent too long ([`Supervision::idle`]) before the deadline.
    pub idled: bool,
    /// The observer ended it.
    pub interrupted: bool,
    /// It did not take everything that was to be sent to it.
    pub undelivered: bool,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// What it wrote to its project, if that went to a layer.
    pub layer: Option<Layer>,
    /// Time from its start until it and every process that it started had ended.
    pub elapsed: Duration,
}

/// When a process is looked at first ([`Supervision::looks`]): the shortest runs take a little longer.
const FIRST_LOOK: Duration = Duration::from_micros(60);

/// The time between two looks from then on. A virtual timer adds about as much again. A much shorter one
/// ends before the thread sleeps.
const BETWEEN_LOOKS: Duration = Duration::from_micros(15);

/// The longest time between two calls of [`Observer::tick`].
const TICK: Duration = Duration::from_millis(100);

/// Bytes read at a time: what a pipe holds by default (pipe(7)).
const READ_BYTES: usize = 64 * 1024;

impl Child {
    /// Runs the process to its end. When this returns, the process and everything that it
    /// started are gone, and the host's resources for it are released.
    ///
    /// A stream is read until the processes have ended, not until every copy of the pipe is
    /// closed.
    pub fn supervise(self, supervision: Supervision, observer: &mut dyn Observer) -> Ended {
        let mut run = SupervisedRun::new(self, supervision);
        while !run.step(observer) {}
        run.ended(observer)
    }

    /// Runs a template until [`Observer::is_ready`] returns true, or until it ends.
    pub fn make_ready(self, supervision: Supervision, observer: &mut dyn Observer) -> MadeReady {
        let mut run = SupervisedRun::new(self, supervision);
        while !observer.is_ready() {
            if run.step(observer) {
                return MadeReady::Ended(run.ended(observer));
            }
        }
        run.drain_streams(observer);
        let SupervisedRun {
            mut child,
            taps,
            channel,
            listener,
            ..
        } = run;
        let [stdout, stderr] = captured(taps);
        let listener = match listener {
            Some(Ear::Own(listener)) => Shared::new(listener),
            Some(Ear::Shared | Ear::Handler(_)) | None => None,
        };
        let layer = child.take_layer();
        match channel.into_socket() {
            Some(control) => MadeReady::Ready(Ready {
                template: Template::new(child, control, listener),
                stdout,
                stderr,
                layer,
            }),
            // It has closed its end of the channel. Dropping the child here ends it.
            None => MadeReady::Ended(Ended {
                status: Status::Signalled(nix::libc::SIGKILL),
                timed_out: false,
                idled: false,
                interrupted: false,
                undelivered: false,
                stdout,
                stderr,
                layer,
                elapsed: child.started().elapsed(),
            }),
        }
    }
}

/// The outcome of [`Child::make_ready`].
#[derive(Debug)]
pub enum MadeReady {
    /// It can fork on request.
    Ready(Ready),
    /// It ended by itself or was ended.
    Ended(Ended),
}

/// A template that is ready.
#[derive(Debug)]
pub struct Ready {
    /// The template.
    pub template: Template,
    /// What it wrote to standard output while it got ready. Later output is lost.
    pub stdout: Captured,
    /// What it wrote to standard error while it got ready.
    pub stderr: Captured,
    /// What it wrote to its project, if that went to a layer.
    pub layer: Option<Layer>,
}

fn captured(taps: Vec<Tap>) -> [Captured; 2] {
    let mut captured = taps.into_iter().map(|tap| tap.captured);
    [
        captured.next().unwrap_or_default(),
        captured.next().unwrap_or_default(),
    ]
}

/// The listener that answers the process's filter.
enum Ear {
    /// The process handed over a listener of its own.
    Own(Listener),
    /// The process is a fork and shares its template's listener.
    Shared,
    /// The process has a handler of its own, and a thread answers its requests.
    Handler(Requests),
}

/// How far the end of a process has progressed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It may run until its deadline.
    Running,
    /// It got the stop signal and has until this time.
    Stopping(Instant),
    /// The keeper was told to end everything and has until this time.
    Ending(Instant),
    /// The keeper itself was killed.
    Killed,
}

/// What one poll found.
struct Polled {
    ended: bool,
    taps: [bool; 2],
    channel: PollFlags,
    listener: PollFlags,
    input: bool,
    /// The keeper of a command says something, or has closed the lifeline.
    verdict: bool,
}

pub(crate) struct SupervisedRun {
    child: Child,
    taps: Vec<Tap>,
    channel: Channel,
    /// Set once the listener has been handed over.
    listener: Option<Ear>,
    buffer: Buffer,
    deadline: Instant,
    idle: Option<Duration>,
    last_output: Instant,
    input: Option<Input>,
    stop_signal: Option<i32>,
    grace: Duration,
    stage: Stage,
    timed_out: bool,
    idled: bool,
    interrupted: bool,
    leaves_end: bool,
    began: Instant,
    /// Whether it is looked at in the beginning, as the only run under way is where there is more than one processor.
    is_alone: bool,
    /// Until when it is.
    looks_until: Instant,
    /// How a fork that may be left ends.
    exiting: Option<Exiting>,
    /// When to check the process's file locks next, and the interval after that.
    look_at: Instant,
    look_after: Duration,
}

impl SupervisedRun {
    pub(crate) fn new(mut child: Child, supervision: Supervision) -> Self {
        let limit = supervision.output_limit;
        let taps = child.take_streams().map(|streams| {
            let stdout = Tap::new(Stream::Stdout, streams.stdout, limit);
            let stderr = streams
                .stderr
                .map(|pipe| Tap::new(Stream::Stderr, pipe, limit));
            [Some(stdout), stderr].into_iter().flatten()
        });
        let is_fork = child.fork().is_some();
        let shared = child.fork().and_then(ForkedProcess::listener).is_some();
        let own = child.take_listener().map(Ear::Own);
        Self {
            listener: own.or(shared.then_some(Ear::Shared)),
            taps: taps.into_iter().flatten().collect(),
            channel: Channel::new(supervision.channel, supervision.outbox, is_fork),
            child,
            buffer: Buffer::new(READ_BYTES),
            deadline: supervision.deadline,
            idle: supervision.idle,
            last_output: Instant::now(),
            input: supervision.input,
            stop_signal: supervision.stop_signal,
            grace: supervision.grace,
            stage: Stage::Running,
            timed_out: false,
            idled: false,
            interrupted: false,
            leaves_end: supervision.leaves_end && is_fork,
            began: Instant::now(),
            is_alone: !supervision.looks.is_zero(),
            looks_until: Instant::now() + supervision.looks,
            exiting: None,
            look_at: Instant::now() + LOOK_AFTER,
            look_after: LOOK_AFTER,
        }
    }

    /// Gives the process a job: packets to send, and the time by which it must be done.
    pub(crate) fn give(&mut self, job: Vec<Outgoing>, deadline: Instant) {
        self.channel.give(job);
        self.deadline = deadline;
    }

    /// The process has no job until it is given one: it has until `deadline`.
    pub(crate) fn rest(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub(crate) fn child(&self) -> &Child {
        &self.child
    }

    /// Whether packets wait to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.channel.has_unsent()
    }

    /// Whether the observer has ended the process.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether the process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        !self.child.is_running()
    }

    /// Tells the process that nothing more comes. It has until `deadline` to end.
    pub(crate) fn close(&mut self, deadline: Instant) {
        self.channel.close();
        self.deadline = deadline;
    }

    /// Waits for the next event and handles it. Returns whether the process has ended.
    pub(crate) fn step(&mut self, observer: &mut dyn Observer) -> bool {
        self.advance(Instant::now());
        if self.leaves_end
            && self.exiting.is_none()
            && let Some(fork) = self.child.fork()
        {
            // While it works, and the host waits.
            self.exiting = Some(Exiting::of(fork, self.is_alone));
        }
        if self.leaves_end && observer.has_heard_all() && self.expect_exit() {
            // What it has left behind is read by whoever collects it.
            return true;
        }
        let ready = self.wait();
        if ready.ended || ready.verdict && self.child.hear_verdict() {
            return true;
        }
        self.serve(&ready, observer);
        self.look(observer);
        if let Some(signal) = observer.signal() {
            self.child.ask(signal);
        }
        if !self.interrupted && observer.tick().is_break() {
            self.interrupt();
        }
        !self.interrupted && self.is_exiting()
    }

    /// Notes that the fork has nothing more to say. Returns whether it is known to exit already.
    fn expect_exit(&mut self) -> bool {
        let Some((exiting, fork)) = self.exiting.as_mut().zip(self.child.fork()) else {
            return false;
        };
        if !exiting.has_begun() {
            exiting.begin(fork);
        }
        exiting.status().is_some() && !self.interrupted
    }

    /// Whether the fork is known to exit, with what status.
    fn is_exiting(&mut self) -> bool {
        let Some((exiting, fork)) = self.exiting.as_mut().zip(self.child.fork()) else {
            return false;
        };
        if exiting.has_begun() {
            exiting.look(fork);
        }
        exiting.status().is_some()
    }

    /// Checks resources that no kernel limit bounds, and kills the process if it has too many.
    fn look(&mut self, observer: &mut dyn Observer) {
        let now = Instant::now();
        if now < self.look_at || matches!(self.stage, Stage::Ending(_) | Stage::Killed) {
            return;
        }
        if let Some(most) = self.child.too_many_locks() {
            observer.refused(Refusal::FileLock { most });
            self.child.ask(nix::libc::SIGKILL);
        }
        // If the host may not inspect the process, counting makes the kernel hold up all file locks
        // on the machine. So the checks become rarer.
        self.look_after = (2 * self.look_after).min(LOOK_AFTER_MAX);
        self.look_at = Instant::now() + self.look_after;
    }

    /// Collects the process after its end.
    pub(crate) fn ended(mut self, observer: &mut dyn Observer) -> Ended {
        let ended_at = Instant::now();
        self.timed_out |= ended_at >= self.deadline;
        let elapsed = ended_at.saturating_duration_since(self.child.started());
        if let Some(Ear::Own(listener)) = &self.listener {
            listener.tell_rest(&mut |refusal| observer.refused(refusal));
        }
        self.tell_refused(observer);
        let status = match self.exiting.as_ref().and_then(Exiting::status) {
            Some(status) => {
                self.child.forget();
                status
            }
            None => self.child.collect(),
        };
        self.child.release_mounts();
        self.drain(observer);
        if let Some(forked) = self.child.fork()
            && let Some(shared) = forked.listener()
        {
            for refusal in shared.take(forked.id()) {
                observer.refused(refusal);
            }
        }
        let layer = self.child.take_layer();
        let [stdout, stderr] = captured(self.taps);
        Ended {
            status,
            timed_out: self.timed_out,
            idled: self.idled,
            interrupted: self.interrupted,
            undelivered: self.channel.is_broken(),
            stdout,
            stderr,
            layer,
            elapsed,
        }
    }

    /// Takes the next step towards the end if it is due.
    fn advance(&mut self, now: Instant) {
        self.timed_out |= now >= self.deadline;
        let due = self.due();
        match self.stage {
            Stage::Running if now >= due => {
                self.idled = !self.timed_out;
                self.stop(now);
            }
            Stage::Stopping(until) if now >= until => self.end(now),
            Stage::Ending(until) if now >= until => {
                self.child.kill();
                self.stage = Stage::Killed;
            }
            Stage::Running | Stage::Stopping(_) | Stage::Ending(_) | Stage::Killed => {}
        }
    }

    /// When the process has to have ended, as far as is known now.
    fn due(&self) -> Instant {
        let silent = self
            .idle
            .and_then(|idle| self.last_output.checked_add(idle));
        silent.map_or(self.deadline, |silent| silent.min(self.deadline))
    }

    /// Asks the process to end, or ends it.
    fn stop(&mut self, now: Instant) {
        match self.stop_signal {
            Some(signal) => {
                self.child.ask(signal);
                self.stage = Stage::Stopping(now + self.grace);
            }
            None => self.end(now),
        }
    }

    fn end(&mut self, now: Instant) {
        self.child.end();
        self.stage = Stage::Ending(now + KEEPER_PATIENCE);
    }

    /// Ends the process because the observer asked for it.
    fn interrupt(&mut self) {
        self.interrupted = true;
        if matches!(self.stage, Stage::Running | Stage::Stopping(_)) {
            self.end(Instant::now());
        }
    }

    /// Whether the process is looked at now, at intervals. One that has nothing more to say is looked at
    /// by [`Exiting`].
    fn looks(&self, now: Instant) -> bool {
        now < self.looks_until && !self.exiting.as_ref().is_some_and(Exiting::has_begun)
    }

    /// Polls for at most `timeout`. As long as the process is looked at, nothing wakes the thread.
    fn poll(&self, fds: &mut [PollFd<'_>], timeout: Duration) -> nix::Result<i32> {
        let began = Instant::now();
        let until = began + timeout;
        let is_awaited = self.exiting.as_ref().is_some_and(Exiting::is_awaited);
        let _precise = (self.looks(began) || is_awaited).then(PreciseTimers::begin);
        loop {
            let now = Instant::now();
            let looks = now < until && self.looks(now);
            let left = match looks {
                true => Duration::ZERO,
                false => until.saturating_duration_since(now),
            };
            match ppoll(fds, Some(TimeSpec::from_duration(left)), None) {
                Ok(0) if looks => {
                    let first = (self.began + FIRST_LOOK).saturating_duration_since(now);
                    std::thread::sleep(first.max(BETWEEN_LOOKS));
                }
                polled => return polled,
            }
            // Time for a tick: a signal may have come while the thread slept.
            if !self.looks(Instant::now()) {
                return Ok(0);
            }
        }
    }

    /// Waits until a source is ready, a step is due or it is time for a tick.
    fn wait(&self) -> Polled {
        let due = match self.stage {
            Stage::Running => Some(self.due()),
            Stage::Stopping(until) | Stage::Ending(until) => Some(until),
            Stage::Killed => None,
        };
        let at_most = self
            .exiting
            .as_ref()
            .and_then(Exiting::look_again)
            .map_or(TICK, |look_again| look_again.min(TICK));
        let timeout = due.map_or(at_most, |due| {
            due.saturating_duration_since(Instant::now()).min(at_most)
        });
        let mut fds = vec![PollFd::new(self.child.pidfd(), PollFlags::POLLIN)];
        let mut places = [None; 2];
        let mut channel_place = None;
        let mut listener_place = None;
        let mut input_place = None;
        let mut verdict_place = None;
        // After `Break` only the end matters.
        if !self.interrupted {
            for (tap, place) in self.taps.iter().zip(&mut places) {
                if let Some(pipe) = tap.pipe() {
                    *place = Some(fds.len());
                    fds.push(PollFd::new(pipe, PollFlags::POLLIN));
                }
            }
            if let Some((socket, events)) = self.channel.interest() {
                channel_place = Some(fds.len());
                fds.push(PollFd::new(socket, events));
            }
            let interest = match &self.listener {
                Some(Ear::Own(listener)) => Some(listener.interest()),
                Some(Ear::Shared) => self.shared().map(Shared::interest),
                Some(Ear::Handler(_)) | None => None,
            };
            if let Some((socket, events)) = interest {
                listener_place = Some(fds.len());
                fds.push(PollFd::new(socket, events));
            }
            if let Some(input) = &self.input {
                input_place = Some(fds.len());
                fds.push(PollFd::new(input.pipe(), PollFlags::POLLOUT));
            }
        }
        // Once it was told to end everything, the lifeline is shut.
        if matches!(self.stage, Stage::Running | Stage::Stopping(_))
            && let Some(lifeline) = self.child.verdict_interest()
        {
            verdict_place = Some(fds.len());
            fds.push(PollFd::new(lifeline, PollFlags::POLLIN));
        }
        match self.poll(&mut fds, timeout) {
            // A chance to check what poll does not report.
            Ok(0) => drop(self.child.revive_keeper()),
            Ok(_) | Err(Errno::EINTR) => {}
            // ENOMEM, which passes. The deadline still applies.
            Err(_) => std::thread::yield_now(),
        }
        let found = |place: Option<usize>| {
            place
                .and_then(|place| fds.get(place))
                .and_then(PollFd::revents)
                .unwrap_or(PollFlags::empty())
        };
        Polled {
            ended: !found(Some(0)).is_empty(),
            taps: places.map(|place| !found(place).is_empty()),
            channel: found(channel_place),
            listener: found(listener_place),
            input: !found(input_place).is_empty(),
            verdict: !found(verdict_place).is_empty(),
        }
    }

    /// Does one bounded piece of work per source, so that none starves another or the deadline.
    fn serve(&mut self, ready: &Polled, observer: &mut dyn Observer) {
        for index in 0..self.taps.len() {
            if ready.taps.get(index) == Some(&true) {
                self.read(index, observer);
            }
        }
        if !self.interrupted && !ready.channel.is_empty() {
            self.channel
                .serve(ready.channel, &mut |packet| observer.packet(packet));
            if let Some(answerer) = self.channel.answerer() {
                self.listener = match answerer {
                    Answerer::Listener(socket) => self.child.listener(socket).map(Ear::Own),
                    Answerer::Handler(socket) => match self.child.requests(socket) {
                        Ok(requests) => Some(Ear::Handler(requests)),
                        Err(unserved) => {
                            observer.refused(unserved);
                            None
                        }
                    },
                };
            }
            if let Some(directory) = self.channel.layer() {
                self.child.has_layer(directory);
                if !self.leaves_end {
                    self.child.hold_mounts();
                }
            }
        }
        if !self.interrupted && !ready.listener.is_empty() {
            self.listen(ready.listener, observer);
        }
        self.tell_refused(observer);
        if ready.input && self.input.as_mut().is_some_and(Input::feed) {
            self.input = None;
        }
    }

    fn shared(&self) -> Option<&Shared> {
        self.child.fork().and_then(ForkedProcess::listener)
    }

    fn listen(&mut self, ready: PollFlags, observer: &mut dyn Observer) {
        match &mut self.listener {
            Some(Ear::Own(listener)) => {
                let is_served = listener.serve(ready, &mut |_, refusal| observer.refused(refusal));
                // No process is left behind the filter, or it cannot be served. Its calls fail
                // without the listener, too.
                if !is_served {
                    listener.tell_rest(&mut |refusal| observer.refused(refusal));
                    self.listener = None;
                }
            }
            Some(Ear::Shared) => {
                if let Some(shared) = self.shared() {
                    shared.serve(ready);
                }
            }
            Some(Ear::Handler(_)) | None => {}
        }
    }

    /// Tells of the connections that were refused after they were asked for.
    fn tell_refused(&self, observer: &mut dyn Observer) {
        match &self.listener {
            Some(Ear::Own(listener)) => {
                listener.tell_refused(&mut |_, refusal| observer.refused(refusal));
            }
            Some(Ear::Handler(requests)) => {
                for refusal in requests.take_refused() {
                    observer.refused(refusal);
                }
            }
            Some(Ear::Shared) | None => {}
        }
    }

    /// Reads one chunk of a stream and returns its length.
    fn read(&mut self, index: usize, observer: &mut dyn Observer) -> usize {
        let Some(tap) = self.taps.get_mut(index).filter(|_| !self.interrupted) else {
            return 0;
        };
        let Read::Bytes(count) = tap.read(&mut self.buffer) else {
            return 0;
        };
        let chunk = self.buffer.get(..count).unwrap_or_default();
        let flow = observer.output(tap.stream, chunk);
        // What a slow observer takes is no silence of the process, which may have waited for it.
        self.last_output = Instant::now();
        if flow.is_break() {
            self.interrupt();
        }
        count
    }

    /// Reads at most what the processes left in the pipes: a process outside may hold a copy of
    /// the write end and write to it forever.
    fn drain(&mut self, observer: &mut dyn Observer) {
        self.drain_streams(observer);
        if !self.interrupted {
            self.channel.drain(&mut |packet| observer.packet(packet));
            // The process had ended before its packet was seen.
            if let Some(directory) = self.channel.layer() {
                self.child.has_layer(directory);
            }
        }
    }

    pub(crate) fn drain_streams(&mut self, observer: &mut dyn Observer) {
        for index in 0..self.taps.len() {
            // Most have left nothing, so how much it can be is asked for later.
            let mut count = self.read(index, observer);
            let mut left = match count {
                0 => 0,
                _ => self.taps.get(index).map_or(0, Tap::capacity),
            };
            while count > 0 && left > count {
                left -= count;
                count = self.read(index, observer);
            }
        }
    }
}
