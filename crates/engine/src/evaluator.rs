//! Starts evaluations.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::audit::Actor;
use crate::delegation::{Delegation, Elsewhere};
use crate::environment::{self, OtherUser, Receiver};
use crate::error::reason;
use crate::evaluation::Evaluation;
use crate::guards::{Guard, Selection};
use crate::launch::StartIni;
use crate::observer::Observer;
use crate::owner::run_as;
use crate::programs::{Programs, Unconfined};
use crate::project_environment::ProjectEnvironment;
use crate::request::{BOOTSTRAP_VARIABLE, EvalRequest, Target};
use crate::services::{self, By, Declared, Services};
use crate::settings::{IDLE, Purpose, Settings};
use crate::surroundings::{Environment, Surroundings, variable};
use crate::warm::Pool;
use crate::{Answered, EvalError, EvalResult, php_binary};

/// Starts evaluations: in which PHP, with which extension, on whose behalf.
#[derive(Debug, Clone)]
pub struct Evaluator {
    settings: Settings,
    pool: Option<Arc<Pool>>,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    services: Option<Vec<Declared>>,
    sockets_of_project_only: bool,
    programs: Programs,
    started_with: Option<Environment>,
}

impl Evaluator {
    /// Evaluates in the PHP that `php` names (see [`php_binary::resolve`]), on behalf of `actor`.
    #[must_use]
    pub fn new(php: impl AsRef<OsStr>, actor: Actor) -> Self {
        Self {
            settings: Settings {
                php: php.as_ref().to_owned(),
                running: None,
                search_path: std::env::var_os("PATH"),
                own_programs: None,
                extension: None,
                ini_scan_dir: std::env::var_os("PHP_INI_SCAN_DIR"),
                selection: Selection::default(),
                known_paths: Arc::default(),
                idle: IDLE,
                expects_more: false,
                actor,
                ini: StartIni::OfEvaluation,
                purpose: Purpose::Evaluation,
                memory_limit_bytes: None,
                umask: None,
            },
            pool: None,
            elsewhere: None,
            services: None,
            sockets_of_project_only: false,
            programs: Programs::All,
            started_with: None,
        }
    }

    /// Sets the host's own PHP binary.
    #[must_use]
    pub fn with_running(mut self, running: Option<PathBuf>) -> Self {
        self.settings.running = running;
        self
    }

    /// Sets the environment that this process was started with, by default the one that it has: where
    /// `php` is looked up, and the variables by which libraries load code
    /// ([`CODE`](environment::CODE)) are those of the start.
    #[must_use]
    pub fn with_started_with(mut self, environment: Environment) -> Self {
        self.settings.search_path = variable(&environment, "PATH").map(OsStr::to_owned);
        self.started_with = Some(environment);
        self
    }

    /// Sets where `php` is looked up, by default `PATH`.
    #[must_use]
    pub(crate) fn with_search_path(mut self, path: Option<OsString>) -> Self {
        self.settings.search_path = path;
        self
    }

    /// Sets which programs this process may start, by default all.
    #[must_use]
    pub fn with_programs(mut self, programs: Programs) -> Self {
        self.programs = programs;
        self
    }

    /// Sets the directory in which the host's own PHP has its programs, for a host without a search
    /// path.
    #[must_use]
    pub fn with_own_programs(mut self, directory: Option<PathBuf>) -> Self {
        self.settings.own_programs = directory;
        self
    }

    /// Sets the extension that the child is told to load, in case its own ini files do not.
    #[must_use]
    pub fn with_extension(mut self, extension: PathBuf) -> Self {
        self.settings.extension = Some(extension);
        self
    }

    /// Sets the `PHP_INI_SCAN_DIR` that the host was started with, by default the environment's.
    #[must_use]
    pub fn with_ini_scan_dir(mut self, dir: Option<OsString>) -> Self {
        self.settings.ini_scan_dir = dir;
        self
    }

    /// Sets the required guards, and those that are left out.
    #[must_use]
    pub fn with_guards(mut self, selection: Selection) -> Self {
        self.settings.selection = selection;
        self
    }

    /// Sets what a confined PHP needs to read, as known to the host: its extension directory, the
    /// directories of its include path.
    #[must_use]
    pub fn with_known_paths(mut self, paths: Arc<[PathBuf]>) -> Self {
        self.settings.known_paths = paths;
        self
    }

    /// Sets the services for requests that name none; by default those that their application
    /// declares when they are made.
    #[must_use]
    pub fn with_services(mut self, services: Vec<Declared>) -> Self {
        self.services = Some(services);
        self
    }

    /// Leaves out the Unix sockets that the project's `composer.json` declares and that are outside
    /// of the project: nobody has named it.
    #[must_use]
    pub fn with_sockets_of_project_only(mut self) -> Self {
        self.sockets_of_project_only = true;
        self
    }

    /// Keeps templates in `pool`, and forks from them if possible.
    #[must_use]
    pub fn with_pool(mut self, pool: Arc<Pool>) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Has a template boot with the first request of its kind, since more will follow. Otherwise the
    /// first one starts cold, and the template boots after its answer.
    #[must_use]
    pub fn expecting_more(mut self) -> Self {
        self.settings.expects_more = true;
        self
    }

    /// Has `elsewhere` carry out what it can. What it does not carry out runs here.
    #[must_use]
    pub fn with_elsewhere(mut self, elsewhere: Arc<dyn Elsewhere>) -> Self {
        self.elsewhere = Some(elsewhere);
        self
    }

    /// Sets how long a template waits for a request before it ends, by default [`IDLE`].
    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.settings.idle = idle;
        self
    }

    /// The required guards, and those that are left out.
    pub(crate) fn selection(&self) -> &Selection {
        &self.settings.selection
    }

    /// Whether a program may be started in this way.
    pub(crate) fn permit(&self, way: Unconfined) -> Result<(), EvalError> {
        Ok(self.programs.permit(way)?)
    }

    /// Its templates, if this process made them.
    pub(crate) fn pool(&self) -> Option<&Pool> {
        self.pool.as_deref().filter(|pool| pool.is_own())
    }

    /// Evaluates a request and waits for its end.
    ///
    /// # Errors
    ///
    /// [`EvalError::InvalidRequest`] and [`EvalError::Launch`] if there was no run,
    /// [`EvalError::Interrupted`] if the observer ended it. Whatever happened inside the child is
    /// an [`EvalResult`].
    pub fn evaluate(
        &self,
        request: &EvalRequest,
        observer: &mut dyn Observer,
    ) -> Result<EvalResult, EvalError> {
        self.answer(request, observer)?.into_result()
    }

    /// The same for whoever need not read what another process has told.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn answer(
        &self,
        request: &EvalRequest,
        observer: &mut dyn Observer,
    ) -> Result<Answered, EvalError> {
        let here = |result| Answered::Here(Box::new(result));
        request.check_snippet()?;
        let request = &*request.within_bounds()?;
        // It wakes while the request is looked at.
        if let Some(pool) = self.pool().filter(|_| !request.unconfined) {
            pool.alert_latest();
        }
        let surroundings = self.surroundings(request);
        // Whoever carries it out looks at the project, and nobody needs to do so twice.
        if self.pool().is_none_or(Pool::is_empty)
            && let Some(elsewhere) = &self.elsewhere
            && let Some(delegation) = self.delegation(request, &surroundings)
        {
            return match elsewhere.carry_out(&delegation, observer) {
                Some(answer) => answer.map(Answered::Elsewhere),
                None => (self.located_in(request, surroundings)?)
                    .run_here(observer)
                    .map(here),
            };
        }
        (self.located_in(request, surroundings)?)
            .run(observer)
            .map(here)
    }

    fn delegation(&self, request: &EvalRequest, of: &Surroundings) -> Option<Delegation> {
        Delegation::of(
            request,
            &self.settings,
            self.services.as_deref(),
            self.sockets_of_project_only,
            of,
        )
    }

    /// Checks a request and captures what its run needs from this process: the current environment.
    /// The deadline counts from here. Another thread may execute the run.
    ///
    /// # Errors
    ///
    /// [`EvalError::InvalidRequest`] and [`EvalError::Launch`], as for [`Evaluator::evaluate`].
    pub fn prepare(&self, request: &EvalRequest) -> Result<Evaluation, EvalError> {
        self.prepare_in(request, self.surroundings(request))
    }

    /// The same in other surroundings than this process's.
    pub(crate) fn prepare_in(
        &self,
        request: &EvalRequest,
        surroundings: Surroundings,
    ) -> Result<Evaluation, EvalError> {
        request.check_snippet()?;
        self.located_in(request, surroundings)
    }

    /// Prepares a request whose snippet may be blank.
    pub(crate) fn located(&self, request: &EvalRequest) -> Result<Evaluation, EvalError> {
        self.located_in(request, self.surroundings(request))
    }

    /// Those of this process, for a request.
    fn surroundings(&self, request: &EvalRequest) -> Surroundings {
        let mut here = Surroundings::here(self.started_with.as_deref());
        if let Some(started_with) = &self.started_with
            && !request.unconfined
        {
            environment::restore_code(&mut here.environment, started_with);
        }
        here
    }

    /// The services for requests that name none, but for those that the user's file allows.
    fn found(&self, known: &ProjectEnvironment) -> Result<Vec<Declared>, String> {
        match &self.services {
            Some(own) => Ok(own.clone()),
            None => known.services.services(),
        }
    }

    /// The services that are found now for requests that name none, but for those that the user's file
    /// allows at each request.
    ///
    /// # Errors
    ///
    /// As for [`Evaluator::prepare`].
    pub fn services_of(&self, evaluation: &Evaluation) -> Result<Vec<Declared>, EvalError> {
        self.found(&evaluation.known)
            .map_err(EvalError::InvalidRequest)
    }

    /// Who gets a part of this process's environment: the user's words about it, and whose the run is.
    fn receiver(&self, request: &EvalRequest, target: &Target) -> Result<Receiver, EvalError> {
        let mut passed = request.env.clone();
        if !request.unconfined {
            passed.extend(target.allowed.env.iter().cloned());
        }
        environment::check(&passed)?;
        let drops = self.settings.selection.takes(Guard::Privileges, request);
        let user = drops.then(|| run_as(&target.root)).flatten();
        Ok(Receiver {
            passed,
            has_terminal: false,
            other: OtherUser::in_project(&target.root, user),
        })
    }

    fn located_in(
        &self,
        request: &EvalRequest,
        surroundings: Surroundings,
    ) -> Result<Evaluation, EvalError> {
        let settings = &self.settings;
        let named = surroundings.variable(BOOTSTRAP_VARIABLE);
        let target = request.resolve(named.map(OsStr::to_owned))?;
        if request.unconfined {
            self.permit(Unconfined::Run)?;
        }
        let request = &request.clone().within(&target.allowed);
        settings.selection.check(request)?;
        let php = php_binary::resolve(
            &settings.php,
            settings.running.as_deref(),
            settings.search_path.as_deref(),
            settings.own_programs.as_deref(),
        )?;
        let receiver = self.receiver(request, &target)?;
        let known = ProjectEnvironment::of(
            &surroundings.environment,
            &surroundings.set_later,
            receiver,
            &target.root,
            Duration::from_millis(request.timeout_ms().into()),
        )
        .map_err(|e| {
            EvalError::Launch(format!(
                "Nothing was run: the files of the project {} cannot be accessed ({}).",
                target.root.path().display(),
                reason(&e)
            ))
        })?;
        let declared = match &request.services {
            Some(own) => services::declared(own).map(|own| By::User.declares(own)),
            None if request.unconfined => Ok(Vec::new()),
            None => self
                .found(&known)
                .and_then(|found| services::with_allowed(found, &target.allowed)),
        };
        let Surroundings {
            began,
            environment,
            set_later,
        } = surroundings;
        Ok(Evaluation {
            settings: settings.clone(),
            pool: self.pool.clone(),
            elsewhere: self.elsewhere.clone(),
            named_services: self.services.clone(),
            standing: None,
            is_delegated: false,
            ahead: None,
            has_company: false,
            request: request.clone().with_root_from_here(),
            target,
            php,
            environment,
            set_later,
            given: Arc::clone(&known.given),
            known,
            declared: declared.map_err(EvalError::InvalidRequest)?,
            services: Services::default(),
            key: None,
            sockets_of_project_only: self.sockets_of_project_only,
            began,
            turns: None,
        })
    }
}
