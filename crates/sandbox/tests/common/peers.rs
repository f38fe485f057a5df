//! Peers for connection attempts: some answer, some must never be reached, and some let a process
//! wait.
#![allow(
    unsafe_code,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

use super::connections::address_of;
use super::raw_sockets::{connect, tcp};

pub trait Talks: Read + Write {}
impl<T: Read + Write> Talks for T {}

/// Answers `heard` to every peer that sends `hello`, for as long as the test runs.
pub fn answers_tcp(address: &str) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        listener
            .incoming()
            .for_each(|stream| answer(stream.unwrap()))
    });
    at
}

pub fn answers_local(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    std::thread::spawn(move || {
        listener
            .incoming()
            .for_each(|stream| answer(stream.unwrap()))
    });
}

pub fn answer(mut stream: impl Talks) {
    let mut said = [0; 5];
    if stream.read_exact(&mut said).is_ok() {
        let _ = stream.write_all(b"heard");
    }
}

/// Records every connection; there must be none.
pub struct Trap(Arc<AtomicBool>);

impl Trap {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn tcp(&self, address: SocketAddr) {
        let (listener, sprung) = (TcpListener::bind(address).unwrap(), Arc::clone(&self.0));
        std::thread::spawn(move || {
            listener.accept().unwrap();
            sprung.store(true, Ordering::SeqCst);
        });
    }

    pub fn local(&self, path: &Path) {
        let (listener, sprung) = (UnixListener::bind(path).unwrap(), Arc::clone(&self.0));
        std::thread::spawn(move || {
            listener.accept().unwrap();
            sprung.store(true, Ordering::SeqCst);
        });
    }

    pub fn has_sprung(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A listener with a full backlog: a TCP connection attempt gets no answer.
pub struct Full {
    pub address: SocketAddr,
    pub listener: TcpListener,
    _streams: Vec<OwnedFd>,
}

impl Full {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let bytes = address_of(address);
        let streams = (0..8).map(|_| {
            let socket = tcp(libc::SOCK_NONBLOCK);
            connect(socket, &bytes);
            unsafe { OwnedFd::from_raw_fd(socket) }
        });
        Self {
            address,
            _streams: streams.collect(),
            listener,
        }
    }
}

/// A free port that is free on all loopback addresses.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.local_addr().unwrap().port()
}
