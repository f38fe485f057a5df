//! A connection that is not established at once is made in the background, or waited for despite
//! interruptions.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::net::{SocketAddr, TcpStream};
use std::os::fd::FromRawFd;
use std::time::Duration;

use common::attack::{attack_to, say};
use common::connections::{alone, to_addresses};
use common::peers::{Full, answers_tcp, free_port};
use common::raw_sockets::{address, connect, tcp};
use nix::libc;

attacks![connect_without_blocking, connect_while_interrupted];
also_where_rights_are_lacking![
    a_socket_that_does_not_block_is_connected_in_the_background,
    a_call_that_signals_interrupt_ends_as_it_would_have,
];

/// A socket that does not block: `refusing answering full`.
fn connect_without_blocking(to: &str) {
    for (name, to) in ["refusing", "answering", "full"]
        .into_iter()
        .zip(to.split(' '))
    {
        let socket = tcp(libc::SOCK_NONBLOCK);
        let address = address(to);
        let connecting = connect(socket, &address);
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

#[test]
fn a_socket_that_does_not_block_is_connected_in_the_background() {
    let _alone = alone();
    let refusing = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let (answering, full) = (answers_tcp("127.0.0.1:0"), Full::new());
    let to = format!("{refusing} {answering} {}", full.address);
    let connections = to_addresses(&[refusing, answering, full.address]);
    let attacked = attack_to(connections, "connect_without_blocking", &to);
    // Loopback may answer immediately.
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

/// Waits for connections while a signal comes every other millisecond and restarts calls.
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
    let address = address(to);
    unsafe {
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    for name in ["first", "second", "third"] {
        let socket = tcp(0);
        let connecting = connect(socket, &address);
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
