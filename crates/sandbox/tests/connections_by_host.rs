//! Where the host makes a process's sockets, it keeps copies of them: what a hostile process can do
//! with that, and that nothing is kept.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use altair_sandbox::{Command, FinalGuards, Policy, Privileges, Refusal, RunAs, Seccomp};
use common::attack::{Guarded, attack_to, attack_under, call, channel, say, services};
use common::connections::{alone, connect_to_each, heard, threads, to_addresses};
use common::lacking::{behind_a_listener, lacking};
use common::peers::{Full, Trap, answers_tcp};
use common::raw_sockets::{address, connect, tcp};
use common::{LONG, is_root, wait_until};
use nix::libc;

attacks![
    connect_to_each,
    connect_what_is_not_its_own,
    replace_meanwhile,
    make_many,
    ask_oddly,
    pass_a_socket,
    connect_until_it_is,
    close_and_listen,
    inherit_a_socket,
];

/// The copies that are kept for a process.
const COPIES: usize = 32;

/// The most descriptors of a thread that keeps sockets. A thread that it has just started still has
/// its name and has its table.
fn kept() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .map(|task| task.path())
        .filter(|task| {
            let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
            name.starts_with("altair-sockets")
        })
        .filter_map(|task| Some(std::fs::read_dir(task.join("fd")).ok()?.count()))
        .max()
        .unwrap_or(0)
}

#[test]
fn a_process_that_does_not_have_the_host_make_sockets_is_told_why_it_is_not_connected() {
    fn body() {
        let _alone = alone();
        let permitted = answers_tcp("127.0.0.1:0").to_string();
        let policy = Policy {
            connections: to_addresses(&[permitted.parse().unwrap()]),
            ..Policy::unconfined()
        };
        let guarded = Guarded::Services { network: false };
        let attacked = attack_under(policy, "connect_to_each", guarded, &permitted, LONG);
        assert_eq!(attacked.output(), format!("{permitted} {}\n", libc::EPERM));
        let because = "pidfd_getfd(): operation not permitted".into();
        let to = permitted;
        assert_eq!(attacked.refused, [Refusal::Unserved { to, because }]);
    }
    lacking(body);
}

#[test]
fn another_user_s_process_is_served_with_that_user_s_rights_alone() {
    fn body() {
        let _alone = alone();
        let permitted = answers_tcp("127.0.0.1:0");
        let other = SocketAddr::from(([127, 0, 0, 2], permitted.port()));
        let policy = Policy {
            connections: to_addresses(&[permitted]),
            privileges: Privileges::Drop {
                run_as: Some(RunAs {
                    uid: 4321,
                    gid: 8765,
                }),
            },
            ..Policy::unconfined()
        };
        let to = format!("{permitted} {other}");
        let attacked = attack_under(policy, "connect_to_each", services(false), &to, LONG);
        let refused = format!("{}{other} {}\n", heard(permitted), libc::EPERM);
        assert_eq!(attacked.output(), refused);
        let to = Some(other.to_string());
        assert_eq!(attacked.refused, [Refusal::Connect { to }]);
        assert!(nix::unistd::geteuid().is_root());
        assert!(nix::sys::prctl::get_dumpable().unwrap());
    }
    if is_root() {
        lacking(body);
        behind_a_listener(body);
    }
}

/// Connects what the host has not made.
fn connect_what_is_not_its_own(to: &str) {
    let to = address(to);
    let own = tcp(0);
    let (one, _other) = UnixStream::pair().unwrap();
    say("channel", connect(channel().as_raw_fd(), &to));
    say("pair", connect(one.as_raw_fd(), &to));
    let file = std::fs::File::open("/dev/null").unwrap();
    say("file", connect(file.as_raw_fd(), &to));
    say("none", connect(99, &to));
    say("negative", connect(-1, &to));
    say("own", connect(own, &to));
}

#[test]
fn only_sockets_that_the_host_has_made_are_connected() {
    fn body() {
        let _alone = alone();
        let permitted = answers_tcp("127.0.0.1:0");
        let attacked = attack_to(
            to_addresses(&[permitted]),
            "connect_what_is_not_its_own",
            &permitted.to_string(),
        );
        for (name, errno) in [
            ("channel", libc::EPERM),
            ("pair", libc::EPERM),
            ("file", libc::ENOTSOCK),
            ("none", libc::EBADF),
            ("negative", libc::EBADF),
            ("own", 0),
        ] {
            assert_eq!(attacked.errno(name), errno, "{name}");
        }
    }
    lacking(body);
}

/// Connects a descriptor while another thread moves others there: `permitted other`.
fn replace_meanwhile(to: &str) {
    let (permitted, other) = to.split_once(' ').unwrap();
    let (permitted, other) = (address(permitted), address(other));
    let until = Instant::now() + Duration::from_secs(1);
    let mut stranger = -1;
    while Instant::now() < until {
        let socket = tcp(0);
        let others = [tcp(0), unsafe { libc::dup(1) }, unsafe { libc::dup(3) }];
        let moving = std::thread::spawn(move || {
            for other in others.into_iter().cycle().take(30) {
                unsafe { libc::dup2(other, socket) };
            }
        });
        for _ in 0..3 {
            connect(socket, &permitted);
            stranger = stranger.max(connect(socket, &other));
        }
        moving.join().unwrap();
        for descriptor in others.into_iter().chain([socket]) {
            unsafe { libc::close(descriptor) };
        }
    }
    say("stranger", stranger);
    say("done", 0);
}

#[test]
fn descriptors_that_are_moved_meanwhile_lead_nowhere_else() {
    fn body() {
        let _alone = alone();
        let permitted = answers_tcp("127.0.0.1:0");
        let trap = Trap::new();
        let other = SocketAddr::from(([127, 0, 0, 2], permitted.port()));
        trap.tcp(other);
        let to = format!("{permitted} {other}");
        let attacked = attack_to(to_addresses(&[permitted]), "replace_meanwhile", &to);
        assert_ne!(attacked.errno("stranger"), 0);
        assert_eq!(attacked.errno("done"), 0);
        assert!(!trap.has_sprung());
    }
    lacking(body);
    behind_a_listener(body);
}

/// Makes 10,000 sockets one after the other, then as many as it can keep.
fn make_many(to: &str) {
    let to = address(to);
    for _ in 0..10_000 {
        let socket = tcp(0);
        assert!(socket >= 0);
        unsafe { libc::close(socket) };
    }
    for _ in 0..3 {
        let mut own = Vec::new();
        let refused = loop {
            match tcp(libc::SOCK_NONBLOCK) {
                -1 => break -1,
                socket => own.push(unsafe { OwnedFd::from_raw_fd(socket) }),
            }
        };
        say("refused", refused);
        println!("{}", own.len());
        let connected = connect(own[0].as_raw_fd(), &to);
        println!(
            "last {}",
            if connected == 0 {
                0
            } else {
                std::io::Error::last_os_error().raw_os_error().unwrap()
            }
        );
    }
}

#[test]
fn a_process_has_few_sockets_at_a_time_and_any_number_one_after_the_other() {
    fn body() {
        let _alone = alone();
        let permitted = answers_tcp("127.0.0.1:0");
        let to = permitted.to_string();
        let watch = std::thread::spawn(|| {
            let mut most = 0;
            while !DONE.load(std::sync::atomic::Ordering::Relaxed) {
                most = most.max(kept());
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let attacked = attack_to(to_addresses(&[permitted]), "make_many", &to);
        DONE.store(true, std::sync::atomic::Ordering::Relaxed);
        let full = format!("refused {}\n{COPIES}\n", libc::EMFILE);
        assert_eq!(
            attacked.output().matches(&full).count(),
            3,
            "{}",
            attacked.output()
        );
        let most = watch.join().unwrap();
        // With the listener, a directory that is read, and a socket that is being made.
        assert!((1..COPIES + 8).contains(&most), "{most}");
        wait_until("the copies are dropped", || kept() == 0);
        wait_until("the threads end", || threads() == 0);
    }
    static DONE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    lacking(body);
}

/// Asks for sockets in unusual ways.
fn ask_oddly(to: &str) {
    let ask = |name: &str, family: u64, kind: u64, protocol: u64| {
        let made = call(libc::SYS_socket, &[family, kind, protocol]);
        say(name, made.min(0));
        if made >= 0 {
            let flags = call(libc::SYS_fcntl, &[made as u64, libc::F_GETFD as u64]);
            let status = call(libc::SYS_fcntl, &[made as u64, libc::F_GETFL as u64]);
            let waits = status & i64::from(libc::O_NONBLOCK) == 0;
            println!("{name}: closes {flags}, waits {waits}");
        }
        made
    };
    let (inet, stream) = (libc::AF_INET as u64, libc::SOCK_STREAM as u64);
    let (close, no_wait) = (libc::SOCK_CLOEXEC as u64, libc::SOCK_NONBLOCK as u64);
    let plain = ask("plain", inet, stream, 0);
    ask("both", inet, stream | close | no_wait, 6);
    // The kernel looks at the lower halves only.
    let high = ask("high", inet | 1 << 32, stream | 1 << 40, 1 << 50);
    say("connect", connect(high as i32, &address(to)));
    ask("flags", inet, stream | 0x1000, 0);
    ask("packet", inet, 10, 0);
    ask("protocol", inet, stream, 0x106);
    ask("family", 0xffff, stream, 0);
    let one = 1_u64;
    let linger = [
        plain as u64,
        libc::SOL_SOCKET as u64,
        libc::SO_LINGER as u64,
    ];
    let [socket, level, option] = linger;
    let at = (&raw const one) as u64;
    say(
        "linger",
        call(libc::SYS_setsockopt, &[socket, level, option, at, 8]),
    );
}

#[test]
fn sockets_are_made_exactly_as_they_are_asked_for() {
    fn body() {
        let _alone = alone();
        let permitted = answers_tcp("127.0.0.1:0");
        let to = permitted.to_string();
        let attacked = attack_to(to_addresses(&[permitted]), "ask_oddly", &to);
        let output = attacked.output();
        for line in [
            "plain: closes 0, waits true",
            "both: closes 1, waits false",
            "high: closes 0, waits true",
        ] {
            assert!(output.contains(line), "{line}: {output}");
        }
        assert_eq!(attacked.errno("connect"), 0);
        for name in ["flags", "packet", "protocol", "family", "linger"] {
            assert_eq!(attacked.errno(name), libc::EPERM, "{name}");
        }
    }
    lacking(body);
    behind_a_listener(body);
}

/// Passes a socket to itself under another number, closes the first, and connects the second.
fn pass_a_socket(to: &str) {
    use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
    use std::io::{IoSlice, IoSliceMut};
    let (one, other) = UnixStream::pair().unwrap();
    let socket = unsafe { OwnedFd::from_raw_fd(tcp(0)) };
    let number = [socket.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&number)];
    let text = [IoSlice::new(b"x")];
    sendmsg::<()>(one.as_raw_fd(), &text, &rights, MsgFlags::empty(), None).unwrap();
    let mut space = nix::cmsg_space!([i32; 1]);
    let mut byte = [0; 1];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::empty();
    let message = recvmsg::<()>(other.as_raw_fd(), &mut parts, Some(&mut space), flags).unwrap();
    let Some(ControlMessageOwned::ScmRights(passed)) = message.cmsgs().unwrap().next() else {
        panic!("no descriptor");
    };
    drop(socket);
    assert!(passed[0] != number[0]);
    say("connect", connect(passed[0], &address(to)));
}

#[test]
fn a_socket_stays_connectable_under_another_number() {
    fn body() {
        let _alone = alone();
        let permitted = answers_tcp("127.0.0.1:0");
        let to = permitted.to_string();
        let attacked = attack_to(to_addresses(&[permitted]), "pass_a_socket", &to);
        assert_eq!(attacked.errno("connect"), 0);
    }
    lacking(body);
    behind_a_listener(body);
}

/// Connects without waiting, again and again, until it is connected, and once more.
fn connect_until_it_is(to: &str) {
    let (to, socket) = (address(to), tcp(libc::SOCK_NONBLOCK));
    let mut said = Vec::new();
    let until = Instant::now() + LONG;
    while said.last() != Some(&libc::EISCONN) && Instant::now() < until {
        let errno = match connect(socket, &to) {
            -1 => std::io::Error::last_os_error().raw_os_error().unwrap(),
            _ => 0,
        };
        if said.last() != Some(&errno) {
            said.push(errno);
        }
    }
    println!("{said:?}");
}

#[test]
fn a_process_that_does_not_wait_asks_until_it_is_connected() {
    fn body() {
        let _alone = alone();
        let full = Full::new();
        let listener = full.listener.try_clone().unwrap();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            listener.incoming().for_each(drop);
        });
        let to = full.address.to_string();
        let attacked = attack_to(to_addresses(&[full.address]), "connect_until_it_is", &to);
        let output = attacked.output();
        let (connected, waits) = (libc::EISCONN, [libc::EINPROGRESS, libc::EALREADY, 0]);
        let said = output.trim_matches(['[', ']', '\n']).split(", ");
        let said: Vec<i32> = said.map(|errno| errno.parse().unwrap()).collect();
        let (last, before) = said.split_last().unwrap();
        assert!(*last == connected && !before.is_empty(), "{output}");
        assert!(before.iter().all(|errno| waits.contains(errno)), "{output}");
    }
    lacking(body);
    behind_a_listener(body);
}

/// Closes a connection, and hears by another one when its server has seen that.
fn close_and_listen(to: &str) {
    let first = TcpStream::connect(to).unwrap();
    let mut second = TcpStream::connect(to).unwrap();
    second.set_read_timeout(Some(LONG)).unwrap();
    drop(first);
    let mut heard = String::new();
    second.read_to_string(&mut heard).unwrap();
    println!("{heard}");
}

#[test]
fn a_server_sees_that_a_process_has_closed_a_socket_while_it_runs_on() {
    fn body() {
        let _alone = alone();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let permitted = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut first, _) = listener.accept().unwrap();
            let (mut second, _) = listener.accept().unwrap();
            assert_eq!(first.read(&mut [0]).unwrap(), 0);
            second.write_all(b"closed").unwrap();
        });
        let to = permitted.to_string();
        let attacked = attack_to(to_addresses(&[permitted]), "close_and_listen", &to);
        assert_eq!(attacked.output(), "closed\n");
    }
    lacking(body);
    behind_a_listener(body);
}

/// Connects a socket that its parent has made, and one of its own.
fn inherit_a_socket(to: &str) {
    let (to, inherited) = (address(to), tcp(0));
    match unsafe { libc::fork() } {
        0 => {
            say("inherited", connect(inherited, &to));
            say("own", connect(tcp(0), &to));
        }
        child => {
            assert_eq!(
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) },
                child
            );
            say("parent", connect(inherited, &to));
        }
    }
}

#[test]
fn a_process_connects_only_sockets_that_were_made_for_it() {
    fn body() {
        let _alone = alone();
        let permitted = answers_tcp("127.0.0.1:0");
        let policy = Policy {
            connections: to_addresses(&[permitted]),
            before_exec: Some(FinalGuards {
                seccomp: Some(Seccomp {
                    tcp: true,
                    sockets_by_host: true,
                    command: Some(Command::default()),
                    ..Seccomp::default()
                }),
                ..FinalGuards::default()
            }),
            ..Policy::unconfined()
        };
        let (name, to) = ("inherit_a_socket", permitted.to_string());
        let attacked = attack_under(policy, name, Guarded::ByItself, &to, LONG);
        for (name, errno) in [("inherited", libc::EPERM), ("own", 0), ("parent", 0)] {
            assert_eq!(attacked.errno(name), errno, "{name}");
        }
    }
    lacking(body);
}
