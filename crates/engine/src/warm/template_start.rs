//! Starts a template for a request, ready to boot.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use altair_sandbox::{Child, GuardState, Pass, Place, Role, Shown, channel_pair};

use crate::channel::{self, Ground, Secret, TemplateTask, Work};
use crate::cold_start::directory;
use crate::confinement::{AUDIT_DIR, Process};
use crate::context::RequestContext;
use crate::directories::Directories;
use crate::guards::{Guard, GuardStates};
use crate::ladder::{Ladder, Level};
use crate::owner::run_as;
use crate::readable_paths::INSTALLED;
use crate::template_files::TemplateFiles;
use crate::{freshness, guards, launch};

/// A started template, with everything that its boot needs and that must be known afterwards.
pub(crate) struct TemplateStart {
    pub child: Child,
    pub channel: OwnedFd,
    pub outbox: Vec<Vec<u8>>,
    pub secret: Secret,
    /// Sent to the template once it has booted.
    pub pass: Pass,
    pub guards: GuardStates,
    pub root: PathBuf,
    pub files: TemplateFiles,
    /// Paths of the project that differ from the host's in the template.
    pub private: Vec<PathBuf>,
    /// The paths that the host relied on: the programs it was told to start, which may be links,
    /// and Composer's package list, from which it derived the paths to show.
    pub named: Vec<PathBuf>,
    /// As `MadeFrom::launched_ns`.
    pub launched_ns: i64,
    /// Whether making a fork names something below the project.
    pub names_project: bool,
}

impl TemplateStart {
    /// Starts a template.
    ///
    /// # Errors
    /// Why no template can be started, in words for the user.
    pub(crate) fn of(context: &RequestContext<'_>) -> Result<Self, String> {
        let readable = context.readable()?;
        // It serves many requests, so it gets the maximum that any of them may ask for.
        let request = context
            .request
            .clone()
            .with_memory_limit_mb(context.target.allowed.most_mb())
            .with_timeout_ms(context.target.allowed.most_ms());
        let context = RequestContext {
            request: &request,
            ..*context
        };
        let Started {
            child,
            channel,
            level,
            directories,
            state,
            launched_ns,
        } = Started::of(&context, &readable)?;
        let confinement = context.confinement(&level, Process::Template, &readable);
        let files = confinement.files();
        let caches = confinement.caches();
        let root = context.target.root.path().to_owned();
        let mut guards =
            guards::states(child.guards(), &context.settings.selection, context.request);
        guards.extend(state.map(|state| (Guard::Filesystem, state)));
        let checked = context.settings.selection.check_states(&guards);
        checked.map_err(|error| error.to_string())?;
        let secret = Secret::generate().map_err(|error| error.to_string())?;
        let final_guards = confinement.final_guards();
        let ground = match (&level, child.renewal().cloned(), &final_guards.landlock) {
            (_, Some(renewal), _) => Ground::PrivateRoot(renewal),
            (Level::None(temp), None, Some(landlock)) => Ground::HostFiles {
                landlock: landlock.clone(),
                temp: temp.path().as_os_str().as_bytes().to_vec(),
            },
            _ => {
                return Err("neither a private root nor Landlock isolates it from its runs".into());
            }
        };
        let names_project = match &ground {
            Ground::PrivateRoot(renewal) => renewal.names_project(),
            Ground::HostFiles { .. } => false,
        };
        let private_root = confinement.has_view();
        let seccomp = final_guards.seccomp.unwrap_or_default();
        let (filter, pass) = altair_sandbox::Model::new(&seccomp)
            .map_err(|error| error.to_string())?
            .into_parts();
        let model = TemplateTask {
            boots: context.settings.purpose.boots(),
            // They depend on nothing that requests for one template may differ in.
            forks: context
                .confinement(&level, Process::Fork, &readable)
                .final_guards(),
            insist: context
                .settings
                .selection
                .insisted_final(&request, private_root),
            ground,
            idle_ms: u64::try_from(context.settings.idle.as_millis()).unwrap_or(u64::MAX),
        };
        let files_of_template = TemplateFiles {
            level,
            readable,
            user: run_as(&context.target.root),
            directories: Arc::new(directories),
        };
        let shown = files_of_template.shown_to_php();
        let restrictions = context.restrictions(&shown);
        let task = context.task(
            &secret,
            private_root,
            caches.as_deref(),
            restrictions,
            context.watched(),
            Work::Template(model),
        );
        let mut outbox = channel::encode_task(&task).map_err(|error| error.to_string())?;
        outbox.push(filter);
        Ok(Self {
            guards,
            child,
            channel,
            outbox,
            secret,
            pass,
            private: vec![root.join(AUDIT_DIR)]
                .into_iter()
                .chain(files_of_template.temp().map(|temp| temp.path().to_owned()))
                .chain(files.into_iter().map(|(path, _)| path))
                .collect(),
            named: [
                Some(context.php.to_owned()),
                context.settings.extension.clone(),
            ]
            .into_iter()
            .flatten()
            .chain([root.join(INSTALLED)])
            // Landlock was given the names in it, to leave out one.
            .chain((!private_root).then(|| root.clone()))
            .filter(|path| path.exists())
            .collect(),
            root,
            files: files_of_template,
            launched_ns,
            names_project,
        })
    }
}

/// A process that is to become a template.
struct Started {
    child: Child,
    channel: OwnedFd,
    level: Level<Place>,
    directories: Directories,
    /// The state of the guard `filesystem`, if it is not fully in force.
    state: Option<GuardState>,
    /// [`freshness::now_ns`] at the launch.
    launched_ns: i64,
}

impl Started {
    /// Starts it in a private root with a layer in memory, or, if nothing can be mounted, without
    /// a private root.
    fn of(context: &RequestContext<'_>, readable: &[Shown]) -> Result<Self, String> {
        let mut ladder = Ladder::new(
            context.target.root.path(),
            context.takes(Guard::Filesystem),
            context.request.allow_writes,
        );
        loop {
            let mut directories = Directories::default();
            let level = match ladder.level() {
                Level::LayerOnDisk(()) | Level::ReadOnly => {
                    return Err(ladder.why().to_owned());
                }
                level => level
                    .with(|| directory(context, &mut directories))
                    .map_err(|error| format!("no temporary directory could be made: {error}"))?,
            };
            if context.request.allow_writes && ladder.why_no_root().is_some() {
                return Err("without a private root, runs whose writes are real start cold".into());
            }
            let confinement = context.confinement(&level, Process::Template, readable);
            let (channel, theirs) = channel_pair().map_err(|error| error.to_string())?;
            let mut launch = launch::plan(&confinement, context.host(), theirs);
            launch.role = Role::Template;
            // It lives on and forks, so the host itself enforces the deadline of its boot.
            launch.policy.limits.cpu_seconds = None;
            let launched_ns = freshness::now_ns();
            match launch.spawn() {
                Ok(child) => {
                    return Ok(Self {
                        child,
                        channel,
                        level,
                        directories,
                        state: ladder.settle(),
                        launched_ns,
                    });
                }
                Err(error) => ladder.step_down(error).map_err(|error| error.to_string())?,
            }
        }
    }
}
