//! Starts a child for a prepared evaluation, with as much of the filesystem guard as the kernel
//! supports.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use altair_sandbox::{Child, FinalGuards, Limits, Place, SpawnError, channel_pair, why_unseen};

use crate::channel::Secret;
use crate::confinement::Process;
use crate::context::RequestContext;
use crate::directories::Directories;
use crate::guards::{Guard, GuardStates, Insisted};
use crate::ladder::Ladder;
use crate::readable_paths::paths_of;
use crate::real_writes::Unsealed;
use crate::surroundings::temp_dir;
use crate::template_files::TemplateFiles;
use crate::warm::Underway;
use crate::{EvalError, guards, launch};

/// A running child that waits for its task.
pub(crate) struct NewChild {
    pub child: Child,
    /// The host's end of the channel.
    pub channel: OwnedFd,
    /// The guards that the child applies before boot.
    pub final_guards: FinalGuards,
    /// The limits that it applies itself.
    pub limits: Limits,
    /// The guards that it requires.
    pub insist: Vec<Insisted>,
    /// What it has got.
    pub given: Given,
    /// The state of each guard so far.
    pub guards: GuardStates,
    /// Whether it is in a private root.
    pub private_root: bool,
    /// Where frameworks have their caches, if they cannot write to the project.
    pub caches: Option<PathBuf>,
    /// Paths that may be read besides the project.
    pub readable: Vec<PathBuf>,
    /// The run's directories on disk, if any.
    pub directories: Directories,
    /// If its writes are real and nothing seals the audit log: the project.
    pub unsealed: Option<Unsealed>,
    /// That it is a run of its template.
    pub underway: Option<Underway>,
}

/// What a child has got from its host, and the secret that authenticates its messages.
pub(crate) enum Given {
    Nothing,
    /// Its task.
    Task(Secret),
    /// Its task, and the code.
    Code(Secret),
}

impl NewChild {
    /// A child that a template has forked.
    pub(crate) fn forked(
        context: &RequestContext<'_>,
        child: Child,
        channel: OwnedFd,
        guards: GuardStates,
        files: &TemplateFiles,
        underway: Underway,
    ) -> Self {
        let confinement = context.confinement(&files.level, Process::Fork, &files.readable);
        let private_root = confinement.has_view();
        Self {
            directories: files.of_fork(child.pid()),
            child,
            channel,
            final_guards: confinement.final_guards_of_fork(),
            limits: confinement.limits(),
            insist: context
                .settings
                .selection
                .insisted_final(context.request, private_root),
            given: Given::Nothing,
            guards,
            private_root,
            caches: confinement.caches(),
            readable: Vec::new(),
            unsealed: None,
            underway: Some(underway),
        }
    }
}

/// Starts a child in a process of its own.
///
/// # Errors
///
/// [`EvalError::Launch`] if it could not be started, or if a required guard is unavailable.
pub(crate) fn start_cold(context: &RequestContext<'_>) -> Result<NewChild, EvalError> {
    if context.request.unconfined
        && let Some(why) = why_unseen()
    {
        return Err(EvalError::Launch(format!(
            "An unsafe run could leave processes behind here: {why}. `mount -t proc proc /proc` mounts the right one."
        )));
    }
    let readable = context.readable().map_err(|why| system(&why))?;
    let root = &context.target.root;
    let takes_view = context.takes(Guard::Filesystem);
    let mut ladder = Ladder::new(root.path(), takes_view, context.request.allow_writes);
    loop {
        // Declared before the child, which ends before this is settled.
        let mut unsealed = None;
        let mut directories = Directories::default();
        let level = ladder
            .level()
            .with(|| directory(context, &mut directories))
            .map_err(|e| system(&format!("no temporary directory could be made: {e}")))?;
        if context.request.allow_writes
            && let Some(why) = ladder.why_no_root()
        {
            unsealed = Some(Unsealed::new(context, why)?);
        }
        let confinement = context.confinement(&level, Process::Cold, &readable);
        let (channel, theirs) = channel_pair().map_err(|e| system(&e))?;
        let child = match launch::plan(&confinement, context.host(), theirs).spawn() {
            Ok(child) => child,
            Err(error) => {
                let not_of_view = ladder.step_down(error);
                not_of_view.map_err(|error| not_started(&error, context.request.unconfined))?;
                continue;
            }
        };
        let selection = &context.settings.selection;
        let mut guards = guards::states(child.guards(), selection, context.request);
        guards.extend(ladder.settle().map(|state| (Guard::Filesystem, state)));
        selection.check_states(&guards)?;
        let private_root = confinement.has_view();
        return Ok(NewChild {
            child,
            channel,
            final_guards: confinement.final_guards(),
            limits: Limits::default(),
            insist: selection.insisted_final(context.request, private_root),
            given: Given::Nothing,
            guards,
            private_root,
            caches: confinement.caches(),
            readable: paths_of(&readable),
            directories,
            unsealed,
            underway: None,
        });
    }
}

/// A directory of the run's own if a guard confines the run to it; otherwise the system's.
pub(crate) fn directory(
    context: &RequestContext<'_>,
    directories: &mut Directories,
) -> std::io::Result<Place> {
    // Not as this process has it now: a thread may not look at its variables while the host sets one.
    let temp = temp_dir(context.environment);
    match context.takes(Guard::Filesystem) || context.takes(Guard::Landlock) {
        true => directories.make(&temp, &context.target.root),
        false => Place::find(&temp),
    }
}

fn not_started(error: &SpawnError, is_unsafe: bool) -> EvalError {
    match error {
        // For a script or a loader that exists, but not in the run's private root.
        SpawnError::InterpreterMissing { .. } if !is_unsafe => system(&format!(
            "{error}, or lies where a confined run cannot read (--read=<path> shows it)"
        )),
        _ => system(error),
    }
}

fn system(what: &dyn std::fmt::Display) -> EvalError {
    EvalError::Launch(format!("No child could be started: {what}"))
}
