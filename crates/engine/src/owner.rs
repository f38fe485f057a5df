//! The owner of a project: its files are accessed and its runs executed as this user.

use std::path::Path;
use std::time::Duration;

use altair_sandbox::{Place, RunAs, may_become_another_user, with_files_of};
use nix::sys::stat::Mode;

use crate::request::DEFAULT_BOOTSTRAP;

/// How long to wait for a project's files: a file system whose server is gone does not answer.
pub(crate) const FILE_PATIENCE: Duration = Duration::from_secs(1);

/// The user that the child of a root host runs as: the owner of the project, so that it can read
/// it. A root without capabilities is as an ordinary user: its children are it, too.
pub(crate) fn run_as(root: &Place) -> Option<RunAs> {
    (nix::unistd::geteuid().is_root() && may_become_another_user()).then(|| root.owner())
}

/// Where the code of a run begins, and what decides which code that is; without a name, the root
/// itself.
const CODE: &[&str] = &[
    "",
    "composer.json",
    "vendor",
    "vendor/autoload.php",
    "vendor/composer",
    "vendor/composer/autoload_real.php",
    "config",
    DEFAULT_BOOTSTRAP,
    "bootstrap",
    "bootstrap/app.php",
    "app",
    "src",
    ".env",
];

/// Whether somebody else than root can have put code into a project that is root's. What cannot be
/// looked at counts as such code.
pub(crate) fn others_have_code_in(root: &Place) -> bool {
    let own = root.clone();
    let looked = with_files_of(Some(root.owner()), FILE_PATIENCE, move || {
        let places = CODE.iter().map(|name| match *name {
            "" => Ok(own.clone()),
            name => Place::find(&own.path().join(Path::new(name))),
        });
        places.into_iter().any(|place| match place {
            Ok(place) => is_others(&place),
            Err(error) => !matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ),
        })
    });
    looked.unwrap_or(true)
}

/// In a directory that is sticky, others can make files, too. Root's own group may have other members.
fn is_others(place: &Place) -> bool {
    let others = Mode::S_IWGRP | Mode::S_IWOTH;
    let mode = Mode::from_bits_truncate(place.mode());
    place.owner().uid != 0 || mode.intersects(others)
}
