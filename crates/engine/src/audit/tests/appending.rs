//! Where lines go, and where they do not.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, chown, geteuid, mkfifo};
use serde_json::{Value, json};

use super::{begin, fine, found, lines, project};
use crate::audit::{AuditError, append, path};

#[test]
fn concurrent_writers_leave_only_whole_lines() {
    let root = project();
    let text = |thread: usize, n: usize| json!([thread, n, "x".repeat(5000)]).to_string();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let root = root.path();
            scope.spawn(move || {
                for n in 0..50 {
                    append::append(&found(root), &text(thread, n)).unwrap();
                }
            });
        }
    });
    let mut found: Vec<String> = lines(root.path()).iter().map(Value::to_string).collect();
    let mut wanted: Vec<String> = (0..8)
        .flat_map(|thread| (0..50).map(move |n| text(thread, n)))
        .collect();
    found.sort();
    wanted.sort();
    assert!(found == wanted, "{} of {} lines", found.len(), wanted.len());
}

#[test]
fn a_torn_last_line_is_left_and_the_next_starts_anew() {
    let root = project();
    fs::create_dir(root.path().join(".altair")).unwrap();
    fs::write(path(root.path()), "{\"whole\":1}\n{\"torn\":").unwrap();
    append::append(&found(root.path()), "{\"next\":2}").unwrap();
    append::append(&found(root.path()), "{\"next\":3}").unwrap();
    assert_eq!(
        fs::read_to_string(path(root.path())).unwrap(),
        "{\"whole\":1}\n{\"torn\":\n{\"next\":2}\n{\"next\":3}\n"
    );
}

/// Runs itself again under a file size limit with its signal ignored: simulates a full disk.
#[test]
fn a_line_that_does_not_fit_leaves_the_log_as_it_was() {
    const LIMITED: &str = "ALTAIR_TEST_LIMITED_ROOT";
    if let Some(root) = env::var_os(LIMITED) {
        let error = append::append(&found(Path::new(&root)), &"x".repeat(500)).unwrap_err();
        assert!(matches!(error, AuditError::Write { .. }), "{error}");
        return;
    }
    let root = project();
    fs::create_dir(root.path().join(".altair")).unwrap();
    let before = format!("{}\n", "y".repeat(999));
    fs::write(path(root.path()), &before).unwrap();
    let (_, module) = module_path!().split_once("::").unwrap();
    // 2 blocks of 512 bytes: 24 bytes of the line fit.
    let child = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 2; exec \"$0\" --exact \"$1\"",
        ])
        .arg(env::current_exe().unwrap())
        .arg(format!(
            "{module}::a_line_that_does_not_fit_leaves_the_log_as_it_was"
        ))
        .env(LIMITED, root.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(path(root.path())).unwrap(), before);
}

/// Puts something in the log's place and returns the error message.
fn refusal(place: impl FnOnce(&Path)) -> String {
    let root = project();
    fs::create_dir(root.path().join(".altair")).unwrap();
    let log = path(root.path());
    place(&log);
    let error = begin(root.path()).unwrap_err();
    assert!(matches!(error, AuditError::InTheWay { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains(log.to_str().unwrap()), "{message}");
    message
}

#[test]
fn only_a_regular_file_is_taken_for_the_log() {
    let target = tempfile::NamedTempFile::new().unwrap();
    assert!(refusal(|log| symlink(target.path(), log).unwrap()).contains("is a symbolic link"));
    assert_eq!(fs::read(target.path()).unwrap(), b"");
    assert!(refusal(|log| fs::create_dir(log).unwrap()).contains("is a directory"));
    assert!(refusal(|log| mkfifo(log, Mode::S_IRWXU).unwrap()).contains("is a FIFO"));
    let socket = |log: &Path| drop(std::os::unix::net::UnixListener::bind(log).unwrap());
    assert!(refusal(socket).contains("is a socket"));
}

#[test]
fn a_dangling_link_is_refused_and_its_target_not_made() {
    let elsewhere = project();
    let target = elsewhere.path().join("target");
    assert!(refusal(|log| symlink(&target, log).unwrap()).contains("is a symbolic link"));
    assert!(!target.exists());
}

#[test]
fn a_linked_directory_is_refused_and_nothing_is_made_in_it() {
    let elsewhere = project();
    for target in [elsewhere.path().to_owned(), elsewhere.path().join("none")] {
        let root = project();
        symlink(&target, root.path().join(".altair")).unwrap();
        let error = begin(root.path()).unwrap_err();
        assert!(
            matches!(
                error,
                AuditError::InTheWay {
                    found: "a symbolic link",
                    ..
                }
            ),
            "{error}"
        );
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_file_in_the_directorys_place_is_refused_and_kept() {
    let root = project();
    let place = root.path().join(".altair");
    fs::write(&place, "mine").unwrap();
    let message = begin(root.path()).unwrap_err().to_string();
    assert!(message.contains(place.to_str().unwrap()), "{message}");
    assert!(
        message.contains("is a regular file, and the audit log needs a directory"),
        "{message}"
    );
    assert_eq!(fs::read(place).unwrap(), b"mine");
}

#[test]
fn a_root_that_is_gone_by_now_is_not_made_anew() {
    let root = project();
    let gone = root.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let place = found(&gone);
    fs::remove_dir(&gone).unwrap();
    let error = append::append(&place, "1").unwrap_err();
    assert!(matches!(error, AuditError::Directory { .. }), "{error}");
    assert!(
        error.to_string().contains("no such file or directory"),
        "{error}"
    );
    assert!(!gone.exists());
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let root = project();
    fs::create_dir(root.path().join(".altair")).unwrap();
    let read_only = fs::Permissions::from_mode(0o555);
    fs::set_permissions(root.path().join(".altair"), read_only).unwrap();
    let outcome = begin(root.path());
    if geteuid().is_root() {
        // Permissions do not restrict root: the line is logged.
        outcome.unwrap().end(fine()).unwrap();
    } else {
        let error = outcome.unwrap_err();
        assert!(matches!(error, AuditError::Open { .. }), "{error}");
        assert!(error.to_string().contains("permission denied"), "{error}");
    }
}

#[test]
fn a_lock_that_is_never_given_back_is_an_error_after_two_seconds() {
    let root = project();
    begin(root.path()).unwrap().end(fine()).unwrap();
    let other = File::open(path(root.path())).unwrap();
    let held = Flock::lock(other, FlockArg::LockExclusive)
        .map_err(|(_, e)| e)
        .unwrap();

    let started = Instant::now();
    let error = begin(root.path()).unwrap_err();
    assert!(
        matches!(
            error,
            AuditError::Locked {
                waited_ms: 2000,
                ..
            }
        ),
        "{error}"
    );
    assert!(started.elapsed() >= Duration::from_secs(2));
    drop(held);
    assert_eq!(
        lines(root.path()).len(),
        2,
        "nothing was written without the lock"
    );
    begin(root.path()).unwrap().end(fine()).unwrap();
}

/// How often this process has `file` open.
fn times_open(file: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    links
        .filter(|link| fs::read_link(link.as_ref().unwrap().path()).is_ok_and(|l| l == file))
        .count()
}

#[test]
fn a_line_waits_for_the_lock_and_follows_the_log_that_took_its_place() {
    let root = project();
    append::append(&found(root.path()), "1").unwrap();
    let other = OpenOptions::new()
        .append(true)
        .open(path(root.path()))
        .unwrap();
    let mut held = Flock::lock(other, FlockArg::LockExclusive)
        .map_err(|(_, e)| e)
        .unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| append::append(&found(root.path()), "3"));
        while times_open(&path(root.path())) < 2 {
            std::thread::yield_now();
        }
        // The writer has the log open and waits for its lock: remove the log now.
        held.write_all(b"2\n").unwrap();
        fs::remove_file(path(root.path())).unwrap();
        drop(held);
        writer.join().unwrap().unwrap();
    });
    assert_eq!(fs::read_to_string(path(root.path())).unwrap(), "3\n");
}

#[test]
fn what_root_makes_belongs_to_the_owner_of_the_project() {
    let root = project();
    let (owner, group) = if geteuid().is_root() {
        (4711, 4712)
    } else {
        (geteuid().into(), 0)
    };
    if geteuid().is_root() {
        let (owner, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)));
        chown(root.path(), owner, group).unwrap();
    }
    begin(root.path()).unwrap().end(fine()).unwrap();
    for made in [root.path().join(".altair"), path(root.path())] {
        let meta = fs::symlink_metadata(&made).unwrap();
        assert_eq!(meta.uid(), owner, "{}", made.display());
        assert!(
            !geteuid().is_root() || meta.gid() == group,
            "{}",
            made.display()
        );
        assert_eq!(
            meta.mode() & 0o002,
            0,
            "others cannot write {}",
            made.display()
        );
    }
}
