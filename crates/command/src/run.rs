//! Runs a command to its end.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use altair_engine::{Observer, blocked, php_binary};
use altair_sandbox::{
    Child, Ended, Input, Launch, Limits, Place, Policy, Pseudoterminal, Refusal, Role, RunAs,
    SpawnError, Status, Stdio, Stream, Supervision,
};
use nix::sys::signal::Signal;

use crate::capture::Tail;
use crate::drivers::bubblewrap::Bubblewrap;
use crate::drivers::container::{self, Container, Engine};
use crate::drivers::{Invocation, Order, firejail};
use crate::layer::{PendingLayer, beginning};
use crate::native::{self, Level, Native, Workplace};
use crate::outcome::exit_codes;
use crate::{
    CommandError, Driver, ExecutionPolicy, Outcome, PolicyPaths, TimeoutReason, WorkDir, binary,
    environment, work_dir, writable_mounts,
};

/// Time between the request to end and the forced end.
const GRACE: Duration = Duration::from_millis(100);
/// How long a container may take to be removed.
const CLEANUP_PATIENCE: Duration = Duration::from_secs(10);
/// Where programs are looked for if the command has no `PATH`, as the C library does (confstr(3),
/// `_CS_PATH`) and with the local programs besides.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A driver, and what its constructor takes.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The driver.
    pub driver: Driver,
    /// Its program, if another one than the usual.
    pub binary: Option<OsString>,
    /// The image of containers.
    pub image: Option<String>,
}

/// What a command reads from its standard input.
#[derive(Debug)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// What comes over this descriptor.
    Descriptor(OwnedFd),
}

/// Where a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorksIn {
    /// A fresh directory below the policy's base directory, which is gone afterwards; with the
    /// driver `host`, the base directory itself.
    Own,
    /// The policy's base directory itself. Only for the drivers `host` and `native`.
    Base,
}

/// A command, and everything that decides how it runs.
#[derive(Debug)]
pub struct Command {
    /// What enforces the policy.
    pub sandbox: Sandbox,
    /// The policy.
    pub policy: ExecutionPolicy,
    /// Where it works.
    pub works_in: WorksIn,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its standard input.
    pub stdin: Stdin,
    /// A terminal for all its standard streams, instead of `stdin`: only for `host` and `native`.
    pub terminal: Option<Pseudoterminal>,
    /// The caller's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the changes in a layer are listed with diffs.
    pub diff: bool,
}

/// Sends a command the signals that its caller got.
pub type Signals = Box<dyn FnMut() -> Option<i32> + Send>;

/// A command that is checked and can be run, on any thread.
#[derive(Debug)]
pub struct Prepared(Command);

impl Command {
    /// Checks it.
    ///
    /// # Errors
    /// [`CommandError::Invalid`]: what is wrong with the command or the policy, in a sentence.
    pub fn prepare(self) -> Result<Prepared, CommandError> {
        let invalid = |what: &str| Err(CommandError::Invalid(what.to_owned()));
        if self.argv.is_empty() {
            return invalid("The command is empty: it needs at least a program.");
        }
        if self.argv.first().is_some_and(|program| program.is_empty()) {
            return invalid("The name of the program is empty.");
        }
        if let Some(index) = self
            .argv
            .iter()
            .position(|word| word.as_bytes().contains(&0))
        {
            return invalid(&format!(
                "Argument {index} of the command holds a NUL byte, which no argument can."
            ));
        }
        let driver = self.sandbox.driver;
        if driver != Driver::Native
            && !(self.policy.layers.is_empty() && self.policy.services.is_empty())
        {
            return invalid(&format!(
                "The driver {} supports neither layers nor services. Use native.",
                driver.name()
            ));
        }
        let is_text = |text: &OsString| text.to_str().is_some();
        let env = self.policy.env.iter();
        if driver == Driver::Docker
            && !(self.argv.iter().all(is_text)
                && env.flat_map(|(name, value)| [name, value]).all(is_text))
        {
            // Its client would put other characters in their place (JSON).
            return invalid("Docker can pass only UTF-8 on, in arguments and variables.");
        }
        if self.policy.env.iter().any(|(name, value)| {
            name.is_empty()
                || name.as_bytes().iter().any(|byte| b"=\0".contains(byte))
                || value.as_bytes().contains(&0)
        }) {
            return invalid(
                "A variable's name is empty or has an equals sign or a NUL byte, or its value has a NUL byte.",
            );
        }
        work_dir::base_directory(&self.policy.base_dir)?;
        Ok(Prepared(self))
    }
}

/// A command that runs.
struct Running {
    child: Child,
    input: Option<Input>,
    /// When it was started.
    started: Instant,
    since: Option<Duration>,
    layered: Vec<PathBuf>,
    guards: Vec<(&'static str, altair_sandbox::GuardState)>,
    /// Removes what outlives the driver's program.
    cleanup: Option<Cleanup>,
    /// Holds the layer, if that is on disk.
    store: Option<WorkDir>,
    /// Removed last.
    _work_dirs: Vec<WorkDir>,
}

/// A command that removes a container.
struct Cleanup {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

/// A command that runs, or the outcome of one that did not start.
enum Started {
    Running(Box<Running>),
    Not(Box<Outcome>),
}

impl Prepared {
    /// The directory that a policy names and that can hold a command's own one was checked; a
    /// deadline for waiting on the command.
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
        let diff = command.diff;
        match command.start()? {
            Started::Running(running) => running.finish(&policy, diff, observer, signals),
            Started::Not(outcome) => Ok(*outcome),
        }
    }
}

impl Running {
    fn finish(
        self,
        policy: &ExecutionPolicy,
        diff: bool,
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
            _work_dirs,
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
        let layer = layer.map(|(layer, since)| PendingLayer::new(layer, since, store));
        Ok(Outcome {
            stdout,
            stderr,
            truncated_stdout,
            truncated_stderr,
            exit_code: exit_code(ended.status, timeout),
            started: true,
            duration,
            timeout,
            blocked: blocked::of_command(&refused),
            guards,
            changes: layer.as_ref().map(|layer| layer.changes(&layered, diff)),
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

fn deadline_after(started: Instant, seconds: Option<u64>) -> Instant {
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

impl Command {
    fn start(self) -> Result<Started, CommandError> {
        match self.sandbox.driver {
            Driver::Host => self.start_on_host(),
            Driver::Native => self.start_native(false),
            Driver::Docker | Driver::Podman | Driver::Firejail | Driver::Bubblewrap => {
                self.start_driver()
            }
        }
    }

    /// The command's own environment.
    fn own_environment(&self) -> Vec<(OsString, OsString)> {
        environment(&self.policy, &self.environment)
    }

    /// The streams of the process, and what the host feeds it.
    fn stdio(
        stdin: Stdin,
        terminal: Option<Pseudoterminal>,
    ) -> Result<(Stdio, Option<Input>), CommandError> {
        if let Some(terminal) = terminal {
            return Ok((Stdio::Terminal(terminal), None));
        }
        let (input, feed) = match stdin {
            Stdin::Empty => (None, None),
            Stdin::Descriptor(descriptor) => (Some(descriptor), None),
            Stdin::Bytes(bytes) => {
                let (feed, theirs) = Input::new(bytes).map_err(|error| {
                    CommandError::Start(format!(
                        "No pipe could be made for standard input: {error}"
                    ))
                })?;
                (Some(theirs), Some(feed))
            }
        };
        Ok((Stdio::Captured { input }, feed))
    }

    fn start_on_host(self) -> Result<Started, CommandError> {
        let started = Instant::now();
        let env = self.own_environment();
        let cwd = work_dir::base_directory(&self.policy.base_dir)?;
        let refused = |code: i32, why: &str| {
            let why = format!("Failed to start host process: {why}");
            Started::Not(Box::new(Outcome::not_started(code, why, started.elapsed())))
        };
        let not_found = |why: &str| refused(exit_codes::COMMAND_NOT_FOUND, why);
        let Some((name, args)) = self.argv.split_first() else {
            return Ok(not_found("the command is empty"));
        };
        let path = search_path(&env, &self.environment);
        let Some(program) = find(name, &path, &cwd) else {
            return Ok(not_found(&format!("{} was not found", name.display())));
        };
        let memory = match self.policy.memory {
            crate::Memory::Megabytes(_) => self.policy.memory.bytes(),
            crate::Memory::Default | crate::Memory::Unlimited => None,
        };
        let (stdio, input) = Self::stdio(self.stdin, self.terminal)?;
        let launch = Launch {
            program,
            name: Some(name.clone()),
            args: args.to_vec(),
            env,
            cwd,
            channel: None,
            stdio,
            policy: Policy {
                limits: Limits {
                    data_bytes: memory,
                    ..Limits::default()
                },
                ..Policy::unconfined()
            },
            role: Role::Command,
        };
        match launch.spawn() {
            Ok(child) => Ok(Running::of(child, input, started)),
            Err(error @ (SpawnError::NotExecutable { .. } | SpawnError::NotAProgram { .. })) => {
                Ok(refused(exit_codes::NOT_EXECUTABLE, &error.to_string()))
            }
            Err(error) => Ok(not_found(&error.to_string())),
        }
    }

    fn start_driver(self) -> Result<Started, CommandError> {
        let started = Instant::now();
        let driver = self.sandbox.driver;
        let program = binary::find(driver, self.sandbox.binary.as_deref(), &self.environment)?;
        let name = driver.program().map_or("driver", |(name, _)| name);
        let failed = || CommandError::Start(format!("Failed to start {name}"));
        let program = program.ok_or_else(failed)?;
        let work_dir = WorkDir::create(&self.policy.base_dir, driver)?;
        let paths = PolicyPaths::resolve(&self.policy, driver);
        let env = self.own_environment();
        let mounts = writable_mounts().unwrap_or_default();
        let order = Order {
            program: &program,
            argv: &self.argv,
            env: &env,
            work_dir: work_dir.path(),
            seen_at: &work_dir::seen_at(driver, work_dir.path(), &paths),
            policy: &self.policy,
            paths: &paths,
            mounts: &mounts,
            has_input: !matches!(self.stdin, Stdin::Empty),
        };
        let Invocation {
            program,
            args,
            env,
            cwd,
            limits,
            cleanup,
        } = self.invocation(&order).map_err(|_| failed())?;
        let (stdio, input) = Self::stdio(self.stdin, self.terminal)?;
        let cleanup = cleanup.map(|args| Cleanup {
            program: program.clone(),
            args,
            env: env.clone(),
        });
        let launch = Launch {
            program,
            name: None,
            args,
            env,
            cwd,
            channel: None,
            stdio,
            policy: Policy {
                limits,
                ..Policy::unconfined()
            },
            role: Role::Command,
        };
        let child = launch.spawn().map_err(|_| failed())?;
        Ok(Started::Running(Box::new(Running {
            child,
            input,
            started,
            since: None,
            layered: Vec::new(),
            guards: Vec::new(),
            cleanup,
            store: None,
            _work_dirs: vec![work_dir],
        })))
    }

    /// The command line for a driver's program.
    fn invocation(&self, order: &Order<'_>) -> std::io::Result<Invocation> {
        let engine = match self.sandbox.driver {
            Driver::Bubblewrap => return Ok(Bubblewrap::inspect(order.program)?.invocation(order)),
            Driver::Firejail => {
                return Ok(firejail::invocation(order, firejail::home().as_deref()));
            }
            Driver::Podman => Engine::Podman,
            Driver::Docker | Driver::Host | Driver::Native => Engine::Docker,
        };
        let image = self
            .sandbox
            .image
            .as_deref()
            .unwrap_or(container::DEFAULT_IMAGE);
        let caller = RunAs {
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
        };
        let container = Container {
            engine,
            image: OsStr::new(image),
            client_env: &self.environment,
            caller: if caller.uid == 0 {
                work_dir::NOBODY
            } else {
                caller
            },
        };
        Ok(container.invocation(order))
    }

    /// `on_disk`: the layer is on disk from the start, as where the kernel makes none in memory.
    fn start_native(self, on_disk: bool) -> Result<Started, CommandError> {
        let started = Instant::now();
        let policy = &self.policy;
        let base = find_place(&work_dir::base_directory(&policy.base_dir)?)?;
        let paths = PolicyPaths::resolve(policy, Driver::Native);
        let readable = places(&paths.readable);
        let writable = places(&paths.writable);
        if writable.iter().any(|place| place.path() == Path::new("/")) {
            return Err(CommandError::Invalid(
                "The driver native cannot make the whole root directory writable: name the directories."
                    .into(),
            ));
        }
        let layered = layered(policy, &writable)?;
        let is_own = self.works_in == WorksIn::Own;
        let user = native::run_as(&writable, &layered, (!is_own).then_some(&base));
        let until = deadline_after(started, policy.timeout_seconds);
        let services = native::services(policy, user, until)?;
        let mut work_dirs = Vec::new();
        let workplace = if is_own {
            let dir = WorkDir::create_for(&policy.base_dir, user)?;
            let place = dir.place().clone();
            let at = work_dir::native_at(dir.path(), &[&readable, &writable, &layered]);
            work_dirs.push(dir);
            let cwd = at.clone();
            Workplace {
                place,
                at,
                cwd,
                is_own,
            }
        } else if base.path() == Path::new("/") {
            // It is shown already, by its entries; nothing is mounted over it.
            let dir = WorkDir::create_for(&std::env::temp_dir(), user)?;
            let workplace = Workplace {
                place: dir.place().clone(),
                at: dir.path().to_owned(),
                cwd: "/".into(),
                is_own,
            };
            work_dirs.push(dir);
            workplace
        } else {
            Workplace {
                at: base.path().to_owned(),
                cwd: base.path().to_owned(),
                place: base,
                is_own,
            }
        };
        let native = Native {
            policy,
            workplace: &workplace,
            readable,
            writable,
            layered,
            services,
            user,
            has_terminal: self.terminal.is_some(),
        };
        let env = self.own_environment();
        let path = search_path(&env, &self.environment);
        let Some((name, args)) = self.argv.split_first() else {
            return Err(CommandError::Invalid("The command is empty.".into()));
        };
        let since = (!native.layered.is_empty()).then(beginning);
        let (stdio, input) = Self::stdio(self.stdin, self.terminal)?;
        let mut stdio = Some(stdio);
        let mut store = None;
        let mut make_store = || {
            let dir = WorkDir::create_for(&policy.base_dir, user)?;
            let place = dir.place().clone();
            store = Some(dir);
            Ok(place)
        };
        let mut level = match on_disk {
            true => Level::LayerOnDisk(make_store()?),
            false => Level::Full,
        };
        let mut why = String::new();
        loop {
            let cwd = native.starts_in(&level);
            let Some(program) = find(name, &path, &cwd) else {
                let why = format!("{}: command not found", name.display());
                return Ok(not_started(exit_codes::COMMAND_NOT_FOUND, why, started));
            };
            let given = stdio.as_ref().map(again).transpose()?;
            let launch = Launch {
                program: program.clone(),
                name: Some(name.clone()),
                args: args.to_vec(),
                env: native::with_temp(env.clone(), &native.temp(&level)),
                cwd,
                channel: None,
                stdio: given.unwrap_or(Stdio::Captured { input: None }),
                policy: native.policy(&level),
                role: Role::Command,
            };
            let child = match launch.spawn() {
                Ok(child) => child,
                Err(
                    error @ (SpawnError::ProgramMissing { .. }
                    | SpawnError::InterpreterMissing { .. }),
                ) => {
                    let why = unseen(&error, &program);
                    return Ok(not_started(exit_codes::COMMAND_NOT_FOUND, why, started));
                }
                Err(
                    error @ (SpawnError::NotExecutable { .. } | SpawnError::NotAProgram { .. }),
                ) => {
                    let why = error.to_string();
                    return Ok(not_started(exit_codes::NOT_EXECUTABLE, why, started));
                }
                Err(error) => {
                    let needs_layer = !native.layered.is_empty();
                    (level, why) = native::step_down(&level, &error, needs_layer, &mut make_store)?;
                    continue;
                }
            };
            drop(stdio.take());
            let guards = native::lacking(child.guards(), &level, &why);
            let layered = native.layered.iter().map(|place| place.path().to_owned());
            return Ok(Started::Running(Box::new(Running {
                child,
                input,
                started,
                since,
                layered: layered.collect(),
                guards,
                cleanup: None,
                store,
                _work_dirs: work_dirs,
            })));
        }
    }
}

impl Running {
    fn of(child: Child, input: Option<Input>, started: Instant) -> Started {
        Started::Running(Box::new(Self {
            child,
            input,
            started,
            since: None,
            layered: Vec::new(),
            guards: Vec::new(),
            cleanup: None,
            store: None,
            _work_dirs: Vec::new(),
        }))
    }
}

fn not_started(code: i32, why: String, started: Instant) -> Started {
    Started::Not(Box::new(Outcome::not_started(code, why, started.elapsed())))
}

/// The streams for another attempt.
fn again(stdio: &Stdio) -> Result<Stdio, CommandError> {
    let copy = |descriptor: &OwnedFd| {
        let copied = descriptor.try_clone();
        copied.map_err(|error| CommandError::Start(format!("No descriptor is left: {error}")))
    };
    Ok(match stdio {
        Stdio::Captured { input } => Stdio::Captured {
            input: input.as_ref().map(copy).transpose()?,
        },
        Stdio::Terminal(terminal) => Stdio::Terminal(Pseudoterminal {
            host: copy(&terminal.host)?,
            process: copy(&terminal.process)?,
        }),
    })
}

/// Why a program that the host has cannot be executed in a private root.
fn unseen(error: &SpawnError, program: &Path) -> String {
    match program.exists() {
        true => format!(
            "{}: this policy does not show it, or the interpreter that it names. A readable path shows it.",
            program.display()
        ),
        false => error.to_string(),
    }
}

fn find_place(path: &Path) -> Result<Place, CommandError> {
    Place::find(path).map_err(|error| {
        CommandError::Start(format!("{} cannot be opened: {error}", path.display()))
    })
}

/// What is at paths; one that is gone by now is skipped.
fn places(paths: &[PathBuf]) -> Vec<Place> {
    paths
        .iter()
        .filter_map(|path| Place::find(path).ok())
        .collect()
}

/// The directories that get a layer, each only once.
fn layered(policy: &ExecutionPolicy, writable: &[Place]) -> Result<Vec<Place>, CommandError> {
    let mut layered: Vec<Place> = Vec::new();
    let invalid = |path: &Path, why: &str| {
        Err(CommandError::Invalid(format!(
            "{} cannot have a layer: {why}.",
            path.display()
        )))
    };
    for path in &policy.layers {
        let place = match Place::find(path) {
            Ok(place) if place.is_directory() => place,
            Ok(_) => return invalid(path, "it is not a directory"),
            Err(error) => return invalid(path, &error.to_string()),
        };
        if place.path() == Path::new("/") {
            return invalid(path, "the root directory would have to be copied");
        }
        if writable.contains(&place) {
            return invalid(path, "it is a writable path of the same policy");
        }
        layered.push(place);
    }
    // One inside another is part of that one's layer.
    layered.sort_by(|one, other| one.path().cmp(other.path()));
    layered.dedup_by(|next, kept| next.path().starts_with(kept.path()));
    Ok(layered)
}

/// Where programs are looked for: the command's `PATH`, otherwise the caller's, otherwise the usual
/// directories.
fn search_path(own: &[(OsString, OsString)], caller: &[(OsString, OsString)]) -> OsString {
    let path = |list: &[(OsString, OsString)]| {
        let found = list.iter().find(|(name, _)| name == "PATH");
        found
            .map(|(_, value)| value.clone())
            .filter(|value| !value.is_empty())
    };
    path(own)
        .or_else(|| path(caller))
        .unwrap_or_else(|| DEFAULT_PATH.into())
}

/// The program that a name stands for: a path, which may be relative to the working directory, or
/// the first of its name on `path`.
fn find(name: &OsStr, path: &OsStr, cwd: &Path) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(cwd.join(name));
    }
    php_binary::find(name, Some(path)).ok()
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use altair_engine::Silent;

    #[test]
    fn a_layer_on_disk_can_be_applied_and_is_gone_afterwards() {
        let base = tempfile::tempdir().unwrap();
        let files = tempfile::tempdir().unwrap();
        let mut policy = ExecutionPolicy::in_dir(base.path());
        policy.layers = vec![files.path().to_owned()];
        let command = Command {
            sandbox: Sandbox {
                driver: Driver::Native,
                binary: None,
                image: None,
            },
            policy: policy.clone(),
            works_in: WorksIn::Own,
            argv: vec!["touch".into(), files.path().join("made").into_os_string()],
            stdin: Stdin::Empty,
            terminal: None,
            environment: Vec::new(),
            diff: false,
        };
        let Started::Running(running) = command.start_native(true).unwrap() else {
            panic!("not started");
        };

        let outcome = running.finish(&policy, false, &mut Silent, None).unwrap();

        assert_eq!(outcome.exit_code, 0, "{:?}", outcome.stderr);
        assert!(!files.path().join("made").exists());
        let layer = outcome.layer.unwrap();
        layer.apply().unwrap();
        assert!(files.path().join("made").exists());
        drop(layer);
        assert_eq!(base.path().read_dir().unwrap().count(), 0);
    }
}
