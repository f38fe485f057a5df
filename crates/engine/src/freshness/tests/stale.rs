//! Each way of going stale.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};

use super::*;

fn one_file(scene: &mut Scene) {
    scene.write("src/A.php", "<?php return 1;");
    scene.look("src/A.php", Way::Read);
}

#[test]
fn an_edit_in_place() {
    let seen = goes_stale(one_file, |scene| {
        let file = OpenOptions::new()
            .write(true)
            .open(scene.path("src/A.php"))
            .unwrap();
        file.write_all_at(b"2", 13).unwrap();
        // Still open: closing a written file is an event of its own.
        file
    });
    assert!(seen.iter().all(|seen| seen.what == What::Different));
    assert!(seen.iter().all(|seen| seen.path.ends_with(b"/src/A.php")));
}

#[test]
fn an_edit_that_leaves_size_and_times() {
    // Only the kernel reports it: a comparison finds that nothing but the ctime has changed.
    goes_stale(one_file, |scene| {
        let path = scene.path("src/A.php");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "<?php return 2;").unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(before)
            .unwrap();
    });
}

#[test]
fn a_copy_in_the_kernel() {
    goes_stale(
        |scene| {
            one_file(scene);
            scene.write("other", "more");
        },
        |scene| {
            let mut from = File::open(scene.path("other")).unwrap();
            let mut to = OpenOptions::new()
                .write(true)
                .open(scene.path("src/A.php"))
                .unwrap();
            std::io::copy(&mut from, &mut to).unwrap();
        },
    );
}

#[test]
fn a_touch() {
    goes_stale(one_file, |scene| {
        let file = File::open(scene.path("src/A.php")).unwrap();
        file.set_modified(SystemTime::now()).unwrap();
    });
}

#[test]
fn truncation() {
    goes_stale(one_file, |scene| {
        let path = scene.path("src/A.php");
        OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(3)
            .unwrap();
    });
}

#[test]
fn a_rename_over_it() {
    goes_stale(
        |scene| {
            one_file(scene);
            scene.write("src/new", "<?php return 1;");
        },
        |scene| fs::rename(scene.path("src/new"), scene.path("src/A.php")).unwrap(),
    );
}

#[test]
fn deletion() {
    let seen = goes_stale(one_file, |scene| {
        fs::remove_file(scene.path("src/A.php")).unwrap();
    });
    assert_eq!(seen[1].what, What::Gone);
}

#[test]
fn a_rename_away() {
    goes_stale(one_file, |scene| {
        fs::rename(scene.path("src/A.php"), scene.path("src/B.php")).unwrap();
    });
}

#[test]
fn what_was_absent_is_made() {
    let seen = goes_stale(
        |scene| {
            scene.write("src/A.php", "");
            scene.look("src/B.php", Way::Read);
        },
        |scene| scene.write("src/B.php", ""),
    );
    assert!(seen.iter().all(|seen| seen.what == What::Appeared));
}

#[test]
fn what_was_absent_is_made_with_its_directories() {
    goes_stale(
        |scene| scene.look("config/local/app.php", Way::Read),
        |scene| scene.write("config/local/app.php", ""),
    );
}

#[test]
fn what_was_absent_is_moved_there_with_its_directory() {
    goes_stale(
        |scene| {
            scene.look("config/app.php", Way::Read);
            scene.write("new/app.php", "");
        },
        |scene| fs::rename(scene.path("new"), scene.path("config")).unwrap(),
    );
}

#[test]
fn a_file_in_place_of_which_there_is_a_directory() {
    goes_stale(
        |scene| {
            scene.write("config", "a file");
            scene.look("config/app.php", Way::Read);
        },
        |scene| {
            fs::remove_file(scene.path("config")).unwrap();
            scene.write("config/app.php", "");
        },
    );
}

#[test]
fn a_write_through_another_name() {
    goes_stale(
        |scene| {
            scene.write("src/A.php", "1");
            fs::create_dir(scene.path("other")).unwrap();
            fs::hard_link(scene.path("src/A.php"), scene.path("other/B")).unwrap();
            scene.look("src/A.php", Way::Read);
        },
        |scene| scene.write("other/B", "2"),
    );
}

#[test]
fn a_write_through_a_name_that_was_made_later() {
    goes_stale(
        |scene| {
            one_file(scene);
            fs::create_dir(scene.path("other")).unwrap();
        },
        |scene| {
            fs::hard_link(scene.path("src/A.php"), scene.path("other/B")).unwrap();
            scene.write("other/B", "2");
        },
    );
}

#[test]
fn rights_that_are_changed_through_another_name() {
    goes_stale(
        |scene| {
            one_file(scene);
            fs::create_dir(scene.path("other")).unwrap();
            fs::hard_link(scene.path("src/A.php"), scene.path("other/B")).unwrap();
            scene.made_from.looks.clear();
            scene.look("src/A.php", Way::Read);
        },
        |scene| {
            fs::set_permissions(scene.path("other/B"), Permissions::from_mode(0o400)).unwrap();
        },
    );
}

#[test]
fn a_file_that_may_no_longer_be_read() {
    goes_stale(one_file, |scene| {
        fs::set_permissions(scene.path("src/A.php"), Permissions::from_mode(0o000)).unwrap();
    });
}

#[test]
fn a_directory_that_may_no_longer_be_entered() {
    goes_stale(one_file, |scene| {
        fs::set_permissions(scene.path("src"), Permissions::from_mode(0o600)).unwrap();
    });
}

fn listed(scene: &mut Scene) {
    scene.write("config/a.php", "");
    scene.look("config", Way::Listed);
}

#[test]
fn a_new_file_in_a_listed_directory() {
    goes_stale(listed, |scene| scene.write("config/b.php", ""));
}

#[test]
fn a_removal_from_a_listed_directory() {
    goes_stale(listed, |scene| {
        fs::remove_file(scene.path("config/a.php")).unwrap();
    });
}

#[test]
fn a_rename_in_a_listed_directory() {
    goes_stale(listed, |scene| {
        fs::rename(scene.path("config/a.php"), scene.path("config/b.php")).unwrap();
    });
}

#[test]
fn a_new_file_in_a_directory_whose_times_were_read() {
    goes_stale(
        |scene| {
            fs::create_dir(scene.path("config")).unwrap();
            scene.look("config", Way::Read);
        },
        |scene| scene.write("config/b.php", ""),
    );
}

#[test]
fn a_time_of_a_listed_directory_that_is_set() {
    goes_stale(listed, |scene| {
        let directory = File::open(scene.path("config")).unwrap();
        directory.set_modified(UNIX_EPOCH).unwrap();
    });
}

#[test]
fn another_binary() {
    goes_stale(
        |scene| {
            scene.write("bin/php", "1");
            scene.started("bin/php", Way::Read);
            scene.write("bin/new", "2");
        },
        |scene| fs::rename(scene.path("bin/new"), scene.path("bin/php")).unwrap(),
    );
}

#[test]
fn another_ini_file() {
    goes_stale(
        |scene| {
            scene.write("conf.d/10-a.ini", "");
            scene.started("conf.d", Way::Listed);
        },
        |scene| scene.write("conf.d/20-b.ini", ""),
    );
}

#[test]
fn an_ini_file_where_there_was_none() {
    goes_stale(
        |scene| scene.started("php.ini", Way::Read),
        |scene| {
            let mut file = File::create(scene.path("php.ini")).unwrap();
            file.write_all(b"memory_limit=1").unwrap();
        },
    );
}
