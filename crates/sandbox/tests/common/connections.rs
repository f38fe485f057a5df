//! Shared by the tests of connections: connection attempts, their targets, and counts of resources.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use altair_sandbox::{Connections, LocalSocket, PermittedAddress, Word};
use nix::libc;

use super::peers::Talks;

/// Serializes tests that count the test program's descriptors and threads.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path means a Unix socket, anything else an address.
fn connect(to: &str) -> std::io::Result<Box<dyn Talks>> {
    Ok(match to.parse::<SocketAddr>() {
        Ok(address) => Box::new(TcpStream::connect(address)?),
        Err(_) => Box::new(UnixStream::connect(to)?),
    })
}

/// Connects to each target and prints what it receives.
pub fn connect_to_each(to: &str) {
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

/// `struct sockaddr_in`.
pub fn address_of(address: SocketAddr) -> [u8; 16] {
    let SocketAddr::V4(v4) = address else {
        panic!("{address}")
    };
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&v4.port().to_be_bytes());
    bytes[4..8].copy_from_slice(&v4.ip().octets());
    bytes
}

/// Addresses on the user's word.
pub fn permitted(addresses: &[SocketAddr]) -> Vec<PermittedAddress> {
    let addresses = addresses.iter();
    addresses
        .map(|address| PermittedAddress {
            address: *address,
            word: Word::User,
        })
        .collect()
}

pub fn to_addresses(addresses: &[SocketAddr]) -> Connections {
    Connections {
        addresses: permitted(addresses),
        ..Connections::default()
    }
}

pub fn socket_at(path: &Path) -> LocalSocket {
    LocalSocket {
        named: path.to_owned(),
        path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        word: Word::User,
    }
}

pub fn to_sockets(paths: &[&Path]) -> Connections {
    Connections {
        sockets: paths.iter().map(|path| socket_at(path)).collect(),
        ..Connections::default()
    }
}

/// The same connections, on the project's word.
pub fn by_project(mut connections: Connections) -> Connections {
    for one in &mut connections.addresses {
        one.word = Word::Project;
    }
    for one in &mut connections.sockets {
        one.word = Word::Project;
    }
    connections
}

pub fn heard(to: impl std::fmt::Display) -> String {
    format!("{to} heard\n")
}

pub fn threads() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter(|task| {
            let name = task.as_ref().unwrap().path().join("comm");
            std::fs::read_to_string(name).is_ok_and(|name| name.starts_with("altair-connect"))
        })
        .count()
}
