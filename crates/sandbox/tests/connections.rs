//! A process is connected to what it may be, by its host, and to nothing else.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use altair_sandbox::{Connections, LocalSocket, Policy, Privileges, Refusal, RunAs};
use common::attack::{Guarded, attack_to, attack_under, call, say};
use common::{LONG, is_root, open_descriptors, wait_until};
use nix::libc;

attacks![
    connect_to_each,
    keep_a_socket,
    swap_the_address,
    swap_the_socket,
    connect_without_blocking,
    time_out,
    connect_in_vain,
    use_sockets_otherwise,
    connect_often,
    ask_for_v6,
    connect_while_interrupted,
];

/// Descriptors and threads of the test program are counted: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A Unix socket is a path, all else an address.
fn connect(to: &str) -> std::io::Result<Box<dyn Talks>> {
    Ok(match to.parse::<SocketAddr>() {
        Ok(address) => Box::new(TcpStream::connect(address)?),
        Err(_) => Box::new(UnixStream::connect(to)?),
    })
}

trait Talks: Read + Write {}
impl<T: Read + Write> Talks for T {}

/// Connects to each and says what it hears there.
fn connect_to_each(to: &str) {
    for to in to.split(' ') {
        match connect(to) {
            Ok(mut stream) => {
                stream.write_all(b"hello").unwrap();
                let mut heard = [0; 5];
                stream.read_exact(&mut heard).unwrap();
                println!("{to} {}", String::from_utf8_lossy(&heard));
            }
            Err(error) => println!("{to} {}", error.raw_os_error().unwrap()),
        }
    }
}

/// Answers `heard` to whoever says `hello`, for as long as the test runs.
fn answers_tcp(address: &str) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        listener
            .incoming()
            .for_each(|stream| answer(stream.unwrap()))
    });
    at
}

fn answers_local(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    std::thread::spawn(move || {
        listener
            .incoming()
            .for_each(|stream| answer(stream.unwrap()))
    });
}

fn answer(mut stream: impl Talks) {
    let mut said = [0; 5];
    if stream.read_exact(&mut said).is_ok() {
        let _ = stream.write_all(b"heard");
    }
}

/// Notes who connects, and nothing else is ever to.
struct Trap(Arc<AtomicBool>);

impl Trap {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn tcp(&self, address: SocketAddr) {
        let (listener, sprung) = (TcpListener::bind(address).unwrap(), Arc::clone(&self.0));
        std::thread::spawn(move || {
            listener.accept().unwrap();
            sprung.store(true, Ordering::SeqCst);
        });
    }

    fn local(&self, path: &Path) {
        let (listener, sprung) = (UnixListener::bind(path).unwrap(), Arc::clone(&self.0));
        std::thread::spawn(move || {
            listener.accept().unwrap();
            sprung.store(true, Ordering::SeqCst);
        });
    }

    fn has_sprung(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

fn to_addresses(addresses: &[SocketAddr]) -> Connections {
    Connections {
        addresses: addresses.to_vec(),
        ..Connections::default()
    }
}

fn socket_at(path: &Path) -> LocalSocket {
    LocalSocket {
        named: path.to_owned(),
        path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
    }
}

fn to_sockets(paths: &[&Path]) -> Connections {
    Connections {
        sockets: paths.iter().map(|path| socket_at(path)).collect(),
        ..Connections::default()
    }
}

/// A free port that is free on all loopback addresses.
fn free_port() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn heard(to: impl std::fmt::Display) -> String {
    format!("{to} heard\n")
}

#[test]
fn only_what_is_permitted_is_reached_by_tcp() {
    let _alone = alone();
    let permitted = answers_tcp("127.0.0.1:0");
    let permitted_v6 = answers_tcp("[::1]:0");
    let trap = Trap::new();
    let other_address = SocketAddr::from(([127, 0, 0, 2], permitted.port()));
    let other_port = SocketAddr::from(([127, 0, 0, 1], free_port()));
    trap.tcp(other_address);
    trap.tcp(other_port);
    let mapped = format!("[::ffff:127.0.0.1]:{}", permitted.port());
    let any = format!("0.0.0.0:{}", permitted.port());
    let to = [
        permitted.to_string(),
        permitted_v6.to_string(),
        mapped.clone(),
        other_address.to_string(),
        other_port.to_string(),
        any.clone(),
    ];
    let connections = to_addresses(&[permitted, permitted_v6]);
    let attacked = attack_to(connections, "connect_to_each", &to.join(" "));
    let expected = format!(
        "{}{}{}{other_address} 1\n{other_port} 1\n{any} 1\n",
        heard(permitted),
        heard(permitted_v6),
        heard(&mapped),
    );
    assert_eq!(attacked.output(), expected);
    let refused = |to: &dyn ToString| Refusal::Connect {
        to: Some(to.to_string()),
    };
    assert_eq!(
        attacked.refused,
        [refused(&other_address), refused(&other_port), refused(&any)]
    );
    assert!(!trap.has_sprung());
    // The traps are no dummies.
    TcpStream::connect(other_address).unwrap();
    wait_until("the trap springs", || trap.has_sprung());
}

#[test]
fn only_what_is_permitted_is_reached_by_path() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let (permitted, other) = (dir.join("db.sock"), dir.join("other.sock"));
    answers_local(&permitted);
    let trap = Trap::new();
    trap.local(&other);
    // It leads there, but was not there when the run began.
    let planted = dir.join("planted.sock");
    let link = dir.join("link");
    std::fs::create_dir(dir.join("real")).unwrap();
    answers_local(&dir.join("real/db.sock"));
    symlink(dir.join("real"), &link).unwrap();
    let through_link = link.join("db.sock");
    let connections = to_sockets(&[&permitted, &planted, &through_link]);
    symlink(&other, &planted).unwrap();
    let real = dir.join("real/db.sock");
    let to = [&permitted, &through_link, &real, &planted, &other].map(|path| path.display());
    let text = to.each_ref().map(ToString::to_string).join(" ");
    let attacked = attack_to(connections, "connect_to_each", &text);
    let [a, b, c, d, e] = to;
    let (no_link, refused) = (libc::ELOOP, libc::EPERM);
    let expected = format!(
        "{}{}{}{d} {no_link}\n{e} {refused}\n",
        heard(a),
        heard(b),
        heard(c)
    );
    assert_eq!(attacked.output(), expected);
    assert!(!trap.has_sprung());
}

#[test]
fn the_other_end_of_a_local_socket_is_told_of_the_process_s_user() {
    let _alone = alone();
    if !is_root() {
        return; // the process has the user of its host then
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = dir.path().canonicalize().unwrap().join("db.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let peer =
            nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::PeerCredentials);
        answer(stream);
        peer.unwrap()
    });
    let policy = || Policy {
        connections: to_sockets(&[&path]),
        privileges: Privileges::Drop {
            run_as: Some(RunAs {
                uid: 4321,
                gid: 8765,
            }),
        },
        ..Policy::unconfined()
    };
    let guarded = Guarded::Services { network: false };
    let text = path.display().to_string();
    let attacked = attack_under(policy(), "connect_to_each", guarded, &text, LONG);
    assert_eq!(attacked.output(), heard(&text));
    let peer = server.join().unwrap();
    assert_eq!((peer.uid(), peer.gid()), (4321, 8765));
    // And may do what that user may.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    let attacked = attack_under(policy(), "connect_to_each", guarded, &text, LONG);
    assert_eq!(attacked.output(), format!("{text} {}\n", libc::EACCES));
    // The host is as it was.
    assert!(nix::unistd::geteuid().is_root());
    assert!(nix::sys::prctl::get_dumpable().unwrap());
}

/// Connects a socket that it keeps: `family type address`.
fn keep_a_socket(to: &str) {
    let stream = TcpStream::connect(to).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    println!("time {:?}", stream.write_timeout().unwrap().unwrap());
    // A second connection is the socket's own affair.
    let address = address_of(to.parse().unwrap());
    let again = call(
        libc::SYS_connect,
        &[stream.as_raw_fd() as u64, address.as_ptr() as u64, 16],
    );
    say("again", again);
    say(
        "nowhere",
        call(libc::SYS_connect, &[99, address.as_ptr() as u64, 16]),
    );
    let local = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    say(
        "family",
        call(
            libc::SYS_connect,
            &[local as u64, address.as_ptr() as u64, 16],
        ),
    );
    let waiting = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    let waiting = unsafe { TcpStream::from_raw_fd(waiting) };
    waiting
        .set_write_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    say(
        "waiting",
        call(
            libc::SYS_connect,
            &[waiting.as_raw_fd() as u64, address.as_ptr() as u64, 16],
        ),
    );
    println!("kept {:?}", waiting.write_timeout().unwrap().unwrap());
}

/// `struct sockaddr_in`.
fn address_of(address: SocketAddr) -> [u8; 16] {
    let SocketAddr::V4(v4) = address else {
        panic!("{address}")
    };
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&v4.port().to_be_bytes());
    bytes[4..8].copy_from_slice(&v4.ip().octets());
    bytes
}

#[test]
fn a_connection_that_the_host_makes_is_as_one_of_the_process_s_own() {
    let _alone = alone();
    let permitted = answers_tcp("127.0.0.1:0");
    let attacked = attack_to(
        to_addresses(&[permitted]),
        "keep_a_socket",
        &permitted.to_string(),
    );
    assert_eq!(
        attacked.output(),
        format!(
            "time 1.5s\nagain {}\nnowhere {}\nfamily {}\nwaiting 0\nkept 1.5s\n",
            libc::EISCONN,
            libc::EBADF,
            libc::EAFNOSUPPORT
        )
    );
    assert_eq!(attacked.refused, []);
}

/// Connects to an address that another thread changes all the time: `permitted other`.
fn swap_the_address(to: &str) {
    let (permitted, other) = to.split_once(' ').unwrap();
    let addresses = [permitted, other].map(|to| address_of(to.parse().unwrap()));
    let place = Box::leak(Box::new(addresses[0]));
    let pointer = place.as_mut_ptr() as usize;
    std::thread::spawn(move || {
        for at in (0..2).cycle() {
            unsafe { std::ptr::write_volatile(pointer as *mut [u8; 16], addresses[at]) };
        }
    });
    let (mut reached, until) = (0, Instant::now() + Duration::from_secs(2));
    while Instant::now() < until {
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let connected = call(
            libc::SYS_connect,
            &[socket.as_raw_fd() as u64, pointer as u64, 16],
        );
        reached += i32::from(connected == 0);
    }
    println!("reached {reached}");
}

/// Connects a descriptor that another thread makes another socket all the time: `permitted path`.
fn swap_the_socket(to: &str) {
    let (permitted, _) = to.split_once(' ').unwrap();
    let address = address_of(permitted.parse().unwrap());
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        let sockets = [
            (libc::AF_INET, libc::SOCK_STREAM),
            (libc::AF_UNIX, libc::SOCK_STREAM),
        ]
        .map(|(family, kind)| unsafe { libc::socket(family, kind, 0) });
        let swapping = std::thread::spawn(move || unsafe { libc::dup2(sockets[1], sockets[0]) });
        call(
            libc::SYS_connect,
            &[sockets[0] as u64, address.as_ptr() as u64, 16],
        );
        swapping.join().unwrap();
        for socket in sockets {
            unsafe { libc::close(socket) };
        }
    }
    println!("done 0");
}

#[test]
fn what_a_second_thread_swaps_meanwhile_is_of_no_use() {
    let _alone = alone();
    let permitted = answers_tcp("127.0.0.1:0");
    let trap = Trap::new();
    let other = SocketAddr::from(([127, 0, 0, 2], permitted.port()));
    trap.tcp(other);
    let to = format!("{permitted} {other}");
    let attacked = attack_to(to_addresses(&[permitted]), "swap_the_address", &to);
    assert!(attacked.errno("reached") > 0);
    assert!(!trap.has_sprung());
    let attacked = attack_to(to_addresses(&[permitted]), "swap_the_socket", &to);
    assert_eq!(attacked.errno("done"), 0);
}

/// A socket that does not block: `refusing answering full`.
fn connect_without_blocking(to: &str) {
    for (name, to) in ["refusing", "answering", "full"]
        .into_iter()
        .zip(to.split(' '))
    {
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
        let socket = unsafe { libc::socket(libc::AF_INET, kind, 0) };
        let address = address_of(to.parse().unwrap());
        let connecting = call(
            libc::SYS_connect,
            &[socket as u64, address.as_ptr() as u64, 16],
        );
        say(name, connecting);
        if name != "full" {
            let mut wait = libc::pollfd {
                fd: socket,
                events: libc::POLLOUT,
                revents: 0,
            };
            assert_eq!(unsafe { libc::poll(&raw mut wait, 1, 10_000) }, 1);
            let stream = unsafe { TcpStream::from_raw_fd(socket) };
            let error = stream.take_error().unwrap();
            println!(
                "{name}-then {}",
                error.map_or(0, |error| error.raw_os_error().unwrap())
            );
        }
    }
}

/// A listener that takes no further connection: an attempt by TCP gets no answer.
struct Full {
    address: SocketAddr,
    listener: TcpListener,
    _streams: Vec<OwnedFd>,
}

impl Full {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let bytes = address_of(address);
        let streams = (0..8).map(|_| {
            let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
            let socket = unsafe { libc::socket(libc::AF_INET, kind, 0) };
            call(
                libc::SYS_connect,
                &[socket as u64, bytes.as_ptr() as u64, 16],
            );
            unsafe { OwnedFd::from_raw_fd(socket) }
        });
        Self {
            address,
            _streams: streams.collect(),
            listener,
        }
    }
}

#[test]
fn a_socket_that_does_not_block_is_connected_in_the_background() {
    let _alone = alone();
    let refusing = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let (answering, full) = (answers_tcp("127.0.0.1:0"), Full::new());
    let to = format!("{refusing} {answering} {}", full.address);
    let connections = to_addresses(&[refusing, answering, full.address]);
    let attacked = attack_to(connections, "connect_without_blocking", &to);
    // Loopback may answer at once.
    assert_eq!(
        attacked.errno("refusing-then") + attacked.errno("refusing"),
        if attacked.errno("refusing") == libc::EINPROGRESS {
            libc::EINPROGRESS + libc::ECONNREFUSED
        } else {
            libc::ECONNREFUSED
        }
    );
    assert!([0, libc::EINPROGRESS].contains(&attacked.errno("answering")));
    assert_eq!(attacked.errno("answering-then"), 0);
    assert_eq!(attacked.errno("full"), libc::EINPROGRESS);
}

/// Waits for a connection as long as its socket does: 300 ms.
fn time_out(to: &str) {
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    let stream = unsafe { TcpStream::from_raw_fd(socket) };
    stream
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let address = address_of(to.parse().unwrap());
    let began = Instant::now();
    let connecting = call(
        libc::SYS_connect,
        &[socket as u64, address.as_ptr() as u64, 16],
    );
    say("connect", connecting);
    println!(
        "waited {}",
        i32::from(began.elapsed() >= Duration::from_millis(300))
    );
}

/// Waits for ever, from several threads, for TCP and for a socket that has a path.
fn connect_in_vain(to: &str) {
    let (address, path) = to.split_once(' ').unwrap();
    let (address, path): (SocketAddr, PathBuf) = (address.parse().unwrap(), path.into());
    for _ in 0..4 {
        let path = path.clone();
        std::thread::spawn(move || TcpStream::connect(address).map(|_| ()));
        std::thread::spawn(move || UnixStream::connect(path).map(|_| ()));
    }
    std::thread::sleep(Duration::from_secs(60));
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter(|task| {
            let name = task.as_ref().unwrap().path().join("comm");
            std::fs::read_to_string(name).is_ok_and(|name| name.starts_with("altair-connect"))
        })
        .count()
}

#[test]
fn a_connection_that_does_not_come_ends_with_the_socket_s_patience_or_the_run() {
    let _alone = alone();
    let full = Full::new();
    let to = full.address.to_string();
    let attacked = attack_to(to_addresses(&[full.address]), "time_out", &to);
    assert_eq!(attacked.errno("connect"), libc::EINPROGRESS);
    assert_eq!(attacked.errno("waited"), 1);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().join("full.sock");
    let listener = UnixListener::bind(&path).unwrap();
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let _stream = UnixStream::connect(&path).unwrap();
    let before = open_descriptors();
    let policy = Policy {
        connections: Connections {
            addresses: vec![full.address],
            sockets: vec![socket_at(&path)],
            internet: false,
        },
        ..Policy::unconfined()
    };
    let guarded = Guarded::Services { network: false };
    let to = format!("{} {}", full.address, path.display());
    let time = Duration::from_millis(1500);
    let began = Instant::now();
    let attacked = attack_under(policy, "connect_in_vain", guarded, &to, time);
    assert!(attacked.ended.timed_out && began.elapsed() < Duration::from_secs(10));
    wait_until("the threads end", || threads() == 0);
    wait_until("the descriptors are closed", || {
        open_descriptors() <= before
    });
}

/// What else one could do with the sockets.
fn use_sockets_otherwise(to: &str) {
    let address = address_of(to.parse().unwrap());
    let pointer = address.as_ptr() as u64;
    let tcp = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) } as u64;
    let fast = libc::MSG_FASTOPEN as u64;
    say(
        "fast",
        call(libc::SYS_sendto, &[tcp, pointer, 4, fast, pointer, 16]),
    );
    let one = 1_i32;
    let option = [
        tcp,
        libc::IPPROTO_TCP as u64,
        libc::TCP_FASTOPEN_CONNECT as u64,
    ];
    say(
        "option",
        call(
            libc::SYS_setsockopt,
            &[option[0], option[1], option[2], &raw const one as u64, 4],
        ),
    );
    say("bind", call(libc::SYS_bind, &[tcp, pointer, 16]));
    say("listen", call(libc::SYS_listen, &[tcp, 1]));
    say(
        "udp",
        call(libc::SYS_socket, &[2, libc::SOCK_DGRAM as u64, 0]),
    );
    say(
        "raw",
        call(libc::SYS_socket, &[2, libc::SOCK_RAW as u64, 6]),
    );
    say(
        "packets",
        call(libc::SYS_socket, &[1, libc::SOCK_SEQPACKET as u64, 0]),
    );
    say(
        "datagrams",
        call(libc::SYS_socket, &[1, libc::SOCK_DGRAM as u64, 0]),
    );
    say("mptcp", call(libc::SYS_socket, &[2, 1, 262]));
    say("sctp", call(libc::SYS_socket, &[2, 1, 132]));
    let unspecified = [0_u8; 16];
    say(
        "disconnect",
        call(libc::SYS_connect, &[tcp, unspecified.as_ptr() as u64, 16]),
    );
    let local = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) } as u64;
    let mut name = [0_u8; 12];
    name[0] = 1;
    name[3..].copy_from_slice(b"/run/bus\0");
    say(
        "abstract",
        call(libc::SYS_connect, &[local, name.as_ptr() as u64, 12]),
    );
    let send = call(
        libc::SYS_sendto,
        &[local, pointer, 4, 0, name.as_ptr() as u64, 12],
    );
    println!("send {}", i32::from(send == -1));
}

#[test]
fn the_sockets_are_good_for_nothing_else() {
    let _alone = alone();
    let permitted = answers_tcp("127.0.0.1:0");
    let to = permitted.to_string();
    let dir = tempfile::tempdir().unwrap();
    let connections = Connections {
        sockets: vec![socket_at(&dir.path().join("none"))],
        ..to_addresses(&[permitted])
    };
    let attacked = attack_to(connections, "use_sockets_otherwise", &to);
    for name in [
        "fast",
        "option",
        "bind",
        "listen",
        "udp",
        "raw",
        "packets",
        "datagrams",
        "mptcp",
        "sctp",
        "disconnect",
        "abstract",
        "send",
    ] {
        assert_eq!(attacked.errno(name), libc::EPERM, "{name}");
    }
}

#[test]
fn with_the_network_on_the_host_still_looks_at_paths() {
    let _alone = alone();
    let anywhere = answers_tcp("127.0.0.1:0");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let (permitted, other) = (dir.join("db.sock"), dir.join("other.sock"));
    answers_local(&permitted);
    let trap = Trap::new();
    trap.local(&other);
    let connections = Connections {
        internet: true,
        ..to_sockets(&[&permitted])
    };
    let (permitted, other) = (permitted.display(), other.display());
    let to = format!("{anywhere} {permitted} {other}");
    let attacked = attack_to(connections, "connect_to_each", &to);
    let expected = format!("{}{}{other} 1\n", heard(anywhere), heard(permitted));
    assert_eq!(attacked.output(), expected);
    assert!(!trap.has_sprung());
    drop(UdpSocket::bind("127.0.0.1:0").unwrap());
}

/// Many connections, one after the other.
fn connect_often(to: &str) {
    let address: SocketAddr = to.parse().unwrap();
    for _ in 0..200 {
        TcpStream::connect(address).unwrap();
    }
    println!("done 0");
}

#[test]
fn nothing_is_left_of_many_connections() {
    let _alone = alone();
    let permitted = answers_tcp("127.0.0.1:0");
    let before = open_descriptors();
    let to = permitted.to_string();
    let attacked = attack_to(to_addresses(&[permitted]), "connect_often", &to);
    assert_eq!(attacked.errno("done"), 0);
    // A thread for one, perhaps, and its copy of the socket.
    assert!(
        attacked.descriptors < before + 24,
        "{}",
        attacked.descriptors
    );
    wait_until("the threads end", || threads() == 0);
    wait_until("the descriptors are closed", || {
        open_descriptors() <= before
    });
}

/// Asks whether there is IPv6, as PHP does, and tries to send with what it gets.
fn ask_for_v6(to: &str) {
    let socket = call(
        libc::SYS_socket,
        &[libc::AF_INET6 as u64, libc::SOCK_DGRAM as u64, 0],
    );
    println!("socket {}", i32::from(socket >= 0));
    let bytes = *b"hello";
    let pointer = bytes.as_ptr() as u64;
    let address = address_of(to.parse().unwrap());
    let to = address.as_ptr() as u64;
    say(
        "send",
        call(libc::SYS_sendto, &[socket as u64, pointer, 5, 0, to, 16]),
    );
    say("write", call(libc::SYS_write, &[socket as u64, pointer, 5]));
    say("close", call(libc::SYS_close, &[socket as u64]));
}

#[test]
fn who_may_connect_by_ipv6_is_told_that_there_is_some_and_gets_no_socket_of_udp() {
    let _alone = alone();
    let v4 = "127.0.0.1:9".parse().unwrap();
    let attacked = attack_to(
        to_addresses(&["[::1]:9".parse().unwrap()]),
        "ask_for_v6",
        "127.0.0.1:9",
    );
    let expected = format!(
        "socket 1\nsend {}\nwrite {}\nclose 0\n",
        libc::ENOTSOCK,
        libc::EBADF
    );
    assert_eq!(attacked.output(), expected);
    let attacked = attack_to(to_addresses(&[v4]), "ask_for_v6", "127.0.0.1:9");
    assert!(
        attacked.output().starts_with("socket 0\n"),
        "{}",
        attacked.output()
    );
    assert_eq!(attacked.refused, []);
}

/// Waits for connections while a signal comes every other millisecond, after which calls go on.
fn connect_while_interrupted(to: &str) {
    extern "C" fn nothing(_: i32) {}
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
    action.sa_flags = libc::SA_RESTART;
    let often = libc::timeval {
        tv_sec: 0,
        tv_usec: 2000,
    };
    let timer = libc::itimerval {
        it_interval: often,
        it_value: often,
    };
    let address = address_of(to.parse().unwrap());
    unsafe {
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    for name in ["first", "second", "third"] {
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
        let connecting = call(
            libc::SYS_connect,
            &[socket as u64, address.as_ptr() as u64, 16],
        );
        say(name, connecting);
    }
}

#[test]
fn a_call_that_signals_interrupt_ends_as_it_would_have() {
    let _alone = alone();
    let full = Full::new();
    let listener = full.listener.try_clone().unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        listener.incoming().for_each(drop);
    });
    let to = full.address.to_string();
    let attacked = attack_to(
        to_addresses(&[full.address]),
        "connect_while_interrupted",
        &to,
    );
    assert_eq!(attacked.output(), "first 0\nsecond 0\nthird 0\n");
}
