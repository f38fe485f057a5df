//! In its view a process has its user's rights, and none over the namespace or the host's devices.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use altair_sandbox::{Privileges, RunAs, Shown};
use common::view::{NOBODY, Place, as_each_user};

#[test]
fn the_process_has_no_rights_over_its_namespace() {
    as_each_user(|place| {
        let mut view = place.view();
        view.readable
            .extend(["/sbin", "/usr/sbin"].map(Shown::of_system));
        let seen = place
            .run(
                "umount /tmp 2>/dev/null && echo umount; \
                 mount -t tmpfs x dir 2>/dev/null && echo mount; \
                 mount -o remount,rw,bind dir 2>/dev/null && echo remount; \
                 chroot . true 2>/dev/null && echo chroot; true",
                view,
            )
            .0;
        assert_eq!(seen, "");
    });
}

#[test]
fn root_has_the_project_seen_by_its_owner() {
    if !nix::unistd::geteuid().is_root() {
        return; // only root can start a process of another user
    }
    let place = Place::new(Some(NOBODY));
    fs::set_permissions(place.path("app/file"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut launch = place.launch(
        "cat file; id -u; echo x > dir/one; stat -c %u dir/one",
        place.view(),
    );
    launch.policy.privileges = Privileges::Drop {
        run_as: Some(RunAs {
            uid: NOBODY,
            gid: NOBODY,
        }),
    };
    assert_eq!(common::output_of(launch), "content65534\n65534\n");
    assert_eq!(place.read("app/dir/one"), "1");
}

#[test]
fn the_hosts_null_device_is_not_reached_by_standard_input() {
    as_each_user(|place| {
        // The mount behind the descriptor belongs to the namespace and is read-only.
        let seen = place.shows("read x; echo \"<$x>\"; touch - <&0 >&0 2>/dev/null && echo touched; stat -L -c %F /dev/stdin 2>/dev/null; true");
        assert_eq!(seen, "<>\n");
        let mut view = place.view();
        view.devices.clear();
        let (seen, _) = place.run("read x; echo \"<$x>\"", view);
        assert_eq!(seen, "<>\n");
    });
}
