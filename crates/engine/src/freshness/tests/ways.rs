//! A path that leads elsewhere also makes a template stale.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn releases(scene: &mut Scene) {
    scene.write("releases/1/A.php", "1");
    scene.write("releases/2/A.php", "1");
    symlink("releases/1", scene.path("current")).unwrap();
}

fn switch(scene: &Scene) {
    symlink("releases/2", scene.path("next")).unwrap();
    fs::rename(scene.path("next"), scene.path("current")).unwrap();
}

#[test]
fn the_switch_of_a_link_on_the_way() {
    goes_stale(
        |scene| {
            releases(scene);
            scene.look("current/A.php", Way::Read);
        },
        switch,
    );
}

#[test]
fn the_switch_of_a_link_behind_which_nothing_was_found() {
    goes_stale(
        |scene| {
            releases(scene);
            scene.look("current/B.php", Way::Read);
        },
        switch,
    );
}

#[test]
fn the_switch_of_a_link_that_was_looked_at() {
    goes_stale(
        |scene| {
            releases(scene);
            scene.look_at_link("current");
        },
        switch,
    );
}

#[test]
fn an_edit_behind_a_chain_of_links() {
    goes_stale(
        |scene| {
            releases(scene);
            symlink("./current/../releases/1/A.php", scene.path("releases/A")).unwrap();
            symlink(scene.path("releases"), scene.path("releases/current")).unwrap();
            scene.look("current/../A", Way::Read);
        },
        |scene| scene.write("releases/1/A.php", "2"),
    );
}

#[test]
fn what_dot_dot_leads_to() {
    goes_stale(
        |scene| {
            scene.write("src/A.php", "1");
            scene.write("vendor/x", "");
            scene.look("vendor/./..//src/A.php", Way::Read);
        },
        |scene| scene.write("src/A.php", "2"),
    );
}

#[test]
fn a_rename_of_a_parent_directory() {
    goes_stale(
        |scene| {
            scene.write("a/b/c/A.php", "1");
            scene.look("a/b/c/A.php", Way::Read);
        },
        |scene| fs::rename(scene.path("a"), scene.path("z")).unwrap(),
    );
}

#[test]
fn a_rename_above_the_project() {
    for watches in [WATCHED, POLLED] {
        let mut scene = Scene::new();
        scene.write("srv/shop/A.php", "1");
        scene.made_from.visible = vec![bytes(&scene.path("srv/shop"))];
        scene.look("srv/shop/A.php", Way::Read);
        let mut fresh = scene.stand(watches);
        fs::rename(scene.path("srv"), scene.path("old")).unwrap();
        assert!(fresh.check().is_err());
    }
}

#[test]
fn a_directory_that_was_passed_is_a_link_now() {
    goes_stale(
        |scene| {
            fs::create_dir(scene.path("src")).unwrap();
            scene.look("src", Way::Passed);
        },
        |scene| {
            fs::rename(scene.path("src"), scene.path("lib")).unwrap();
            symlink("lib", scene.path("src")).unwrap();
        },
    );
}
