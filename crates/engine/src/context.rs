//! All inputs of a child for one request, and what follows from them, however the child is started.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use altair_sandbox::{Place, Shown};

use crate::channel::{PROTOCOL, Restrictions, Secret, Task, Watched, Work};
use crate::confinement::{Confinement, Process};
use crate::environment::Variable;
use crate::error::reason;
use crate::guards::Guard;
use crate::ladder::{Level, why_no_layer};
use crate::launch::HostContext;
use crate::profile::SecurityProfile;
use crate::readable_paths::{Homes, Sources};
use crate::request::{Bootstrap, EvalRequest, Target};
use crate::services::Services;
use crate::settings::Settings;

/// All inputs of a child for one request.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub settings: &'a Settings,
    pub request: &'a EvalRequest,
    pub target: &'a Target,
    pub php: &'a Path,
    /// The host's.
    pub environment: &'a [Variable],
    /// What the child gets of it.
    pub given: &'a [Variable],
    pub services: &'a Services,
}

impl RequestContext<'_> {
    /// The paths that may be read besides the project.
    ///
    /// # Errors
    /// Why they cannot be looked up, in words for the user.
    pub(crate) fn readable(&self) -> Result<Vec<Shown>, String> {
        let Self {
            settings,
            request,
            target,
            php,
            ..
        } = self;
        let shows = [Guard::Filesystem, Guard::Landlock, Guard::Ini];
        if !shows.into_iter().any(|guard| self.takes(guard)) {
            return Ok(Vec::new());
        }
        let sources = Sources {
            php,
            extension: settings.extension.as_deref(),
            ini_scan_dir: settings.ini_scan_dir.as_deref(),
            known: &settings.known_paths,
            root: &target.root,
            named_root: &target.named_root,
            requested: &target.readable,
            sockets: match self.takes(Guard::Seccomp) {
                true => self.services.paths().collect(),
                // Nobody looks who listens.
                false => self.services.of_user().paths().collect(),
            },
            homes: Homes::of(&target.root, self.environment),
            patience: Duration::from_millis(request.timeout_ms().into()),
        };
        sources.shown().map_err(|e| {
            format!(
                "the files of the project cannot be accessed: {}",
                reason(&e)
            )
        })
    }

    /// Returns whether a guard is to be taken.
    pub(crate) fn takes(&self, guard: Guard) -> bool {
        self.settings.selection.takes(guard, self.request)
    }

    /// The confinement of a process at this level of the filesystem guard.
    pub(crate) fn confinement<'b>(
        &'b self,
        level: &'b Level<Place>,
        process: Process,
        readable: &'b [Shown],
    ) -> Confinement<'b> {
        Confinement {
            request: self.request,
            target: self.target,
            selection: &self.settings.selection,
            level,
            process,
            readable,
            services: self.services,
            lives_on: self.settings.purpose.lives_on(),
            umask: self.settings.umask,
        }
    }

    pub(crate) fn host(&self) -> HostContext<'_> {
        HostContext {
            php: self.php.to_owned(),
            extension: self.settings.extension.as_deref(),
            ini_scan_dir: self.settings.ini_scan_dir.as_deref(),
            environment: self.given.to_vec(),
            ini: &self.settings.ini,
        }
    }

    /// A child's task for this request.
    pub(crate) fn task(
        &self,
        secret: &Secret,
        private_root: bool,
        caches: Option<&Path>,
        restrictions: Option<Restrictions>,
        watched: Option<Watched>,
        work: Work,
    ) -> Task {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        Task {
            protocol: PROTOCOL.into(),
            secret: secret.clone(),
            host: std::process::id().cast_signed(),
            root: bytes(self.target.root.path()),
            bootstrap: match &self.target.bootstrap {
                Bootstrap::File(path) => Some(bytes(path)),
                Bootstrap::Discover => None,
            },
            capped: self.takes(Guard::Limits),
            private_root,
            unsafe_runs: self.settings.selection.unsafe_runs().may(),
            caches: caches.map(bytes),
            restrictions,
            watched,
            work,
        }
    }

    /// How database sessions are watched.
    pub(crate) fn watched(&self) -> Option<Watched> {
        let watched = self.request.watched()?;
        let mode = watched.mode.filter(|_| self.takes_ini());
        (mode.is_some() || self.request.queries).then_some(Watched { mode, ..watched })
    }

    /// Returns whether PHP's own switches are applied.
    pub(crate) fn takes_ini(&self) -> bool {
        self.takes(Guard::Ini)
    }

    /// The restrictions of PHP's own switches. `readable`: paths besides the project, if there is
    /// no private root to enforce this.
    pub(crate) fn restrictions(&self, readable: &[PathBuf]) -> Option<Restrictions> {
        let restrictions = SecurityProfile::from(self.request)
            .with_services(!self.services.is_empty())
            .restrictions();
        restrictions
            .filter(|_| self.takes_ini())
            .map(|restrictions| Restrictions {
                readable: readable
                    .iter()
                    .map(|path| path.as_os_str().as_bytes().to_vec())
                    .collect(),
                ..restrictions
            })
    }

    /// Why no template can serve this request, as far as this is known from the start.
    pub(crate) fn cannot_be_warm(&self) -> Option<String> {
        if self.request.unconfined {
            return Some("an unsafe run has no guards that protect the template from it".into());
        }
        for guard in [Guard::Privileges, Guard::Filesystem, Guard::Seccomp] {
            if !self.takes(guard) {
                return Some(format!(
                    "without the guard `{guard}` a template is not isolated from its runs"
                ));
            }
        }
        let why = why_no_layer(self.target.root.path())?;
        Some(format!("runs cannot have layers of their own: {why}"))
    }
}
