//! What the kernel reports, and what it does not.

use std::fs;

use nix::unistd::Pid;

use super::*;

/// Causes more events than the kernel keeps.
fn overflow(scene: &Scene) {
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let kept: usize = kept.trim().parse().unwrap();
    for _ in 0..=kept / 2 {
        scene.write("src/noise", "");
        fs::remove_file(scene.path("src/noise")).unwrap();
    }
}

fn one_file(scene: &mut Scene) {
    scene.write("src/A.php", "1");
    scene.look("src/A.php", Way::Read);
}

#[test]
fn a_change_whose_event_was_lost_is_seen() {
    goes_stale(one_file, |scene| {
        overflow(scene);
        scene.write("src/A.php", "2");
    });
}

#[test]
fn lost_events_are_no_change() {
    let (scene, mut fresh) = stand(one_file, WATCHED);
    overflow(&scene);
    assert_eq!(fresh.check(), Ok(()));
    scene.write("src/A.php", "2");
    assert!(fresh.check().is_err());
}

fn ten(scene: &mut Scene) {
    for name in 0..10 {
        let name = format!("src/{name}/A.php");
        scene.write(&name, "1");
        scene.look(&name, Way::Read);
    }
}

#[test]
fn past_the_limit_of_watches_the_rest_is_polled() {
    for name in 0..10 {
        let mut scene = Scene::new();
        ten(&mut scene);
        scene.tick();
        let mut fresh = scene.stand(9);
        let means = fresh.means();
        assert_eq!(means.watched, 9);
        assert!(means.polled > 0 && means.polled < 20, "{means:?}");
        let name = format!("src/{name}/A.php");
        scene.write(&name, "2");
        let changed = fresh.check().unwrap_err();
        assert!(changed.path.ends_with(name.as_bytes()), "{changed}");
    }
}

#[test]
fn the_kernel_tells_where_comparing_could_not() {
    // Stands for the same file with the same times, in one tick of the clock, which polling cannot
    // see. Here the file is as before, and only the event counts.
    let (scene, mut fresh) = stand(one_file, WATCHED);
    fs::rename(scene.path("src/A.php"), scene.path("src/B.php")).unwrap();
    fs::rename(scene.path("src/B.php"), scene.path("src/A.php")).unwrap();
    assert!(fresh.check().is_err());
}

#[test]
fn a_fork_takes_no_event_from_its_parent() {
    let (scene, mut fresh) = stand(one_file, WATCHED);
    scene.write("src/A.php", "2");
    let host = std::mem::replace(&mut fresh.owner, Pid::parent());
    assert_eq!(fresh.check().unwrap_err().what, What::Fork);
    fresh.owner = host;
    assert_eq!(fresh.check().unwrap_err().what, What::Different);
}

#[test]
fn two_thousand_files_are_all_watched() {
    let mut scene = Scene::new();
    for name in 0..2_000 {
        let name = format!("vendor/{}/src/{name}.php", name / 10);
        scene.write(&name, "1");
        scene.look(&name, Way::Read);
    }
    let mut fresh = scene.stand(WATCHED);
    assert_eq!(fresh.means().polled, 0);
    assert!(fresh.means().watched >= 2_000 + 200);
    scene.write("vendor/199/src/1999.php", "2");
    let changed = fresh.check().unwrap_err();
    assert!(changed.path.ends_with(b"/vendor/199/src/1999.php"));
}
