#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use super::*;
use crate::channel::{Channel, channel_pair};
use crate::seccomp::{Answerer, Seccomp};
use crate::{FinalGuards, Supervision};

const THREADS: usize = 3 * CALLS_A_ROUND;

/// A process of [`THREADS`] threads that each make a call that is refused.
fn calls_at_once(channel: BorrowedFd<'_>) -> ! {
    static BEGIN: AtomicBool = AtomicBool::new(false);
    // Made before the host answers calls.
    for _ in 0..THREADS {
        std::thread::spawn(|| {
            while !BEGIN.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            loop {
                // SAFETY: no pointer is passed, and the call is refused.
                unsafe { libc::syscall(libc::SYS_unshare, 0) };
            }
        });
    }
    let guards = FinalGuards {
        landlock: None,
        seccomp: Some(Seccomp::default()),
        descriptors: None,
    };
    guards.take(Some(channel));
    BEGIN.store(true, Ordering::Relaxed);
    loop {
        std::thread::park();
    }
}

/// A process that is killed when the test ends, also by a panic.
struct Ends(Pid);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

/// Whether all threads of a process wait.
fn all_wait(process: Pid) -> bool {
    let states: Vec<bool> = fs::read_dir(format!("/proc/{process}/task"))
        .unwrap()
        .map(|task| fs::read_to_string(task.unwrap().path().join("stat")).unwrap())
        .map(|stat| stat.rsplit_once(") ").unwrap().1.starts_with('S'))
        .collect();
    states.len() == THREADS + 1 && !states.contains(&false)
}

/// A process that asks for a socket which it may not have. Its exit status tells whether it got a
/// descriptor, closed on `exec`.
fn asks_for_a_socket(channel: BorrowedFd<'_>) -> ! {
    let guards = FinalGuards {
        seccomp: Some(Seccomp::default()),
        ..FinalGuards::default()
    };
    guards.take(Some(channel));
    // SAFETY: no pointer is passed; the process ends without the harness's exit handlers.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        let flags = libc::fcntl(socket, libc::F_GETFD);
        libc::_exit(i32::from(flags != libc::FD_CLOEXEC))
    }
}

/// Kernels since 5.14 do it in one.
#[test]
fn a_descriptor_is_given_in_two_steps_where_the_kernel_has_no_other_way() {
    let (host, process) = channel_pair().unwrap();
    // SAFETY: as below.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Child => asks_for_a_socket(process.as_fd()),
        ForkResult::Parent { child } => child,
    };
    let mut channel = Channel::new(Some(host), Vec::new(), false);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let listener = loop {
        channel.drain(&mut |_| {});
        if let Some(Answerer::Listener(listener)) = channel.answerer() {
            break listener;
        }
        assert!(std::time::Instant::now() < until);
    };
    let connector = Connector::new(crate::Connections::default(), None);
    let mut listener = Listener::new(listener, connector).unwrap();
    let call = listener.receive().unwrap();
    let given = fs::File::open("/dev/null").unwrap();
    let answering = &listener.answering;
    assert!(answering.gives());
    let number = answering.give_in_two_steps(call.id, given.as_fd(), true);
    assert!(number.is_ok());
    let ended = waitpid(child, None).unwrap();
    assert_eq!(ended, nix::sys::wait::WaitStatus::Exited(child, 0));
    // The caller is gone.
    let number = answering.give_in_two_steps(call.id, given.as_fd(), true);
    assert_eq!(number, Err(Errno::ENOENT));
}

#[test]
fn one_round_answers_no_more_than_its_share() {
    let (host, process) = channel_pair().unwrap();
    // SAFETY: the child only makes system calls and threads, for which the C library is usable in a
    // fork, and is killed.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Child => calls_at_once(process.as_fd()),
        ForkResult::Parent { child } => Ends(child),
    };
    let mut channel = Channel::new(Some(host), Vec::new(), false);
    let until = Supervision::deadline_after(std::time::Duration::from_secs(30));
    let in_time = || assert!(std::time::Instant::now() < until);
    let listener = loop {
        in_time();
        channel.drain(&mut |_| {});
        if let Some(Answerer::Listener(listener)) = channel.answerer() {
            break listener;
        }
    };
    let connector = Connector::new(crate::Connections::default(), None);
    let mut listener = Listener::new(listener, connector).unwrap();
    while !all_wait(child.0) {
        in_time();
        std::thread::yield_now();
    }
    let mut answered = 0;
    assert!(listener.serve(PollFlags::POLLIN, &mut |_, _| answered += 1));
    assert_eq!(answered, CALLS_A_ROUND);
    drop(child);
    // No process is left behind the filter.
    assert!(!listener.serve(listener.ready(), &mut |_, _| {}));
}
