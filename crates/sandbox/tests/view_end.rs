//! A view leaves nothing behind when its process has ended.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use common::sh;
use common::view::{NOBODY, as_each_user};

#[test]
fn nothing_of_a_view_is_left() {
    as_each_user(|place| {
        let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
        let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = mounts();
        let open = descriptors();
        place.run("echo x > new", place.view());
        assert_eq!(mounts(), before);
        // Other tests run at the same time: only a leak of each run would add up.
        for _ in 0..40 {
            place.run("echo x > new", place.view());
        }
        assert!(descriptors() < open + 40, "{} after {open}", descriptors());
        assert!(!place.ordinary || place.path("app").metadata().unwrap().uid() == NOBODY);
    });
}

#[test]
fn a_directory_is_removed_however_deep_it_goes() {
    as_each_user(|place| {
        let top = place.path("deep");
        fs::create_dir(&top).unwrap();
        let script = "cd \"$0\" && i=0 && while [ $i -lt 3000 ]; do i=$((i+1)); mkdir dddddddddd && cd dddddddddd && printf x > f; done; \
             chmod 0 . ; cd \"$0\"; mkdir closed; printf x > closed/f; chmod 0 closed; ln -s / link; mkfifo pipe";
        let mut launch = sh(script);
        launch.args.push(top.clone().into());
        common::output_of(launch);
        altair_sandbox::remove_directory(&top, None);
        assert!(!top.exists());
        assert!(Path::new("/etc").exists());
    });
}
