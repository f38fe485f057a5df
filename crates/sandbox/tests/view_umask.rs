//! What a process makes in the project itself follows the host's file mode creation mask. On its own,
//! as the mask is that of the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::os::unix::fs::PermissionsExt;

use altair_sandbox::{Status, Writes};
use common::run;
use common::view::{as_each_user, with_writes};
use nix::sys::stat::{Mode, umask};

#[test]
fn a_sealed_directory_is_made_as_the_host_would_make_it() {
    as_each_user(|place| {
        for (mask, mode) in [(0o002, 0o775), (0o022, 0o755), (0o077, 0o700)] {
            let mut launch = place.launch("true", with_writes(place, Writes::Real));
            launch.policy.makes_real_files = true;
            let before = umask(Mode::from_bits_truncate(mask));
            let ended = run(launch);
            umask(before);
            assert_eq!(ended.status, Status::Exited(0));
            let sealed = place.path("app/.sealed");
            let made = sealed.metadata().unwrap().permissions().mode();
            assert_eq!(made & 0o7777, mode, "{mask:o}");
            std::fs::remove_dir(sealed).unwrap();
        }
    });
}
