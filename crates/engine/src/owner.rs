//! The owner of a project: its files are accessed and its runs executed as this user.

use std::time::Duration;

use altair_sandbox::{Place, RunAs};

/// How long to wait for a project's files: a file system whose server is gone does not answer.
pub(crate) const FILE_PATIENCE: Duration = Duration::from_secs(1);

/// The user that the child of a root host runs as: the owner of the project, so that it can read
/// it.
pub(crate) fn run_as(root: &Place) -> Option<RunAs> {
    nix::unistd::geteuid().is_root().then(|| root.owner())
}
