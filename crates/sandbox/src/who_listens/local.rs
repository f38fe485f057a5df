//! Whose a Unix socket is: whoever had it listen, by a connection of the host's own.
//!
//! The file is found once, by descriptor. A file belongs to one socket for good (unix(7), bind(2)
//! makes a new one), so whoever is connected to it afterwards reaches the same socket, whatever
//! stands at its path by then.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket};

use crate::RunAs;
use crate::acting::{Acting, For};
use crate::place::by_number;

/// The file at a path, with no symbolic link on the way, as another user finds it.
pub(super) fn opened_as(path: &Path, user: Option<RunAs>) -> nix::Result<OwnedFd> {
    let _as = Acting::begin(user, For::Everything)?;
    exactly(path)
}

/// The file at a path, with no symbolic link on the way.
pub(crate) fn exactly(path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, path, how)
}

/// A socket of the host's own.
pub(crate) fn probe(blocks: bool) -> nix::Result<OwnedFd> {
    let flags = match blocks {
        true => SockFlag::SOCK_CLOEXEC,
        false => SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
    };
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

/// Connects a socket to a file as another user: the peer sees these credentials (unix(7),
/// `SO_PEERCRED`), and that user's permissions apply.
pub(crate) fn connect_as(socket: &OwnedFd, file: &OwnedFd, user: Option<RunAs>) -> nix::Result<()> {
    let _as = Acting::begin(user, For::Everything)?;
    // Uses the file that was found, instead of looking up its name again.
    let found = by_number(file.as_fd());
    connect(socket.as_raw_fd(), &UnixAddr::new(found.as_str())?)
}

/// The id of who has called listen(2) on the socket that this one is connected to.
pub(crate) fn peer_of(socket: &OwnedFd) -> nix::Result<u32> {
    getsockopt(socket, PeerCredentials).map(|peer| peer.uid())
}
