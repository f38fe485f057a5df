//! The owner of a project: as him its files are looked at, and its runs run.

use std::time::Duration;

use altair_sandbox::{Place, RunAs};

/// How long files of a project are waited for: a file system whose server is gone does not answer.
pub(crate) const FILE_PATIENCE: Duration = Duration::from_secs(1);

/// Whom the child of a root host runs as: the owner of the project, so that it can read it.
pub(crate) fn run_as(root: &Place) -> Option<RunAs> {
    nix::unistd::geteuid().is_root().then(|| root.owner())
}
