//! The privileges guard by itself, seen from inside and outside of the process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use altair_sandbox::{Privileges, RunAs, SpawnError, Status, Step};
use common::{dropped, fields, is_root, output_of, run, sh};

const NO_CAPABILITY: &str = "0000000000000000";

fn assert_powerless(status: &std::collections::BTreeMap<String, String>) {
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status[set], NO_CAPABILITY, "{set}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
}

#[test]
fn every_capability_is_dropped_also_for_user_0_and_after_exec() {
    // `cat` is a second exec, after the shell's.
    let status = fields(&output_of(dropped("cat /proc/self/status", None)));
    assert_powerless(&status);
    let may_change_bounds =
        caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SETPCAP).unwrap();
    if may_change_bounds {
        assert_eq!(status["CapBnd"], NO_CAPABILITY);
    }
    let own = nix::unistd::geteuid().to_string();
    assert_eq!(status["Uid"].split('\t').next().unwrap(), own);
}

#[test]
fn a_kept_privilege_is_kept() {
    let own = fields(&fs::read_to_string("/proc/thread-self/status").unwrap());
    let status = fields(&output_of(sh("cat /proc/self/status")));
    assert_eq!(status["CapEff"], own["CapEff"]);
    assert_eq!(status["CapBnd"], own["CapBnd"]);
    assert_eq!(status["NoNewPrivs"], own["NoNewPrivs"]);
}

#[test]
fn a_set_uid_program_grants_nothing() {
    if !is_root() {
        // Only root can make a set-uid program for another user. no_new_privs disables it.
        assert_powerless(&fields(&output_of(dropped("cat /proc/self/status", None))));
        return;
    }
    // In a directory that other users can enter.
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("id");
    // Copied by another process: a child of another test may inherit a descriptor open for writing.
    let copied = std::process::Command::new("cp")
        .arg("/usr/bin/id")
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let script = format!("{} -u", program.display());
    let nobody = Some(RunAs {
        uid: 65534,
        gid: 65534,
    });
    assert_eq!(output_of(dropped(&script, nobody)), "65534\n");
}

#[test]
fn root_without_capabilities_is_an_ordinary_owner() {
    if !is_root() {
        assert_ne!(run(dropped("chown 1 /", None)).status, Status::Exited(0));
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    // Without CAP_CHOWN and CAP_DAC_OVERRIDE.
    assert_ne!(
        run(dropped(&format!("chown 1 {path}"), None)).status,
        Status::Exited(0)
    );
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o000)).unwrap();
    assert_ne!(
        run(dropped(&format!("cat {path}"), None)).status,
        Status::Exited(0)
    );
    assert_eq!(run(sh(&format!("cat {path}"))).status, Status::Exited(0));
}

#[test]
fn another_user_has_no_group_of_the_host() {
    let run_as = RunAs {
        uid: 4711,
        gid: 4712,
    };
    let launch = dropped("cat /proc/self/status", Some(run_as));
    if !is_root() {
        let error = launch.spawn().unwrap_err();
        let is_refused = matches!(
            &error,
            SpawnError::Step {
                step: Step::Groups | Step::Gid | Step::Uid,
                ..
            }
        );
        assert!(is_refused, "{error:?}");
        return;
    }
    let status = fields(&output_of(launch));
    assert_eq!(status["Uid"], "4711\t4711\t4711\t4711");
    assert_eq!(status["Gid"], "4712\t4712\t4712\t4712");
    assert_eq!(status["Groups"], "");
    assert_powerless(&status);
    assert_eq!(status["CapBnd"], NO_CAPABILITY);
}

#[test]
fn the_working_directory_is_entered_as_the_processes_own_user() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(
        fs::metadata(directory.path()).unwrap().mode() & 0o777,
        0o700
    );
    let run_as = is_root().then_some(RunAs {
        uid: 4711,
        gid: 4712,
    });
    if run_as.is_none() {
        // As an ordinary user: close the directory to its owner instead.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let mut launch = dropped("true", run_as);
    launch.cwd = directory.path().into();
    let error = launch.spawn().unwrap_err();
    assert!(
        matches!(error, SpawnError::WorkingDirectory { .. }),
        "{error:?}"
    );
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_changed_user_still_dies_with_its_keeper() {
    // The parent is the keeper. Its death must kill the process, although a changed uid clears a
    // death signal that was set before.
    let run_as = is_root().then_some(RunAs {
        uid: 4711,
        gid: 4712,
    });
    let mark = common::fresh_mark("changed-user");
    let mut launch = common::marked("echo $PPID; exec sleep 1000", &mark);
    launch.policy.privileges = Privileges::Drop { run_as };
    let mut killer = KillsTheKeeper::default();
    let child = launch.spawn().unwrap();
    let ended = child.supervise(common::supervision(common::LONG), &mut killer);
    assert_eq!(ended.status, Status::Signalled(libc::SIGKILL));
    assert!(killer.done && !ended.timed_out);
    common::wait_until("the process is gone", || {
        common::processes_with(&mark).is_empty()
    });
}

/// Kills the process whose id it reads.
#[derive(Default)]
struct KillsTheKeeper {
    done: bool,
}

impl altair_sandbox::Observer for KillsTheKeeper {
    fn output(&mut self, _: altair_sandbox::Stream, chunk: &[u8]) -> std::ops::ControlFlow<()> {
        let pid: i32 = String::from_utf8_lossy(chunk).trim().parse().unwrap();
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        assert_eq!(name, "altair-keeper\n");
        let pid = nix::unistd::Pid::from_raw(pid);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        self.done = true;
        std::ops::ControlFlow::Continue(())
    }

    fn packet(&mut self, _: &[u8]) {}

    fn tick(&mut self) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn supplementary_groups_of_the_host_are_given_up() {
    if !is_root() {
        // Without the right to drop its groups, the process must not start with them.
        let run_as = RunAs { uid: 0, gid: 0 };
        dropped("true", Some(run_as)).spawn().unwrap_err();
        return;
    }
    // In a separate host, as groups belong to the whole process.
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_has_groups", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("before 4242 4243, after ."), "{text}");
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_has_groups() {
    let groups = [4242, 4243].map(nix::unistd::Gid::from_raw);
    nix::unistd::setgroups(&groups).unwrap();
    let of = |launch| fields(&output_of(launch))["Groups"].clone();
    let before = of(sh("cat /proc/self/status"));
    let run_as = RunAs {
        uid: 4711,
        gid: 4712,
    };
    let after = of(dropped("cat /proc/self/status", Some(run_as)));
    println!("before {before}, after {after}.");
}

#[test]
fn root_without_capabilities_needs_no_right_to_give_up_its_own_group() {
    if !is_root() {
        return; // about root
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_is_root_of_a_bare_container"])
        .args(["--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("own group 0, another refused."), "{text}");
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_is_root_of_a_bare_container() {
    assert!(altair_sandbox::may_become_another_user());
    let has_groups = |groups: &[u32]| {
        let groups: Vec<_> = groups
            .iter()
            .map(|id| nix::unistd::Gid::from_raw(*id))
            .collect();
        nix::unistd::setgroups(&groups).unwrap();
    };
    let root = RunAs { uid: 0, gid: 0 };
    // Capabilities are the thread's own.
    let without_capabilities = |groups: &'static [u32]| {
        has_groups(groups);
        let run = move || {
            caps::clear(None, caps::CapSet::Effective).unwrap();
            caps::clear(None, caps::CapSet::Permitted).unwrap();
            assert!(!altair_sandbox::may_become_another_user());
            dropped("cat /proc/self/status", Some(root)).spawn()
        };
        std::thread::spawn(run).join().unwrap()
    };
    let own = without_capabilities(&[0]).unwrap();
    let mut seen = common::Recorder::default();
    own.supervise(common::supervision(common::LONG), &mut seen);
    let status = fields(&seen.stdout());
    assert_eq!(status["Uid"], "0\t0\t0\t0");
    assert_powerless(&status);
    let other = without_capabilities(&[0, 4242]).unwrap_err();
    let is_refused = matches!(
        &other,
        SpawnError::Step {
            step: Step::Groups,
            ..
        }
    );
    assert!(is_refused, "{other:?}");
    println!("own group {}, another refused.", status["Groups"]);
}
