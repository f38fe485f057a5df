//! What a record contains for paths.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use altair_sandbox::{Unseen, Way};
use libc::*;

use crate::support::*;

#[test]
fn a_directory_is_listed_when_its_names_are_read() {
    alone(|root| {
        fs::create_dir_all(root.join("a/sub")).unwrap();
        fs::create_dir(root.join("b")).unwrap();
        let record = record(|| {
            assert_eq!(fs::read_dir(root.join("a")).unwrap().count(), 1);
            let opened_only = File::open(root.join("b")).unwrap();
            drop(opened_only);
            let old = File::open(root.join("a/sub")).unwrap();
            let copy = old.try_clone().unwrap();
            assert!(sys!(SYS_getdents, copy.as_raw_fd(), room(), 4096_usize) > 0);
        });
        assert_eq!(look(&record, &root.join("a")).way, Way::Listed);
        assert_eq!(look(&record, &root.join("a/sub")).way, Way::Listed);
        assert_eq!(look(&record, &root.join("b")).way, Way::Passed);
        assert_eq!(record.unseen, []);
    });
}

#[test]
fn relative_paths_start_where_the_process_is() {
    alone(|root| {
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        std::env::set_current_dir(root).unwrap();
        let record = record(|| {
            let _ = fs::metadata("first");
            let start = File::open("a").unwrap();
            std::env::set_current_dir("./a//b").unwrap();
            assert!(fs::read("file").is_ok());
            let _ = fs::metadata("../second");
            assert_eq!(sys!(SYS_fchdir, start.as_raw_fd()), 0);
            assert!(fs::read("b/file").is_ok());
            let _ = fs::metadata("third/");
            assert!(std::env::set_current_dir("nowhere").is_err());
            assert_eq!(fs::read_dir(".").unwrap().count(), 1);
        });
        let expected = [
            "first",
            "a",
            "a/b",
            "a/b/file",
            "a/b/../second",
            "a/third/",
            "a/nowhere",
        ];
        let expected = expected.map(|name| format!("{}/{name}", root.display()));
        assert_eq!(looked(&record), expected);
        assert_eq!(look(&record, &root.join("a")).way, Way::Listed);
        assert_eq!(record.unseen, []);
    });
}

#[test]
fn a_directory_from_before_has_no_path() {
    alone(|root| {
        fs::write(root.join("file"), "").unwrap();
        let before = File::open(root).unwrap();
        std::env::set_current_dir("/").unwrap();
        let start = before.as_raw_fd();
        let name = c"file".as_ptr();
        let acts: [&dyn Fn(); 3] = [
            &|| assert!(opened(sys!(SYS_openat, start, name, O_RDONLY)) >= 0),
            &|| assert!(sys!(SYS_getdents64, start, room(), 4096_usize) > 0),
            &|| {
                assert_eq!(sys!(SYS_fchdir, start), 0);
                assert!(fs::read("file").is_ok());
            },
        ];
        for act in acts {
            assert_eq!(record(act).unseen, [Unseen::TooMuch]);
            std::env::set_current_dir("/").unwrap();
        }
        std::env::set_current_dir(root).unwrap();
        let here = record(|| {
            let start = File::open(".").unwrap();
            assert!(opened(sys!(SYS_openat, start.as_raw_fd(), name, O_RDONLY)) >= 0);
        });
        assert_eq!(look(&here, &root.join("file")).way, Way::Read);
        assert_eq!(here.unseen, []);
    });
}

#[test]
fn what_libraries_do_is_seen() {
    alone(|root| {
        fs::create_dir_all(root.join("real/sub")).unwrap();
        fs::write(root.join("real/sub/one.php"), "").unwrap();
        symlink("real", root.join("link")).unwrap();
        let path = root.join("link/sub/one.php");
        let pattern = c(&root.join("real/sub/*.php"));
        let record = record(|| {
            assert_eq!(
                fs::canonicalize(&path).unwrap(),
                root.join("real/sub/one.php")
            );
            unsafe {
                let mut found: glob_t = std::mem::zeroed();
                assert_eq!(glob(pattern.as_ptr(), 0, None, &raw mut found), 0);
                assert_eq!(found.gl_pathc, 1);
                globfree(&raw mut found);
            }
        });
        let link = look(&record, &root.join("link"));
        assert!(link.link);
        let there = fs::symlink_metadata(root.join("link")).unwrap();
        assert_eq!(link.found, Some(identity(&there)));
        assert_eq!(look(&record, &root.join("real")).way, Way::Passed);
        assert_eq!(look(&record, &root.join("real/sub")).way, Way::Listed);
        assert_eq!(look(&record, &root.join("real/sub/one.php")).way, Way::Read);
    });
}

#[test]
fn a_link_and_what_it_leads_to_are_two_looks() {
    alone(|root| {
        fs::write(root.join("file"), "content").unwrap();
        symlink("file", root.join("link")).unwrap();
        let record = record(|| {
            assert!(fs::symlink_metadata(root.join("link")).is_ok());
            assert!(fs::read(root.join("link")).is_ok());
            assert!(fs::read(root.join("file")).is_ok());
            assert!(fs::symlink_metadata(root.join("file")).is_ok());
        });
        let found: Vec<_> = record
            .looks
            .iter()
            .map(|look| (look.link, look.found))
            .collect();
        let link = Some(identity(&fs::symlink_metadata(root.join("link")).unwrap()));
        let file = Some(identity(&fs::metadata(root.join("file")).unwrap()));
        assert_eq!(found, [(true, link), (false, file), (true, file)]);
    });
}

#[test]
fn the_first_look_counts_the_most_that_was_seen_and_no_later_time() {
    alone(|root| {
        let path = root.join("file");
        fs::write(&path, "old").unwrap();
        let was = identity(&fs::metadata(&path).unwrap());
        // Opened unrecorded, as by another process.
        let other = File::options().write(true).open(&path).unwrap();
        let clock = || {
            let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
            i64::try_from(since.as_nanos()).unwrap()
        };
        let (mut first, mut second) = (0, 0);
        let record = record(|| {
            first = clock();
            assert!(fs::exists(&path).unwrap());
            second = clock();
            (&other).write_all(b"much longer").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"much longer");
            assert!(fs::symlink_metadata(root).is_ok());
            assert!(fs::metadata(root).is_ok());
            assert!(fs::symlink_metadata(root).is_ok());
        });
        assert_eq!(look(&record, root).way, Way::Read);
        let look = look(&record, &path);
        assert_eq!(look.found, Some(was));
        assert!((first..=second).contains(&look.at_ns));
    });
}

#[test]
fn what_the_process_makes_is_its_own_from_then_on() {
    alone(|root| {
        fs::create_dir(root.join("var")).unwrap();
        fs::write(root.join("var/settings"), "").unwrap();
        symlink("var", root.join("link")).unwrap();
        let record = record(|| {
            fs::create_dir(root.join("var/tmp")).unwrap();
            fs::write(root.join("var/tmp/a"), "a").unwrap();
            fs::rename(root.join("var/tmp"), root.join("link/cache")).unwrap();
            for name in ["var/cache/a", "link/cache/a", "var/../var/cache/a"] {
                assert!(fs::read(root.join(name)).is_ok());
            }
            assert_eq!(fs::read_dir(root.join("link/cache")).unwrap().count(), 1);
            fs::set_permissions(root.join("var"), fs::Permissions::from_mode(0o750)).unwrap();
            assert!(fs::read(root.join("var/settings")).is_ok());
            assert!(
                File::options()
                    .write(true)
                    .open(root.join("var/absent"))
                    .is_err()
            );
            assert!(fs::write("/dev/null", "").is_ok());
        });
        let all = [
            "var",
            "var/tmp",
            "link",
            "link/cache",
            "var/settings",
            "var/absent",
        ];
        let mut all: Vec<_> = all.iter().map(|name| root.join(name)).collect();
        all.push("/dev/null".into());
        let all: Vec<_> = all.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(looked(&record), all);
        let written = ["var/tmp", "var/tmp/a", "link/cache", "var"];
        let written = written.map(|name| format!("{}/{name}", root.display()));
        assert_eq!(names(&record.written), written);
        assert_eq!(look(&record, &root.join("var")).way, Way::Passed);
        assert_eq!(look(&record, &root.join("var/absent")).found, None);
        assert_eq!(look(&record, &root.join("link/cache")).way, Way::Passed);
        assert_eq!(record.unseen, []);
    });
}

#[test]
fn what_it_moves_or_links_has_no_path_outside() {
    alone(|root| {
        for name in ["a", "b"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let moved = record(|| fs::rename(root.join("a"), root.join("c")).unwrap());
        assert_eq!(moved.unseen, [Unseen::TooMuch]);
        let linked = record(|| symlink("b", root.join("d")).unwrap());
        assert_eq!(linked.unseen, [Unseen::TooMuch]);
        let failed = record(|| assert!(fs::rename(root.join("b"), "/proc/b").is_err()));
        assert_eq!(failed.unseen, []);
        assert!(failed.written.is_empty());
    });
}

#[test]
fn whether_a_directory_can_be_removed_says_what_is_in_it() {
    alone(|root| {
        fs::create_dir_all(root.join("full/empty")).unwrap();
        let record = record(|| {
            assert!(fs::remove_dir(root.join("full")).is_err());
            fs::remove_dir(root.join("full/empty")).unwrap();
        });
        let empty = root.join("full/empty");
        assert_eq!(look(&record, &root.join("full")).way, Way::Listed);
        assert_eq!(look(&record, &empty).way, Way::Listed);
        assert_eq!(names(&record.written), [empty.to_str().unwrap()]);
    });
}

#[test]
fn a_walk_over_a_large_tree_misses_nothing() {
    fn walk(directory: &Path, seen: &mut Vec<String>) {
        seen.push(directory.to_str().unwrap().to_owned());
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                walk(&path, seen);
            } else {
                assert_eq!(fs::read(&path).unwrap(), b"<?php");
                seen.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    alone(|root| {
        for at in 0..2000 {
            let directory = root.join(format!("src/{}/{}", at % 10, at % 40));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(format!("Class{at}.php")), "<?php").unwrap();
        }
        let mut seen = vec![];
        let record = record(|| walk(root, &mut seen));
        let mut found = looked(&record);
        found.sort();
        seen.sort();
        assert_eq!(found, seen);
        assert!(seen.len() > 2000);
        for look in &record.looks {
            let path = Path::new(std::ffi::OsStr::from_bytes(&look.path));
            let metadata = fs::symlink_metadata(path).unwrap();
            assert_eq!(look.found, Some(identity(&metadata)));
            let way = if metadata.is_dir() {
                Way::Listed
            } else {
                Way::Read
            };
            assert_eq!(look.way, way);
        }
        assert!(record.unseen.is_empty() && record.written.is_empty());
    });
}
