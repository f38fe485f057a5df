//! The start of an isolated PHP, cold or as the fork of a template.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_sandbox::{Served, Supervision};

use super::ear::{Awaited, Ear, Heard};
use super::{Runtime, Started, cause};
use crate::Caller;
use crate::bounds::{GRACE, OUTPUT_LIMIT, stop_signal};
use crate::channel::{Left, MessageReader};
use crate::cold_start::{NewChild, start_cold};
use crate::context::RequestContext;
use crate::directories::Directories;
use crate::evaluation::Evaluation;
use crate::guards::Guard;
use crate::launch::{OwnIni, StartIni};
use crate::observer::Observer;
use crate::observer::Silent;
use crate::origin::Origin;
use crate::programs::Unconfined;
use crate::redaction::output::{KnownSecrets, Redactor};
use crate::settings::Purpose;
use crate::unfit_php::never_entered;
use crate::warm::{Acquired, Boot, Failed, Key};
use crate::{EvalError, EvalRequest, EvalResult, Evaluator};

/// How an isolated PHP starts.
#[derive(Debug)]
pub enum RuntimeStart {
    /// With a PHP of its own, and no application.
    Plain {
        /// Its ini settings.
        ini: OwnIni,
        /// What these settings say of `memory_limit`, in bytes.
        memory_limit_bytes: Option<u64>,
        /// The directory that it may read as a project; `None`: nothing but PHP's own files.
        root: Option<PathBuf>,
    },
    /// With the application of the request, which has booted. Its snippet runs first, unless it is
    /// blank.
    Application,
}

/// A runtime, or what became of one that did not get ready.
type Booting = Result<Runtime, Box<EvalResult>>;

impl Evaluator {
    /// Starts an isolated PHP with what the request allows.
    ///
    /// # Errors
    ///
    /// [`EvalError::InvalidRequest`] and [`EvalError::Launch`] if there is none,
    /// [`EvalError::Interrupted`] if the observer ended it.
    pub fn start_runtime(
        &self,
        request: &EvalRequest,
        start: RuntimeStart,
        observer: &mut dyn Observer,
    ) -> Result<Runtime, EvalError> {
        let mut directories = Directories::default();
        let mut request = request.clone();
        if request.unconfined {
            self.permit(match start {
                RuntimeStart::Application => Unconfined::Run,
                RuntimeStart::Plain { .. } => Unconfined::Runtime,
            })?;
        }
        let (ini, caller, memory_limit_bytes) = match start {
            RuntimeStart::Application => (StartIni::OfEvaluation, Caller::Request, None),
            RuntimeStart::Plain {
                ini,
                memory_limit_bytes,
                root,
            } => {
                request.project_root = match root {
                    Some(root) => root,
                    None => self.no_project(&mut directories)?,
                };
                (StartIni::Own(ini), Caller::Constructor, memory_limit_bytes)
            }
        };
        let mut evaluation = self.located(&request)?;
        evaluation.settings.ini = ini;
        evaluation.settings.purpose = Purpose::Runtime(caller);
        evaluation.settings.memory_limit_bytes = memory_limit_bytes;
        let timeout = Duration::from_millis(request.timeout_ms().into());
        evaluation
            .start(directories, observer)?
            .map_err(|result| EvalError::Launch(cause::words(&result, timeout)))
    }

    /// Starts an isolated PHP for a session in the application of a request. Returns the secrets,
    /// too, that are to be kept out of its answers.
    ///
    /// # Errors
    ///
    /// As for [`Evaluator::start_runtime`]. An application that does not boot is a result.
    pub(crate) fn start_session(
        &self,
        request: &EvalRequest,
        observer: &mut dyn Observer,
    ) -> Result<(Booting, Option<KnownSecrets>), EvalError> {
        let mut evaluation = self.located(request)?;
        evaluation.settings.purpose = Purpose::Runtime(Caller::Session);
        let known = request.redact.then(|| evaluation.known.secrets.clone());
        let started = evaluation.start(Directories::default(), observer)?;
        Ok((started, known))
    }

    /// An empty directory in the place of a project.
    fn no_project(&self, directories: &mut Directories) -> Result<PathBuf, EvalError> {
        let made = match self.pool() {
            Some(pool) => pool.no_project(),
            None => directories.make_own().map(|place| place.path().to_owned()),
        };
        made.map_err(|error| {
            EvalError::Launch(format!("No temporary directory can be made: {error}."))
        })
    }
}

impl Evaluation {
    fn start(
        mut self,
        mut directories: Directories,
        observer: &mut dyn Observer,
    ) -> Result<Booting, EvalError> {
        self.services = self.resolved()?;
        let audit = match self.request.unconfined && self.settings.purpose.boots() {
            true => Some(self.announced().map_err(|error| {
                EvalError::Launch(format!("An unsafe session must be audited. {error}"))
            })?),
            false => None,
        };
        // An entry may ask for the most that any request may; PHP's own limit is each entry's.
        let most_mb = self.target.allowed.most_mb();
        let request = self.request.clone().with_memory_limit_mb(most_mb);
        let context = RequestContext {
            request: &request,
            ..self.context()
        };
        let (mut child, origin, boot) = match self.child(&context, observer)? {
            Acquired::Child(child, origin, boot) => (*child, origin, boot),
            // No template boots after it: most processes need one of a kind, which lives on.
            Acquired::FirstCall => (start_cold(&context)?, Origin::Cold(None), Arc::default()),
            Acquired::Nothing(origin) => (start_cold(&context)?, origin, Arc::<Boot>::default()),
            Acquired::Ended(failed) => return Ok(Err(self.told(*failed))),
        };
        directories.take_over(std::mem::take(&mut child.directories));
        let private_root = child.private_root;
        let (secret, mut outbox) = self.task(&child, &origin)?;
        outbox.extend(self.code()?);
        let NewChild {
            underway,
            child,
            channel,
            insist,
            mut guards,
            ..
        } = child;
        let awaited = match self.request.has_snippet() {
            true => Awaited::Left,
            false => Awaited::Ready,
        };
        let mut heard = Heard::new(MessageReader::new(secret), awaited, child.pid());
        heard.messages.refused = boot.refused.clone();
        let mut session = child.hold(Supervision {
            deadline: self.deadline(),
            stop_signal: Some(stop_signal()),
            grace: GRACE,
            output_limit: OUTPUT_LIMIT,
            outbox,
            channel: Some(channel),
            idle: None,
            input: None,
            leaves_end: false,
            looks: Duration::ZERO,
        });
        let timeout = Duration::from_millis(self.request.timeout_ms().into());
        let served = session.serve(&mut Ear::new(&mut heard, observer));
        // The next one that starts gets a fork that is ready.
        drop(underway);
        heard
            .messages
            .check_guards(&insist, heard.threads.as_deref())?;
        match served {
            Some(Served::Ready) => {}
            Some(Served::Ended(ended)) if ended.interrupted => return Err(EvalError::Interrupted),
            Some(Served::Ended(ended)) if ended.undelivered && origin.is_fork() => {
                let why = "Nothing was run: the template ended just then.";
                return Err(EvalError::Launch(why.into()));
            }
            Some(Served::Ended(ended)) => {
                let is_own = heard.messages.entered_ns.is_some() || origin.is_fork();
                if !is_own && !ended.timed_out {
                    return Err(EvalError::Launch(never_entered(
                        self.settings.extension.as_deref(),
                        &self.php,
                        &heard.messages,
                        &ended,
                    )));
                }
                return Ok(Err(self.told(Failed {
                    ended: *ended,
                    heard: heard.messages,
                    guards,
                    changes: None,
                    message: None,
                })));
            }
            None => return Err(EvalError::Launch("It has ended.".into())),
        }
        if let Some(Left::CutShort(ending)) = &heard.left {
            let why = cause::of_ending(ending);
            return Err(EvalError::Launch(format!(
                "its snippet did not return: {why}"
            )));
        }
        let told = heard.messages.guarded.iter().flatten();
        let at_ready = heard.messages.ready.iter().flat_map(|(_, guards)| guards);
        guards.extend(told.chain(at_ready).cloned());
        Ok(Ok(Runtime::from(Started {
            session,
            heard,
            guards,
            timeout,
            memory_limit_bytes: self.memory_limit_bytes(),
            context: self.words(
                private_root && context.takes(Guard::Filesystem) || self.request.allow_writes,
                private_root,
            ),
            boot,
            origin: origin.name(),
            audit,
            directories,
            began: Instant::now(),
        })))
    }

    /// What became of a start, as an evaluation tells it.
    fn told(&self, mut failed: Failed) -> Box<EvalResult> {
        let left = std::mem::take(&mut failed.heard.variables);
        let known = self.request.redact.then(|| self.known.secrets.clone());
        let result = self.evidence_of_failed(failed).into_result();
        let mut silent = Silent;
        let redactor = Redactor::new(&mut silent, known);
        Box::new(redactor.finish(&left, result, self.redacted_by()))
    }

    /// A fork of a template, where there is one.
    fn child(
        &self,
        context: &RequestContext<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Acquired, EvalError> {
        let Some(pool) = &self.pool else {
            return Ok(Acquired::Nothing(Origin::Cold(None)));
        };
        let mut redactor = Redactor::new(observer, None);
        pool.acquire(&Key::new(context), context, self.deadline(), &mut redactor)
    }
}

/// The directory that a runtime without an application may read: the working directory, if it holds
/// a project of Composer's.
#[must_use]
pub fn project_here(directory: &Path) -> Option<PathBuf> {
    directory
        .join("composer.json")
        .is_file()
        .then(|| directory.to_owned())
}
