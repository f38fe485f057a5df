//! Runs a command for PHP: converts, waits, converts back.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use altair_command::{
    Command, CommandError, ExecutionPolicy, Outcome, PendingLayer, Prepared, Sandbox, Stdin,
    WorksIn, check_input,
};
use altair_engine::Observer;
use altair_sandbox::{Stream as Output, input_pipe, write_quietly};
use ext_php_rs::types::Zval;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use super::exec_result::{self, Details};
use super::layers::Layer;
use super::{throw, values};
use crate::classes::run_threads::{Aside, Crew, Event, Job, NothingAside};
use crate::zend::Bailout;
use crate::zend::host::{self, Wants};
use crate::zend::object::string_bytes;
use crate::zend::streams::{Read, Stream};
use crate::{settings, started_with};

/// Bytes read from a stream at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// How many changes in a layer a result lists: an array of them takes some 5 MB, which is no way to
/// exhaust the memory of a PHP.
const LISTED: usize = 10_000;

/// The outcome of a call that waits for a command.
type Waited = Result<Result<Outcome, CommandError>, Wants>;

/// Runs a command, and returns its result to PHP or throws.
pub fn execute(
    sandbox: Sandbox,
    policy: ExecutionPolicy,
    argv: &Zval,
    stdin: Option<&Zval>,
    on_output: Option<&Zval>,
    returned: &mut Zval,
) -> Result<(), Bailout> {
    let argv = match values::command(argv) {
        Ok(argv) => argv,
        Err(error) => {
            throw(&error);
            return Ok(());
        }
    };
    let input = match input(stdin) {
        Some(input) => input,
        None => return Ok(()),
    };
    if let Input::Stream(stream) = &input
        && let Some(descriptor) = stream.descriptor()
        && let Err(error) = check_input(descriptor)
    {
        throw(&error);
        return Ok(());
    }
    let (stdin, feeder) = match input {
        Input::Empty => (Stdin::Empty, None),
        Input::Bytes(bytes) => (Stdin::Bytes(bytes.to_vec()), None),
        Input::Stream(stream) => match input_pipe() {
            Ok((theirs, own)) => (Stdin::Descriptor(theirs), Some(Feeder::new(stream, own))),
            Err(error) => {
                throw(&CommandError::Start(format!(
                    "No pipe could be made for standard input: {error}"
                )));
                return Ok(());
            }
        },
    };
    let command = Command {
        sandbox,
        policy,
        works_in: WorksIn::Own,
        argv,
        stdin,
        terminal: None,
        environment: std::env::vars_os().collect(),
        started_with: started_with::environment(),
        programs: settings::programs(),
        diff: false,
        listed: LISTED,
    };
    let prepared = match command.prepare() {
        Ok(prepared) => prepared,
        Err(error) => {
            throw(&error);
            return Ok(());
        }
    };
    let waited = match (on_output, feeder) {
        (None, None) => run(prepared),
        (on_output, Some(mut feeder)) => run_aside(prepared, on_output, &mut feeder),
        (on_output, None) => run_aside(prepared, on_output, &mut NothingAside),
    };
    match waited {
        Ok(Ok(outcome)) => *returned = result(outcome)?,
        Ok(Err(error)) => throw(&error),
        Err(Wants::Throw) => {}
        Err(Wants::Bailout) => return Err(Bailout),
    }
    Ok(())
}

/// What PHP gave for standard input.
enum Input<'a> {
    Empty,
    Bytes(&'a [u8]),
    Stream(Stream<'a>),
}

/// Reads the argument; `None` with a pending exception if it is nothing of this.
fn input(stdin: Option<&Zval>) -> Option<Input<'_>> {
    let Some(stdin) = stdin.filter(|stdin| !stdin.is_null()) else {
        return Some(Input::Empty);
    };
    if stdin.is_string() {
        return Some(Input::Bytes(string_bytes(stdin)));
    }
    match Stream::of(stdin) {
        Some(stream) => Some(Input::Stream(stream)),
        None => {
            host::throw_type_error_message(
                "execute(): Argument #2 ($stdin) must be a string, an open stream or null",
            );
            None
        }
    }
}

/// Lets the host's own code interrupt a command: signal handlers, `max_execution_time`.
struct Interruptible(Result<(), Wants>);

impl Observer for Interruptible {
    fn listens(&self) -> bool {
        false
    }

    fn output(&mut self, _: Output, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.0 = host::interrupts();
        match self.0 {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

fn run(prepared: Prepared) -> Waited {
    let mut observer = Interruptible(Ok(()));
    let outcome = prepared.run(&mut observer, None);
    observer.0.map(|()| outcome)
}

impl Job for Prepared {
    type Done = Result<Outcome, CommandError>;

    fn deadline(&self) -> Instant {
        Self::deadline(self)
    }

    fn run(self, observer: &mut dyn Observer) -> Self::Done {
        Self::run(self, observer, None)
    }

    fn broken_off() -> Self::Done {
        Err(CommandError::Start("The command broke off.".into()))
    }
}

/// Runs on a thread of its own, so that a slow callback or stream delays neither the deadlines nor
/// the reading of output.
fn run_aside(prepared: Prepared, on_output: Option<&Zval>, aside: &mut dyn Aside) -> Waited {
    let started = Crew::new(1, on_output.is_some()).and_then(|mut crew| {
        crew.start(0, prepared)?;
        Ok(crew)
    });
    let mut crew = match started {
        Ok(crew) => crew,
        Err(error) => {
            return Ok(Err(CommandError::Start(format!(
                "No thread could be started: {error}."
            ))));
        }
    };
    loop {
        match crew.next_beside(aside)? {
            Some((_, Event::Output(stream, chunk))) => {
                let kind: &[u8] = match stream {
                    Output::Stdout => b"out",
                    Output::Stderr => b"err",
                };
                if let Some(on_output) = on_output {
                    host::call(on_output, kind, &chunk)?;
                    // With a slow callback there is always more output.
                    serve_if_ready(aside)?;
                }
            }
            Some((_, Event::Done(outcome))) => return Ok(*outcome),
            None => {
                return Ok(Err(CommandError::Start(
                    "This process was forked after the command was started; only the original process can wait for it."
                        .into(),
                )));
            }
        }
    }
}

/// Serves what is ready just now.
fn serve_if_ready(aside: &mut dyn Aside) -> Result<(), Wants> {
    let is_ready = aside.interest().is_some_and(|(descriptor, events)| {
        let mut fds = [PollFd::new(descriptor, events)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    });
    if is_ready { aside.serve() } else { Ok(()) }
}

/// Feeds a command from a stream of PHP's.
struct Feeder<'a> {
    stream: Stream<'a>,
    /// `None` once everything is written, or the command reads no more.
    pipe: Option<OwnedFd>,
    chunk: Vec<u8>,
    written: usize,
    /// The stream has nothing for now, and no descriptor tells when it has.
    waits: bool,
}

impl<'a> Feeder<'a> {
    fn new(stream: Stream<'a>, pipe: OwnedFd) -> Self {
        Self {
            stream,
            pipe: Some(pipe),
            chunk: Vec::new(),
            written: 0,
            waits: false,
        }
    }

    fn rest(&self) -> &[u8] {
        self.chunk.get(self.written..).unwrap_or_default()
    }

    /// Reads the next chunk, if that does not block.
    fn fill(&mut self) -> Result<(), Wants> {
        if let Some(descriptor) = self.stream.descriptor() {
            let mut fds = [PollFd::new(descriptor, PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::ZERO) == Ok(0) {
                return Ok(());
            }
        }
        self.chunk.resize(CHUNK_BYTES, 0);
        self.written = 0;
        let read = self.stream.read(&mut self.chunk)?;
        self.waits = matches!(read, Read::Nothing);
        match read {
            Read::Bytes(count) => self.chunk.truncate(count),
            Read::Nothing => self.chunk.clear(),
            Read::End => {
                self.chunk.clear();
                self.pipe = None;
            }
        }
        Ok(())
    }
}

impl Aside for Feeder<'_> {
    fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let pipe = self.pipe.as_ref()?;
        if self.rest().is_empty()
            && let Some(descriptor) = self.stream.descriptor()
        {
            return Some((descriptor, PollFlags::POLLIN));
        }
        // A stream that had nothing is asked again after a while.
        let events = if self.waits {
            PollFlags::empty()
        } else {
            PollFlags::POLLOUT
        };
        Some((pipe.as_fd(), events))
    }

    fn serve(&mut self) -> Result<(), Wants> {
        if self.rest().is_empty() {
            self.fill()?;
        }
        let Some(pipe) = &self.pipe else {
            return Ok(());
        };
        if self.rest().is_empty() {
            return Ok(());
        }
        match write_quietly(pipe.as_fd(), self.rest()) {
            Ok(count) => self.written += count,
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            // The command reads no more.
            Err(_) => self.pipe = None,
        }
        Ok(())
    }

    fn look(&mut self) {
        self.waits = false;
    }
}

impl Layer for PendingLayer {
    fn apply(&mut self) -> Result<(), String> {
        Self::apply(self).map_err(|error| error.to_string())
    }
}

/// The outcome as an `ExecResult`.
fn result(mut outcome: Outcome) -> Result<Zval, Bailout> {
    let lacking = outcome.guards.iter().map(|(guard, state)| {
        json!({"what": format!("not in force: {state}"), "guard": guard, "lift": null})
    });
    let refused = outcome.blocked.iter().map(|blocked| {
        let lift = blocked.lift.as_deref().and_then(lift);
        json!({"what": blocked.what, "guard": blocked.guard, "lift": lift})
    });
    let details = Details {
        blocked: refused.chain(lacking).collect(),
        file_changes: outcome.changes.as_ref().map(|changes| json!(changes)),
        layer: outcome
            .layer
            .take()
            .map(|layer| Box::new(layer) as Box<dyn Layer>),
    };
    exec_result::write(&outcome, details)
}

/// The method of the policy that allows what a flag of the command line does.
fn lift(flag: &str) -> Option<Value> {
    let (flag, value) = flag.split_once('=').unwrap_or((flag, ""));
    match flag {
        "--network" => Some("withNetwork(true)".into()),
        "--service" => Some(format!("withServices('{}')", value.replace('\'', "\\'")).into()),
        _ => None,
    }
}
