//! Sockets by their system calls, as an attack makes and connects them.
#![allow(
    unsafe_code,
    dead_code,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks
)]

use nix::libc;

use super::attack::call;
use super::connections::address_of;

/// Makes a TCP socket; -1 if that is refused.
pub fn tcp(flags: i32) -> i32 {
    unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | flags, 0) }
}

/// Connects a socket to an [`address`]; -1 if that is refused.
pub fn connect(socket: i32, to: &[u8; 16]) -> i64 {
    call(
        libc::SYS_connect,
        &[socket as u64, to.as_ptr() as u64, to.len() as u64],
    )
}

/// `struct sockaddr_in` of `address:port`.
pub fn address(to: &str) -> [u8; 16] {
    address_of(to.parse().unwrap())
}
