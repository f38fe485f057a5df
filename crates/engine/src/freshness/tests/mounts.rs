//! A mount hides what is below it, and no watch reports that.
//!
//! Each test runs itself once more in a mount namespace of its own, which ends with it.

use std::process::Command;

use super::*;

const INSIDE: &str = "ALTAIR_TEST_MOUNTS";

/// Runs the test `name` in a mount namespace of its own. `true`: this is that run.
fn inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--ipc"]);
        command
    };
    if !unshare().arg("true").status().is_ok_and(|s| s.success()) {
        eprintln!("skipped: no mount namespace may be made here");
        return false;
    }
    let done = unshare()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("freshness::tests::mounts::{name}")])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    false
}

fn mount(args: &[&str], at: &Path) {
    let done = Command::new("mount").args(args).arg(at).status().unwrap();
    assert!(done.success());
}

fn one_file(scene: &mut Scene) {
    scene.write("src/A.php", "1");
    scene.look("src/A.php", Way::Read);
    scene.write("other/A.php", "1");
}

#[test]
fn a_mount_over_a_directory_is_seen() {
    if inside("a_mount_over_a_directory_is_seen") {
        goes_stale(one_file, |scene| {
            let over = scene.path("src");
            mount(&["-t", "tmpfs", "none"], &over);
        });
    }
}

#[test]
fn a_file_mounted_over_a_file_is_seen() {
    if inside("a_file_mounted_over_a_file_is_seen") {
        goes_stale(one_file, |scene| {
            let from = scene.path("other/A.php");
            mount(
                &["--bind", from.to_str().unwrap()],
                &scene.path("src/A.php"),
            );
        });
    }
}

#[test]
fn a_directory_mounted_over_one_in_which_nothing_was_found_is_seen() {
    if inside("a_directory_mounted_over_one_in_which_nothing_was_found_is_seen") {
        goes_stale(
            |scene| {
                one_file(scene);
                scene.made_from.looks.clear();
                scene.look("src/B.php", Way::Read);
            },
            |scene| {
                let from = scene.path("other");
                mount(&["--bind", from.to_str().unwrap()], &scene.path("src"));
            },
        );
    }
}

#[test]
fn a_directory_that_is_mounted_twice_is_watched_for_both() {
    if inside("a_directory_that_is_mounted_twice_is_watched_for_both") {
        goes_stale(
            |scene| {
                one_file(scene);
                let from = scene.path("src");
                mount(&["--bind", from.to_str().unwrap()], &scene.path("other"));
                scene.look("src", Way::Listed);
                scene.look("other/B.php", Way::Read);
            },
            |scene| {
                let directory = std::fs::File::open(scene.path("src")).unwrap();
                directory.set_modified(UNIX_EPOCH).unwrap();
            },
        );
    }
}

#[test]
fn a_mount_elsewhere_changes_nothing() {
    if inside("a_mount_elsewhere_changes_nothing") {
        stays_fresh(one_file, |scene| {
            mount(&["-t", "tmpfs", "none"], &scene.path("other"));
        });
    }
}

#[test]
fn a_write_to_the_source_of_a_mounted_file_is_seen() {
    if inside("a_write_to_the_source_of_a_mounted_file_is_seen") {
        goes_stale(
            |scene| {
                scene.write("src/.env", "");
                scene.write("other/env", "1");
                let from = scene.path("other/env");
                mount(&["--bind", from.to_str().unwrap()], &scene.path("src/.env"));
                scene.look("src/.env", Way::Read);
            },
            |scene| scene.write("other/env", "2"),
        );
    }
}

#[test]
fn a_file_system_that_is_not_known_to_be_local_is_polled() {
    if inside("a_file_system_that_is_not_known_to_be_local_is_polled") {
        let mut scene = Scene::new();
        one_file(&mut scene);
        // Any file system that is not in the list, and that may be mounted here.
        mount(&["-t", "mqueue", "none"], &scene.path("other"));
        scene.write("other/queue", "");
        scene.look("other/queue", Way::Read);
        scene.look("other/none", Way::Read);
        let mut fresh = scene.stand(WATCHED);
        let Means { watched, polled } = fresh.means();
        assert!(watched > 0);
        assert_eq!(polled, 2);
        std::fs::remove_file(scene.path("other/queue")).unwrap();
        assert!(fresh.check().unwrap_err().path.ends_with(b"/other/queue"));
    }
}
