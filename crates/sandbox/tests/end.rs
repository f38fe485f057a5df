//! Nothing outlives a run, neither in the host nor beside it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use altair_sandbox::{Status, run as run_command};
use common::{
    LONG, Recorder, fresh_mark, marked, processes_with, run, sh, stdout, supervision, wait_until,
};

#[test]
fn daemons_are_gone_when_the_run_returns() {
    let mark = fresh_mark("daemons");
    let script = "sleep 1000 &
        (sleep 1000 &)
        setsid sleep 1000
        (setsid sh -c '(sleep 1000 & setsid sleep 1000 &) & exec sleep 1000' &)
        (trap '' TERM HUP INT; sleep 1000) &
        echo started";
    let script = script.replace("setsid sleep 1000\n", "setsid sleep 1000 &\n");
    let ended = run(marked(&script, &mark));
    assert_eq!(stdout(&ended), "started\n");
    assert_eq!(ended.status, Status::Exited(0));
    assert_eq!(processes_with(&mark), []);
    assert!(
        ended.elapsed < Duration::from_secs(5),
        "{:?}",
        ended.elapsed
    );
}

#[test]
fn moving_targets_are_gone_when_the_run_returns() {
    let mark = fresh_mark("moving");
    // Each generation makes the next and ends, each in its own session.
    let hop = "#!/bin/sh\nsetsid \"$0\" &\n";
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("hop");
    fs::write(&script, hop).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = script.display();
    for _ in 0..5 {
        let launch = marked(&format!("{path} & {path} & {path} & sleep 0.1"), &mark);
        run(launch);
        assert_eq!(processes_with(&mark), []);
    }
}

#[test]
fn a_process_that_forks_without_end_is_gone_at_the_deadline() {
    let mark = fresh_mark("forks");
    let launch = marked("while :; do sleep 1000 & done", &mark);
    let ended = run_command(launch, Duration::from_millis(300), 1000).unwrap();
    assert!(ended.timed_out);
    assert_eq!(processes_with(&mark), []);
}

#[test]
fn a_copy_of_a_pipe_outside_the_run_does_not_delay_its_end() {
    // The test holds a copy of the process's standard output open.
    let mut recorder = HoldsCopy::default();
    let child = sh("echo $$; sleep 0.2; echo end").spawn().unwrap();
    let began = Instant::now();
    let ended = child.supervise(supervision(LONG), &mut recorder);
    assert!(recorder.copy.is_some());
    assert!(stdout(&ended).ends_with("end\n"));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[derive(Default)]
struct HoldsCopy {
    copy: Option<fs::File>,
}

impl altair_sandbox::Observer for HoldsCopy {
    fn output(&mut self, _: altair_sandbox::Stream, chunk: &[u8]) -> std::ops::ControlFlow<()> {
        if self.copy.is_none() {
            let pid = String::from_utf8_lossy(chunk).trim().to_owned();
            let path = format!("/proc/{pid}/fd/1");
            self.copy = Some(fs::OpenOptions::new().write(true).open(path).unwrap());
        }
        std::ops::ControlFlow::Continue(())
    }

    fn packet(&mut self, _: &[u8]) {}

    fn tick(&mut self) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn a_dropped_child_ends_with_everything_it_started() {
    let mark = fresh_mark("drop");
    let child = marked("(setsid sleep 1000 &); exec sleep 1000", &mark)
        .spawn()
        .unwrap();
    wait_until("it runs", || processes_with(&mark).len() >= 2);
    drop(child);
    assert_eq!(processes_with(&mark), []);
}

#[test]
fn the_thread_that_started_a_process_may_end() {
    let child = std::thread::spawn(|| sh("sleep 0.3; echo alive").spawn().unwrap())
        .join()
        .unwrap();
    let ended = child.supervise(supervision(LONG), &mut Recorder::default());
    assert_eq!(stdout(&ended), "alive\n");
    assert_eq!(ended.status, Status::Exited(0));
}

#[test]
fn a_keeper_that_is_told_to_terminate_ends_everything() {
    let mark = fresh_mark("keeper-term");
    let child = marked(
        "(setsid sleep 1000 &); kill -TERM $PPID; exec sleep 1000",
        &mark,
    )
    .spawn()
    .unwrap();
    let ended = child.supervise(supervision(LONG), &mut Recorder::default());
    assert_eq!(ended.status, Status::Signalled(libc::SIGKILL));
    assert!(!ended.timed_out);
    assert_eq!(processes_with(&mark), []);
}

#[test]
fn a_stopped_keeper_does_not_hold_the_host_up() {
    let mark = fresh_mark("keeper-stop");
    let child = marked(
        "kill -STOP $PPID; (setsid sleep 1000 &); exec sleep 1000",
        &mark,
    )
    .spawn()
    .unwrap();
    let settings = supervision(Duration::from_millis(200));
    let ended = child.supervise(settings, &mut Recorder::default());
    assert!(ended.timed_out);
    assert_eq!(processes_with(&mark), []);
    assert!(
        ended.elapsed < Duration::from_secs(3),
        "{:?}",
        ended.elapsed
    );
}

#[test]
fn a_process_that_stops_its_keeper_gains_nothing() {
    // At once, so that some stop it before it has reported the start to the host.
    for _ in 0..20 {
        let ended = run(sh("kill -STOP $PPID; exit 3"));
        assert_eq!(ended.status, Status::Exited(3));
        assert!(!ended.timed_out);
    }
}

#[test]
fn a_writer_outside_the_run_does_not_keep_it_from_ending() {
    let mut recorder = WritesMore::default();
    let child = sh("echo $$; sleep 0.2").spawn().unwrap();
    let ended = child.supervise(supervision(LONG), &mut recorder);
    assert_eq!(ended.status, Status::Exited(0));
    assert!(!recorder.ran_away);
}

/// Writes a byte to the process's standard output whenever one is read from it.
#[derive(Default)]
struct WritesMore {
    copy: Option<fs::File>,
    began: Option<Instant>,
    ran_away: bool,
}

impl altair_sandbox::Observer for WritesMore {
    fn output(&mut self, _: altair_sandbox::Stream, chunk: &[u8]) -> std::ops::ControlFlow<()> {
        use std::io::Write;
        let mut copy = self.copy.take().unwrap_or_else(|| {
            let pid = String::from_utf8_lossy(chunk).trim().to_owned();
            let path = format!("/proc/{pid}/fd/1");
            fs::OpenOptions::new().write(true).open(path).unwrap()
        });
        copy.write_all(b"x").unwrap();
        self.copy = Some(copy);
        self.ran_away = self.began.get_or_insert_with(Instant::now).elapsed() > LONG;
        if self.ran_away {
            return std::ops::ControlFlow::Break(());
        }
        std::ops::ControlFlow::Continue(())
    }

    fn packet(&mut self, _: &[u8]) {}

    fn tick(&mut self) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }
}
