//! From a request to a template that runs and is to boot.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use altair_sandbox::{Child, Pass, channel_pair};

use crate::asked::Asked;
use crate::channel::{self, Model, Secret, Work};
use crate::confinement::AUDIT_DIR;
use crate::guards::GuardStates;
use crate::ladder::Level;
use crate::readable::INSTALLED;
use crate::request::{MAX_MEMORY_MB, MAX_TIMEOUT_MS};
use crate::start::paths_of;
use crate::{freshness, guards, launch};

/// A template that is started, and all that its boot needs and leaves to be known.
pub(crate) struct TemplateStart {
    pub child: Child,
    pub channel: OwnedFd,
    pub outbox: Vec<Vec<u8>>,
    pub secret: Secret,
    /// What it gets when it has booted.
    pub pass: Pass,
    pub guards: GuardStates,
    pub root: PathBuf,
    pub readable: Vec<PathBuf>,
    /// What of the project is not the host's to it.
    pub private: Vec<PathBuf>,
    /// What the host was told to start: the paths by which it is found, which may be links, and
    /// what Composer has installed, by which it found paths to show.
    pub named: Vec<PathBuf>,
    /// As `MadeFrom::launched_ns`.
    pub launched_ns: i64,
}

impl TemplateStart {
    /// Starts a template.
    ///
    /// # Errors
    /// Why there is none to be had, in words for the user.
    pub(crate) fn of(asked: &Asked<'_>) -> Result<Self, String> {
        let readable = asked.readable()?;
        // What it is for is not one request's: as much as any may ask for.
        let request = asked
            .request
            .clone()
            .with_memory_limit_mb(MAX_MEMORY_MB)
            .with_timeout_ms(MAX_TIMEOUT_MS);
        let asked = Asked {
            request: &request,
            ..*asked
        };
        let confinement = asked.confinement(&Level::Full, &readable);
        let files = confinement.files();
        let root = asked.target.root.path().to_owned();
        let (channel, theirs) = channel_pair().map_err(|error| error.to_string())?;
        let mut launch = launch::plan(&confinement, asked.host(), theirs);
        launch.template = true;
        // It lives on, and forks: the deadline of its boot is the host's to keep.
        launch.policy.limits.cpu_seconds = None;
        let launched_ns = freshness::now_ns();
        let child = launch.spawn().map_err(|error| error.to_string())?;
        let Some(renewal) = child.renewal().cloned() else {
            return Err("it has no private root".into());
        };
        let guards = guards::states(child.guards(), &asked.evaluator.selection, asked.request);
        let checked = asked.evaluator.selection.check_states(&guards);
        checked.map_err(|error| error.to_string())?;
        let secret = Secret::generate().map_err(|error| error.to_string())?;
        let final_guards = confinement.final_guards();
        let seccomp = final_guards.seccomp.unwrap_or_default();
        let (filter, pass) = altair_sandbox::Model::new(&seccomp)
            .map_err(|error| error.to_string())?
            .into_parts();
        let model = Model {
            landlock: final_guards.landlock.is_some(),
            descriptors: final_guards.descriptors,
            insist: asked.evaluator.selection.insisted_final(&request, true),
            renewal,
            idle_ms: u64::try_from(asked.evaluator.idle.as_millis()).unwrap_or(u64::MAX),
        };
        let restrictions = asked.restrictions(&[]);
        let task = asked.task(
            &secret,
            true,
            restrictions,
            asked.watched(),
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
                Some(asked.php.to_owned()),
                asked.evaluator.extension.clone(),
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
