//! What a process makes in the project itself follows the host's file mode creation mask, or one that is given. On its own,
//! as the mask is that of the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::os::unix::fs::PermissionsExt;

use altair_sandbox::{Made, Status, Writes};
use common::run;
use common::view::{as_each_user, with_writes};
use nix::sys::stat::{Mode, umask};

#[test]
fn a_sealed_directory_is_made_as_the_host_would_make_it_or_with_the_mask_that_is_given() {
    as_each_user(|place| {
        let masks = [(0o002, 0o775), (0o022, 0o755), (0o077, 0o700)];
        for ((mask, mode), is_own) in masks
            .into_iter()
            .flat_map(|mask| [(mask, true), (mask, false)])
        {
            let mut launch = place.launch("true", with_writes(place, Writes::Real));
            let (host, made) = match is_own {
                true => (mask, Made::AsByHost),
                false => (!mask & 0o777, Made::Without(mask)),
            };
            launch.policy.made = made;
            let before = umask(Mode::from_bits_truncate(host));
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
