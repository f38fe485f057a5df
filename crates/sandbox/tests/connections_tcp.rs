//! By TCP, a process reaches only the addresses that it may connect to, whatever it does meanwhile.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use altair_sandbox::Refusal;
use common::attack::{attack_to, call};
use common::connections::{alone, connect_to_each, heard, to_addresses};
use common::peers::{Trap, answers_tcp, free_port};
use common::raw_sockets::{address, connect, tcp};
use common::wait_until;
use nix::libc;

attacks![connect_to_each, swap_the_address, swap_the_socket];
also_where_rights_are_lacking![
    only_what_is_permitted_is_reached_by_tcp,
    what_a_second_thread_swaps_meanwhile_is_of_no_use,
];

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
    // The traps work.
    TcpStream::connect(other_address).unwrap();
    wait_until("the trap springs", || trap.has_sprung());
}

/// Connects to an address that another thread keeps changing: `permitted other`.
fn swap_the_address(to: &str) {
    let (permitted, other) = to.split_once(' ').unwrap();
    let addresses = [permitted, other].map(address);
    let place = Box::leak(Box::new(addresses[0]));
    let pointer = place.as_mut_ptr() as usize;
    std::thread::spawn(move || {
        for at in (0..2).cycle() {
            unsafe { std::ptr::write_volatile(pointer as *mut [u8; 16], addresses[at]) };
        }
    });
    let (mut reached, until) = (0, Instant::now() + Duration::from_secs(2));
    while Instant::now() < until {
        let socket = tcp(0);
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let connected = call(
            libc::SYS_connect,
            &[socket.as_raw_fd() as u64, pointer as u64, 16],
        );
        reached += i32::from(connected == 0);
    }
    println!("reached {reached}");
}

/// Connects a descriptor that another thread keeps replacing by another socket: `permitted path`.
fn swap_the_socket(to: &str) {
    let (permitted, _) = to.split_once(' ').unwrap();
    let address = address(permitted);
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        let sockets = [
            (libc::AF_INET, libc::SOCK_STREAM),
            (libc::AF_UNIX, libc::SOCK_STREAM),
        ]
        .map(|(family, kind)| unsafe { libc::socket(family, kind, 0) });
        let swapping = std::thread::spawn(move || unsafe { libc::dup2(sockets[1], sockets[0]) });
        connect(sockets[0], &address);
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
