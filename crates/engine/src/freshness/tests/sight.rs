//! What the template saw of the host's files, and what it did not.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn what_is_not_visible_is_passed_over() {
    stays_fresh(
        |scene| {
            scene.write("app/A.php", "1");
            scene.look("app/A.php", Way::Read);
            scene.write("other/B.php", "1");
            // The template did not find it, and the host does.
            let other = scene.path("other/B.php");
            scene.seen(&other, Way::Read, None);
            scene.made_from.visible = vec![bytes(&scene.path("app"))];
        },
        |scene| scene.write("other/B.php", "2"),
    );
}

#[test]
fn what_the_template_had_of_its_own_is_passed_over() {
    stays_fresh(
        |scene| {
            scene.write("app/A.php", "1");
            scene.look("app/A.php", Way::Read);
            scene.made_from.visible = vec![bytes(&scene.path("app"))];
            // A temporary file, which the host does not have.
            let found = scene.made_from.looks[0].found;
            let own = scene.path("tmp/session");
            scene.seen(&own, Way::Read, found);
        },
        |scene| scene.write("tmp/session", ""),
    );
}

#[test]
fn what_a_link_leads_to_outside_is_passed_over() {
    stays_fresh(
        |scene| {
            scene.write("other/B.php", "1");
            fs::create_dir(scene.path("app")).unwrap();
            symlink("../other", scene.path("app/link")).unwrap();
            scene.made_from.visible = vec![bytes(&scene.path("app"))];
            let inside = scene.path("app/link/B.php");
            scene.seen(&inside, Way::Read, None);
        },
        |scene| scene.write("other/B.php", "2"),
    );
}

#[test]
fn a_link_that_leads_outside_is_not_passed_over() {
    goes_stale(
        |scene| {
            scene.write("other/B.php", "1");
            fs::create_dir(scene.path("app")).unwrap();
            symlink("../other", scene.path("app/link")).unwrap();
            scene.made_from.visible = vec![bytes(&scene.path("app"))];
            let inside = scene.path("app/link/B.php");
            scene.seen(&inside, Way::Read, None);
        },
        |scene| fs::remove_file(scene.path("app/link")).unwrap(),
    );
}

#[test]
fn a_directory_on_the_way_to_the_visible_is_not_the_hosts() {
    stays_fresh(
        |scene| {
            scene.write("srv/app/A.php", "1");
            scene.look("srv/app/A.php", Way::Read);
            scene.made_from.visible = vec![bytes(&scene.path("srv/app"))];
            // As created in the private root: other rights, other times.
            let way = scene.path("srv");
            let mut found = identity(&fs::metadata(&way).unwrap());
            found.mode ^= 0o055;
            found.ctime_ns += 1;
            scene.seen(&way, Way::Listed, Some(found));
        },
        |scene| scene.write("srv/other", ""),
    );
}

#[test]
fn what_is_visible_behind_links_is_seen_by_any_name() {
    for name in ["by/lib/A.php", "real/lib/A.php"] {
        goes_stale(
            |scene| {
                scene.write("real/lib/A.php", "1");
                symlink("hop", scene.path("by")).unwrap();
                symlink("real", scene.path("hop")).unwrap();
                scene.made_from.visible = vec![bytes(&scene.path("by/lib"))];
                scene.look(name, Way::Read);
            },
            |scene| scene.write("real/lib/A.php", "2"),
        );
    }
}

#[test]
fn a_visible_path_that_is_absent_may_appear() {
    goes_stale(
        |scene| {
            scene.made_from.visible = vec![bytes(&scene.path("etc/php.d"))];
            scene.look("etc/php.d/a.ini", Way::Read);
        },
        |scene| scene.write("etc/php.d/a.ini", ""),
    );
}

#[test]
fn a_private_part_is_passed_over_and_a_visible_part_of_it_is_not() {
    let make = |scene: &mut Scene| {
        scene.write("app/own/B.php", "1");
        scene.write("app/own/seen/A.php", "1");
        scene.made_from.visible = vec![
            bytes(&scene.path("app")),
            bytes(&scene.path("app/own/seen")),
        ];
        scene.made_from.private = vec![bytes(&scene.path("app/own"))];
        let own = scene.path("app/own/B.php");
        scene.seen(&own, Way::Read, None);
        scene.look("app/own/seen/A.php", Way::Read);
    };
    stays_fresh(make, |scene| scene.write("app/own/B.php", "2"));
    goes_stale(make, |scene| scene.write("app/own/seen/A.php", "2"));
}

#[test]
fn facts_of_the_system_are_passed_over() {
    let mut scene = Scene::new();
    scene.made_from.visible = vec![b"/".to_vec()];
    for path in ["/proc/self/stat", "/sys/kernel", "/dev/null"] {
        scene.seen(Path::new(path), Way::Read, None);
    }
    scene.stand(POLLED);
    scene.seen(Path::new("/usr"), Way::Read, None);
    assert_eq!(scene.refused(), What::Appeared);
}
