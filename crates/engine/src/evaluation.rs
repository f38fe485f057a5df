//! One evaluation, from request to result.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_sandbox::{Refusal, Stream, Supervision};
use nix::time::{ClockId, clock_gettime};

use crate::asked::Asked;
use crate::audit::{self, Actor, AuditError};
use crate::blocked::Context;
use crate::changes;
use crate::channel::{self, MessageReader, Run, Secret, Work};
use crate::confinement::run_as;
use crate::diagnosis::never_entered;
use crate::guards::Selection;
use crate::heard::{Heard, thread_names};
use crate::known::Known;
use crate::outcome::Seen;
use crate::queries::Told;
use crate::request::{BOOTSTRAP_VARIABLE, EvalRequest, Target, reason};
use crate::secrets::Redactor;
use crate::services::{self, Service, Services};
use crate::start::{Started, start};
use crate::turns::{Turn, Turns};
use crate::warm::{Acquired, Boot, Failed, IDLE, Pool, Start};
use crate::{EvalError, EvalResult, php};

/// Bytes of each stream that are kept: some hundred lines, what a reader still reads.
pub const OUTPUT_LIMIT: usize = 16_384;

/// What the child has to say where it was, once the deadline has passed, before it is killed.
pub const GRACE: Duration = Duration::from_millis(100);

/// What a host may take after a run's time is up and it has ended, for each of: finding what it has
/// changed, and keeping secrets out of its answer.
const AFTERWARDS: Duration = Duration::from_millis(30);

/// The real-time signal that asks the child to stop, as an offset from `SIGRTMIN`. Not one that a
/// PHP application has a use for.
pub const STOP_SIGNAL_OFFSET: i32 = 15;

/// The signal that asks the child to stop.
#[must_use]
pub fn stop_signal() -> i32 {
    nix::libc::SIGRTMIN() + STOP_SIGNAL_OFFSET
}

/// Who watches an evaluation while it runs.
pub trait Observer {
    /// A piece of output, as it was written. `Break` ends the run.
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()>;
    /// Whether anybody reads the output while it is written.
    fn listens(&self) -> bool {
        true
    }
    /// Called after every wake-up and at least every 100 ms. `Break` ends the run.
    fn tick(&mut self) -> ControlFlow<()>;
}

/// An [`Observer`] that only waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn listens(&self) -> bool {
        false
    }

    fn output(&mut self, _: Stream, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn tick(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What starts evaluations: which PHP, with which extension, on whose behalf.
#[derive(Debug, Clone)]
pub struct Evaluator {
    php: OsString,
    running: Option<PathBuf>,
    pub(crate) extension: Option<PathBuf>,
    pub(crate) ini_scan_dir: Option<OsString>,
    pub(crate) selection: Selection,
    pub(crate) known_paths: Arc<[PathBuf]>,
    pool: Option<Arc<Pool>>,
    services: Option<Vec<Service>>,
    pub(crate) idle: Duration,
    actor: Actor,
}

impl Evaluator {
    /// Evaluations in the PHP that `php` means (see [`php::resolve`]), asked for by `actor`.
    #[must_use]
    pub fn new(php: impl AsRef<OsStr>, actor: Actor) -> Self {
        Self {
            php: php.as_ref().to_owned(),
            running: None,
            extension: None,
            ini_scan_dir: std::env::var_os("PHP_INI_SCAN_DIR"),
            selection: Selection::default(),
            known_paths: Arc::default(),
            pool: None,
            services: None,
            idle: IDLE,
            actor,
        }
    }

    /// Sets the PHP binary that the host itself is.
    #[must_use]
    pub fn with_running(mut self, running: Option<PathBuf>) -> Self {
        self.running = running;
        self
    }

    /// Sets the extension that the child is told to load, where its own ini files may not.
    #[must_use]
    pub fn with_extension(mut self, extension: PathBuf) -> Self {
        self.extension = Some(extension);
        self
    }

    /// Sets the `PHP_INI_SCAN_DIR` that the host was started with, by default the environment's.
    #[must_use]
    pub fn with_ini_scan_dir(mut self, dir: Option<OsString>) -> Self {
        self.ini_scan_dir = dir;
        self
    }

    /// Sets the guards without which nothing runs, and those that are left out.
    #[must_use]
    pub fn with_guards(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Sets what a confined PHP needs to read, as far as the host knows: the directory of its
    /// extensions, those of its include path.
    #[must_use]
    pub fn with_known_paths(mut self, paths: Arc<[PathBuf]>) -> Self {
        self.known_paths = paths;
        self
    }

    /// Sets what requests without services of their own may connect to, by default what their
    /// application declares when they are made.
    #[must_use]
    pub fn with_services(mut self, services: Vec<Service>) -> Self {
        self.services = Some(services);
        self
    }

    /// Keeps templates in `pool`, and forks from them where it can.
    #[must_use]
    pub fn with_pool(mut self, pool: Arc<Pool>) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Sets how long a template waits for a request before it ends, by default [`IDLE`].
    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Evaluates a request and waits for its end.
    ///
    /// # Errors
    ///
    /// [`EvalError::InvalidRequest`] and [`EvalError::Launch`] where there was no run,
    /// [`EvalError::Interrupted`] where the observer ended it. Whatever happened inside the child
    /// is an [`EvalResult`].
    pub fn evaluate(
        &self,
        request: &EvalRequest,
        observer: &mut dyn Observer,
    ) -> Result<EvalResult, EvalError> {
        self.prepare(request)?.run(observer)
    }

    /// Checks a request and takes from this process what its run needs: the environment as it is
    /// now. The deadline counts from here. The run itself may be another thread's.
    ///
    /// # Errors
    ///
    /// [`EvalError::InvalidRequest`] and [`EvalError::Launch`], as for [`Evaluator::evaluate`].
    pub fn prepare(&self, request: &EvalRequest) -> Result<Prepared, EvalError> {
        let started = Instant::now();
        let started_ns = monotonic_ns();
        let target = request.resolve(std::env::var_os(BOOTSTRAP_VARIABLE))?;
        self.selection.check(request)?;
        let php = php::resolve(
            &self.php,
            self.running.as_deref(),
            std::env::var_os("PATH").as_deref(),
        )?;
        let environment = std::env::vars_os().collect::<Vec<_>>();
        let known = Known::of(
            &environment,
            &target.root,
            Duration::from_millis(request.timeout_ms().into()),
        )
        .map_err(|e| {
            EvalError::Launch(format!(
                "Nothing was run: the files of the project {} cannot be looked at ({}).",
                target.root.path().display(),
                reason(&e)
            ))
        })?;
        let declared = match &request.services {
            Some(own) => services::declared(own),
            None if request.unconfined => Ok(Vec::new()),
            None => match &self.services {
                Some(own) => Ok(own.clone()),
                None => known.services.services(),
            },
        };
        Ok(Prepared {
            evaluator: self.clone(),
            request: request.clone(),
            target,
            php,
            environment,
            known,
            declared: declared.map_err(EvalError::InvalidRequest)?,
            services: Services::default(),
            started,
            started_ns,
            turns: None,
        })
    }
}

/// An evaluation that is ready to run.
#[derive(Debug)]
pub struct Prepared {
    evaluator: Evaluator,
    request: EvalRequest,
    target: Target,
    php: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// What is known of its secrets and services before it begins.
    known: Arc<Known>,
    declared: Vec<Service>,
    /// Their addresses, once it runs.
    services: Services,
    started: Instant,
    started_ns: u64,
    turns: Option<Turns>,
}

impl Prepared {
    /// When the run has to be done.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.started + Duration::from_millis(self.request.timeout_ms().into())
    }

    /// What it may connect to while the network is off, as far as that has an address.
    #[must_use]
    pub fn services(&self) -> &[Service] {
        &self.declared
    }

    /// Runs it side by side with others, of which only so many are at their snippet at once. The
    /// time that it waits to be run and for its turn is not the run's: the deadline counts from its
    /// turn then.
    #[must_use]
    pub fn in_turn(mut self, turns: &Turns) -> Self {
        self.turns = Some(turns.clone());
        self
    }

    /// Adds a variable to the environment that the child's is made from.
    #[must_use]
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs it and waits for its end.
    ///
    /// # Errors
    ///
    /// As for [`Evaluator::evaluate`].
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<EvalResult, EvalError> {
        self.services = self.resolved()?;
        let (turn, ahead) = match self.turns.take() {
            Some(turns) => self.wait_for_turn(&turns, observer)?,
            None => (None, None),
        };
        if !self.request.unconfined {
            return self.run_child(turn, ahead, observer);
        }
        let record = self
            .announced()
            .map_err(|e| EvalError::Launch(format!("An unsafe run must be audited. {e}")))?;
        let started = self.started;
        let mut result = self.run_child(turn, ahead, observer);
        let ending = match &result {
            Ok(result) => audit::Ending::from(result),
            Err(error) => audit::Ending {
                ok: false,
                error: Some(error.to_string()),
                duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                exit_code: None,
                timed_out: false,
            },
        };
        // The run has happened: that its end could not be recorded does not undo its result.
        if let (Err(error), Ok(result)) = (record.end(ending), &mut result) {
            let message = &mut result.diagnostics.message;
            *message = Some(match message.take() {
                Some(message) => format!("{message} {error}"),
                None => error.to_string(),
            });
        }
        result
    }

    /// Waits for a turn, with a child that is ready for it where a template can fork one. Nothing is
    /// booted ahead: that is the run's own time.
    fn wait_for_turn(
        &mut self,
        turns: &Turns,
        observer: &mut dyn Observer,
    ) -> Result<(Option<Turn>, Option<Acquired>), EvalError> {
        self.begin_now();
        let pool = self.evaluator.pool.clone();
        let ahead = match &pool {
            Some(pool) => pool.ready(&self.asked(), self.deadline()),
            None => None,
        };
        let (turn, waited) = turns.take(observer)?;
        if !waited {
            return Ok((Some(turn), ahead));
        }
        self.begin_now();
        // What was fresh when the wait began may not be any more.
        let ahead = ahead.filter(|ahead| match (ahead, &pool) {
            (Acquired::Child(_, _, boot), Some(pool)) => pool.is_fresh(&self.asked(), boot),
            _ => false,
        });
        Ok((Some(turn), ahead))
    }

    /// Lets the run begin now: what came before was not its own time.
    fn begin_now(&mut self) {
        let waited = self.started.elapsed();
        self.started += waited;
        self.started_ns += u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Announces an unsafe run in the audit log, which secrets are kept out of in any case.
    fn announced(&self) -> Result<audit::Run, AuditError> {
        audit::Run::begin(
            &self.target.root,
            self.evaluator.actor,
            None,
            &self.request,
            self.known.secrets.clone(),
        )
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            evaluator: &self.evaluator,
            request: &self.request,
            target: &self.target,
            php: &self.php,
            environment: &self.environment,
            services: &self.services,
        }
    }

    /// What it may connect to while the network is off. What is not declared for this run alone need
    /// not be there: it may be none of this run's affair.
    fn resolved(&self) -> Result<Services, EvalError> {
        if self.request.unconfined {
            return Ok(Services::default());
        }
        let strict = self.request.services.is_some();
        let user = run_as(&self.target.root);
        services::resolve(&self.declared, strict, user, self.deadline())
            .map_err(EvalError::InvalidRequest)
    }

    fn run_child(
        self,
        turn: Option<Turn>,
        ahead: Option<Acquired>,
        observer: &mut dyn Observer,
    ) -> Result<EvalResult, EvalError> {
        let asked = self.asked();
        let known = self.request.redact.then(|| Arc::clone(&self.known));
        let mut observer = Redactor::new(observer, known);
        let acquired = match (ahead, &self.evaluator.pool) {
            (Some(ahead), _) => ahead,
            (None, Some(pool)) => pool.acquire(&asked, self.deadline(), &mut observer)?,
            (None, None) => Acquired::Nothing(Start::Cold(None)),
        };
        let (started, start, boot) = match acquired {
            Acquired::Child(started, start, boot) => (*started, start, boot),
            Acquired::Nothing(why) => (start(&asked)?, why, Arc::default()),
            Acquired::Ended(failed) => {
                observer.learn(&failed.heard.variables);
                let until = self.deadline().max(Instant::now()) + AFTERWARDS;
                let mut result = self.failed(*failed);
                observer.end(&mut result, until);
                return Ok(result);
            }
        };
        observer.learn(&boot.variables);
        // Boot is over, or shows what it prints when the child is supervised.
        if matches!(start, Start::Warm | Start::First) && observer.settle().is_break() {
            return Err(EvalError::Interrupted);
        }
        let deadline = self.deadline();
        let mut result = self.supervise(started, start, &boot, turn, &mut observer)?;
        observer.end(&mut result, deadline.max(Instant::now()) + AFTERWARDS);
        Ok(result)
    }

    /// Gives a child its task and watches it to its end.
    fn supervise(
        self,
        started: Started,
        start: Start,
        boot: &Boot,
        turn: Option<Turn>,
        observer: &mut Redactor<'_>,
    ) -> Result<EvalResult, EvalError> {
        let system = |e: &dyn std::fmt::Display| {
            EvalError::Launch(format!("No child could be started: {e}."))
        };
        let deadline = self.deadline();
        let Started {
            child,
            channel,
            final_guards,
            limits,
            insist,
            guards,
            private_root,
            readable,
            directories: _directories,
        } = started;
        let secret = Secret::generate().map_err(|e| system(&e))?;
        let asked = self.asked();
        let (restrictions, watched) = match start {
            Start::Warm | Start::First => (None, None),
            Start::Cold(_) | Start::Booted(_) => {
                let readable = if private_root {
                    &[]
                } else {
                    readable.as_slice()
                };
                (asked.restrictions(readable), asked.watched())
            }
        };
        let work = Work::Run(Run {
            snippet: self.request.snippet.clone(),
            guards: final_guards,
            insist: insist.clone(),
            limits,
            memory_limit_bytes: asked
                .takes_ini()
                .then(|| u64::from(self.request.memory_limit_mb()) << 20),
            queries: self.request.tells_queries(),
        });
        let task = asked.task(&secret, private_root, restrictions, watched, work);
        let outbox = channel::encode_task(&task).map_err(|e| system(&e))?;
        let is_fork = matches!(start, Start::Warm | Start::First);
        // What boot has printed, and was printed while it went on where the template is new.
        if start == Start::Warm && boot.replay(observer).is_break() {
            return Err(EvalError::Interrupted);
        }
        let process = child.pid();
        let mut listener = Listener {
            observer,
            process,
            threads: None,
            reader: MessageReader::new(secret),
            heard: Heard {
                refused: boot.refused.clone(),
                queries: self.request.tells_queries().then(Told::default),
                ..Heard::default()
            },
            interrupted: false,
        };
        let mut ended = child.supervise(
            Supervision {
                deadline,
                stop_signal: Some(stop_signal()),
                grace: GRACE,
                output_limit: OUTPUT_LIMIT,
                outbox,
                channel: Some(channel),
            },
            &mut listener,
        );
        let ended_at = Instant::now();
        // What runs after its report is the run's, too.
        drop(turn);
        let Listener {
            mut heard, threads, ..
        } = listener;
        // Also of a boot that has failed.
        observer.learn(&heard.variables);
        heard.check_guards(&insist, threads.as_deref())?;
        if ended.interrupted {
            return Err(EvalError::Interrupted);
        }
        // What a fork of a template is, is known.
        if heard.entered_ns.is_none() && !ended.timed_out && !is_fork {
            return Err(EvalError::Launch(never_entered(
                self.evaluator.extension.as_deref(),
                &self.php,
                &heard,
                &ended,
            )));
        }
        // Only of a fork, and of that only what it says before the snippet.
        if let Some(why) = heard.unable.take().filter(|_| is_fork) {
            return Err(EvalError::Launch(format!("Nothing was run: {why}.")));
        }
        let layer = ended.layer.take();
        let until = (deadline + GRACE).max(Instant::now()) + AFTERWARDS;
        let file_changes = changes::on_top(boot.changes.as_ref(), layer.as_ref(), until);
        boot.precede(&mut ended, &mut heard, start == Start::First);
        Ok(Seen {
            ended,
            heard,
            guards,
            context: Context {
                user: run_as(&self.target.root),
                root: self.target.root.path().to_owned(),
                writable: layer.is_some() || self.request.allow_writes,
                private_root,
            },
            file_changes,
            started_ns: self.started_ns,
            elapsed: self.started.elapsed(),
            ended_at,
            start,
            message: None,
        }
        .into_result())
    }

    /// The result of a boot that has come to no template.
    fn failed(self, failed: Failed) -> EvalResult {
        let Failed {
            ended,
            heard,
            guards,
            changes,
            message,
        } = failed;
        Seen {
            ended,
            heard,
            guards,
            context: Context {
                user: run_as(&self.target.root),
                root: self.target.root.path().to_owned(),
                writable: true,
                private_root: true,
            },
            file_changes: changes,
            started_ns: self.started_ns,
            elapsed: self.started.elapsed(),
            ended_at: Instant::now(),
            start: Start::First,
            message,
        }
        .into_result()
    }
}

/// Now, in nanoseconds of the clock that the child reads, too.
fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        let nanos = i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec());
        u64::try_from(nanos).unwrap_or(0)
    })
}

/// Turns the sandbox's events into messages for us and output for the observer.
struct Listener<'a, 'o> {
    observer: &'a mut Redactor<'o>,
    /// The child, as the host knows it.
    process: Option<i32>,
    /// The names of its other threads, where it has some before its guards are on.
    threads: Option<Vec<String>>,
    reader: MessageReader,
    heard: Heard,
    /// The observer has had enough of what it was shown when boot was over.
    interrupted: bool,
}

impl altair_sandbox::Observer for Listener<'_, '_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        self.observer.output(stream, chunk)
    }

    fn packet(&mut self, packet: &[u8]) {
        let was_ready = self.heard.ready.is_some();
        self.heard.take(self.reader.push(packet), packet);
        if !was_ready && self.heard.ready.is_some() {
            self.observer.learn(&self.heard.variables);
            self.interrupted = self.observer.settle().is_break();
        }
        if self.heard.has_threads && self.threads.is_none() {
            self.threads = Some(self.process.map(thread_names).unwrap_or_default());
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        self.heard.refused.call(refusal);
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.threads.is_some() || self.interrupted {
            return ControlFlow::Break(());
        }
        self.observer.tick()
    }
}
