//! `diagnostics.blocked`: what was refused, in words for the user.

use std::path::PathBuf;

use altair_sandbox::Refusal;

use crate::channel::Outside;
use crate::result::Blocked;

mod calls;
mod files;
mod words;

/// Entries that are shown: more than a reader takes in would only hide the first.
const SHOWN: usize = 20;

/// What was refused, from all that can tell.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// What the kernel's filter refused, in order.
    pub calls: Vec<Refusal>,
    /// What the child itself refused, in order.
    pub by_child: Vec<Blocked>,
    /// Files that PHP could not open.
    pub outside: Vec<Outside>,
}

/// What of the run decides about the words.
#[derive(Debug)]
pub(crate) struct Context {
    /// The project.
    pub root: PathBuf,
    /// Whether writes to the project could succeed, for real or in a layer.
    pub writable: bool,
    /// Whether the run was in a private root.
    pub private_root: bool,
}

impl Refused {
    /// The list, as it is shown: each thing once, the first [`SHOWN`], in one line each.
    pub(crate) fn list(self, context: &Context) -> Vec<Blocked> {
        let calls = calls::list(&self.calls);
        let files = self
            .outside
            .iter()
            .filter_map(|file| files::blocked(file, context));
        let mut list: Vec<Blocked> = Vec::new();
        for entry in calls.chain(self.by_child).chain(files) {
            let entry = Blocked {
                what: words::in_one_line(&entry.what),
                guard: words::in_one_line(&entry.guard),
                lift: entry.lift.as_deref().map(words::in_one_line),
            };
            if list.len() < SHOWN && !list.contains(&entry) {
                list.push(entry);
            }
        }
        list
    }
}

#[cfg(test)]
mod tests;
