//! What does not make a template stale.

use std::fs::{self, File};

use super::*;

fn some(scene: &mut Scene) {
    scene.write("src/A.php", "1");
    scene.write("src/B.php", "1");
    scene.look("", Way::Passed);
    scene.look("src", Way::Passed);
    scene.look("src/A.php", Way::Read);
    scene.look("src/C.php", Way::Read);
}

#[test]
fn nothing() {
    stays_fresh(some, |_| {});
}

#[test]
fn reading() {
    stays_fresh(some, |scene| {
        fs::read(scene.path("src/A.php")).unwrap();
        fs::read_dir(scene.path("src")).unwrap().count();
        // Opened for writing, but not written: a lock.
        drop(File::options().append(true).open(scene.path("src/A.php")));
    });
}

#[test]
fn an_edit_of_a_file_beside() {
    stays_fresh(some, |scene| scene.write("src/B.php", "2"));
}

#[test]
fn other_names_in_a_directory_that_was_passed() {
    stays_fresh(some, |scene| {
        scene.write("src/D.php", "");
        scene.write("src/deep/E.php", "");
        fs::rename(scene.path("src/B.php"), scene.path("src/F.php")).unwrap();
        fs::remove_file(scene.path("src/D.php")).unwrap();
    });
}

#[test]
fn an_edit_in_a_listed_directory() {
    stays_fresh(
        |scene| {
            scene.write("config/a.php", "1");
            scene.look("config", Way::Listed);
        },
        |scene| scene.write("config/a.php", "2"),
    );
}

#[test]
fn a_file_of_another_name_behind_a_dangling_link() {
    stays_fresh(
        |scene| {
            std::os::unix::fs::symlink("nowhere/x", scene.path("link")).unwrap();
            scene.look("link", Way::Read);
        },
        |scene| scene.write("elsewhere/x", ""),
    );
}

#[test]
fn a_loop_of_links() {
    stays_fresh(
        |scene| {
            std::os::unix::fs::symlink("b", scene.path("a")).unwrap();
            std::os::unix::fs::symlink("a", scene.path("b")).unwrap();
            scene.look("a", Way::Read);
            scene.look("a/c", Way::Read);
        },
        |scene| scene.write("c", ""),
    );
}
