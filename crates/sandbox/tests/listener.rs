//! What the host learns of refused calls, and that a hostile process gains nothing from it.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use altair_sandbox::{FinalGuards, GuardState, Refusal, Seccomp, Status, channel_pair};
use common::attack::Guarded::ByItself;
use common::attack::{SECCOMP, WITH_NETWORK, attack, attack_for, call, channel, say};
use common::open_descriptors;

attacks![
    try_everything,
    point_nowhere,
    resolve_quietly,
    flood,
    flood_for_ever,
    behind_another_listener,
    without_host,
    send_descriptors,
    send_descriptors_first,
    pretend_to_hand_over,
    from_threads,
    die_in_the_middle,
    look_for_listener,
    make_threads,
    make_threads_at_once,
    fake_threads,
];

const EPERM: i32 = libc::EPERM;

fn c(text: &str) -> std::ffi::CString {
    std::ffi::CString::new(text).unwrap()
}

fn v4(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be(),
        },
        sin_zero: [0; 8],
    }
}

fn try_everything(_: &str) {
    let address = v4(8443);
    let address = [&raw const address as u64, size_of_val(&address) as u64];
    let v6 = libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as u16,
        sin6_port: 80u16.to_be(),
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr {
            s6_addr: Ipv6Addr::LOCALHOST.octets(),
        },
        sin6_scope_id: 0,
    };
    let program = c("/bin/sh");
    let pointer = program.as_ptr() as u64;
    let at = libc::AT_FDCWD as u64;
    say("socket", call(libc::SYS_socket, &[2, 1, 6]));
    say(
        "connect",
        call(libc::SYS_connect, &[9, address[0], address[1]]),
    );
    say(
        "connect6",
        call(
            libc::SYS_connect,
            &[9, &raw const v6 as u64, size_of_val(&v6) as u64],
        ),
    );
    say("bind", call(libc::SYS_bind, &[9, address[0], address[1]]));
    say("listen", call(libc::SYS_listen, &[9, 1]));
    say("execve", call(libc::SYS_execve, &[pointer, 0, 0]));
    say(
        "execveat",
        call(libc::SYS_execveat, &[at, pointer, 0, 0, 0]),
    );
    say("clone", call(libc::SYS_clone, &[libc::SIGCHLD as u64]));
    say("kill", call(libc::SYS_kill, &[1, 9]));
    say("tgkill", call(libc::SYS_tgkill, &[1, 2, 15]));
    say("group", call(libc::SYS_kill, &[u64::MAX, 1]));
    say(
        "link",
        call(libc::SYS_linkat, &[at, pointer, at, pointer, 0]),
    );
    say(
        "symlink",
        call(libc::SYS_symlinkat, &[pointer, at, pointer]),
    );
    say("ptrace", call(libc::SYS_ptrace, &[0, 0, 0, 0]));
    say("mount", call(libc::SYS_mount, &[0, 0, 0, 0, 0]));
    say("unshare", call(libc::SYS_unshare, &[0]));
    say("io_uring", call(libc::SYS_io_uring_setup, &[0, 0]));
}

#[test]
fn each_refused_call_is_made_known_in_order_with_what_it_was_for() {
    let attacked = attack("try_everything", SECCOMP, "");
    let path = || Some("/bin/sh".into());
    let kernel = |call| Refusal::Kernel { call };
    assert_eq!(
        attacked.refused,
        [
            Refusal::Socket {
                family: libc::AF_INET,
                kind: libc::SOCK_STREAM,
                protocol: libc::IPPROTO_TCP,
            },
            Refusal::Connect {
                to: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)).to_string())
            },
            Refusal::Connect {
                to: Some("[::1]:80".into())
            },
            Refusal::Listen {
                at: Some("127.0.0.1:8443".into())
            },
            Refusal::Listen { at: None },
            Refusal::Execute { path: path() },
            Refusal::Execute { path: path() },
            Refusal::Process,
            Refusal::Signal { pid: 1, signal: 9 },
            Refusal::Signal { pid: 1, signal: 15 },
            Refusal::Signal { pid: -1, signal: 1 },
            Refusal::Link,
            Refusal::Link,
            Refusal::Inspect { call: "ptrace" },
            kernel("mount"),
            kernel("unshare"),
            kernel("io_uring_setup"),
        ]
    );
    let output = attacked.output();
    for line in output.lines() {
        let expected = if line.starts_with("io_uring") {
            libc::ENOSYS
        } else {
            EPERM
        };
        assert!(line.ends_with(&format!(" {expected}")), "{line}");
    }
    assert_eq!(output.lines().count(), attacked.refused.len());
    // The observer does not get the hand-over packet.
    assert_eq!(attacked.packets, Vec::<Vec<u8>>::new());
}

fn point_nowhere(_: &str) {
    for pointer in [0, 1, 8, u64::MAX - 1, 1 << 63] {
        say("execve", call(libc::SYS_execve, &[pointer, 0, 0]));
        say("connect", call(libc::SYS_connect, &[9, pointer, u64::MAX]));
    }
    // An unterminated path up to the end of a mapping.
    let page = call(libc::SYS_mmap, &[0, 8192, 3, 0x22, u64::MAX, 0]) as u64;
    call(libc::SYS_munmap, &[page + 4096, 4096]);
    let bytes = unsafe { std::slice::from_raw_parts_mut(page as *mut u8, 4096) };
    bytes.fill(b'x');
    say("execve", call(libc::SYS_execve, &[page + 4090, 0, 0]));
    say("execve", call(libc::SYS_execve, &[page, 0, 0]));
}

#[test]
fn arguments_that_point_nowhere_are_refused_like_others() {
    let attacked = attack("point_nowhere", SECCOMP, "");
    assert_eq!(attacked.output().lines().count(), 12);
    assert!(attacked.output().lines().all(|line| line.ends_with(" 1")));
    let (known, unknown): (Vec<_>, Vec<_>) = attacked
        .refused
        .into_iter()
        .partition(|refusal| matches!(refusal, Refusal::Execute { path: Some(_) }));
    assert!(unknown.iter().all(|refusal| matches!(
        refusal,
        Refusal::Execute { path: None } | Refusal::Connect { to: None }
    )));
    let paths: Vec<_> = known
        .into_iter()
        .map(|refusal| match refusal {
            Refusal::Execute { path } => path.unwrap().into_os_string().len(),
            _ => 0,
        })
        .collect();
    assert_eq!(paths, [6, 256]);
}

fn resolve_quietly(_: &str) {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let kind = (libc::SOCK_STREAM | flags) as u64;
    say("cache", call(libc::SYS_socket, &[1, kind, 0]));
    let raw = (libc::SOCK_RAW | libc::SOCK_CLOEXEC) as u64;
    say("interfaces", call(libc::SYS_socket, &[16, raw, 0]));
    say(
        "own",
        call(libc::SYS_socket, &[1, libc::SOCK_STREAM as u64, 0]),
    );
}

#[test]
fn what_libraries_try_by_themselves_is_not_made_known() {
    let attacked = attack("resolve_quietly", WITH_NETWORK, "");
    for refused in ["cache", "interfaces", "own"] {
        assert_eq!(attacked.errno(refused), EPERM);
    }
    let own = Refusal::Socket {
        family: libc::AF_UNIX,
        kind: libc::SOCK_STREAM,
        protocol: 0,
    };
    assert_eq!(attacked.refused, [own]);
}

fn flood(_: &str) {
    let refused = (0..100_000)
        .filter(|_| call(libc::SYS_socket, &[2, 1, 0]) == -1)
        .count();
    println!("{refused}");
}

#[test]
fn a_hundred_thousand_refused_calls_are_all_refused() {
    let attacked = attack("flood", SECCOMP, "");
    assert_eq!(attacked.output(), "100000\n");
}

fn flood_for_ever(_: &str) {
    println!("heard");
    let flood = || loop {
        call(libc::SYS_socket, &[2, 1, 0]);
    };
    // Enough threads that some call is always waiting for its answer.
    for _ in 0..48 {
        std::thread::spawn(flood);
    }
    flood()
}

#[test]
fn a_flood_of_refused_calls_starves_neither_the_output_nor_the_deadline() {
    let time = Duration::from_millis(500);
    let attacked = attack_for("flood_for_ever", SECCOMP, "", time);
    assert!(attacked.ended.timed_out);
    assert_eq!(attacked.output(), "heard\n");
    assert!(attacked.ended.elapsed < Duration::from_secs(10));
    assert!(!attacked.refused.is_empty());
}

/// Installs a filter with its own listener over the process, as a container may.
fn outer_listener() -> i64 {
    let allow = libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    };
    let mut filter = [allow];
    let program = libc::sock_fprog {
        len: 1,
        filter: filter.as_mut_ptr(),
    };
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    let flag = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    call(libc::SYS_seccomp, &[mode, flag, &raw const program as u64])
}

fn behind_another_listener(_: &str) {
    assert!(outer_listener() > 0);
    let taken = FinalGuards {
        landlock: None,
        seccomp: Some(Seccomp::default()),
        descriptors: None,
    }
    .take(Some(channel()));
    println!(
        "in_force {}",
        i32::from(taken.seccomp == Some(GuardState::InForce))
    );
    try_everything("");
}

#[test]
fn where_another_listener_stands_calls_are_refused_all_the_same() {
    let attacked = attack("behind_another_listener", ByItself, "");
    assert_eq!(attacked.errno("in_force"), 1);
    for refused in ["socket", "connect", "execve", "clone", "kill", "mount"] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert_eq!(attacked.errno("io_uring"), libc::ENOSYS);
    assert_eq!(attacked.refused, []);
    assert_eq!(attacked.packets, Vec::<Vec<u8>>::new());
}

fn without_host(_: &str) {
    let (host, process) = channel_pair().unwrap();
    drop(host);
    let taken = FinalGuards {
        landlock: None,
        seccomp: Some(Seccomp::default()),
        descriptors: None,
    }
    .take(Some(process.as_fd()));
    println!(
        "in_force {}",
        i32::from(taken.seccomp == Some(GuardState::InForce))
    );
    try_everything("");
}

#[test]
fn a_host_that_is_gone_permits_nothing() {
    let attacked = attack("without_host", ByItself, "");
    assert_eq!(attacked.errno("in_force"), 1);
    for refused in ["socket", "connect", "execve", "clone", "kill", "mount"] {
        assert_ne!(attacked.errno(refused), 0, "{refused}");
    }
}

fn send_descriptor(packet: &[u8]) {
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
    let file = std::fs::File::open("/dev/null").unwrap();
    let descriptors = [file.as_raw_fd(); 50];
    let _ = sendmsg::<()>(
        channel().as_raw_fd(),
        &[std::io::IoSlice::new(packet)],
        &[ControlMessage::ScmRights(&descriptors)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    );
}

fn send_descriptors(_: &str) {
    for _ in 0..200 {
        send_descriptor(b"take this");
    }
}

fn send_descriptors_first(_: &str) {
    send_descriptors("");
    println!("sent");
}

#[test]
fn no_descriptor_is_taken_from_a_process() {
    let usual = attack("resolve_quietly", SECCOMP, "");
    for (name, guarded) in [
        ("send_descriptors", SECCOMP),
        ("send_descriptors_first", ByItself),
    ] {
        let before = open_descriptors();
        let attacked = attack(name, guarded, "");
        assert_eq!(attacked.packets.len(), 200, "{name}");
        assert!(
            attacked.descriptors < usual.descriptors.max(before) + 50,
            "{name}: {} beside {}",
            attacked.descriptors,
            usual.descriptors
        );
    }
}

fn pretend_to_hand_over(_: &str) {
    send_descriptor(b"altair-sandbox: the listener of my filter");
    say("socket", call(libc::SYS_socket, &[2, 1, 0]));
}

#[test]
fn a_second_hand_over_is_a_packet_like_any_other() {
    let attacked = attack("pretend_to_hand_over", SECCOMP, "");
    assert_eq!(attacked.packets.len(), 1);
    assert_eq!(attacked.errno("socket"), EPERM);
    assert_eq!(attacked.refused.len(), 1);
}

fn from_threads(_: &str) {
    let threads: Vec<_> = (0..16)
        .map(|_| std::thread::spawn(|| call(libc::SYS_kill, &[1, 7])))
        .collect();
    let all = threads
        .into_iter()
        .all(|thread| thread.join().unwrap() == -1);
    println!("all {}", i32::from(all));
}

#[test]
fn calls_of_all_threads_are_answered() {
    let attacked = attack("from_threads", SECCOMP, "");
    assert_eq!(attacked.errno("all"), 1);
    let kill = Refusal::Signal { pid: 1, signal: 7 };
    assert_eq!(attacked.refused, vec![kill; 16]);
}

fn die_in_the_middle(_: &str) {
    for _ in 0..16 {
        std::thread::spawn(|| {
            loop {
                call(libc::SYS_kill, &[1, 7]);
            }
        });
    }
    while call(libc::SYS_kill, &[1, 7]) == 0 {}
    unsafe { libc::raise(libc::SIGKILL) };
}

#[test]
fn a_process_that_dies_while_it_asks_is_the_end_of_it() {
    let attacked = attack("die_in_the_middle", SECCOMP, "");
    assert_eq!(attacked.ended.status, Status::Signalled(libc::SIGKILL));
    assert!(!attacked.ended.timed_out);
}

/// Makes threads that stay; returns their number and the error that ended it.
fn stay(most: usize) -> (usize, i32) {
    for made in 0..most {
        let thread = std::thread::Builder::new().stack_size(16 << 10);
        if let Err(error) = thread.spawn(|| {
            loop {
                std::thread::park();
            }
        }) {
            return (made, error.raw_os_error().unwrap());
        }
    }
    (most, 0)
}

/// The number of threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn make_threads(most: &str) {
    let (made, errno) = stay(most.parse().unwrap());
    println!("made {made}\nended {errno}\nthere {}", threads());
}

#[test]
fn a_program_has_the_threads_that_it_needs_and_no_thousands() {
    let few = attack("make_threads", SECCOMP, "50");
    assert_eq!((few.errno("made"), few.errno("ended")), (50, 0));
    assert_eq!(few.refused, []);
    let many = attack("make_threads", SECCOMP, "2000");
    // Including the first one.
    assert_eq!((many.errno("made"), many.errno("there")), (63, 64));
    assert_eq!(many.errno("ended"), libc::EAGAIN);
    assert_eq!(many.refused, [Refusal::Thread { most: 64 }]);
    let free = attack("make_threads", common::attack::Guarded::Not, "2000");
    assert_eq!(free.errno("made"), 2000);
}

fn make_threads_at_once(_: &str) {
    const MAKERS: usize = 32;
    static ALL_ARE_THERE: std::sync::Barrier = std::sync::Barrier::new(MAKERS);
    let makers: Vec<_> = (0..MAKERS)
        .map(|_| {
            std::thread::spawn(|| {
                ALL_ARE_THERE.wait();
                stay(1000);
            })
        })
        .collect();
    for maker in makers {
        maker.join().unwrap();
    }
    println!("there {}", threads());
}

#[test]
fn threads_that_make_threads_at_once_do_not_get_many_more() {
    let attacked = attack("make_threads_at_once", SECCOMP, "");
    let there = attacked.errno("there");
    assert!((32..=128).contains(&there), "{there}");
}

fn fake_threads(_: &str) {
    let thread = 0x003d_0f00u64;
    for (name, flags) in [
        ("namespace", libc::CLONE_NEWUSER),
        ("process", 0),
        ("vfork", libc::CLONE_VFORK),
    ] {
        let flags = match flags {
            0 => thread & !(libc::CLONE_THREAD as u64),
            other => thread | other as u64,
        };
        say(name, call(libc::SYS_clone, &[flags, 0, 0, 0, 0]));
    }
}

#[test]
fn what_is_no_plain_thread_is_not_made() {
    let attacked = attack("fake_threads", SECCOMP, "");
    for name in ["namespace", "process", "vfork"] {
        assert_eq!(attacked.errno(name), EPERM, "{name}");
    }
    assert_eq!(attacked.refused, vec![Refusal::Process; 3]);
}

fn look_for_listener(_: &str) {
    let open: Vec<String> = (0..256)
        .filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0)
        .map(|fd| fd.to_string())
        .collect();
    println!("{}", open.join(" "));
}

#[test]
fn the_listener_does_not_stay_with_the_process() {
    // A process that holds it could make the kernel continue a call.
    let attacked = attack("look_for_listener", SECCOMP, "");
    assert_eq!(attacked.output(), "0 1 2 3\n");
}

#[test]
fn the_listener_is_closed_with_the_run() {
    // Other tests of this program run at the same time: only leaked descriptors add up.
    let before = open_descriptors();
    for _ in 0..100 {
        attack("resolve_quietly", SECCOMP, "");
    }
    assert!(open_descriptors() < before + 60);
}
