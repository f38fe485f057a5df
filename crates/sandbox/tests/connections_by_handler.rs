//! Where a process can have no listener, its own handler asks the host for connections: what a
//! hostile process can do with that, and that nothing is kept.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Instant;

use altair_sandbox::{Connections, Refusal, Status};
use common::attack::{Attacked, attack_to, call, say};
use common::connections::{address_of, alone, connect_to_each, heard, to_addresses};
use common::lacking::{behind_a_listener, without_own_tables};
use common::peers::{Full, Trap, answers_tcp};
use common::{LONG, open_descriptors, wait_until};
use nix::libc;
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

attacks![
    connect_to_each,
    connect_oddly,
    ask_for_anything,
    ask_for_too_much,
    connect_with_the_signal_blocked,
    connect_without_the_handler,
    send_itself_the_signal,
    connect_one_after_another,
    connect_all_at_once,
    leave_every_end_with_the_host,
    read_no_answer,
    be_its_own_host,
];

/// The process's end of the socket over which its handler asks: the first one of packets, when an
/// attack begins.
fn handlers_socket() -> RawFd {
    static FOUND: std::sync::OnceLock<RawFd> = std::sync::OnceLock::new();
    *FOUND.get_or_init(find_handlers_socket)
}

fn find_handlers_socket() -> RawFd {
    let is_it = |descriptor: &RawFd| {
        let mut kind = 0;
        let mut length = 4;
        let at = (&raw mut kind).cast();
        let (level, name) = (libc::SOL_SOCKET, libc::SO_TYPE);
        let got = unsafe { libc::getsockopt(*descriptor, level, name, at, &raw mut length) };
        got == 0 && kind == libc::SOCK_SEQPACKET
    };
    // 3 is the channel.
    (4..64).find(is_it).expect("a handler's socket")
}

fn packets() -> [OwnedFd; 2] {
    let (one, other) = altair_sandbox::channel_pair().unwrap();
    [one, other]
}

/// Sends a packet with descriptors.
fn send(over: RawFd, packet: &[u8], descriptors: &[RawFd]) {
    let rights = [ControlMessage::ScmRights(descriptors)];
    let packet = [IoSlice::new(packet)];
    sendmsg::<()>(over, &packet, &rights, MsgFlags::MSG_NOSIGNAL, None).unwrap();
}

/// Asks the host, and returns what it answers: an error number, or -1 for none.
fn ask(request: &[u8], reply: &[RawFd], others: &[RawFd]) -> i32 {
    let [own, theirs] = packets();
    let default = [theirs.as_raw_fd()];
    let reply = if reply.is_empty() { &default } else { reply };
    send(handlers_socket(), request, &[reply, others].concat());
    drop(theirs);
    let mut answer = [0; 4];
    let got = unsafe { libc::recv(own.as_raw_fd(), answer.as_mut_ptr().cast(), 4, 0) };
    if got == 4 {
        i32::from_ne_bytes(answer)
    } else {
        -1
    }
}

fn attack(name: &str, to: SocketAddr, argument: &str) -> Attacked {
    attack_to(to_addresses(&[to]), name, argument)
}

fn tcp() -> RawFd {
    unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) }
}

#[test]
fn permitted_addresses_are_reached_and_others_are_refused_and_told() {
    fn body() {
        let permitted = answers_tcp("127.0.0.1:0");
        let trap = Trap::new();
        let other = SocketAddr::from(([127, 0, 0, 2], permitted.port()));
        trap.tcp(other);
        let attacked = attack(
            "connect_to_each",
            permitted,
            &format!("{permitted} {other}"),
        );
        let refused = format!("{}{other} {}\n", heard(permitted), libc::EPERM);
        assert_eq!(attacked.output(), refused);
        let to = Some(other.to_string());
        assert_eq!(attacked.refused, [Refusal::Connect { to }]);
        assert!(!trap.has_sprung());
    }
    let _alone = alone();
    behind_a_listener(body);
}

/// Makes calls of connect(2) that the kernel answers without looking at the socket.
fn connect_oddly(to: &str) {
    let (own, to) = (tcp() as u64, address_of(to.parse().unwrap()));
    let at = to.as_ptr() as u64;
    let connect = |name, args: &[u64]| say(name, call(libc::SYS_connect, args));
    connect("null", &[own, 0, 16]);
    connect("pointer", &[own, 8, 16]);
    connect("kernel", &[own, u64::MAX - 64, 16]);
    connect("empty", &[own, at, 0]);
    connect("short", &[own, at, 1]);
    connect("long", &[own, at, 129]);
    connect("negative", &[own, at, u64::MAX]);
    connect("none", &[99, at, 16]);
    connect("file", &[0, at, 16]);
    connect("high", &[own | 1 << 32, at, 16 | 1 << 32]);
    connect("again", &[own, at, 16]);
}

#[test]
fn odd_calls_get_the_kernel_s_errors() {
    fn body() {
        let permitted = answers_tcp("127.0.0.1:0");
        let attacked = attack("connect_oddly", permitted, &permitted.to_string());
        for (name, errno) in [
            ("null", libc::EFAULT),
            ("pointer", libc::EFAULT),
            ("kernel", libc::EFAULT),
            ("empty", libc::EINVAL),
            ("short", libc::EINVAL),
            ("long", libc::EINVAL),
            ("negative", libc::EINVAL),
            ("none", libc::EBADF),
            ("file", libc::ENOTSOCK),
            ("high", 0),
            ("again", libc::EISCONN),
        ] {
            assert_eq!(attacked.errno(name), errno, "{name}");
        }
    }
    let _alone = alone();
    behind_a_listener(body);
}

/// Sends the host whatever it likes, and connects as everybody does: `permitted other`.
fn ask_for_anything(to: &str) {
    let (permitted, other) = to.split_once(' ').unwrap();
    let request = |to: &str| [b"c".as_slice(), &address_of(to.parse().unwrap())].concat();
    let (good, bad) = (request(permitted), request(other));
    handlers_socket();
    let answer = |name: &str, errno: i32| println!("{name} {errno}");

    let [one, another] = packets();
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let file = File::open("/etc/passwd").unwrap();
    let (plain, _end) = std::os::unix::net::UnixStream::pair().unwrap();
    let socket = tcp();
    answer("other", ask(&bad, &[], &[socket]));
    for (name, descriptor) in [
        ("file", file.as_raw_fd()),
        ("pipe", ends[1]),
        ("packets", one.as_raw_fd()),
        ("pair", plain.as_raw_fd()),
        ("channel", 3),
        ("itself", handlers_socket()),
        ("reply", another.as_raw_fd()),
    ] {
        answer(name, ask(&good, &[], &[descriptor]));
    }
    answer("nothing", ask(&good, &[], &[]));
    answer("kind", ask(b"x", &[], &[socket]));
    answer("v6", ask(b"6", &[], &[]));
    answer("path", ask(b"o/etc/shadow", &[], &[]));
    answer("address", ask(b"c", &[], &[socket]));
    // Longer than any request.
    answer("long", ask(&[b'c'; 130], &[], &[socket]));
    answer("huge", ask(&[b'c'; 60_000], &[], &[socket]));
    // No way to answer.
    for reply in [file.as_raw_fd(), ends[1], plain.as_raw_fd(), socket] {
        answer("no-way", ask(&good, &[reply], &[socket]));
    }
    // The other way round, and very many.
    let many: Vec<RawFd> = std::iter::repeat_n(file.as_raw_fd(), 200).collect();
    for _ in 0..50 {
        answer("many", ask(&bad, &[], &many));
    }
    let mut stream = TcpStream::connect(permitted).unwrap();
    stream.write_all(b"hello").unwrap();
    let mut heard = [0; 5];
    stream.read_exact(&mut heard).unwrap();
    println!("heard {}", i32::from(&heard != b"heard"));
}

#[test]
fn whatever_a_process_sends_nothing_else_is_connected_and_nothing_is_kept() {
    fn body() {
        let permitted = answers_tcp("127.0.0.1:0");
        let trap = Trap::new();
        let other = SocketAddr::from(([127, 0, 0, 2], permitted.port()));
        trap.tcp(other);
        let before = open_descriptors();
        let attacked = attack(
            "ask_for_anything",
            permitted,
            &format!("{permitted} {other}"),
        );
        for (name, errno) in [
            ("other", libc::EPERM),
            ("file", libc::ENOTSOCK),
            ("pipe", libc::ENOTSOCK),
            ("packets", libc::EAFNOSUPPORT),
            ("pair", libc::EAFNOSUPPORT),
            ("channel", libc::EAFNOSUPPORT),
            ("itself", libc::EAFNOSUPPORT),
            ("reply", libc::EAFNOSUPPORT),
            ("nothing", libc::EAGAIN),
            ("kind", libc::EPERM),
            ("v6", libc::EPERM),
            ("path", libc::ENOENT),
            ("address", libc::EPERM),
            ("long", -1),
            ("huge", -1),
            ("no-way", -1),
            ("many", libc::EPERM),
            ("heard", 0),
        ] {
            assert_eq!(attacked.errno(name), errno, "{name}");
        }
        assert!(!trap.has_sprung());
        // What it sends is never in the host's own table.
        assert!(attacked.descriptors <= before + 16);
        wait_until("nothing is kept", || open_descriptors() <= before);
        wait_until("the threads end", || requests() == 0);
    }
    let _alone = alone();
    behind_a_listener(body);
}

/// The host's threads that answer requests.
fn requests() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names
        .filter(|name| name.starts_with("altair-request"))
        .count()
}

/// The requests of a process that may be under way at a time.
const UNDER_WAY: usize = 32;

/// Whether a request has just been answered: there are too many.
fn is_refused(own: &OwnedFd) -> bool {
    let mut errno = [0; 4];
    let (at, flags) = (errno.as_mut_ptr().cast(), libc::MSG_DONTWAIT);
    let got = unsafe { libc::recv(own.as_raw_fd(), at, 4, flags) };
    got == 4 && i32::from_ne_bytes(errno) == libc::EAGAIN
}

/// Asks without reading an answer, and ends in the middle of it.
fn ask_for_too_much(to: &str) {
    let request = [b"c".as_slice(), &address_of(to.parse().unwrap())].concat();
    let asked = handlers_socket();
    let mut ways = Vec::new();
    for _ in 0..100 {
        let [own, theirs] = packets();
        let socket = tcp();
        send(asked, &request, &[theirs.as_raw_fd(), socket]);
        unsafe { libc::close(socket) };
        ways.push(own);
    }
    // Those that are too many are answered, and the others wait.
    let until = Instant::now() + LONG;
    let mut refused = 0;
    while refused < 100 - UNDER_WAY && Instant::now() < until {
        refused += ways.iter().filter(|own| is_refused(own)).count();
    }
    println!("refused {refused}");
    std::io::stdout().flush().unwrap();
    unsafe { libc::raise(libc::SIGKILL) };
}

#[test]
fn few_requests_are_under_way_at_a_time_and_none_outlives_the_process() {
    fn body() {
        let full = Full::new();
        let before = open_descriptors();
        let attacked = attack("ask_for_too_much", full.address, &full.address.to_string());
        assert_eq!(attacked.ended.status, Status::Signalled(libc::SIGKILL));
        let refused = format!("refused {}\n", 100 - UNDER_WAY);
        assert_eq!(attacked.output(), refused);
        wait_until("the attempts end", || common::connections::threads() == 0);
        wait_until("the thread ends", || requests() == 0);
        assert!(open_descriptors() <= before);
    }
    let _alone = alone();
    behind_a_listener(body);
}

/// Leaves the host a connection that nobody makes, and sends both ends of what they share to the end
/// that only the host has.
fn leave_every_end_with_the_host(to: &str) {
    let request = [b"c".as_slice(), &address_of(to.parse().unwrap())].concat();
    let asked = handlers_socket();
    let [own, theirs] = packets();
    send(asked, &request, &[theirs.as_raw_fd(), tcp()]);
    send(own.as_raw_fd(), b"x", &[own.as_raw_fd(), asked]);
    // Requests are taken in order: the connection has been begun.
    println!("begun {}", ask(b"x", &[], &[]));
}

#[test]
fn no_thread_outlives_a_process_that_leaves_all_ends_with_the_host() {
    fn body() {
        let full = Full::new();
        let before = open_descriptors();
        let to = full.address;
        let attacked = attack("leave_every_end_with_the_host", to, &to.to_string());
        assert_eq!(attacked.errno("begun"), libc::EPERM);
        wait_until("the attempt ends", || common::connections::threads() == 0);
        wait_until("the thread ends", || requests() == 0);
        assert!(open_descriptors() <= before);
    }
    let _alone = alone();
    behind_a_listener(body);
}

/// A path that is in no system, whose file the host has.
const FILE: &str = "/etc/altair-test";

/// Connections that have the host give descriptors.
fn to_what_gives() -> Connections {
    Connections {
        files: vec![(FILE.into(), b"content".to_vec())],
        ..to_addresses(&[SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 9))])
    }
}

/// How many packets wait to be read.
fn waiting(own: &OwnedFd) -> usize {
    let flags = libc::MSG_DONTWAIT;
    let next = || unsafe { libc::recv(own.as_raw_fd(), [0u8; 4].as_mut_ptr().cast(), 4, flags) };
    std::iter::repeat_with(next)
        .take_while(|got| *got == 4)
        .count()
}

/// Asks for descriptors many times by one way, and leaves them there.
fn read_no_answer(_: &str) {
    let asked = handlers_socket();
    for (name, request) in [("files", format!("o{FILE}")), ("sockets", "6".into())] {
        let [own, theirs] = packets();
        for round in ["first", "second"] {
            for _ in 0..50 {
                let request = request.as_bytes();
                send(asked, request, &[theirs.as_raw_fd()]);
            }
            // They have been answered.
            assert_eq!(ask(b"x", &[], &[]), libc::EPERM);
            println!("{round}-{name} {}", waiting(&own));
        }
    }
}

#[test]
fn the_host_makes_nothing_while_an_answer_is_unread() {
    fn body() {
        let attacked = attack_to(to_what_gives(), "read_no_answer", "");
        for name in [
            "first-files",
            "second-files",
            "first-sockets",
            "second-sockets",
        ] {
            assert_eq!(attacked.errno(name), 1, "{name}");
        }
    }
    let _alone = alone();
    behind_a_listener(body);
}

/// Answers its own requests: all is well, but without any descriptor, as where none can be received.
fn be_its_own_host(_: &str) {
    let asked = handlers_socket();
    let [own, theirs] = packets();
    assert!(unsafe { libc::dup2(theirs.as_raw_fd(), asked) } >= 0);
    std::thread::spawn(move || {
        loop {
            let mut control = nix::cmsg_space!([RawFd; 2]);
            let mut bytes = [0; 200];
            let mut packet = [std::io::IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::empty();
            let got = recvmsg::<()>(own.as_raw_fd(), &mut packet, Some(&mut control), flags);
            for message in got.unwrap().cmsgs().unwrap() {
                if let ControlMessageOwned::ScmRights(descriptors) = message {
                    send(descriptors[0], &0i32.to_ne_bytes(), &[]);
                    for descriptor in descriptors {
                        unsafe { libc::close(descriptor) };
                    }
                }
            }
        }
    });
    let path = common::attack::c(FILE);
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    say("file", unsafe { libc::open(path.as_ptr(), flags) }.into());
    // As a C library asks whether there is IPv6.
    let socket = unsafe { libc::socket(libc::AF_INET6, libc::SOCK_DGRAM, 0) };
    say("socket", socket.into());
}

#[test]
fn an_answer_whose_descriptor_could_not_be_received_is_an_error() {
    fn body() {
        let attacked = attack_to(to_what_gives(), "be_its_own_host", "");
        assert_eq!(attacked.errno("file"), libc::ENOENT);
        assert_eq!(attacked.errno("socket"), libc::EMFILE);
    }
    let _alone = alone();
    behind_a_listener(body);
}

#[test]
fn without_a_table_of_its_own_the_host_takes_nothing_and_says_so() {
    fn body() {
        let permitted = answers_tcp("127.0.0.1:0");
        let attacked = attack("connect_to_each", permitted, &permitted.to_string());
        assert_eq!(attacked.output(), format!("{permitted} {}\n", libc::EPERM));
        let [Refusal::Unserved { to, because }] = attacked.refused.as_slice() else {
            panic!("{:?}", attacked.refused);
        };
        assert_eq!(to, "any service");
        assert!(because.contains("Function not implemented"), "{because}");
    }
    let _alone = alone();
    without_own_tables(body);
}

fn connect_with_the_signal_blocked(to: &str) {
    let to = to.to_owned();
    let thread = std::thread::spawn(move || {
        let mut set = SigSet::empty();
        set.add(Signal::SIGSYS);
        set.thread_block().unwrap();
        connect_to_each(&to);
    });
    // All threads end, not that one alone.
    let _ = thread.join();
    println!("lived on");
}

fn connect_without_the_handler(to: &str) {
    unsafe { libc::signal(libc::SIGSYS, libc::SIG_IGN) };
    let at = address_of(to.parse().unwrap());
    let connect = [tcp() as u64, at.as_ptr() as u64, 16];
    call(libc::SYS_connect, &connect);
}

fn send_itself_the_signal(_: &str) {
    raise(Signal::SIGSYS).unwrap();
}

#[test]
fn without_the_handler_a_process_only_ends() {
    fn body() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let to = listener.local_addr().unwrap();
        for attack_name in [
            "connect_with_the_signal_blocked",
            "connect_without_the_handler",
            "send_itself_the_signal",
        ] {
            let attacked = attack(attack_name, to, &to.to_string());
            let status = attacked.ended.status;
            assert_eq!(status, Status::Signalled(libc::SIGSYS), "{attack_name}");
            assert_eq!(attacked.output(), "", "{attack_name}");
            assert!(listener.accept().is_err(), "{attack_name}");
        }
    }
    let _alone = alone();
    behind_a_listener(body);
}

/// Connects 300 times, each time after it has closed the socket before.
fn connect_one_after_another(to: &str) {
    let lowest = tcp();
    unsafe { libc::close(lowest) };
    for _ in 0..300 {
        drop(TcpStream::connect(to).unwrap());
    }
    let mut last = TcpStream::connect(to).unwrap();
    last.set_read_timeout(Some(LONG / 2)).unwrap();
    say("heard", last.read(&mut [0]).map_or(-1, |_| 0));
    drop(last);
    println!("more {}", tcp() - lowest);
}

#[test]
fn nothing_is_left_of_connections_one_after_another() {
    fn body() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let accepted = std::thread::spawn(move || {
            // Each is seen closed while the process runs on.
            for _ in 0..300 {
                let (mut stream, _) = listener.accept().unwrap();
                assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            }
            listener.accept().unwrap().0.write_all(b"x").unwrap();
        });
        let before = open_descriptors();
        let attacked = attack("connect_one_after_another", to, &to.to_string());
        accepted.join().unwrap();
        assert_eq!(attacked.output(), "heard 0\nmore 0\n");
        assert!(
            attacked.descriptors <= before + 16,
            "{}",
            attacked.descriptors
        );
        wait_until("nothing is kept", || open_descriptors() <= before);
    }
    let _alone = alone();
    behind_a_listener(body);
}

/// Connects to two addresses by many threads at once: `permitted other`.
fn connect_all_at_once(to: &str) {
    let (permitted, other) = to.split_once(' ').unwrap();
    std::thread::scope(|scope| {
        for at in 0..16 {
            let (to, is_permitted) = if at % 2 == 0 {
                (permitted, true)
            } else {
                (other, false)
            };
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(TcpStream::connect(to).is_ok(), is_permitted);
                }
            });
        }
    });
    println!("done");
}

#[test]
fn threads_get_their_own_answers() {
    fn body() {
        let permitted = answers_tcp("127.0.0.1:0");
        let other = SocketAddr::from(([127, 0, 0, 2], permitted.port()));
        let to = format!("{permitted} {other}");
        let attacked = attack("connect_all_at_once", permitted, &to);
        assert_eq!(attacked.output(), "done\n");
    }
    let _alone = alone();
    behind_a_listener(body);
}
