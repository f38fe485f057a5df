//! Names and ports that a command takes in the network of the host.
//!
//! The abstract names of Unix sockets (unix(7)) belong to a network, too, and nothing else of the kernel's
//! keeps a command from taking them: Landlock governs connecting to them alone, and a filter sees no
//! address. So the host binds sockets, each on its own copy of the descriptor and with its own copy of the
//! address, which has to be an Internet address: what the process changes meanwhile has no effect.
//!
//! Where the host may not copy descriptors, the process itself makes the call once the host has seen such
//! an address. It can change it meanwhile, but not its length, which is in a register: that lets it take
//! names of 13 and 25 bytes alone ([`AS_LONG_AS_INTERNET`]).

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc::{c_int, seccomp_notif};
use nix::sys::socket::{SockaddrIn, SockaddrIn6, SockaddrStorage, bind, getsockname};
use nix::unistd::Pid;

use super::apart::{self, Otherwise};
use super::attempt::Live;
use super::call::{Rules, at_least, holds, is};
use super::connect::Decision;
use super::listener::{Answering, Reply};
use super::memory::Memory;
use super::threads;
use crate::acting::{Acting, For};
use crate::connections::Address;
use crate::{Refusal, RunAs, system_calls};

/// Calls of bind(2) with the length of an Internet address: `struct sockaddr_in`, `sockaddr_in6`, and
/// what is longer than any address of a Unix socket (`struct sockaddr_un`, 110 bytes).
pub(super) const AS_LONG_AS_INTERNET: Rules = &[&[is(2, 16)], &[is(2, 28)], &[at_least(2, 111)]];

/// Decides about a call of bind(2), and has it made if permitted.
pub(super) fn decide(call: &seccomp_notif, memory: Memory, answering: &Answering) -> Decision {
    let thread = Pid::from_raw(call.pid.cast_signed());
    let [descriptor, address, length, ..] = call.data.args;
    let to = match memory.socket_address(thread, address, length) {
        Some(Address::Internet(to)) => to,
        other => {
            let at = other.map(|address| address.to_string());
            return Decision::Refused(Some(Refusal::Listen { at }));
        }
    };
    let process = threads::process_of(thread).unwrap_or(thread);
    if system_calls::may_copy_descriptors(process).is_err() {
        return match holds(AS_LONG_AS_INTERNET, &call.data.args) {
            true => Decision::Made,
            false => Decision::Fails(Errno::EINVAL),
        };
    }
    // Checked only now: what was read so far could be from another process that reused the id.
    if !answering.waits(call.id) {
        return Decision::Taken;
    }
    let begun = begin(
        process,
        descriptor as c_int,
        to,
        memory.user,
        call.id,
        answering,
    );
    begun.map_or_else(Decision::Fails, |()| Decision::Taken)
}

/// Binds on a thread of its own: the process may hold its socket for as long as it likes.
fn begin(
    process: Pid,
    descriptor: c_int,
    to: SocketAddr,
    run_as: Option<RunAs>,
    call: u64,
    answering: &Answering,
) -> nix::Result<()> {
    let live = Live::begin().ok_or(Errno::EAGAIN)?;
    let words = answering.words();
    apart::start(
        "altair-bind",
        answering.socket(),
        Otherwise::Share,
        move |listener| {
            let _live = live;
            let bound = system_calls::descriptor_of(process, descriptor).and_then(|socket| {
                // Without the capability to take the ports that only root may.
                let _as = Acting::begin(run_as, For::Everything)?;
                bind_to(&socket, to)
            });
            Answering::new(listener, words).reply(call, Reply::of(bound));
        },
    )
    .map_err(|_| Errno::EAGAIN)
}

fn bind_to(socket: &OwnedFd, to: SocketAddr) -> nix::Result<()> {
    let bound = match to {
        SocketAddr::V4(v4) => bind(socket.as_raw_fd(), &SockaddrIn::from(v4)),
        SocketAddr::V6(v6) => bind(socket.as_raw_fd(), &SockaddrIn6::from(v6)),
    };
    match bound {
        // A signal has interrupted the same call, which had bound it.
        Err(Errno::EINVAL) if is_bound(socket, to) => Ok(()),
        other => other,
    }
}

fn is_bound(socket: &OwnedFd, to: SocketAddr) -> bool {
    let own = getsockname::<SockaddrStorage>(socket.as_raw_fd());
    let own = own
        .ok()
        .and_then(|own| match (own.as_sockaddr_in(), own.as_sockaddr_in6()) {
            (Some(v4), _) => Some(SocketAddr::from((v4.ip(), v4.port()))),
            (_, Some(v6)) => Some(SocketAddr::from((v6.ip(), v6.port()))),
            _ => None,
        });
    own.is_some_and(|own| own.ip() == to.ip() && (to.port() == 0 || own.port() == to.port()))
}
