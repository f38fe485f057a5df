//! seccomp alone, against programs, processes, threads and signals: each attack succeeds without it
//! and fails with it, seen from outside where that is possible.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::process::Command;

use altair_sandbox::GuardState;
use common::attack::Guarded::{ByItself, Not};
use common::attack::{SECCOMP, attack, c, call, channel, say};
use libc::{ENOSYS, EPERM};

attacks![
    start_program,
    make_processes,
    make_thread,
    signal_process,
    second_thread,
];

fn start_program(path: &str) {
    let (touch, path) = (c("/bin/touch"), c(path));
    let argv = [touch.as_ptr(), path.as_ptr(), std::ptr::null()];
    let argv = argv.as_ptr() as u64;
    say(
        "execveat",
        call(
            libc::SYS_execveat,
            &[u64::MAX, touch.as_ptr() as u64, argv, 0, 0],
        ),
    );
    say(
        "execve",
        call(libc::SYS_execve, &[touch.as_ptr() as u64, argv, 0]),
    );
}

#[test]
fn no_program_is_executed() {
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("executed");
    let attacked = attack("start_program", SECCOMP, marker.to_str().unwrap());
    assert_eq!(attacked.errno("execve"), EPERM);
    assert_eq!(attacked.errno("execveat"), EPERM);
    assert!(!marker.exists());
    attack("start_program", Not, marker.to_str().unwrap());
    assert!(marker.exists());
}

fn make_processes(path: &str) {
    // A new process would leave a file.
    let child = |name: &str, result: i64| {
        if result == 0 {
            let _ = std::fs::write(format!("{path}/{name}"), "");
            unsafe { libc::_exit(0) };
        }
        say(name, result);
    };
    child("clone", call(libc::SYS_clone, &[libc::SIGCHLD as u64]));
    child("quiet_clone", call(libc::SYS_clone, &[0]));
    #[cfg(target_arch = "x86_64")]
    child("fork", call(libc::SYS_fork, &[]));
    let mut args = [0u64; 11];
    args[4] = libc::SIGCHLD as u64;
    child(
        "clone3",
        call(libc::SYS_clone3, &[args.as_ptr() as u64, 88]),
    );
    // SAFETY: waits for all children.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

#[test]
fn no_process_is_made() {
    let kinds: &[&str] = if cfg!(target_arch = "x86_64") {
        &["clone", "quiet_clone", "fork", "clone3"]
    } else {
        &["clone", "quiet_clone", "clone3"]
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let attacked = attack("make_processes", SECCOMP, path);
    for kind in kinds {
        let errno = if *kind == "clone3" { ENOSYS } else { EPERM };
        assert_eq!(attacked.errno(kind), errno, "{kind}");
        assert!(!dir.path().join(kind).exists(), "{kind}");
    }
    attack("make_processes", Not, path);
    for kind in kinds.iter().filter(|kind| **kind != "quiet_clone") {
        assert!(dir.path().join(kind).exists(), "{kind}");
    }
}

fn make_thread(_: &str) {
    let told = std::thread::spawn(|| {
        // The filter covers a second thread, too.
        call(libc::SYS_socket, &[1, 1, 0])
    })
    .join()
    .unwrap();
    println!("thread {told}");
}

#[test]
fn threads_are_made_and_are_behind_the_filter() {
    assert_eq!(attack("make_thread", SECCOMP, "").output(), "thread -1\n");
    assert_ne!(attack("make_thread", Not, "").output(), "thread -1\n");
}

fn second_thread(_: &str) {
    use altair_sandbox::{FinalGuards, Landlock, Seccomp};
    let (go, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        wait.recv().unwrap();
        call(libc::SYS_socket, &[1, 1, 0])
    });
    let taken = FinalGuards {
        landlock: Some(Landlock::default()),
        seccomp: Some(Seccomp::default()),
        descriptors: None,
    }
    .take(Some(channel()));
    go.send(()).unwrap();
    println!("thread {}", thread.join().unwrap());
    println!("seccomp {}", taken.seccomp == Some(GuardState::InForce));
    println!(
        "landlock {}",
        matches!(taken.landlock, Some(GuardState::Missing { because }) if because.contains("thread"))
    );
}

#[test]
fn a_thread_of_before_is_behind_the_filter_and_makes_landlock_say_that_it_is_missing() {
    let attacked = attack("second_thread", ByItself, "");
    assert_eq!(
        attacked.output(),
        "thread -1\nseccomp true\nlandlock true\n"
    );
}

fn signal_process(pid: &str) {
    let pid: u64 = pid.parse().unwrap();
    let own = u64::from(std::process::id());
    say("own", call(libc::SYS_kill, &[own, 0]));
    say("raise", call(libc::SYS_tgkill, &[own, own, 0]));
    say("group", call(libc::SYS_kill, &[0, 0]));
    say("tkill", call(libc::SYS_tkill, &[pid, 9]));
    say("tgkill", call(libc::SYS_tgkill, &[pid, pid, 9]));
    say("prlimit", call(libc::SYS_prlimit64, &[pid, 7, 0, 0]));
    say("getsid", call(libc::SYS_getsid, &[pid]));
    say("all", call(libc::SYS_kill, &[u64::MAX, 0]));
    say("kill", call(libc::SYS_kill, &[pid, 9]));
}

#[test]
fn a_signal_reaches_nobody_else() {
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = other.id().to_string();
    let attacked = attack("signal_process", SECCOMP, &pid);
    assert_eq!(attacked.errno("own"), 0);
    assert_eq!(attacked.errno("raise"), 0);
    for refused in [
        "group", "all", "kill", "tkill", "tgkill", "prlimit", "getsid",
    ] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert_eq!(other.try_wait().unwrap(), None);
    attack("signal_process", Not, &pid);
    assert!(!other.wait().unwrap().success());
}
