//! What the host notices of its runs, and a run of its host.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use altair_sandbox::Status;
use common::{
    LONG, Recorder, fresh_mark, marked, processes_with, run, sh, supervision, wait_until,
};

#[test]
fn the_application_sees_no_child_and_no_sigchld() {
    // In a separate process: other tests have ordinary children.
    let helper = helper("helper_looks_for_children", &[]);
    let output = helper.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("saw nothing"), "{text}");
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_looks_for_children() {
    use nix::errno::Errno;
    use nix::sys::wait::{WaitPidFlag, waitpid};
    let child = sh("exec sleep 1000").spawn().unwrap();
    assert_eq!(
        waitpid(None, Some(WaitPidFlag::WNOHANG)),
        Err(Errno::ECHILD)
    );
    drop(child);
    assert_eq!(
        waitpid(None, Some(WaitPidFlag::WNOHANG)),
        Err(Errno::ECHILD)
    );
    assert_eq!(waitpid(None, Some(WaitPidFlag::__WALL)), Err(Errno::ECHILD));
    println!("saw nothing");
}

#[test]
fn a_host_that_ignores_sigchld_still_learns_the_status() {
    let helper = helper("helper_ignores_sigchld", &[]);
    let output = helper.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("status Exited(7)"), "{text}");
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_ignores_sigchld() {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // SAFETY: nothing runs on an ignored signal.
    #[allow(unsafe_code)]
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) }.unwrap();
    println!("status {:?}", run(sh("(exit 3); exit 7")).status);
}

#[test]
fn everything_ends_when_the_host_is_killed() {
    let mark = fresh_mark("host-killed");
    let mut host = helper("helper_hosts_until_killed", &[("HELPER_MARK", &mark)]);
    wait_until("the processes run", || processes_with(&mark).len() >= 4);
    host.kill().unwrap();
    host.wait().unwrap();
    wait_until("they are gone", || processes_with(&mark).is_empty());
}

#[test]
fn everything_ends_when_the_host_is_killed_though_the_keeper_was_stopped() {
    let mark = fresh_mark("host-killed-stopped");
    let mut host = helper(
        "helper_hosts_until_killed",
        &[("HELPER_MARK", &mark), ("HELPER_STOPS", "1")],
    );
    // It kills the host itself, right after it has stopped the keeper.
    host.wait().unwrap();
    wait_until("they are gone", || processes_with(&mark).is_empty());
}

#[test]
fn everything_ends_with_the_host_though_a_fork_of_it_lives_on() {
    let mark = fresh_mark("host-forked");
    let mut host = helper(
        "helper_hosts_until_killed",
        &[("HELPER_MARK", &mark), ("HELPER_FORKS", "1")],
    );
    wait_until("the processes run", || processes_with(&mark).len() >= 4);
    let fork = fork_of(host.id());
    host.kill().unwrap();
    host.wait().unwrap();
    wait_until("they are gone", || processes_with(&mark).is_empty());
    let fork = nix::unistd::Pid::from_raw(fork);
    // The fork lived until now, with copies of the host's descriptors.
    nix::sys::signal::kill(fork, nix::sys::signal::Signal::SIGKILL).unwrap();
}

/// The forked child of a process: the one that is not a keeper.
fn fork_of(host: u32) -> i32 {
    let mut found = None;
    wait_until("the fork is there", || {
        let tasks = fs::read_dir(format!("/proc/{host}/task")).unwrap();
        found = tasks
            .filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok())
            .flat_map(|text| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .find(|pid| {
                fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|name| name != "altair-keeper\n")
            })
            .and_then(|pid| pid.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_hosts_until_killed() {
    let mark = std::env::var("HELPER_MARK").unwrap();
    let script = "(setsid sleep 1000 &); (sleep 1000 &); trap '' TERM HUP; sleep 1000 & wait";
    let own = std::process::id();
    let first = match std::env::var_os("HELPER_STOPS") {
        // Kills the host before it can continue the keeper.
        Some(_) => format!("(sleep 0.3; kill -STOP $PPID; kill -KILL {own}) & "),
        None => String::new(),
    };
    let child = marked(&format!("{first}{script}"), &mark).spawn().unwrap();
    if std::env::var_os("HELPER_FORKS").is_some() {
        // SAFETY: the child only sleeps.
        #[allow(unsafe_code)]
        match unsafe { nix::unistd::fork() }.unwrap() {
            nix::unistd::ForkResult::Child => loop {
                nix::unistd::pause();
            },
            nix::unistd::ForkResult::Parent { .. } => {}
        }
    }
    child.supervise(
        supervision(Duration::from_secs(1000)),
        &mut Recorder::default(),
    );
}

#[test]
fn a_child_that_is_dropped_in_a_fork_of_the_host_runs_on() {
    let helper = helper("helper_drops_in_a_fork", &[]);
    let output = helper.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("still Exited(0)"), "{text}");
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_drops_in_a_fork() {
    let child = sh("sleep 0.3").spawn().unwrap();
    // SAFETY: the child only drops a value made before the fork, and ends.
    #[allow(unsafe_code)]
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            drop(child);
            // SAFETY: ends without running the parent's exit handlers.
            #[allow(unsafe_code)]
            unsafe {
                libc::_exit(0)
            }
        }
        nix::unistd::ForkResult::Parent { child: fork } => {
            nix::sys::wait::waitpid(fork, None).unwrap();
            let ended = child.supervise(supervision(LONG), &mut Recorder::default());
            println!("still {:?}", ended.status);
        }
    }
}

#[test]
fn many_runs_leave_nothing_in_the_host() {
    let helper = helper("helper_runs_many", &[]);
    let output = helper.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("left nothing"), "{text}");
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_runs_many() {
    use nix::errno::Errno;
    use nix::sys::wait::{WaitPidFlag, waitpid};
    run(sh("true"));
    let before = common::open_descriptors();
    for round in 0..300 {
        match round % 4 {
            0 => assert_eq!(run(sh("exit 4")).status, Status::Exited(4)),
            1 => {
                let (host, process) = altair_sandbox::channel_pair().unwrap();
                let mut launch = sh("(sleep 1000 &); echo x >&3");
                launch.channel = Some(process);
                let mut settings = supervision(LONG);
                settings.channel = Some(host);
                launch
                    .spawn()
                    .unwrap()
                    .supervise(settings, &mut Recorder::default());
            }
            2 => {
                let mut launch = sh("true");
                launch.cwd = "/nowhere".into();
                launch.spawn().unwrap_err();
            }
            _ => drop(sh("sleep 1000").spawn().unwrap()),
        }
    }
    assert_eq!(common::open_descriptors(), before);
    assert_eq!(waitpid(None, Some(WaitPidFlag::__WALL)), Err(Errno::ECHILD));
    println!("left nothing");
}

#[test]
fn the_keeper_does_not_show_the_memory_of_the_host() {
    let helper = helper("helper_is_an_ordinary_user", &[]);
    let output = helper.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // The /proc files of a process that is not dumpable belong to root.
    assert!(text.contains("keeper 0, process its own"), "{text}");
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_is_an_ordinary_user() {
    use nix::unistd::{Gid, Uid, geteuid, setgid, setuid};
    if geteuid().is_root() {
        setgid(Gid::from_raw(65534)).unwrap();
        setuid(Uid::from_raw(65534)).unwrap();
        // The change of user cleared the dumpable flag.
        nix::sys::prctl::set_dumpable(true).unwrap();
    }
    let owners = common::output_of(sh("stat -c %u /proc/$PPID/environ /proc/$$/environ"));
    let own = geteuid().to_string();
    let owners: Vec<&str> = owners.lines().collect();
    let process = if owners[1] == own {
        "its own"
    } else {
        owners[1]
    };
    println!("keeper {}, process {process}", owners[0]);
}

/// Runs one of the ignored tests of this file in a separate process.
fn helper(name: &str, env: &[(&str, &str)]) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            name,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
