//! The sockets that a process gets behave like its own, and are of use only for permitted
//! connections.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Duration;

use altair_sandbox::Connections;
use common::attack::{attack_to, call, say};
use common::connections::{alone, socket_at, to_addresses};
use common::peers::answers_tcp;
use common::raw_sockets::{address, connect, tcp};
use nix::libc;

attacks![keep_a_socket, use_sockets_otherwise, ask_for_v6];
also_where_rights_are_lacking![
    a_connection_that_the_host_makes_is_as_one_of_the_process_s_own,
    the_sockets_are_good_for_nothing_else,
    who_may_connect_by_ipv6_is_told_that_there_is_some_and_gets_no_socket_of_udp,
];

/// Connects a socket and keeps it: `family type address`.
fn keep_a_socket(to: &str) {
    let stream = TcpStream::connect(to).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    println!("time {:?}", stream.write_timeout().unwrap().unwrap());
    // The kernel answers a second connection on the socket.
    let address = address(to);
    let again = connect(stream.as_raw_fd(), &address);
    say("again", again);
    say("nowhere", connect(99, &address));
    let local = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    say("family", connect(local, &address));
    let waiting = tcp(0);
    let waiting = unsafe { TcpStream::from_raw_fd(waiting) };
    waiting
        .set_write_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    say("waiting", connect(waiting.as_raw_fd(), &address));
    println!("kept {:?}", waiting.write_timeout().unwrap().unwrap());
}

#[test]
fn a_connection_that_the_host_makes_is_as_one_of_the_process_s_own() {
    let _alone = alone();
    let permitted = answers_tcp("127.0.0.1:0");
    let connections = Connections {
        sockets: vec![socket_at("/run/none.sock".as_ref())],
        ..to_addresses(&[permitted])
    };
    let attacked = attack_to(connections, "keep_a_socket", &permitted.to_string());
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

/// Tries other uses of the sockets.
fn use_sockets_otherwise(to: &str) {
    let address = address(to);
    let pointer = address.as_ptr() as u64;
    let tcp = tcp(0) as u64;
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

/// Checks for IPv6, as PHP does, and tries to send with the socket it gets.
fn ask_for_v6(to: &str) {
    let socket = call(
        libc::SYS_socket,
        &[libc::AF_INET6 as u64, libc::SOCK_DGRAM as u64, 0],
    );
    println!("socket {}", i32::from(socket >= 0));
    let bytes = *b"hello";
    let pointer = bytes.as_ptr() as u64;
    let address = address(to);
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
