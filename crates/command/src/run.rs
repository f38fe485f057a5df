//! Runs a command to its end.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use altair_engine::{Observer, blocked};
use altair_sandbox::{
    Child, Ended, GuardState, Input, Launch, Policy, Refusal, Role, Status, Stdio, Stream,
    Supervision,
};
use nix::sys::signal::Signal;

use crate::capture::Tail;
use crate::layer::PendingLayer;
use crate::outcome::exit_codes;
use crate::sight::Sight;
use crate::start::Started;
use crate::{CommandError, ExecutionPolicy, Outcome, Prepared, Signals, TimeoutReason, WorkDir};

/// Time between the request to end and the forced end.
const GRACE: Duration = Duration::from_millis(100);
/// How long a container may take to be removed.
const CLEANUP_PATIENCE: Duration = Duration::from_secs(10);

/// A command that runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) input: Option<Input>,
    /// When it was started.
    pub(crate) started: Instant,
    /// When its layer was begun, by the clock of file times; `None` without a layer.
    pub(crate) since: Option<Duration>,
    /// The directories that have a layer.
    pub(crate) layered: Vec<PathBuf>,
    /// The guards that are not fully in force.
    pub(crate) guards: Vec<(&'static str, GuardState)>,
    /// Removes what outlives the driver's program.
    pub(crate) cleanup: Option<Cleanup>,
    /// Holds the layer, if that is on disk.
    pub(crate) store: Option<WorkDir>,
    /// What it may have missed.
    pub(crate) sight: Option<Sight>,
    /// Whether its output and its errors are one.
    pub(crate) has_terminal: bool,
    /// Removed last.
    pub(crate) _work_dir: Option<WorkDir>,
}

/// How the changes in a layer are listed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing {
    /// With diffs.
    pub(crate) diff: bool,
    /// The most of them.
    pub(crate) at_most: usize,
}

/// A command that removes a container.
pub(crate) struct Cleanup {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
}

impl Prepared {
    /// When its time is over if it starts now.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        deadline(&self.0.policy)
    }

    /// Runs the command to its end. `observer` gets its output as it comes, also what the caps drop.
    ///
    /// # Errors
    /// [`CommandError::Start`] if the driver could not be started, [`CommandError::Invalid`] if the
    /// policy's paths cannot be used, and [`CommandError::Interrupted`] if the observer ended it.
    pub fn run(
        self,
        observer: &mut dyn Observer,
        signals: Option<Signals>,
    ) -> Result<Outcome, CommandError> {
        let Self(command) = self;
        let policy = command.policy.clone();
        let listing = Listing {
            diff: command.diff,
            at_most: command.listed,
        };
        match command.start()? {
            Started::Running(running) => running.finish(&policy, listing, observer, signals),
            Started::Not(outcome) => Ok(*outcome),
        }
    }
}

impl Running {
    /// A command without a directory, a layer or anything that outlives it.
    pub(crate) fn new(child: Child, input: Option<Input>, started: Instant) -> Self {
        Self {
            child,
            input,
            started,
            since: None,
            layered: Vec::new(),
            guards: Vec::new(),
            cleanup: None,
            store: None,
            sight: None,
            has_terminal: false,
            _work_dir: None,
        }
    }

    /// Supervises it to its end.
    pub(crate) fn finish(
        self,
        policy: &ExecutionPolicy,
        listing: Listing,
        observer: &mut dyn Observer,
        signals: Option<Signals>,
    ) -> Result<Outcome, CommandError> {
        let Self {
            child,
            input,
            started,
            since,
            layered,
            guards,
            cleanup,
            store,
            sight,
            has_terminal,
            _work_dir,
        } = self;
        let mut watch = Watch {
            observer,
            signals,
            stdout: Tail::new(policy.stdout_limit_bytes),
            stderr: Tail::new(policy.stderr_limit_bytes),
            refused: Vec::new(),
        };
        let supervision = Supervision {
            deadline: deadline_after(started, policy.timeout_seconds),
            stop_signal: Some(Signal::SIGTERM as i32),
            grace: GRACE,
            output_limit: 0,
            outbox: Vec::new(),
            channel: None,
            idle: policy.idle_timeout_seconds.map(Duration::from_secs),
            input,
            leaves_end: false,
            looks: Duration::ZERO,
        };
        let ended = child.supervise(supervision, &mut watch);
        if let Some(cleanup) = cleanup.filter(|_| !has_ended_by_itself(&ended)) {
            cleanup.run();
        }
        if ended.interrupted {
            return Err(CommandError::Interrupted);
        }
        let duration = started.elapsed();
        let timeout = match (ended.timed_out, ended.idled) {
            (_, true) => Some(TimeoutReason::Idle),
            (true, false) => Some(TimeoutReason::Wall),
            (false, false) => None,
        };
        let Watch {
            stdout,
            stderr,
            refused,
            ..
        } = watch;
        let (stdout, truncated_stdout) = stdout.into_bytes();
        let (stderr, truncated_stderr) = stderr.into_bytes();
        let layer = ended.layer.zip(since);
        let layer =
            layer.map(|(layer, since)| PendingLayer::new(layer, since, listing.at_most, store));
        let exit_code = exit_code(ended.status, timeout);
        let project = policy.project_of_services();
        let mut blocked =
            blocked::of_command(&refused, project.map(|project| project.root.as_path()));
        if let Some(sight) = sight {
            let failed = exit_code != 0;
            let errors: &[&[u8]] = match (has_terminal, failed) {
                (true, true) => &[&stdout, &stderr],
                (true, false) => &[],
                (false, _) => &[&stderr],
            };
            blocked.extend(sight.told(failed, errors));
        }
        Ok(Outcome {
            stdout,
            stderr,
            truncated_stdout,
            truncated_stderr,
            exit_code,
            started: true,
            duration,
            timeout,
            blocked,
            guards,
            changes: layer
                .as_ref()
                .map(|layer| layer.changes(&layered, listing.diff)),
            layer,
        })
    }
}

fn has_ended_by_itself(ended: &Ended) -> bool {
    !ended.timed_out
        && !ended.idled
        && !ended.interrupted
        && matches!(ended.status, Status::Exited(_))
}

pub(crate) fn deadline_after(started: Instant, seconds: Option<u64>) -> Instant {
    match seconds.and_then(|seconds| started.checked_add(Duration::from_secs(seconds))) {
        Some(deadline) => deadline,
        None => Supervision::deadline_after(Duration::MAX),
    }
}

fn deadline(policy: &ExecutionPolicy) -> Instant {
    deadline_after(Instant::now(), policy.timeout_seconds)
}

fn exit_code(status: Status, timeout: Option<TimeoutReason>) -> i32 {
    match status {
        _ if timeout.is_some() => exit_codes::TIMEOUT,
        Status::Exited(code) => code,
        Status::Signalled(signal) => exit_codes::SIGNAL_BASE + signal,
    }
}

impl Cleanup {
    fn run(self) {
        let launch = Launch {
            program: self.program,
            name: None,
            args: self.args,
            env: self.env,
            cwd: "/".into(),
            channel: None,
            stdio: Stdio::Captured { input: None },
            policy: Policy::unconfined(),
            role: Role::Command,
        };
        // A container that is gone already is no error.
        let _ = altair_sandbox::run(launch, CLEANUP_PATIENCE, 0);
    }
}

/// Watches a command for its caller.
struct Watch<'a> {
    observer: &'a mut dyn Observer,
    signals: Option<Signals>,
    stdout: Tail,
    stderr: Tail,
    refused: Vec<Refusal>,
}

impl altair_sandbox::Observer for Watch<'_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        match stream {
            Stream::Stdout => self.stdout.push(chunk),
            Stream::Stderr => self.stderr.push(chunk),
        }
        self.observer.output(stream, chunk)
    }

    fn packet(&mut self, _: &[u8]) {}

    fn refused(&mut self, refusal: Refusal) {
        blocked::keep_refusal(&mut self.refused, refusal);
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.observer.tick()
    }

    fn signal(&mut self) -> Option<i32> {
        self.signals.as_mut().and_then(|signals| signals())
    }
}
