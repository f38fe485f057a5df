//! An error on the way leaves everything as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use altair_sandbox::{ApplyError, RunAs};
use common::apply::{Left, Site, as_each, set_mode};
use common::view::NOBODY;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};

fn is_not_applied(result: &Result<(), ApplyError>, path: &Path) {
    match result {
        Err(ApplyError::NotApplied { path: found, .. }) => assert_eq!(found, path),
        other => panic!("{other:?}"),
    }
}

/// Something that is undone when this is dropped.
struct Undone<F: FnMut()>(F);

impl<F: FnMut()> Drop for Undone<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn set_immutable(path: &Path, sign: &str) {
    let done = Command::new("chattr")
        .arg(format!("{sign}i"))
        .arg(path)
        .status();
    assert!(
        done.unwrap().success(),
        "the file system of the tests has flags"
    );
}

/// Many changes, the last of them below `zz`.
const MANY: &str = "echo x > a; echo more >> file; rm dir/one; mv dir/two moved; mkdir -p made/deep; echo y > made/deep/y; \
    rm -r old; mkdir old; chmod 555 closed; chmod 700 tight; echo z > tight/z; chmod 500 tight; \
    echo 1 >> l1; chmod 640 adjusted; touch -d 2001-01-01 dir; ln -s x link; rm -r read-only; echo n > zz/n";

fn prepare(site: &Site) {
    site.outside(
        "mkdir -p old/deep closed tight read-only zz; echo x > old/deep/x; echo y > old/y; echo a > adjusted; echo l > l1; \
         ln l1 l2; touch read-only/x; chmod 555 read-only; chmod 511 tight; touch -d 2003-01-01 . old tight zz",
    );
}

fn script_of_many(site: &Site) -> String {
    // Root without rights over others' modes needs to open it up, too.
    let _ = site;
    format!("chmod 755 read-only; {MANY}")
}

#[test]
fn an_error_after_many_changes_undoes_them() {
    if !common::is_root() {
        return; // only root can make a directory immutable
    }
    as_each(|site| {
        // An immutable directory takes no new entries, whoever asks.
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        prepare(site);
        let left = site.run(&script_of_many(site));
        let before = site.state();
        let zz = site.path("zz");
        set_immutable(&zz, "+");
        let guard = Undone(|| set_immutable(&zz, "-"));
        let result = left.apply();
        drop(guard);
        is_not_applied(&result, &site.path("zz/n"));
        let text = result.unwrap_err().to_string();
        assert!(
            text.contains("everything is as it was before: cannot create"),
            "{text}"
        );
        assert_eq!(site.state(), before);
        // And without the error. Restoring has changed the status of what was there.
        let since = common::apply::now(&site.place.path(""));
        left.apply_since(since).unwrap();
        assert_eq!(site.place.read("app/l2"), "l\n1\n");
        assert_eq!(site.path("tight").metadata().unwrap().mode() & 0o777, 0o500);
        site.has_nothing_left();
    });
}

#[test]
fn an_error_as_an_ordinary_user_undoes_everything_too() {
    as_each(|site| {
        prepare(site);
        let left = site.run(&script_of_many(site));
        // A file where a staging directory is to be renamed into: made unreadable for its owner.
        site.outside("chmod 000 zz");
        let before = site.state();
        let result = left.apply();
        if site.run_as.is_none() && nix::unistd::geteuid().is_root() {
            // Not for root.
            assert!(
                matches!(result, Err(ApplyError::Changed { .. })),
                "{result:?}"
            );
        } else {
            assert!(result.is_err());
        }
        assert_eq!(site.state(), before);
    });
}

/// A file system in memory, mounted on the project.
fn mounted(path: &Path, options: &str) -> Undone<impl FnMut() + use<>> {
    let own = path.to_owned();
    let owner = path.metadata().unwrap();
    mount(
        Some("t"),
        path,
        Some("tmpfs"),
        MsFlags::empty(),
        Some(options),
    )
    .unwrap();
    std::os::unix::fs::lchown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
    Undone(move || umount2(&own, MntFlags::MNT_DETACH).unwrap())
}

/// Sites of root, with a process of root's and of an ordinary user's.
fn sites() -> Vec<Site> {
    if !common::is_root() {
        return Vec::new(); // only root can mount
    }
    let user = RunAs {
        uid: NOBODY,
        gid: NOBODY,
    };
    vec![Site::new(None, None), Site::new(Some(NOBODY), Some(user))]
}

#[test]
fn a_full_disk_is_noticed_before_anything_changes() {
    for site in sites() {
        let _mounted = mounted(&site.app(), "size=1m,mode=755");
        fs::write(site.path("file"), "content").unwrap();
        site.own();
        let left = site.run("rm file; echo a > a; yes | head -c 2000000 > large");
        let before = site.state();
        let result = left.apply();
        is_not_applied(&result, &site.path("large"));
        assert!(result.unwrap_err().to_string().contains("No space left"));
        assert_eq!(site.state(), before);
        // Neither files nor names.
        let left = site.run("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo > f$i; done; rm file");
        assert!(left.apply().is_err());
        assert_eq!(site.state(), before);
        let left = site.run("rm file; echo a > a");
        left.apply().unwrap();
        assert_eq!(site.shows(), left.saw);
    }
}

#[test]
fn mounts_below_the_project_are_parts_of_it() {
    for site in sites() {
        site.outside("mkdir -p dir/mounted; echo h > dir/mounted/hidden");
        let _mounted = mounted(&site.path("dir/mounted"), "size=1m,mode=755");
        fs::create_dir(site.path("dir/mounted/in")).unwrap();
        fs::write(site.path("dir/mounted/in/x"), "x").unwrap();
        site.own();
        let script = "echo 2 >> dir/mounted/in/x; echo n > dir/mounted/n; echo n > dir/n; chmod 700 dir; rm file; mkdir dir/mounted/d";
        site.applies(script);
        let left =
            site.run("echo 3 >> dir/mounted/in/x; echo o > dir/mounted/o; echo m > m; rm dir/one");
        fs::write(site.path("dir/mounted/in/x"), "other").unwrap();
        let before = site.state();
        assert!(matches!(left.apply(), Err(ApplyError::Changed { .. })));
        assert_eq!(site.state(), before);
    }
}

#[test]
fn a_name_that_two_mounts_show_is_one_name() {
    for site in sites() {
        site.outside(
            "mkdir real alias; echo before > real/f; echo before > real/g; ln real/g real/h",
        );
        fs::create_dir_all(site.place.path("store")).unwrap();
        let outside = site.place.path("store/f");
        fs::hard_link(site.path("real/f"), &outside).unwrap();
        let alias = site.path("alias");
        let (none, bind) = (None::<&str>, MsFlags::MS_BIND);
        mount(Some(&site.path("real")), &alias, none, bind, none).unwrap();
        let _mounted = Undone(|| umount2(&alias, MntFlags::MNT_DETACH).unwrap());
        let left = site.run("echo after > real/f; echo after > real/g");
        left.apply().unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "before\n");
        assert_eq!(site.place.read("app/real/f"), "after\n");
        // Both of its names are in the project.
        assert_eq!(site.place.read("app/real/h"), "after\n");
    }
}

/// Applies a layer; each time a file is opened for that, `when` is asked, and told how often that
/// was before: whether it may be opened.
fn apply_watched(
    left: &Left,
    file: &Path,
    when: impl Fn(usize) -> bool + Sync,
) -> Result<(), ApplyError> {
    let watch = Fanotify::init(
        InitFlags::FAN_CLASS_CONTENT | InitFlags::FAN_NONBLOCK | InitFlags::FAN_CLOEXEC,
        EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC,
    )
    .unwrap();
    watch
        .mark(
            MarkFlags::FAN_MARK_ADD,
            MaskFlags::FAN_OPEN_PERM,
            nix::fcntl::AT_FDCWD,
            Some(file),
        )
        .unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut count = 0;
            while !done.load(Ordering::Relaxed) {
                let Ok(events) = watch.read_events() else {
                    std::thread::yield_now();
                    continue;
                };
                for event in events {
                    let may = when(count);
                    count += 1;
                    let answer = if may {
                        Response::FAN_ALLOW
                    } else {
                        Response::FAN_DENY
                    };
                    let fd = event.fd().unwrap();
                    watch
                        .write_response(FanotifyResponse::new(fd, answer))
                        .unwrap();
                }
            }
        });
        let result = left.apply();
        done.store(true, Ordering::Relaxed);
        result
    })
}

// A file with two names is opened to be compared, to be saved, and to be overwritten.
const SAVED: usize = 1;
const WRITTEN: usize = 2;

#[test]
fn a_change_between_the_check_and_the_replacement_is_noticed() {
    for site in sites() {
        prepare(&site);
        for meanwhile in [
            "echo other > file",
            "rm file",
            "rm dir/one",
            "echo x > a",
            "echo x >> old/deep/x",
            "touch old/deep/new",
            "mv zz z2; mkdir zz",
            "chmod 600 l1",
            "mkdir made",
        ] {
            let copy = site.place.path("copy");
            let keep = |from: &Path, to: &Path| {
                let done = Command::new("cp").arg("-aT").args([from, to]).status();
                assert!(done.unwrap().success());
            };
            keep(&site.app(), &copy);
            let left = site.run(&script_of_many(&site));
            let state = Mutex::new(String::new());
            let result = apply_watched(&left, &site.path("l1"), |count| {
                if count == SAVED {
                    site.outside(meanwhile);
                    // Opening the file would ask again.
                    *state.lock().unwrap() = site.state_but(&["l1", "l2"]);
                }
                true
            });
            assert!(
                matches!(result, Err(ApplyError::Changed { .. })),
                "{meanwhile}: {result:?}"
            );
            // As it was then, but for the staging directory and the time of what holds it.
            let shown = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| !line.contains(".altair-apply-"));
                let app = format!("{:?} ", site.app());
                lines
                    .filter(|line| !line.starts_with(&app))
                    .map(str::to_owned)
                    .collect()
            };
            assert_eq!(
                shown(&site.state_but(&["l1", "l2"])),
                shown(&state.lock().unwrap()),
                "{meanwhile}"
            );
            site.has_nothing_left();
            fs::remove_dir_all(site.app()).unwrap();
            keep(&copy, &site.app());
            fs::remove_dir_all(copy).unwrap();
        }
    }
}

#[test]
fn an_error_when_a_file_is_written_undoes_everything_before_it() {
    for site in sites() {
        prepare(&site);
        let left = site.run(&script_of_many(&site));
        let before = site.state();
        let result = apply_watched(&left, &site.path("l1"), |count| {
            if count == WRITTEN {
                // By then all the others are in place.
                assert!(site.path("a").exists() && !site.path("dir/one").exists());
            }
            count != WRITTEN
        });
        is_not_applied(&result, &site.path("l1"));
        assert_eq!(site.state(), before);
    }
}

#[test]
fn what_cannot_be_restored_is_kept_and_named() {
    for site in sites() {
        prepare(&site);
        let left = site.run(&script_of_many(&site));
        let dir = site.path("dir");
        let guard = Undone(|| set_immutable(&dir, "-"));
        let result = apply_watched(&left, &site.path("l1"), |count| {
            if count == WRITTEN {
                set_immutable(&dir, "+");
            }
            count != WRITTEN
        });
        drop(guard);
        let Err(ApplyError::NotRestored {
            cause, path, saved, ..
        }) = &result
        else {
            panic!("{result:?}");
        };
        assert!(matches!(**cause, ApplyError::NotApplied { .. }));
        assert!(path.starts_with(&dir), "{path:?}");
        let [saved] = &saved[..] else {
            panic!("{saved:?}")
        };
        assert!(
            result
                .as_ref()
                .unwrap_err()
                .to_string()
                .contains(&*saved.to_string_lossy())
        );
        // The rest is restored, and nothing is lost.
        assert_eq!(site.place.read("app/file"), "content");
        assert_eq!(site.place.read("app/old/deep/x"), "x\n");
        let kept: Vec<String> = fs::read_dir(saved)
            .unwrap()
            .filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok())
            .collect();
        assert!(
            kept.contains(&"1".to_owned()) && kept.contains(&"22".to_owned()),
            "{kept:?}"
        );
        fs::remove_dir_all(saved).unwrap();
    }
}

#[test]
fn a_project_whose_own_directory_is_not_writable() {
    for site in sites() {
        site.outside("mkdir -p var/deep; chmod 777 var var/deep");
        if site.run_as.is_some() {
            std::os::unix::fs::lchown(site.app(), Some(0), Some(0)).unwrap();
        } else {
            set_mode(&site.app(), 0o555);
        }
        site.applies("echo x > var/x; echo 1 >> dir/one; mkdir -p var/deep/d; rm dir/two");
    }
}

#[test]
fn another_users_file_is_written_in_place() {
    for site in sites() {
        if site.run_as.is_none() {
            continue;
        }
        let path = site.path("shared");
        fs::write(&path, "shared").unwrap();
        set_mode(&path, 0o666);
        let inode = path.metadata().unwrap().ino();
        site.run("printf more >> shared").apply().unwrap();
        let meta = path.metadata().unwrap();
        assert_eq!(
            (meta.uid(), meta.ino(), meta.mode() & 0o777),
            (0, inode, 0o666)
        );
        assert_eq!(site.place.read("app/shared"), "sharedmore");
        site.has_nothing_left();
    }
}

#[test]
fn modes_and_times_are_undone_too() {
    for site in sites() {
        site.outside("mkdir aa zz; echo x > one; echo y > two");
        let left = site.run("chmod 600 one two; chmod 700 aa zz; touch -d 2001-01-01 one zz");
        let before = site.state();
        for stops in ["two", "aa"] {
            let path = site.path(stops);
            set_immutable(&path, "+");
            let guard = Undone(|| set_immutable(&path, "-"));
            let since = common::apply::now(&site.place.path(""));
            let result = left.apply_since(since);
            drop(guard);
            is_not_applied(&result, &path);
            assert_eq!(site.state(), before);
        }
    }
}
