//! Everyday work of a process still functions behind seccomp.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::os::unix::net::UnixStream;
use std::path::Path;

use altair_sandbox::Status;
use common::attack::{SECCOMP, attack};

attacks![live_normally];

fn live_normally(path: &str) {
    let path = Path::new(path);
    std::fs::create_dir(path.join("made")).unwrap();
    std::fs::write(path.join("made/file"), "text").unwrap();
    std::fs::copy(path.join("made/file"), path.join("made/copy")).unwrap();
    std::fs::rename(path.join("made/copy"), path.join("made/moved")).unwrap();
    assert_eq!(std::fs::read_dir(path.join("made")).unwrap().count(), 2);
    std::fs::File::open(path.join("made/file"))
        .unwrap()
        .lock_shared()
        .unwrap();
    std::fs::remove_dir_all(path.join("made")).unwrap();
    let (_ours, _theirs) = UnixStream::pair().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop((reader, writer));
    let threads: Vec<_> = (0..8)
        .map(|index| std::thread::spawn(move || index))
        .collect();
    let sum: i32 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    std::thread::sleep(std::time::Duration::from_millis(1));
    std::thread::available_parallelism().unwrap();
    println!("{sum}");
    // A failed assertion ends the process by a signal to itself.
    unsafe { libc::raise(libc::SIGUSR1) };
}

#[test]
fn normal_life_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = attack("live_normally", SECCOMP, dir.path().to_str().unwrap());
    assert_eq!(attacked.output(), "28\n");
    assert_eq!(attacked.ended.status, Status::Signalled(libc::SIGUSR1));
    assert_eq!(attacked.refused, []);
}
