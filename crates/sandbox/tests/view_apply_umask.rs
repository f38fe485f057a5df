//! The host's file mode creation mask has no effect on what is applied. On its own, as the mask is
//! that of the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use common::apply::as_each;

#[test]
fn the_umask_of_the_host_changes_nothing() {
    as_each(|site| {
        let left = site.run("mkdir -p d/e; echo x > d/e/x; echo y > y; mkfifo p; chmod 666 y p");
        let before = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o777));
        let result = left.apply();
        nix::sys::stat::umask(before);
        result.unwrap();
        assert_eq!(site.shows(), left.saw);
    });
}
