//! The owner of a project: its files are accessed and its runs executed as this user.

use std::time::Duration;

use altair_sandbox::{Place, RunAs, may_become_another_user};

/// How long to wait for a project's files: a file system whose server is gone does not answer.
pub(crate) const FILE_PATIENCE: Duration = Duration::from_secs(1);

/// The user that the child of a root host runs as: the owner of the project, so that it can read
/// it. A root without capabilities is as an ordinary user: its children are it, too.
pub(crate) fn run_as(root: &Place) -> Option<RunAs> {
    (nix::unistd::geteuid().is_root() && may_become_another_user()).then(|| root.owner())
}
