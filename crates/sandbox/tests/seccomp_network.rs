//! seccomp alone, against sockets: each attack succeeds without it and fails with it, seen from
//! outside where that is possible.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

use common::attack::Guarded::Not;
use common::attack::{SECCOMP, WITH_NETWORK, attack, call, say};
use libc::EPERM;

attacks![connect_to, reach_sockets, listen];

fn connect_to(address: &str) {
    let said = |name: &str, result: std::io::Result<()>| {
        let errno = result.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |()| 0);
        println!("{name} {errno}");
    };
    said("tcp", TcpStream::connect(address).map(drop));
    said(
        "udp",
        // The standard library's socket binds, which counts as listening.
        UdpSocket::bind("127.0.0.1:0").map(drop),
    );
    let (kind, inet) = (libc::SOCK_DGRAM as u64, libc::AF_INET as u64);
    say("udp_socket", call(libc::SYS_socket, &[inet, kind, 0]));
}

#[test]
fn tcp_is_made_with_the_network_on_only_and_nothing_listens() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let address = host.local_addr().unwrap().to_string();
    let attacked = attack("connect_to", SECCOMP, &address);
    for refused in ["tcp", "udp", "udp_socket"] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert!(host.accept().is_err());
    let attacked = attack("connect_to", WITH_NETWORK, &address);
    assert_eq!(attacked.errno("tcp"), 0);
    assert_eq!(attacked.errno("udp"), EPERM);
    assert_eq!(attacked.errno("udp_socket"), 0);
    assert!(host.accept().is_ok());
    assert_eq!(attack("connect_to", Not, &address).errno("udp"), 0);
}

fn reach_sockets(path: &str) {
    let mut pair = [0i32; 2];
    let pointer = pair.as_mut_ptr() as u64;
    let unix = libc::AF_UNIX as u64;
    let datagram = libc::SOCK_DGRAM as u64;
    say(
        "socketpair",
        call(
            libc::SYS_socketpair,
            &[unix, libc::SOCK_STREAM as u64, 0, pointer],
        ),
    );
    say(
        "pair",
        call(libc::SYS_socketpair, &[unix, datagram, 0, pointer]),
    );
    let result = UnixStream::connect(path).map(drop);
    println!(
        "unix {}",
        result.map_or_else(|error| error.raw_os_error().unwrap(), |()| 0)
    );
    for (name, family, kind) in [
        ("netlink", libc::AF_NETLINK, libc::SOCK_RAW),
        ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM),
        ("alg", libc::AF_ALG, libc::SOCK_SEQPACKET),
    ] {
        say(
            name,
            call(libc::SYS_socket, &[family as u64, kind as u64, 0]),
        );
    }
}

#[test]
fn no_other_kind_of_socket_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let host = std::os::unix::net::UnixListener::bind(&path).unwrap();
    host.set_nonblocking(true).unwrap();
    for guarded in [SECCOMP, WITH_NETWORK] {
        let attacked = attack("reach_sockets", guarded, path.to_str().unwrap());
        assert_eq!(attacked.errno("socketpair"), 0);
        for refused in ["pair", "unix", "netlink", "vsock", "alg"] {
            assert_eq!(attacked.errno(refused), EPERM, "{refused}");
        }
        assert!(host.accept().is_err());
    }
    let attacked = attack("reach_sockets", Not, path.to_str().unwrap());
    assert_eq!(attacked.errno("unix"), 0);
    assert_eq!(attacked.errno("pair"), 0);
    assert!(host.accept().is_ok());
}

fn listen(_: &str) {
    // Without bind, listen chooses a port.
    let socket = call(libc::SYS_socket, &[2, 1, 0]);
    say("listen", call(libc::SYS_listen, &[socket as u64, 1]));
    let linger = [1i32, 10];
    let options = [
        socket as u64,
        libc::SOL_SOCKET as u64,
        libc::SO_LINGER as u64,
        linger.as_ptr() as u64,
        8,
    ];
    say("linger", call(libc::SYS_setsockopt, &options));
    let on = 1i32;
    let options = [
        socket as u64,
        libc::SOL_SOCKET as u64,
        libc::SO_KEEPALIVE as u64,
        &raw const on as u64,
        4,
    ];
    say("keepalive", call(libc::SYS_setsockopt, &options));
}

#[test]
fn a_socket_that_may_connect_may_not_listen_or_linger() {
    let attacked = attack("listen", WITH_NETWORK, "");
    assert_eq!(attacked.errno("listen"), EPERM);
    assert_eq!(attacked.errno("linger"), EPERM);
    assert_eq!(attacked.errno("keepalive"), 0);
    let attacked = attack("listen", Not, "");
    assert_eq!(attacked.errno("listen"), 0);
    assert_eq!(attacked.errno("linger"), 0);
}
