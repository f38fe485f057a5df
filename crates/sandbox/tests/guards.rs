//! The process guard and the limits guard, seen from inside and outside of the process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs;

use altair_sandbox::{GuardState, Launch, Limits, Made, Policy, Privileges, Status};
use common::{dropped, fields, output_of, run, sh, stdout};

fn with_limits(script: &str, limits: Limits) -> Launch {
    let mut launch = sh(script);
    launch.policy = Policy {
        connections: altair_sandbox::Connections::default(),
        view: None,
        limits,
        privileges: Privileges::Keep,
        made: Made::ForItself,
        spaces: None,
        before_exec: None,
    };
    launch
}

// The process guard.

#[test]
fn a_process_leads_its_own_session_and_group_without_a_terminal() {
    // Fields 5 to 7 of stat: group, session, terminal.
    let output = output_of(sh(
        "echo $$; read -r line < /proc/$$/stat; echo \"${line##*) }\"",
    ));
    let mut lines = output.lines();
    let pid = lines.next().unwrap();
    let stat: Vec<&str> = lines.next().unwrap().split(' ').collect();
    assert_eq!((stat[2], stat[3], stat[4]), (pid, pid, "0"));
    let own = nix::unistd::getsid(None).unwrap().to_string();
    assert_ne!(stat[3], own);
    assert_eq!(
        output_of(sh("(: < /dev/tty) 2>/dev/null || echo none")),
        "none\n"
    );
}

#[test]
fn standard_input_is_empty() {
    assert_eq!(output_of(sh("cat; echo end")), "end\n");
}

#[test]
fn no_descriptor_of_the_host_reaches_the_process() {
    // A high descriptor that does not close on exec.
    let file = tempfile::tempfile().unwrap();
    let high = nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_DUPFD(200)).unwrap();
    let list = "ls /proc/$$/fd; true";
    assert_eq!(output_of(sh(list)), "0\n1\n2\n");
    let (_host, process) = altair_sandbox::channel_pair().unwrap();
    let mut launch = sh(list);
    launch.channel = Some(process);
    assert_eq!(output_of(launch), "0\n1\n2\n3\n");
    nix::unistd::close(high).unwrap();
}

#[test]
fn files_that_end_with_it_are_made_for_their_owner_only_and_core_files_are_not_made() {
    let script = "umask; ulimit -c; ulimit -H -c";
    let mut confined = sh(script);
    confined.policy.made = Made::ForItself;
    assert_eq!(output_of(confined), "0077\n0\n0\n");
    let host = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(host);
    assert_eq!(
        output_of(sh(script)),
        format!("{:04o}\n0\n0\n", host.bits())
    );
}

#[test]
fn signals_are_as_for_a_fresh_program_but_for_the_one_about_file_size() {
    // The host blocks and ignores signals; the program must not inherit that.
    use nix::sys::signal::{SigSet, Signal};
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGUSR1);
    blocked.thread_block().unwrap();
    let status = fields(&output_of(sh("cat /proc/self/status")));
    blocked.thread_unblock().unwrap();
    assert_eq!(status["SigBlk"], "0000000000000000");
    // SIGXFSZ is 25. Rust ignores SIGPIPE (13) in the host, which must not show.
    assert_eq!(status["SigIgn"], format!("{:016x}", 1u64 << 24));
}

#[test]
fn guards_say_whether_they_are_in_force() {
    let open = sh("true").spawn().unwrap();
    let of_open = open.guards();
    assert_eq!(of_open.process, GuardState::InForce);
    assert_eq!(of_open.deadline, GuardState::InForce);
    assert!(matches!(of_open.limits, GuardState::LeftOut { .. }));
    assert!(matches!(of_open.privileges, GuardState::LeftOut { .. }));
    let mut launch = dropped("true", None);
    launch.policy.limits.descriptors = Some(64);
    let closed = launch.spawn().unwrap();
    let of_closed = closed.guards();
    for state in [
        &of_closed.process,
        &of_closed.limits,
        &of_closed.privileges,
        &of_closed.deadline,
    ] {
        assert_eq!(*state, GuardState::InForce);
    }
    // This launch has no view.
    assert!(matches!(of_closed.filesystem, GuardState::LeftOut { .. }));
}

// The limits guard.

#[test]
fn memory_beyond_the_limit_is_refused() {
    // dd takes its block from the heap.
    let script = "dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null && echo fits";
    assert_eq!(stdout(&run(sh(script))), "fits\n");
    // Each limit by itself: data, then all mappings.
    let data = Limits {
        data_bytes: Some(16 << 20),
        ..Limits::default()
    };
    let mapped = Limits {
        address_space_bytes: Some(48 << 20),
        ..Limits::default()
    };
    for limits in [data, mapped] {
        let ended = run(with_limits(script, limits));
        assert_ne!(ended.status, Status::Exited(0));
        assert_eq!(stdout(&ended), "");
    }
}

#[test]
fn processor_time_beyond_the_limit_ends_the_process() {
    let limits = Limits {
        cpu_seconds: Some(1),
        ..Limits::default()
    };
    let ended = run(with_limits("while :; do :; done", limits.clone()));
    assert_eq!(ended.status, Status::Signalled(libc::SIGXCPU));
    let ended = run(with_limits("trap '' XCPU; while :; do :; done", limits));
    assert_eq!(ended.status, Status::Signalled(libc::SIGKILL));
}

#[test]
fn a_write_beyond_the_file_size_fails_and_does_not_kill() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits {
        file_size_bytes: Some(4096),
        ..Limits::default()
    };
    let mut launch = with_limits("head -c 10000 /dev/zero > big 2> said; echo $?", limits);
    launch.cwd = directory.path().into();
    assert_eq!(output_of(launch), "1\n");
    assert_eq!(
        fs::metadata(directory.path().join("big")).unwrap().len(),
        4096
    );
    let said = fs::read_to_string(directory.path().join("said")).unwrap();
    assert!(said.contains("File too large"), "{said}");
}

#[test]
fn descriptors_beyond_the_limit_are_refused() {
    // Loading a program takes one descriptor, for its libraries.
    let script = "exec 3</dev/null; cat /dev/null && echo all";
    assert_eq!(output_of(sh(script)), "all\n");
    let limits = Limits {
        descriptors: Some(4),
        ..Limits::default()
    };
    assert_ne!(run(with_limits(script, limits)).status, Status::Exited(0));
}

#[test]
fn limits_cannot_be_raised_again_by_the_process() {
    let limits = Limits {
        data_bytes: Some(64 << 20),
        cpu_seconds: Some(100),
        file_size_bytes: Some(1 << 20),
        address_space_bytes: None,
        pending_signals: Some(100),
        descriptors: Some(64),
        processes: None,
        file_locks: Some(10),
    };
    let launch = with_limits("cat /proc/self/limits", limits);
    let text = output_of(launch);
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let words: Vec<&str> = line[name.len()..].split_whitespace().collect();
        (words[0].to_owned(), words[1].to_owned())
    };
    let both = |value: &str| (value.to_owned(), value.to_owned());
    assert_eq!(line("Max data size"), both("67108864"));
    assert_eq!(line("Max file size"), both("1048576"));
    assert_eq!(line("Max open files"), both("64"));
    assert_eq!(line("Max cpu time"), ("100".into(), "101".into()));
    assert_eq!(line("Max pending signals"), both("100"));
    assert_eq!(line("Max core file size"), both("1"));
}
