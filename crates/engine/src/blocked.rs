//! `diagnostics.blocked`: what was refused, in words for the user.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use altair_sandbox::{Place, Refusal, RunAs, with_files_of};

use crate::Caller;
use crate::allowed::{self, Allow};
use crate::caller::way;
use crate::channel::{Outside, SOUGHT_MAX, SOUGHT_NAME_MAX_BYTES};
use crate::encode::shorten;
use crate::environment::Filtered;
use crate::guards::Guard;
use crate::readable_paths::{Below, Elsewhere, Homes, Left};
use crate::result::Blocked;

mod calls;
mod files;
mod one_line;
mod variables;

/// Entries to show: more would only hide the first ones.
const SHOWN: usize = 20;

/// Everything that was refused, from all sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refused {
    /// The calls that the kernel's filter refused, in order.
    pub calls: Vec<Refusal>,
    /// What the child itself refused, in order.
    pub by_child: Vec<Blocked>,
    /// Files that PHP could not open.
    pub outside: Vec<Outside>,
    /// Names of variables that PHP looked for and did not find, whether there are such or not.
    pub sought: Vec<Vec<u8>>,
}

/// The properties of a run that the wording depends on.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The user it ran as, if the host is root.
    pub user: Option<RunAs>,
    /// The project.
    pub root: PathBuf,
    /// The same as it was found, and the homes that are none of it, if it may have files elsewhere.
    pub application: Option<(Place, Homes)>,
    /// Whether writes to the project could succeed, for real or in a layer.
    pub writable: bool,
    /// Whether the run was in a private root.
    pub private_root: bool,
    /// Whether its host makes unsafe runs.
    pub unsafe_runs: bool,
    /// Who has started it, if it is an isolated PHP.
    pub caller: Option<Caller>,
    /// The directory of frameworks' caches, if only the template of the run could write to it.
    pub caches_of_boot: Option<PathBuf>,
    /// What it got of its host's environment.
    pub given: Arc<Filtered>,
}

/// Bytes to keep of a text from the child.
const TEXT_MAX: usize = 4096;
/// Bytes to keep of a path: the kernel accepts no longer one.
const PATH_MAX: usize = nix::libc::PATH_MAX as usize;

/// Different refusals to keep; more than are shown, because some have the same wording.
const KEPT: usize = 64;

impl Refused {
    /// Records a call that the kernel's filter refused.
    pub(crate) fn call(&mut self, refusal: Refusal) {
        keep(&mut self.calls, refusal);
    }

    /// Records something that the child's own guard refused.
    pub(crate) fn by_child(&mut self, blocked: Blocked) {
        let cut = |text: String| match text.len() <= TEXT_MAX {
            true => text,
            false => shorten(&text, TEXT_MAX),
        };
        let blocked = Blocked {
            what: cut(blocked.what),
            guard: Guard::Ini,
            lift: blocked.lift.map(cut),
        };
        keep(&mut self.by_child, blocked);
    }

    /// Records a file that PHP could not open.
    pub(crate) fn outside(&mut self, mut outside: Outside) {
        outside.path.truncate(PATH_MAX);
        outside.path.shrink_to_fit();
        keep(&mut self.outside, outside);
    }

    /// Records variables that were looked for. Only those that the host has are ever told, so that a
    /// child cannot put others in their place: as many are kept as a child of ours sends.
    pub(crate) fn sought(&mut self, names: Vec<Vec<u8>>) {
        for name in names {
            let fits = self.sought.len() < SOUGHT_MAX && name.len() <= SOUGHT_NAME_MAX_BYTES;
            if fits && !self.sought.contains(&name) {
                self.sought.push(name);
            }
        }
    }

    /// These, and others that came later.
    #[must_use]
    pub(crate) fn and(mut self, later: &Self) -> Self {
        let Self {
            calls,
            by_child,
            outside,
            sought,
        } = later;
        calls.iter().for_each(|call| self.call(call.clone()));
        by_child
            .iter()
            .for_each(|one| keep(&mut self.by_child, one.clone()));
        outside.iter().for_each(|one| self.outside(one.clone()));
        self.sought(sought.clone());
        self
    }

    /// The list to show: each thing once, the first [`SHOWN`], in one line each. `has_failed`: the run
    /// may lack code that is elsewhere, which PHP does not always try to open.
    pub(crate) fn list(self, context: &Context, has_failed: bool) -> Vec<Blocked> {
        let calls = calls::list(&self.calls, Some(&context.root));
        let files = outside(self.outside, context, has_failed);
        let variables = variables::withheld(&self.sought, &context.given);
        let mut list: Vec<Blocked> = Vec::new();
        for mut entry in one_line_each(calls.chain(self.by_child).chain(files).chain(variables)) {
            let (caller, unsafe_runs) = (context.caller, context.unsafe_runs);
            entry.lift = entry.lift.and_then(|lift| way(caller, unsafe_runs, &lift));
            if list.len() < SHOWN && !list.contains(&entry) {
                list.push(entry);
            }
        }
        list
    }
}

/// What a command was refused: each thing once, the first 20. `root`: the project whose services it has. Only the flags that a command has too lift
/// something.
#[must_use]
pub fn of_command(calls: &[Refusal], root: Option<&Path>) -> Vec<Blocked> {
    let mut list: Vec<Blocked> = Vec::new();
    for mut entry in one_line_each(calls::list(calls, root)) {
        let is_of_command = |lift: &String| lift == "--network" || lift.starts_with("--service=");
        entry.lift = entry.lift.filter(is_of_command);
        if list.len() < SHOWN && !list.contains(&entry) {
            list.push(entry);
        }
    }
    list
}

fn one_line_each(entries: impl Iterator<Item = Blocked>) -> impl Iterator<Item = Blocked> {
    entries.map(|entry| Blocked {
        what: one_line::in_one_line(&entry.what),
        guard: entry.guard,
        lift: entry.lift.as_deref().map(one_line::in_one_line),
    })
}

/// Adds a refusal to those of a command, unless there are enough.
pub fn keep_refusal(calls: &mut Vec<Refusal>, refusal: Refusal) {
    keep(calls, refusal);
}

/// How long to look for the files that a run could not open.
const LOOK_MAX: Duration = Duration::from_millis(50);

/// The entries for files. The run chooses the paths, so their existence is checked as the run's own
/// user.
fn outside(files: Vec<Outside>, context: &Context, has_failed: bool) -> Vec<Blocked> {
    if files.is_empty() && !has_failed {
        return Vec::new();
    }
    let own = context.clone();
    let looked = with_files_of(context.user, LOOK_MAX, move || {
        let left = own
            .application
            .as_ref()
            .map_or_else(Vec::new, |(root, homes)| Elsewhere::of(root, homes).left);
        let missed = left
            .iter()
            .filter(|left| has_failed && left.is_code)
            .map(|left| not_followed(left, &own));
        let files = files.iter().filter_map(|file| {
            let named = left.iter().find(|left| files::is_in(file, &left.path));
            match named.filter(|_| !file.write) {
                Some(left) => Some(not_followed(left, &own)),
                None => files::blocked(file, &own),
            }
        });
        missed.chain(files).collect()
    });
    looked.unwrap_or_default()
}

/// The entry for what the project names and only the user can show.
fn not_followed(left: &Left, context: &Context) -> Blocked {
    let shown = left.path.display();
    let line = allowed::line(&context.root, &Allow::Read(&left.path));
    let why = match &left.below {
        None => "is outside of its repository".to_owned(),
        Some(Below::Credentials(path)) => {
            format!("is not shown for the credentials in {}", path.display())
        }
        Some(Below::Unknown) => "cannot be looked through for credentials".to_owned(),
    };
    Blocked {
        what: format!(
            "read {shown}, which the project names and which {why}; `{line}` allows it from now on"
        ),
        guard: Guard::Filesystem,
        lift: Some(format!("--read={shown}")),
    }
}

fn keep<T: PartialEq>(kept: &mut Vec<T>, one: T) {
    if kept.len() < KEPT && !kept.contains(&one) {
        kept.push(one);
    }
}

#[cfg(test)]
mod tests;
