//! One evaluation, from a checked request to its result: starts or forks a child, supervises it and
//! reads its messages, judges how it ended, and keeps secrets out of the answer.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_sandbox::{Ended, Standing, Status, Supervision};
use nix::sys::socket::{MsgFlags, send};

use crate::audit::{self, AuditError};
use crate::began::Began;
use crate::blocked::Context;
use crate::bounds::{AFTERWARDS, GRACE, OUTPUT_LIMIT, stop_signal};
use crate::channel::{self, Code, MessageReader, RuntimeTask, Secret, SnippetTask, Work};
use crate::child_messages::ChildMessages;
use crate::cold_start::{Given, NewChild, start_cold};
use crate::concurrency::{Turn, Turns};
use crate::context::RequestContext;
use crate::delegation::{Delegation, Delegator, Elsewhere};
use crate::directories::Directories;
use crate::environment::{Filtered, Variable};
use crate::file_changes;
use crate::guards::{GuardStates, Insisted};
use crate::launch;
use crate::observer::Observer;
use crate::origin::Origin;
use crate::owner::run_as;
use crate::processors::processors;
use crate::project_environment::ProjectEnvironment;
use crate::queries::CollectedQueries;
use crate::readable_paths::Homes;
use crate::real_writes::Unsealed;
use crate::redaction::output::Redactor;
use crate::request::{EvalRequest, Target};
use crate::run_listener::Listener;
use crate::services::{self, Declared, Services};
use crate::settings::{Purpose, Settings};
use crate::surroundings::Surroundings;
use crate::unfit_php::never_entered;
use crate::verdict::Evidence;
use crate::warm::{Acquired, Boot, Failed, Key, Pool, Underway};
use crate::{EvalError, EvalResult, Outcome};

/// An evaluation that is ready to run.
#[derive(Debug)]
pub struct Evaluation {
    pub(crate) settings: Settings,
    pub(crate) pool: Option<Arc<Pool>>,
    /// Who may carry it out for this process.
    pub(crate) elsewhere: Option<Arc<dyn Elsewhere>>,
    /// The services that its evaluator names, which are told with it.
    pub(crate) named_services: Option<Vec<Declared>>,
    pub(crate) request: EvalRequest,
    pub(crate) target: Target,
    pub(crate) php: PathBuf,
    pub(crate) environment: Vec<Variable>,
    /// As [`Surroundings::set_later`](crate::surroundings::Surroundings) has it.
    pub(crate) set_later: Vec<OsString>,
    /// What its child gets of that.
    pub(crate) given: Arc<Filtered>,
    /// The project's secrets and services, as known before the run.
    pub(crate) known: Arc<ProjectEnvironment>,
    /// Services that it may connect to while the network is off.
    pub(crate) declared: Vec<Declared>,
    /// Their addresses; set when it runs.
    pub(crate) services: Services,
    /// What it must have in common with a template; set with the addresses, which are part of it.
    pub(crate) key: Option<Key>,
    /// Whether the manifest may declare no socket outside of the project.
    pub(crate) sockets_of_project_only: bool,
    pub(crate) began: Began,
    pub(crate) turns: Option<Turns>,
    /// What it gets at most, if another process than this one asks for it.
    pub(crate) standing: Option<Standing>,
    /// Whether another process has asked this one for it.
    pub(crate) is_delegated: bool,
    /// A fork that gets ready for it ([`Evaluation::get_ready`]).
    pub(crate) ahead: Option<Acquired>,
    /// Whether whoever carries it out has another one under way, or may have.
    pub(crate) has_company: bool,
}

/// The number of forks that are given the task. Each but the last was killed before it began.
const TRIES_MAX: usize = 4;

/// For how long a run that is the only one is looked at: longer than a short one takes. Several would take
/// time from each other by that.
const LOOKS: Duration = Duration::from_micros(300);

/// A child that has ended, with its messages.
struct Supervised {
    ended: Ended,
    ended_at: Instant,
    heard: ChildMessages,
    /// The names of its other threads, if it had any before its guards were on.
    threads: Option<Vec<String>>,
    guards: GuardStates,
    insist: Vec<Insisted>,
    private_root: bool,
    /// As in [`NewChild::caches`].
    caches: Option<PathBuf>,
    /// Kept alive because its layer may be in one of them.
    _directories: Directories,
    /// If its writes are real and nothing seals the audit log: the project.
    unsealed: Option<Unsealed>,
    underway: Option<Underway>,
}

impl Supervised {
    /// Whether the child was ended from outside before any part of the snippet ran.
    fn never_began(&self) -> bool {
        let (ended, heard) = (&self.ended, &self.heard);
        let was_killed = ended.status == Status::Signalled(nix::libc::SIGKILL);
        let was_ended = (ended.undelivered || was_killed) && !ended.timed_out && !ended.interrupted;
        // One that has its task may say that it cannot go on, before it has its code.
        was_ended && heard.ready.is_none() && heard.report.is_none() && heard.unable.is_none()
    }
}

impl Evaluation {
    /// The time by which the run must end.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.began.at + Duration::from_millis(self.request.timeout_ms().into())
    }

    /// The services that it may connect to while the network is off, as far as they have an
    /// address.
    #[must_use]
    pub fn services(&self) -> &[Declared] {
        &self.declared
    }

    /// Runs it concurrently with others, of which only a limited number execute their snippet at
    /// once. Waiting for a start and for a turn does not count as the run's time: its deadline
    /// counts from its turn.
    #[must_use]
    pub fn in_turn(mut self, turns: &Turns) -> Self {
        self.turns = Some(turns.clone());
        self.has_company = true;
        self
    }

    /// Sets on whose behalf it is carried out. A fork that is ready for it begins.
    #[must_use]
    pub(crate) fn of(mut self, delegator: Delegator) -> Self {
        let Delegator {
            standing,
            umask,
            is_only,
        } = delegator;
        if standing.is_some() {
            // What a fork sets itself once it has its task must not undo what it is lowered to.
            self.ahead = None;
        }
        self.standing = standing;
        self.has_company = !is_only;
        if self.request.allow_writes {
            self.settings.umask = Some(umask);
            self.key = self.key.map(|key| key.with_umask(umask));
        }
        self.give_code();
        self
    }

    /// Gives its code to the fork that has its task: what is left to prepare can be done meanwhile.
    fn give_code(&mut self) {
        if self.ahead.is_none() {
            return;
        }
        let Ok(code) = self.code() else { return };
        if let Some(Acquired::Child(child, ..)) = &mut self.ahead {
            child.given = match std::mem::replace(&mut child.given, Given::Nothing) {
                Given::Task(secret) if gives(child, &code) => Given::Code(secret),
                given => given,
            };
        }
    }

    /// Adds a variable to the environment from which the child's is made.
    #[must_use]
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self.given = Arc::new(self.known.filtered(&self.environment));
        self.elsewhere = None;
        self
    }

    /// Runs it and waits for its end.
    ///
    /// # Errors
    ///
    /// As for [`Evaluator::evaluate`](crate::Evaluator::evaluate).
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<EvalResult, EvalError> {
        if let Some(elsewhere) = self.elsewhere.take()
            && !self.has_template()?
            && let Some(delegation) = self.delegation()
        {
            return self.run_elsewhere(&*elsewhere, delegation, observer);
        }
        self.run_here(observer)
    }

    fn delegation(&self) -> Option<Delegation> {
        Delegation::of(
            &self.request,
            &self.settings,
            self.named_services.as_deref(),
            self.sockets_of_project_only,
            &Surroundings {
                began: self.began,
                environment: self.environment.clone(),
                set_later: self.set_later.clone(),
            },
        )
    }

    /// Whether this process has a template for it already, which is nearer.
    fn has_template(&mut self) -> Result<bool, EvalError> {
        let Some(pool) = self.pool.clone().filter(|pool| !pool.is_empty()) else {
            return Ok(false);
        };
        self.find_key()?;
        Ok(self.key.as_ref().is_some_and(|key| pool.has(key)))
    }

    /// Resolves the services that it may connect to, and with them what it must have in common with a
    /// template, if it may use one.
    fn find_key(&mut self) -> Result<(), EvalError> {
        if self.key.is_none() {
            self.services = self.resolved()?;
            // A template has the one that this process had when it was made.
            if self.request.allow_writes && self.settings.umask.is_none() {
                self.settings.umask = altair_sandbox::own_umask();
            }
            self.key = self.pool.is_some().then(|| Key::new(&self.context()));
        }
        Ok(())
    }

    /// Does what [`Evaluation::run`] would do first, unless addresses are to be found for it, which may
    /// take long. A spare wakes from now on. `takes_spare`: it gets the task, too, but not the code. Nothing is
    /// forked or booted.
    pub(crate) fn get_ready(&mut self, takes_spare: bool) -> Result<(), EvalError> {
        if !self.declared.is_empty() {
            return Ok(());
        }
        self.find_key()?;
        let Some((pool, key)) = self.pool.as_deref().zip(self.key.as_ref()) else {
            return Ok(());
        };
        pool.alert(key);
        // The umask of real writes is part of the key, and is seen when the host is looked at.
        if !takes_spare || self.request.allow_writes {
            return Ok(());
        }
        let mut ahead = pool.spare(key, &self.context());
        if let Some(Acquired::Child(child, origin, _)) = &mut ahead {
            let (secret, task) = self.task(child, origin)?;
            if gives(child, &task) {
                child.given = Given::Task(secret);
            }
        }
        self.ahead = ahead;
        Ok(())
    }

    /// Has it run elsewhere, in its turn; here if that is not possible.
    fn run_elsewhere(
        mut self,
        elsewhere: &dyn Elsewhere,
        delegation: Delegation,
        observer: &mut dyn Observer,
    ) -> Result<EvalResult, EvalError> {
        let Some(turns) = self.turns.take() else {
            let carried_out = elsewhere.carry_out(&delegation, observer);
            return match carried_out {
                Some(answer) => answer?.read(),
                None => self.run_here(observer),
            };
        };
        let (turn, _) = turns.take(observer)?;
        self.began = Began::now();
        if let Some(answer) = elsewhere.carry_out(&delegation.begun_at(self.began), observer) {
            return answer?.read();
        }
        drop(turn);
        self.turns = Some(turns);
        self.run_here(observer)
    }

    /// Runs it as a child of this process.
    pub(crate) fn run_here(mut self, observer: &mut dyn Observer) -> Result<EvalResult, EvalError> {
        self.find_key()?;
        let (turn, ahead) = self.wait_for_turn(observer)?;
        let is_delegated = self.is_delegated;
        let (mut result, underway) = if self.request.unconfined {
            (self.run_audited(turn, observer)?, None)
        } else {
            self.complete(turn, ahead, observer)?
        };
        result.diagnostics.pool = is_delegated;
        observer.answered(&result);
        drop(underway);
        Ok(result)
    }

    /// The run itself, from a child to an answer. What is given with that is to be kept until it is
    /// delivered.
    fn complete(
        self,
        turn: Option<Turn>,
        ahead: Option<Acquired>,
        observer: &mut dyn Observer,
    ) -> Result<(EvalResult, Option<Underway>), EvalError> {
        let known = self.request.redact.then(|| self.known.secrets.clone());
        let mut redactor = Redactor::new(observer, known);
        let mut ahead = ahead;
        let mut tries = 0;
        let mut is_first_call = false;
        let (mut supervised, origin, boot) = loop {
            let acquired = self.acquire(ahead.take(), &mut redactor)?;
            is_first_call |= matches!(acquired, Acquired::FirstCall);
            let (child, origin, boot) = match acquired {
                Acquired::Child(child, origin, boot) => (*child, origin, boot),
                Acquired::FirstCall => (self.cold()?, Origin::Cold(None), Arc::default()),
                Acquired::Nothing(origin) => (self.cold()?, origin, Arc::default()),
                Acquired::Ended(mut failed) => {
                    let left = std::mem::take(&mut failed.heard.variables);
                    let result = self.evidence_of_failed(*failed).into_result();
                    let result = redactor.finish(&left, result, self.redacted_by());
                    return Ok((result, None));
                }
            };
            // A child that boots itself shows its output while it is supervised.
            if origin.is_fork() && redactor.boot_is_over(&boot.variables).is_break()
                || origin == Origin::Warm && tries == 0 && boot.replay(&mut redactor).is_break()
            {
                return Err(EvalError::Interrupted);
            }
            if let (Some(standing), Some(pid)) = (&self.standing, child.child.pid()) {
                standing.lower(pid).map_err(|e| not_started(&e))?;
            }
            if tries == 0 && redactor.begins().is_break() {
                return Err(EvalError::Interrupted);
            }
            tries += 1;
            let supervised = self.supervise(child, &origin, &boot, &mut redactor)?;
            // Spares end with their template, which may have ended just now.
            if tries == TRIES_MAX || !origin.is_fork() || !supervised.never_began() {
                break (supervised, origin, boot);
            }
        };
        let is_followed = turn.as_ref().is_some_and(Turn::is_awaited);
        // Only now: what runs after the report is still part of the run.
        drop(turn);
        self.check(&mut supervised, &origin)?;
        let left = std::mem::take(&mut supervised.heard.variables);
        let underway = match supervised.underway.take() {
            Some(underway) if is_followed => Some(underway.followed()),
            underway => underway,
        };
        let result = self.evidence(supervised, origin, &boot).into_result();
        let result = redactor.finish(&left, result, self.redacted_by());
        // What cannot boot is mended before it is asked again.
        if is_first_call && result.diagnostics.outcome != Outcome::BootFailed {
            self.boot_after();
        }
        Ok((result, underway))
    }

    fn cold(&self) -> Result<NewChild, EvalError> {
        start_cold(&self.context())
    }

    /// Has a template boot now that this is answered.
    fn boot_after(mut self) {
        if let Some(pool) = self.pool.take() {
            pool.boot_after(self);
        }
    }

    /// A run without guards, recorded in the audit log.
    fn run_audited(
        self,
        turn: Option<Turn>,
        observer: &mut dyn Observer,
    ) -> Result<EvalResult, EvalError> {
        let record = self
            .announced()
            .map_err(|e| EvalError::Launch(format!("An unsafe run must be audited. {e}")))?;
        let began = self.began.at;
        let mut result = self
            .complete(turn, None, observer)
            .map(|(result, _)| result);
        let ending = match &result {
            Ok(result) => audit::Ending::from(result),
            Err(error) => audit::Ending {
                ok: false,
                error: Some(error.to_string()),
                duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                exit_code: None,
                timed_out: false,
            },
        };
        // The run has happened: a failure to record its end does not void its result.
        if let (Err(error), Ok(result)) = (record.end(ending), &mut result) {
            let message = &mut result.diagnostics.message;
            *message = Some(match message.take() {
                Some(message) => format!("{message} {error}"),
                None => error.to_string(),
            });
        }
        result
    }

    /// Announces an unsafe run in the audit log. Secrets are always kept out of the log.
    pub(crate) fn announced(&self) -> Result<audit::AuditedRun, AuditError> {
        audit::AuditedRun::begin(
            &self.target.root,
            self.settings.actor,
            None,
            &self.request,
            self.known.secrets.secrets.clone(),
        )
    }

    /// Resolves the services that it may connect to while the network is off. Only services
    /// declared for this run alone must exist; the others may not concern it.
    pub(crate) fn resolved(&self) -> Result<Services, EvalError> {
        if self.request.unconfined {
            return Ok(Services::default());
        }
        let strict = self.request.services.is_some();
        let place = services::Place {
            root: Some(self.target.root.path()),
            user: run_as(&self.target.root),
        };
        let mut services = services::resolve(&self.declared, strict, place, self.deadline())
            .map_err(EvalError::InvalidRequest)?;
        let are_of_manifest = !strict && self.known.services.manifest.is_some();
        if self.sockets_of_project_only && are_of_manifest {
            services.keep_sockets_below(self.target.root.path());
        }
        Ok(services)
    }

    /// Waits for a turn, if turns are used. If a template can fork a child, the child is forked
    /// before the wait. Nothing is booted ahead: boot counts as the run's own time.
    fn wait_for_turn(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<(Option<Turn>, Option<Acquired>), EvalError> {
        let Some(turns) = self.turns.take() else {
            return Ok((None, self.ahead.take()));
        };
        // Earlier time does not count as the run's.
        self.began = Began::now();
        let templates = self.pool.as_deref().zip(self.key.as_ref());
        let ahead =
            templates.and_then(|(pool, key)| pool.ready(key, &self.context(), self.deadline()));
        let (turn, waited) = turns.take(observer)?;
        if waited {
            self.began = Began::now();
        }
        // A template that was fresh before may be stale now.
        let templates = self.pool.as_deref().zip(self.key.as_ref());
        let ahead = ahead.filter(|ahead| match (ahead, templates) {
            (Acquired::Child(_, _, boot), Some((pool, key))) => pool.is_fresh(key, boot),
            _ => false,
        });
        Ok((Some(turn), ahead))
    }

    pub(crate) fn context(&self) -> RequestContext<'_> {
        RequestContext {
            settings: &self.settings,
            request: &self.request,
            target: &self.target,
            php: &self.php,
            environment: &self.environment,
            given: match launch::strips(&self.settings.selection, &self.request) {
                true => &self.given.variables,
                false => &self.environment,
            },
            services: &self.services,
        }
    }

    /// Returns a fork of a template, or the reason why there is none.
    pub(crate) fn acquire(
        &self,
        ahead: Option<Acquired>,
        redactor: &mut Redactor<'_>,
    ) -> Result<Acquired, EvalError> {
        match (ahead, self.pool.as_deref().zip(self.key.as_ref())) {
            (Some(ahead), _) => Ok(ahead),
            (None, Some((pool, key))) => {
                pool.acquire(key, &self.context(), self.deadline(), redactor)
            }
            (None, None) => Ok(Acquired::Nothing(Origin::Cold(None))),
        }
    }

    /// `memory_limit` of its child, in bytes.
    pub(crate) fn memory_limit_bytes(&self) -> u64 {
        let own = self.settings.memory_limit_bytes;
        own.unwrap_or_else(|| u64::from(self.request.memory_limit_mb()) << 20)
    }

    /// The task of a child, in packets, and its secret.
    pub(crate) fn task(
        &self,
        child: &NewChild,
        origin: &Origin,
    ) -> Result<(Secret, Vec<Vec<u8>>), EvalError> {
        let secret = Secret::generate().map_err(|e| not_started(&e))?;
        let context = self.context();
        // For a fork, its template has done both.
        let (restrictions, watched) = match origin.is_fork() {
            true => (None, None),
            false => {
                let readable = match child.private_root {
                    true => &[],
                    false => child.readable.as_slice(),
                };
                (context.restrictions(readable), context.watched())
            }
        };
        let first = SnippetTask {
            guards: child.final_guards.clone(),
            insist: child.insist.clone(),
            limits: child.limits.clone(),
            memory_limit_bytes: context.takes_ini().then(|| self.memory_limit_bytes()),
            queries: self.request.tells_queries(),
            shown: self.request.value_limits(),
            redact: self.request.redact,
            casters: self.known.services.casters.clone(),
        };
        let work = match self.settings.purpose {
            Purpose::Evaluation => Work::Snippet(first),
            Purpose::Runtime(caller) => Work::Runtime(RuntimeTask { first, caller }),
        };
        let task = context.task(
            &secret,
            child.private_root,
            child.caches.as_deref(),
            restrictions,
            watched,
            work,
        );
        let packets = channel::encode_task(&task).map_err(|e| not_started(&e))?;
        Ok((secret, packets))
    }

    /// The code that follows the task, in packets.
    pub(crate) fn code(&self) -> Result<Vec<Vec<u8>>, EvalError> {
        let is_blank =
            matches!(self.settings.purpose, Purpose::Runtime(_)) && !self.request.has_snippet();
        let code = Code {
            snippet: match is_blank {
                true => Vec::new(),
                false => self.request.snippet.clone(),
            },
            arguments: self.request.arguments.clone(),
        };
        channel::encode_code(&code).map_err(|e| not_started(&e))
    }

    /// Gives a child its task, unless it has that, and its code, and supervises it until it ends.
    fn supervise(
        &self,
        mut child: NewChild,
        origin: &Origin,
        boot: &Boot,
        redactor: &mut Redactor<'_>,
    ) -> Result<Supervised, EvalError> {
        let (secret, outbox) = match std::mem::replace(&mut child.given, Given::Nothing) {
            Given::Code(secret) => (secret, Vec::new()),
            Given::Task(secret) => (secret, self.code()?),
            Given::Nothing => {
                let (secret, task) = self.task(&child, origin)?;
                (secret, [task, self.code()?].concat())
            }
        };
        let NewChild {
            child,
            channel,
            insist,
            guards,
            private_root,
            caches,
            directories,
            unsealed,
            underway,
            final_guards: _,
            given: _,
            limits: _,
            readable: _,
        } = child;
        let mut listener = Listener {
            redactor,
            process: child.pid(),
            threads: None,
            reader: MessageReader::new(secret),
            heard: ChildMessages {
                refused: boot.refused.clone(),
                queries: self.request.tells_queries().then(CollectedQueries::default),
                ..ChildMessages::default()
            },
            interrupted: false,
        };
        let ended = child.supervise(
            Supervision {
                deadline: self.deadline(),
                stop_signal: Some(stop_signal()),
                grace: GRACE,
                output_limit: OUTPUT_LIMIT,
                outbox,
                channel: Some(channel),
                idle: None,
                input: None,
                // The next run may want a lock or an address that this one still has.
                leaves_end: !self.request.allow_writes && !self.request.allow_network,
                looks: match !self.has_company && origin.is_fork() && processors() > 1 {
                    true => LOOKS,
                    false => Duration::ZERO,
                },
            },
            &mut listener,
        );
        let ended_at = Instant::now();
        let Listener { heard, threads, .. } = listener;
        Ok(Supervised {
            ended,
            ended_at,
            heard,
            threads,
            guards,
            insist,
            private_root,
            caches,
            _directories: directories,
            unsealed,
            underway,
        })
    }

    /// Checks that the run took place and had the guards it requires.
    fn check(&self, run: &mut Supervised, origin: &Origin) -> Result<(), EvalError> {
        run.heard
            .check_guards(&run.insist, run.threads.as_deref())?;
        if run.ended.interrupted {
            return Err(EvalError::Interrupted);
        }
        // A fork of a template is known to have the extension.
        if run.heard.entered_ns.is_none() && !run.ended.timed_out && !origin.is_fork() {
            return Err(EvalError::Launch(never_entered(
                self.settings.extension.as_deref(),
                &self.php,
                &run.heard,
                &run.ended,
            )));
        }
        // Only from a fork, and `heard` keeps only what it says before the snippet.
        match run.heard.unable.take().filter(|_| origin.is_fork()) {
            Some(why) => Err(EvalError::Launch(format!("Nothing was run: {why}."))),
            None => Ok(()),
        }
    }

    /// The evidence to judge a run by.
    fn evidence(&self, run: Supervised, origin: Origin, boot: &Boot) -> Evidence {
        let Supervised {
            mut ended,
            ended_at,
            mut heard,
            guards,
            private_root,
            caches,
            threads: _,
            insist: _,
            _directories,
            unsealed,
            underway: _,
        } = run;
        let layer = ended.layer.take();
        let until = (self.deadline() + GRACE).max(Instant::now()) + AFTERWARDS;
        let since = heard.boot_ended.filter(|_| !origin.is_fork());
        let mut changes = file_changes::of_run(boot.changes.as_ref(), layer.as_ref(), since, until);
        if let (true, Some(changes), Some(layer)) = (self.request.diff, &mut changes, &layer) {
            file_changes::add_diffs(changes, layer);
        }
        boot.precede(&mut ended, &mut heard, origin == Origin::First);
        Evidence {
            ended,
            heard,
            guards,
            context: Context {
                caches_of_boot: caches.filter(|_| origin.is_fork() && !private_root),
                ..self.words(layer.is_some() || self.request.allow_writes, private_root)
            },
            file_changes: changes,
            started_ns: self.began.ns,
            elapsed: self.began.at.elapsed(),
            ended_at,
            origin,
            message: unsealed.and_then(Unsealed::settle),
        }
    }

    /// The evidence to judge a boot by that produced no template.
    pub(crate) fn evidence_of_failed(&self, failed: Failed) -> Evidence {
        let Failed {
            ended,
            heard,
            guards,
            changes,
            message,
        } = failed;
        Evidence {
            ended,
            heard,
            guards,
            context: self.words(true, true),
            file_changes: changes,
            started_ns: self.began.ns,
            elapsed: self.began.at.elapsed(),
            ended_at: Instant::now(),
            origin: Origin::First,
            message,
        }
    }

    /// The context that the wording of refusals depends on.
    pub(crate) fn words(&self, writable: bool, private_root: bool) -> Context {
        Context {
            user: run_as(&self.target.root),
            root: self.target.root.path().to_owned(),
            application: self.settings.purpose.boots().then(|| {
                let root = self.target.root.clone();
                let homes = Homes::of(&root, &self.environment);
                (root, homes)
            }),
            writable,
            private_root,
            unsafe_runs: self.settings.selection.unsafe_runs().may(),
            caller: self.settings.purpose.caller(),
            caches_of_boot: None,
            given: Arc::clone(&self.given),
        }
    }

    /// The time by which secrets must be removed from the answer.
    pub(crate) fn redacted_by(&self) -> Instant {
        self.deadline().max(Instant::now()) + AFTERWARDS
    }
}

/// Gives a child what is one packet, at once. `false`: it has got nothing.
fn gives(child: &NewChild, packets: &[Vec<u8>]) -> bool {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    matches!(packets, [packet] if send(child.channel.as_raw_fd(), packet, flags).is_ok())
}

pub(crate) fn not_started(error: &dyn std::fmt::Display) -> EvalError {
    EvalError::Launch(format!("No child could be started: {error}."))
}
