//! Starts a template for a request, ready to boot.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use altair_sandbox::{Child, Pass, Role, channel_pair};

use crate::channel::{self, Secret, TemplateTask, Work};
use crate::cold_start::paths_of;
use crate::confinement::AUDIT_DIR;
use crate::context::RequestContext;
use crate::guards::GuardStates;
use crate::ladder::Level;
use crate::readable_paths::INSTALLED;
use crate::request::{MAX_MEMORY_MB, MAX_TIMEOUT_MS};
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
    pub readable: Vec<PathBuf>,
    /// Paths of the project that differ from the host's in the template.
    pub private: Vec<PathBuf>,
    /// The paths that the host relied on: the programs it was told to start, which may be links,
    /// and Composer's package list, from which it derived the paths to show.
    pub named: Vec<PathBuf>,
    /// As `MadeFrom::launched_ns`.
    pub launched_ns: i64,
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
            .with_memory_limit_mb(MAX_MEMORY_MB)
            .with_timeout_ms(MAX_TIMEOUT_MS);
        let context = RequestContext {
            request: &request,
            ..*context
        };
        let confinement = context.confinement(&Level::Full, &readable);
        let files = confinement.files();
        let root = context.target.root.path().to_owned();
        let (channel, theirs) = channel_pair().map_err(|error| error.to_string())?;
        let mut launch = launch::plan(&confinement, context.host(), theirs);
        launch.role = Role::Template;
        // It lives on and forks, so the host itself enforces the deadline of its boot.
        launch.policy.limits.cpu_seconds = None;
        let launched_ns = freshness::now_ns();
        let child = launch.spawn().map_err(|error| error.to_string())?;
        let Some(renewal) = child.renewal().cloned() else {
            return Err("it has no private root".into());
        };
        let guards = guards::states(child.guards(), &context.settings.selection, context.request);
        let checked = context.settings.selection.check_states(&guards);
        checked.map_err(|error| error.to_string())?;
        let secret = Secret::generate().map_err(|error| error.to_string())?;
        let final_guards = confinement.final_guards();
        let seccomp = final_guards.seccomp.unwrap_or_default();
        let (filter, pass) = altair_sandbox::Model::new(&seccomp)
            .map_err(|error| error.to_string())?
            .into_parts();
        let model = TemplateTask {
            boots: context.settings.purpose.boots(),
            landlock: final_guards.landlock.is_some(),
            descriptors: final_guards.descriptors,
            insist: context.settings.selection.insisted_final(&request, true),
            renewal,
            idle_ms: u64::try_from(context.settings.idle.as_millis()).unwrap_or(u64::MAX),
        };
        let restrictions = context.restrictions(&[]);
        let task = context.task(
            &secret,
            true,
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
            readable: paths_of(&readable),
            private: vec![root.join(AUDIT_DIR)]
                .into_iter()
                .chain(files.into_iter().map(|(path, _)| path))
                .collect(),
            named: [
                Some(context.php.to_owned()),
                context.settings.extension.clone(),
            ]
            .into_iter()
            .flatten()
            .chain([root.join(INSTALLED)])
            .filter(|path| path.exists())
            .collect(),
            root,
            launched_ns,
        })
    }
}
