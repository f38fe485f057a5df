//! Runs any command to its end, with a deadline and bounded output. Not confined.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use altair_sandbox::{Launch, Observer, Policy, Role, Status, Stdio, Stream, Supervision};

use crate::exit_codes;
use crate::verdict::text;
use crate::{OUTPUT_LIMIT, php_binary};

/// The exit code for a program that could not be started; what shells use.
pub const EXIT_NOT_STARTED: i32 = 127;

/// A command to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program, looked up on `search_path` if it has no slash.
    pub program: OsString,
    /// The `PATH`.
    pub search_path: Option<OsString>,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory; by default the host's.
    pub cwd: Option<PathBuf>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its time limit; when it expires, the command and everything it started are killed.
    pub timeout: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its status, 128 plus the signal's number, 124 after the deadline, or [`EXIT_NOT_STARTED`].
    pub exit_code: i32,
    /// The head of its standard output.
    pub stdout: String,
    /// The head of its standard error, or why it could not be started.
    pub stderr: String,
    /// Whether the deadline ended it.
    pub timed_out: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl Command {
    /// Runs it to its end. Calls `goes_on` at least every 100 ms; if that returns `false`, ends the
    /// command and returns no result.
    pub fn run(self, goes_on: &mut dyn FnMut() -> bool) -> Option<Finished> {
        let started = Instant::now();
        let not_started = |stderr: String| {
            Some(Finished {
                exit_code: EXIT_NOT_STARTED,
                stdout: String::new(),
                stderr,
                timed_out: false,
                duration_ms: millis(started.elapsed()),
            })
        };
        let all = self
            .args
            .iter()
            .chain(self.env.iter().flat_map(|(name, value)| [name, value]));
        if all
            .chain([&self.program])
            .any(|word| word.as_bytes().contains(&0))
        {
            return not_started("The command contains a NUL byte, which no command can.".into());
        }
        let program = match php_binary::find(&self.program, self.search_path.as_deref()) {
            Ok(program) => program,
            Err(why) => return not_started(why),
        };
        let launch = Launch {
            program,
            name: None,
            args: self.args,
            env: self.env,
            cwd: self
                .cwd
                .or_else(|| std::env::current_dir().ok())
                .unwrap_or_else(|| "/".into()),
            channel: None,
            policy: Policy::unconfined(),
            stdio: Stdio::Captured { input: None },
            role: Role::Program,
        };
        let child = match launch.spawn() {
            Ok(child) => child,
            Err(error) => return not_started(error.to_string()),
        };
        let supervision = Supervision {
            deadline: started + self.timeout,
            stop_signal: None,
            grace: Duration::ZERO,
            output_limit: OUTPUT_LIMIT,
            outbox: Vec::new(),
            channel: None,
            idle: None,
            input: None,
            leaves_end: false,
            looks: Duration::ZERO,
        };
        let ended = child.supervise(supervision, &mut Asking(goes_on));
        if ended.interrupted {
            return None;
        }
        Some(Finished {
            exit_code: match ended.status {
                _ if ended.timed_out => exit_codes::TIMED_OUT,
                Status::Exited(code) => code,
                Status::Signalled(signal) => exit_codes::SIGNAL_BASE + signal,
            },
            stdout: text(&ended.stdout).1,
            stderr: text(&ended.stderr).1,
            timed_out: ended.timed_out,
            duration_ms: millis(started.elapsed()),
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

struct Asking<'a>(&'a mut dyn FnMut() -> bool);

impl Observer for Asking<'_> {
    fn output(&mut self, _: Stream, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn packet(&mut self, _: &[u8]) {}

    fn tick(&mut self) -> ControlFlow<()> {
        if (self.0)() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}
