//! Compares what a template saw with what is there when it is to stand.

use std::fs;

use super::*;

fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.write("src/A.php", "1");
    scene.look("src/A.php", Way::Read);
    scene
}

#[test]
fn an_edit_before_the_watch_stands() {
    let scene = scene();
    scene.tick();
    scene.write("src/A.php", "2");
    assert_eq!(scene.refused(), What::Different);
}

#[test]
fn a_deletion_before_the_watch_stands() {
    let scene = scene();
    fs::remove_file(scene.path("src/A.php")).unwrap();
    assert_eq!(scene.refused(), What::Gone);
}

#[test]
fn a_new_file_before_the_watch_stands() {
    let mut scene = scene();
    scene.look("src/B.php", Way::Read);
    scene.write("src/B.php", "");
    assert_eq!(scene.refused(), What::Appeared);
}

#[test]
fn a_new_name_before_the_watch_stands() {
    let mut scene = scene();
    scene.look("src", Way::Listed);
    scene.tick();
    scene.write("src/B.php", "");
    assert_eq!(scene.refused(), What::Different);
}

#[test]
fn a_directory_that_is_a_link_before_the_watch_stands() {
    let mut scene = scene();
    scene.look("src", Way::Passed);
    fs::rename(scene.path("src"), scene.path("lib")).unwrap();
    std::os::unix::fs::symlink("lib", scene.path("src")).unwrap();
    scene.made_from.looks.remove(0);
    assert_eq!(scene.refused(), What::Different);
}

#[test]
fn a_link_to_nothing_where_there_was_nothing_is_there_for_who_asks_for_it() {
    let mut scene = scene();
    scene.look("link", Way::Passed);
    std::os::unix::fs::symlink("nowhere", scene.path("link")).unwrap();
    assert_eq!(scene.refused(), What::Appeared);
    scene.made_from.looks.last_mut().unwrap().link = false;
    scene.stand(WATCHED);
}

#[test]
fn a_file_that_was_changed_right_before_it_was_looked_at_is_racy() {
    let mut scene = scene();
    let changed_ns = scene.made_from.looks[0].found.unwrap().ctime_ns;
    scene.made_from.looks[0].at_ns = changed_ns + 2 * super::super::verdict::tick_ns() - 1;
    assert_eq!(scene.refused(), What::Racy);
    // Whole-second timestamps need two seconds.
    scene.made_from.looks[0].at_ns = changed_ns + 2_100_000_000;
    scene.stand(WATCHED);
}

#[test]
fn a_directory_that_was_changed_right_before_it_was_listed_is_racy() {
    let mut scene = scene();
    scene.look("src", Way::Listed);
    let look = scene.made_from.looks.last_mut().unwrap();
    look.at_ns = look.found.unwrap().ctime_ns;
    assert_eq!(scene.refused(), What::Racy);
    scene.made_from.looks.last_mut().unwrap().way = Way::Passed;
    scene.stand(WATCHED);
}

#[test]
fn a_difference_outweighs_a_race() {
    let mut scene = scene();
    scene.made_from.looks[0].at_ns = scene.made_from.looks[0].found.unwrap().ctime_ns;
    scene.look("src/B.php", Way::Read);
    scene.write("src/B.php", "");
    assert_eq!(scene.refused(), What::Appeared);
}

#[test]
fn a_modification_time_in_the_future_is_no_race() {
    let mut scene = Scene::new();
    scene.write("A.php", "1");
    let file = fs::File::open(scene.path("A.php")).unwrap();
    file.set_modified(SystemTime::now() + std::time::Duration::from_hours(24))
        .unwrap();
    scene.look("A.php", Way::Read);
    scene.stand(WATCHED);
}

#[test]
fn a_started_file_that_is_newer_than_the_launch_is_racy() {
    let mut scene = Scene::new();
    scene.write("bin/php", "1");
    let changed_ns = identity(&fs::metadata(scene.path("bin/php")).unwrap()).ctime_ns;
    scene.started("bin/php", Way::Read);
    scene.made_from.launched_ns = changed_ns;
    assert_eq!(scene.refused(), What::Racy);
    scene.made_from.launched_ns = changed_ns + 1;
    scene.stand(WATCHED);
}

#[test]
fn a_listed_directory_that_is_newer_than_the_launch_is_racy() {
    use std::os::unix::fs::PermissionsExt;
    let mut scene = Scene::new();
    scene.write("conf.d/a.ini", "");
    // Makes everything on the way older.
    scene.tick();
    // The sticky bit exempts a directory that is only passed.
    let sticky = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(scene.path("conf.d"), sticky).unwrap();
    scene.started("conf.d", Way::Listed);
    scene.made_from.launched_ns = identity(&fs::metadata(scene.path("conf.d")).unwrap()).ctime_ns;
    assert_eq!(scene.refused(), What::Racy);
    scene.made_from.launched_ns += 1;
    scene.stand(WATCHED);
}

#[test]
fn a_started_file_whose_directory_was_moved_since_the_launch_is_racy() {
    let mut scene = Scene::new();
    scene.write("old/php", "1");
    scene.started("new/php", Way::Read);
    scene.tick();
    fs::rename(scene.path("old"), scene.path("new")).unwrap();
    // The file is older than the directory's new name, and so is not racy by itself.
    scene.made_from.launched_ns = identity(&fs::metadata(scene.path("new")).unwrap()).ctime_ns;
    assert_eq!(scene.refused(), What::Racy);
    scene.made_from.launched_ns += 1;
    scene.stand(WATCHED);
}

/// A directory of a layer: its times are those of writes into the layer.
fn layered() -> Scene {
    let mut scene = Scene::new();
    fs::create_dir_all(scene.path("var/cache")).unwrap();
    let path = scene.path("var");
    let mut found = identity(&fs::metadata(&path).unwrap());
    scene.made_from.launched_ns = found.ctime_ns + 1;
    found.ctime_ns += MINUTE_NS;
    found.mtime_ns += MINUTE_NS;
    scene.seen(&path, Way::Listed, Some(found));
    scene
}

#[test]
fn a_directory_that_the_boot_wrote_in_has_other_times_inside() {
    for watches in [WATCHED, POLLED] {
        let scene = layered();
        let mut fresh = scene.stand(watches);
        scene.tick();
        scene.write("var/new", "");
        assert!(fresh.check().is_err());
        // The host's own directory is newer than the launch now.
        assert_eq!(scene.refused(), What::Different);
    }
}

#[test]
fn what_the_boot_wrote_for_real_is_good_for_its_own_call() {
    let mut scene = scene();
    scene.look("cache.php", Way::Read);
    scene.write("cache.php", "");
    assert_eq!(scene.refused(), What::Appeared);
    scene.made_from.written = vec![bytes(&scene.path("cache.php"))];
    assert_eq!(scene.refused(), What::Racy);
}
