//! An evaluation that another process carries out: all that it takes from the process that asks,
//! as plain data.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_sandbox::Standing;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::audit::Actor;
use crate::began::Began;
use crate::environment::names_code;
use crate::guards::Selection;
use crate::launch::StartIni;
use crate::request::{Bounded, Database, EvalRequest};
use crate::services::Declared;
use crate::settings::{Purpose, Settings};
use crate::surroundings::Surroundings;
use crate::warm::Pool;
use crate::{EvalError, Evaluation, Evaluator, Observer, ToldResult};

/// Carries out evaluations for this process elsewhere.
pub trait Elsewhere: std::fmt::Debug + Send + Sync {
    /// Carries out a delegation. The observer sees the output that it would see here. `None`: it was
    /// not carried out, not even in part, and this process must do it.
    fn carry_out(
        &self,
        delegation: &Delegation,
        observer: &mut dyn Observer,
    ) -> Option<Result<ToldResult, EvalError>>;
}

/// One evaluation, as another process of equal rights can carry it out.
///
/// It is data of the process that asks: whoever reads it decides all of it again, as for a request
/// of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Delegation {
    began_ns: u64,
    environment: Vec<(OsString, OsString)>,
    set_later: Vec<OsString>,
    request: Asked,
    host: Host,
}

/// What whoever carries out a delegation has seen of the process that asks.
#[derive(Debug, Clone)]
pub struct Delegator {
    /// Its run gets no more than it has. `None`: it has what whoever carries it out has.
    pub standing: Option<Standing>,
    /// The permissions that files of its runs do not get (umask(2)).
    pub umask: u32,
    /// Whether it is the only request that whoever carries it out has under way.
    pub is_only: bool,
}

/// An [`EvalRequest`] that is confined.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    snippet: Vec<u8>,
    project_root: OsString,
    timeout_ms: u32,
    memory_limit_mb: u32,
    allow_writes: bool,
    allow_network: bool,
    bootstrap: Option<OsString>,
    services: Option<Vec<String>>,
    readable_paths: Vec<OsString>,
    redact: bool,
    database: Option<Database>,
    queries: bool,
    arguments: Arguments,
    depth: Option<u32>,
    max_items: Option<u32>,
    max_string: Option<u32>,
    diff: bool,
    env: Vec<String>,
}

/// The [`Settings`] of an evaluator, and what it knows of services.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Host {
    php: OsString,
    running: Option<OsString>,
    search_path: Option<OsString>,
    own_programs: Option<OsString>,
    extension: Option<OsString>,
    ini_scan_dir: Option<OsString>,
    selection: Selection,
    known_paths: Vec<OsString>,
    idle: Duration,
    actor: Actor,
    services: Option<Vec<Declared>>,
    sockets_of_project_only: bool,
}

/// Whether another process may carry out a request. Not what cannot be warm, what runs without the
/// kernel's guards, or what names code for libraries to load: whoever carries it out cannot know whether
/// the one that asks was started so, or is PHP code that could start nothing by itself.
fn can_be_delegated(
    selection: &Selection,
    request: &EvalRequest,
    environment: &[(OsString, OsString)],
) -> bool {
    selection.accepts_only_all(request) && !environment.iter().any(|(name, _)| names_code(name))
}

impl Delegation {
    /// The delegation of a request. `None` if another process may or can not carry it out: an unsafe
    /// run, an isolated PHP.
    pub(crate) fn of(
        request: &EvalRequest,
        settings: &Settings,
        services: Option<&[Declared]>,
        sockets_of_project_only: bool,
        surroundings: &Surroundings,
    ) -> Option<Self> {
        // Every struct is destructured, so a new field must be handled here.
        let Settings {
            php,
            running,
            search_path,
            own_programs,
            extension,
            ini_scan_dir,
            selection,
            known_paths,
            idle,
            actor,
            ini: StartIni::OfEvaluation,
            purpose: Purpose::Evaluation,
            memory_limit_bytes: None,
            umask: _, // whoever carries it out sees it
            expects_more: _,
        } = settings
        else {
            return None;
        };
        if !can_be_delegated(selection, request, &surroundings.environment) {
            return None;
        }
        let EvalRequest {
            snippet,
            project_root,
            timeout,
            memory_limit,
            allow_writes,
            allow_network,
            unconfined: false,
            bootstrap,
            services: of_request,
            readable_paths,
            redact,
            database,
            queries,
            arguments,
            depth,
            max_items,
            max_string,
            diff,
            env,
        } = request
        else {
            return None;
        };
        let os = |path: &PathBuf| path.clone().into_os_string();
        // The other process has another working directory.
        let absolute = |path: &PathBuf| std::path::absolute(path).ok().map(PathBuf::into_os_string);
        let Surroundings {
            began,
            environment,
            set_later,
        } = surroundings;
        Some(Self {
            began_ns: began.ns,
            environment: environment.clone(),
            set_later: set_later.clone(),
            request: Asked {
                snippet: snippet.clone(),
                project_root: absolute(project_root)?,
                timeout_ms: timeout.get(),
                memory_limit_mb: memory_limit.get(),
                allow_writes: *allow_writes,
                allow_network: *allow_network,
                bootstrap: bootstrap.as_ref().map(os),
                services: of_request.clone(),
                readable_paths: readable_paths.iter().map(os).collect(),
                redact: *redact,
                database: *database,
                queries: *queries,
                arguments: arguments.clone(),
                depth: depth.map(Bounded::get),
                max_items: max_items.map(Bounded::get),
                max_string: max_string.map(Bounded::get),
                diff: *diff,
                env: env.clone(),
            },
            host: Host {
                php: php.clone(),
                running: running.as_ref().map(os),
                search_path: search_path.clone(),
                own_programs: own_programs.as_ref().map(os),
                extension: match extension {
                    Some(path) => Some(absolute(path)?),
                    None => None,
                },
                ini_scan_dir: ini_scan_dir.clone(),
                selection: selection.clone(),
                known_paths: known_paths.iter().map(os).collect(),
                idle: *idle,
                actor: *actor,
                services: services.map(<[Declared]>::to_vec),
                sockets_of_project_only,
            },
        })
    }

    /// The time by which the run must end.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Began::at_ns(self.began_ns).at + Duration::from_millis(self.request.timeout_ms.into())
    }

    /// The same, to be carried out from now on: its deadline counts from here.
    pub(crate) fn begun_at(mut self, began: Began) -> Self {
        self.began_ns = began.ns;
        self
    }

    /// Checks it as a request of this process, and prepares it with the templates of `pool`. `takes_spare`:
    /// one of them gives it a spare, if it has one. That gets ready, and has no code.
    ///
    /// # Errors
    ///
    /// As for [`Evaluator::prepare`].
    pub fn prepare(self, pool: Arc<Pool>, takes_spare: bool) -> Result<Delegated, EvalError> {
        let Self {
            began_ns,
            environment,
            set_later,
            request,
            host,
        } = self;
        let Host {
            php,
            running,
            search_path,
            own_programs,
            extension,
            ini_scan_dir,
            selection,
            known_paths,
            idle,
            actor,
            services,
            sockets_of_project_only,
        } = host;
        let mut evaluator = Evaluator::new(php, actor)
            .with_running(running.map(PathBuf::from))
            .with_search_path(search_path)
            .with_own_programs(own_programs.map(PathBuf::from))
            .with_ini_scan_dir(ini_scan_dir)
            .with_guards(selection)
            .with_known_paths(known_paths.into_iter().map(PathBuf::from).collect())
            .with_idle(idle)
            .with_pool(pool)
            // Who asks a pool has asked before.
            .expecting_more();
        if let Some(extension) = extension {
            evaluator = evaluator.with_extension(extension.into());
        }
        if let Some(services) = services {
            evaluator = evaluator.with_services(services);
        }
        if sockets_of_project_only {
            evaluator = evaluator.with_sockets_of_project_only();
        }
        let surroundings = Surroundings {
            began: Began::at_ns(began_ns),
            environment,
            set_later,
        };
        let request = request.into_request()?;
        if !can_be_delegated(evaluator.selection(), &request, &surroundings.environment) {
            return Err(EvalError::Launch("It is for its own process.".into()));
        }
        let mut evaluation = evaluator.prepare_in(&request, surroundings)?;
        evaluation.is_delegated = true;
        evaluation.get_ready(takes_spare)?;
        Ok(Delegated { evaluation })
    }
}

/// An evaluation that was delegated to this process and is prepared.
#[derive(Debug)]
pub struct Delegated {
    evaluation: Evaluation,
}

/// What a child loads that a delegation names.
#[derive(Debug)]
pub struct Loaded<'d> {
    /// The PHP.
    pub php: &'d Path,
    /// The extension.
    pub extension: Option<&'d Path>,
    /// Its `PHP_INI_SCAN_DIR`.
    pub ini_scan_dir: Option<&'d OsStr>,
}

impl Delegated {
    /// What its child loads.
    #[must_use]
    pub fn loaded(&self) -> Loaded<'_> {
        let Evaluation { php, settings, .. } = &self.evaluation;
        Loaded {
            php,
            extension: settings.extension.as_deref(),
            ini_scan_dir: settings.ini_scan_dir.as_deref(),
        }
    }

    /// The same, of the process that has asked for it. A fork that is ready for it begins.
    #[must_use]
    pub fn of(self, delegator: Delegator) -> Evaluation {
        self.evaluation.of(delegator)
    }
}

impl Asked {
    /// Clamped and checked again, as from any caller.
    fn into_request(self) -> Result<EvalRequest, EvalError> {
        let bounded = |number: Option<u32>| number.map(i64::from);
        Ok(EvalRequest {
            snippet: self.snippet,
            project_root: self.project_root.into(),
            timeout: Bounded::clamped(self.timeout_ms.into()),
            memory_limit: Bounded::clamped(self.memory_limit_mb.into()),
            allow_writes: self.allow_writes,
            allow_network: self.allow_network,
            unconfined: false,
            bootstrap: self.bootstrap.map(PathBuf::from),
            services: self.services,
            readable_paths: self.readable_paths.into_iter().map(PathBuf::from).collect(),
            redact: self.redact,
            database: self.database,
            queries: self.queries,
            arguments: Arguments::new(self.arguments.into_inner())?,
            depth: bounded(self.depth).map(Bounded::clamped),
            max_items: bounded(self.max_items).map(Bounded::clamped),
            max_string: bounded(self.max_string).map(Bounded::clamped),
            diff: self.diff,
            env: self.env,
        })
    }
}
