//! `diagnostics.blocked`: what was refused, in words for the user.

use std::path::PathBuf;
use std::time::Duration;

use altair_sandbox::{Refusal, RunAs, with_files_of};

use crate::channel::Outside;
use crate::encode::shorten;
use crate::guards::Guard;
use crate::result::Blocked;

mod calls;
mod files;
mod one_line;

/// Entries that are shown: more than a reader takes in would only hide the first.
const SHOWN: usize = 20;

/// What was refused, from all that can tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refused {
    /// What the kernel's filter refused, in order.
    pub calls: Vec<Refusal>,
    /// What the child itself refused, in order.
    pub by_child: Vec<Blocked>,
    /// Files that PHP could not open.
    pub outside: Vec<Outside>,
}

/// What of the run decides about the words.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// Whom it ran as, where the host is root.
    pub user: Option<RunAs>,
    /// The project.
    pub root: PathBuf,
    /// Whether writes to the project could succeed, for real or in a layer.
    pub writable: bool,
    /// Whether the run was in a private root.
    pub private_root: bool,
}

/// Bytes of a text of the child's that are kept.
const TEXT_MAX: usize = 4096;
/// Bytes of a path that are kept: the kernel takes none that is longer.
const PATH_MAX: usize = nix::libc::PATH_MAX as usize;

/// Different refusals that are kept; more than are shown, as some come to the same words.
const KEPT: usize = 64;

impl Refused {
    /// The kernel's filter has refused a call.
    pub(crate) fn call(&mut self, refusal: Refusal) {
        keep(&mut self.calls, refusal);
    }

    /// The child has refused something, by the guard that it has for that.
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

    /// PHP could not open a file.
    pub(crate) fn outside(&mut self, mut outside: Outside) {
        outside.path.truncate(PATH_MAX);
        outside.path.shrink_to_fit();
        keep(&mut self.outside, outside);
    }

    /// The list, as it is shown: each thing once, the first [`SHOWN`], in one line each.
    pub(crate) fn list(self, context: &Context) -> Vec<Blocked> {
        let calls = calls::list(&self.calls);
        let files = outside(self.outside, context);
        let mut list: Vec<Blocked> = Vec::new();
        for entry in calls.chain(self.by_child).chain(files) {
            let entry = Blocked {
                what: one_line::in_one_line(&entry.what),
                guard: entry.guard,
                lift: entry.lift.as_deref().map(one_line::in_one_line),
            };
            if list.len() < SHOWN && !list.contains(&entry) {
                list.push(entry);
            }
        }
        list
    }
}

/// How long files are looked for that a run could not open.
const LOOK_MAX: Duration = Duration::from_millis(50);

/// The entries for files. Whether there is one, only the run's own user may find out here: it is the
/// run that says which.
fn outside(files: Vec<Outside>, context: &Context) -> Vec<Blocked> {
    if files.is_empty() {
        return Vec::new();
    }
    let own = context.clone();
    let looked = with_files_of(context.user, LOOK_MAX, move || {
        let entries = files.iter();
        entries
            .filter_map(|file| files::blocked(file, &own))
            .collect()
    });
    looked.unwrap_or_default()
}

fn keep<T: PartialEq>(kept: &mut Vec<T>, one: T) {
    if kept.len() < KEPT && !kept.contains(&one) {
        kept.push(one);
    }
}

#[cfg(test)]
mod tests;
