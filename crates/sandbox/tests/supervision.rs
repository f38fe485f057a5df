//! Output, channel, deadline and observer of a running process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use altair_sandbox::{Observer, Status, Stream, Supervision};
use common::{
    Count, LONG, Recorder, fields, fresh_mark, marked, processes_with, run, sh, stdout, supervision,
};

#[test]
fn both_streams_are_kept_apart_and_seen_as_they_come() {
    let mut recorder = Recorder::default();
    let child = sh("echo out; echo err >&2; exit 3").spawn().unwrap();
    let ended = child.supervise(supervision(LONG), &mut recorder);
    assert_eq!(ended.status, Status::Exited(3));
    assert_eq!(ended.stdout.head, b"out\n");
    assert_eq!(ended.stderr.head, b"err\n");
    assert!(
        recorder
            .output
            .contains(&(Stream::Stderr, b"err\n".to_vec()))
    );
    assert!(!ended.timed_out && !ended.interrupted);
}

#[test]
fn a_flood_is_counted_to_the_last_byte_and_only_its_head_is_kept() {
    let child = sh("head -c 1073741824 /dev/zero; head -c 3000000 /dev/zero >&2; echo end >&2")
        .spawn()
        .unwrap();
    let mut settings = supervision(Duration::from_secs(120));
    settings.output_limit = 1000;
    let before = resident_bytes();
    let ended = child.supervise(settings, &mut Count::default());
    assert_eq!(ended.stdout.total, 1 << 30);
    assert_eq!(ended.stderr.total, 3_000_004);
    assert_eq!(ended.stdout.head, vec![0; 1000]);
    assert!(resident_bytes() < before + (64 << 20));
}

#[test]
fn who_looks_sees_everything_and_keeps_the_deadline() {
    let slept_in = |looks: Duration, script: &str, timeout: Duration| {
        let child = sh(script).spawn().unwrap();
        let settings = Supervision {
            looks,
            ..supervision(timeout)
        };
        let before = times_slept();
        let ended = child.supervise(settings, &mut Count::default());
        (times_slept() - before, ended)
    };
    let talks = "for i in $(seq 100); do echo $i; sleep 0.002; done; exit 3";
    let (woken, _) = slept_in(Duration::ZERO, talks, LONG);
    let (looked, ended) = slept_in(LONG, talks, LONG);
    assert!(
        woken >= 90 && looked > 5 * woken,
        "It sleeps from look to look: {woken}, {looked}"
    );
    assert_eq!(ended.status, Status::Exited(3));
    assert!(ended.stdout.head.ends_with(b"99\n100\n"));

    let (_, ended) = slept_in(LONG, "sleep 60", Duration::from_millis(100));
    assert!(ended.timed_out && ended.elapsed < LONG / 2);
}

/// How often this thread has waited for something (proc_pid_status(5)).
fn times_slept() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let count = &fields(&status)["voluntary_ctxt_switches"];
    count.parse().unwrap()
}

/// Memory of this process, with room for other tests that run at the same time.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn closed_streams_do_not_end_the_supervision() {
    let directory = tempfile::tempdir().unwrap();
    let mut launch = sh("exec >&- 2>&-; sleep 0.3; : > done");
    launch.cwd = directory.path().into();
    assert_eq!(run(launch).status, Status::Exited(0));
    assert!(directory.path().join("done").exists());
}

#[test]
fn at_the_deadline_the_process_is_asked_to_stop_and_may_answer() {
    let child = sh("trap 'echo stopped; exit 5' USR1; echo ready; while :; do sleep 0.01; done")
        .spawn()
        .unwrap();
    let mut settings = supervision(Duration::from_millis(300));
    settings.stop_signal = Some(libc::SIGUSR1);
    settings.grace = LONG;
    let ended = child.supervise(settings, &mut Recorder::default());
    assert_eq!(stdout(&ended), "ready\nstopped\n");
    assert_eq!(ended.status, Status::Exited(5));
    assert!(ended.timed_out);
}

#[test]
fn a_stop_signal_may_be_any_signal() {
    for signal in [libc::SIGTERM, libc::SIGALRM, 40] {
        let child = sh("exec sleep 1000").spawn().unwrap();
        let mut settings = supervision(Duration::from_millis(50));
        settings.stop_signal = Some(signal);
        settings.grace = LONG;
        let ended = child.supervise(settings, &mut Recorder::default());
        assert_eq!(ended.status, Status::Signalled(signal));
        assert!(ended.timed_out);
    }
}

#[test]
fn a_process_that_ignores_signals_is_killed_after_the_grace() {
    let child = sh("trap '' TERM USR1 INT HUP; echo ready; while :; do sleep 0.01; done")
        .spawn()
        .unwrap();
    let mut settings = supervision(Duration::from_millis(200));
    settings.stop_signal = Some(libc::SIGUSR1);
    settings.grace = Duration::from_millis(100);
    let ended = child.supervise(settings, &mut Recorder::default());
    assert_eq!(ended.status, Status::Signalled(libc::SIGKILL));
    assert!(ended.timed_out);
    assert!(ended.elapsed >= Duration::from_millis(300));
    assert!(ended.elapsed < LONG);
}

#[test]
fn a_stopped_process_is_killed_at_the_deadline() {
    let child = sh("kill -STOP $$").spawn().unwrap();
    let ended = child.supervise(
        supervision(Duration::from_millis(100)),
        &mut Count::default(),
    );
    assert_eq!(ended.status, Status::Signalled(libc::SIGKILL));
    assert!(ended.timed_out);
}

#[test]
fn an_exit_that_is_seen_after_the_deadline_is_a_timeout_whatever_its_code() {
    let child = sh("exit 0").spawn().unwrap();
    let mut settings = supervision(Duration::ZERO);
    settings.stop_signal = Some(libc::SIGURG);
    settings.grace = LONG;
    let ended = child.supervise(settings, &mut Count::default());
    assert_eq!(ended.status, Status::Exited(0));
    assert!(ended.timed_out);
}

#[test]
fn around_the_deadline_timed_out_always_agrees_with_the_time() {
    for step in 0..40u64 {
        let child = sh("exit 0").spawn().unwrap();
        let timeout = Duration::from_micros(step * 100);
        let mut settings = supervision(timeout);
        let deadline = settings.deadline;
        settings.stop_signal = Some(libc::SIGURG);
        settings.grace = LONG;
        let ended = child.supervise(settings, &mut Count::default());
        let now = Instant::now();
        assert_eq!(ended.status, Status::Exited(0));
        // Not timed out: its end was seen before the deadline. Timed out: the deadline has passed.
        assert!(!ended.timed_out || now >= deadline);
        assert!(ended.timed_out || ended.elapsed <= timeout + LONG);
    }
}

#[test]
fn the_observer_ends_a_process_from_its_output() {
    let mark = fresh_mark("break");
    let mut recorder = Recorder {
        break_on: Some("now"),
        ..Recorder::default()
    };
    let child = marked("(sleep 1000 &); echo now; sleep 1000", &mark)
        .spawn()
        .unwrap();
    let ended = child.supervise(supervision(LONG), &mut recorder);
    assert!(ended.interrupted && !ended.timed_out);
    assert_eq!(ended.status, Status::Signalled(libc::SIGKILL));
    assert_eq!(processes_with(&mark), []);
}

#[test]
fn nothing_is_observed_after_break() {
    struct Once(usize);
    impl Observer for Once {
        fn output(&mut self, _: Stream, _: &[u8]) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Break(())
        }
        fn packet(&mut self, _: &[u8]) {
            self.0 += 1;
        }
        fn tick(&mut self) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    let mut once = Once(0);
    let child = sh("yes & yes >&2").spawn().unwrap();
    let ended = child.supervise(supervision(LONG), &mut once);
    assert!(ended.interrupted);
    assert_eq!(once.0, 1);
}

#[test]
fn the_observer_ends_a_silent_process_from_a_tick() {
    let mut count = Count {
        stop_at_tick: Some(3),
        ..Count::default()
    };
    let child = sh("exec sleep 1000").spawn().unwrap();
    let ended = child.supervise(supervision(LONG), &mut count);
    assert!(ended.interrupted);
    assert_eq!(count.ticks, 3);
    assert!(ended.elapsed < Duration::from_secs(10));
}

#[test]
fn a_signal_to_the_host_wakes_the_observer() {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    extern "C" fn nothing(_: i32) {}
    let action = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::empty(),
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing.
    #[allow(unsafe_code)]
    unsafe { sigaction(Signal::SIGUSR2, &action) }.unwrap();
    // The process signals the supervising thread 20 times within one tick of 100 ms.
    let tid = nix::unistd::gettid();
    let script =
        format!("i=0; while [ $i -lt 20 ]; do kill -USR2 {tid}; i=$((i+1)); sleep 0.005; done");
    let mut count = Count::default();
    let child = sh(&script).spawn().unwrap();
    let began = Instant::now();
    child.supervise(supervision(LONG), &mut count);
    let by_time = began.elapsed().as_millis() as usize / 100 + 1;
    assert!(
        count.ticks > by_time,
        "{} ticks, {by_time} by time",
        count.ticks
    );
}
