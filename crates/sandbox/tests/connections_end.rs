//! The host's work for a connection ends with the socket's timeout or with the run, and leaves
//! nothing.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use altair_sandbox::{Connections, Policy};
use common::attack::{attack_to, attack_under, say, services};
use common::connections::{alone, permitted, socket_at, threads, to_addresses};
use common::peers::{Full, answers_tcp};
use common::raw_sockets::{address, connect, tcp};
use common::{open_descriptors, wait_until};
use nix::libc;

attacks![time_out, connect_in_vain, connect_often];
also_where_rights_are_lacking![
    a_connection_that_does_not_come_ends_with_the_socket_s_patience_or_the_run,
    nothing_is_left_of_many_connections,
];

/// Waits for a connection until its socket times out: 300 ms.
fn time_out(to: &str) {
    let socket = tcp(0);
    let stream = unsafe { TcpStream::from_raw_fd(socket) };
    stream
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let address = address(to);
    let began = Instant::now();
    let connecting = connect(socket, &address);
    say("connect", connecting);
    println!(
        "waited {}",
        i32::from(began.elapsed() >= Duration::from_millis(300))
    );
}

/// Waits forever, in several threads, for TCP and for a socket that has a path.
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
            addresses: permitted(&[full.address]),
            sockets: vec![socket_at(&path)],
            ..Connections::default()
        },
        ..Policy::unconfined()
    };
    let guarded = services(false);
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

/// Makes many connections, one after the other.
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
    // At most one connection may still have a thread and a copy of the socket.
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
