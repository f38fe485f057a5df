//! The channel between host and process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::time::Duration;

use altair_sandbox::{Status, channel_pair};
use common::{Count, LONG, Recorder, fields, output_of, sh, stdout, supervision};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

#[test]
fn packets_reach_the_process_and_come_back_whole() {
    let (host, process) = channel_pair().unwrap();
    // dd reads and writes one packet at a time: an echo of two packets.
    let mut launch = sh("dd bs=65536 count=2 <&3 >&3 2>/dev/null");
    launch.channel = Some(process);
    let packets = vec![b"first".to_vec(), vec![7; 60000]];
    let mut settings = supervision(LONG);
    settings.channel = Some(host);
    settings.outbox = packets.clone();
    let mut recorder = Recorder::default();
    let ended = launch.spawn().unwrap().supervise(settings, &mut recorder);
    assert_eq!(ended.status, Status::Exited(0));
    assert_eq!(recorder.packets, packets);
}

#[test]
fn an_outbox_that_is_more_than_the_socket_holds_is_sent_as_it_is_taken() {
    let (host, process) = channel_pair().unwrap();
    let mut launch = sh("sleep 0.2; dd bs=65536 count=100 <&3 2>/dev/null | wc -c");
    launch.channel = Some(process);
    let mut settings = supervision(LONG);
    settings.channel = Some(host);
    settings.outbox = vec![vec![1; 50000]; 100];
    let ended = launch
        .spawn()
        .unwrap()
        .supervise(settings, &mut Count::default());
    assert_eq!(stdout(&ended), "5000000\n");
}

#[test]
fn a_report_is_not_lost_when_the_process_leaves_its_request_unread() {
    // Closing with unread packets makes the host's socket report ECONNRESET once.
    for _ in 0..20 {
        let (host, process) = channel_pair().unwrap();
        let mut launch = sh("printf report >&3");
        launch.channel = Some(process);
        let mut settings = supervision(LONG);
        settings.channel = Some(host);
        settings.outbox = vec![b"request".to_vec(); 3];
        let mut recorder = Recorder::default();
        launch.spawn().unwrap().supervise(settings, &mut recorder);
        assert_eq!(recorder.packets, [b"report".to_vec()]);
    }
}

#[test]
fn a_channel_that_the_process_closes_is_no_error() {
    let (host, process) = channel_pair().unwrap();
    let mut launch = sh("exec 3>&-; sleep 0.3; echo still here");
    launch.channel = Some(process);
    let mut settings = supervision(LONG);
    settings.channel = Some(host);
    settings.outbox = vec![vec![1; 50000]; 100];
    let mut count = Count::default();
    let ended = launch.spawn().unwrap().supervise(settings, &mut count);
    assert_eq!(stdout(&ended), "still here\n");
    assert_eq!(ended.status, Status::Exited(0));
    // A closed channel must not be polled in a busy loop.
    assert!(count.ticks < 100, "{}", count.ticks);
}

#[test]
fn a_flooded_channel_starves_neither_the_output_nor_the_deadline() {
    let (host, process) = channel_pair().unwrap();
    let mut launch = sh(
        "dd if=/dev/zero bs=32k >&3 2>/dev/null & dd if=/dev/zero bs=32k >&3 2>/dev/null & echo heard; wait",
    );
    launch.channel = Some(process);
    let mut settings = supervision(Duration::from_millis(500));
    settings.channel = Some(host);
    let mut count = Count::default();
    let ended = launch.spawn().unwrap().supervise(settings, &mut count);
    assert_eq!(stdout(&ended), "heard\n");
    assert!(ended.timed_out);
    assert!(count.bytes > 1 << 20);
    assert!(ended.elapsed < Duration::from_secs(10));
}

#[test]
fn the_processes_end_of_the_channel_blocks_whatever_it_did_before() {
    let (_host, process) = channel_pair().unwrap();
    fcntl(&process, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut launch = sh("cat /proc/self/fdinfo/3");
    launch.channel = Some(process);
    let info = fields(&output_of(launch));
    let flags = i32::from_str_radix(&info["flags"], 8).unwrap();
    assert_eq!(flags & libc::O_NONBLOCK, 0, "{flags:o}");
    assert_eq!(flags & libc::O_CLOEXEC, 0, "{flags:o}");
}
