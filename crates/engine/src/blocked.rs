//! `diagnostics.blocked`: what was refused, in words for the user.

use std::path::PathBuf;

use altair_sandbox::Refusal;

use crate::channel::Outside;
use crate::result::Blocked;

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
}

impl Refused {
    /// The list, as it is shown.
    pub(crate) fn list(self, context: &Context) -> Vec<Blocked> {
        let _ = (context, self.calls, self.outside);
        self.by_child
    }
}
