//! Describes a refused call from its number and arguments.

use nix::libc::{self, seccomp_data};
use nix::unistd::Pid;

use super::call::{Call, Kind};
use super::calls;
use super::memory::Memory;
use crate::Refusal;

/// The line of the table for a call that the filter asks the listener about.
pub(super) fn line(number: i32, of_command: bool) -> Option<&'static Call> {
    let is_it = |call: &&'static Call| call.number == i64::from(number);
    match of_command {
        true => calls::of_commands().into_iter().find(is_it),
        false => calls::all().find(is_it),
    }
}

/// What the thread `pid` attempted. `None`: nothing that a user would recognize.
pub(super) fn refusal(
    call: &Call,
    pid: Pid,
    data: &seccomp_data,
    memory: Memory,
) -> Option<Refusal> {
    let whole = |index: u8| data.args.get(usize::from(index)).copied().unwrap_or(0);
    // Like the kernel, uses the lower half for an `int`.
    let number = |index: u8| whole(index) as i32;
    let address = || {
        let address = memory.socket_address(pid, whole(1), whole(2))?;
        Some(address.to_string())
    };
    Some(match call.refuse()?.told()? {
        Kind::Socket => socket(number(0), number(1), number(2))?,
        // The host's connector reports it.
        Kind::Connect => return None,
        Kind::Bind => Refusal::Listen { at: address() },
        Kind::Listen => Refusal::Listen { at: None },
        Kind::Execute(path) => Refusal::Execute {
            path: memory.path(pid, whole(path)),
        },
        Kind::Process => Refusal::Process,
        Kind::Signal(process, signal) => Refusal::Signal {
            pid: number(process),
            signal: number(signal),
        },
        Kind::Link => Refusal::Link,
        Kind::Inspect => Refusal::Inspect { call: call.name() },
        Kind::Kernel => Refusal::Kernel { call: call.name() },
    })
}

/// Whether a socket is PHP's probe for IPv6 support, which it closes at once (main/network.c,
/// `php_network_getaddresses`).
pub(super) fn asks_for_v6(family: i32, kind: i32, protocol: i32) -> bool {
    (family, kind, protocol) == (libc::AF_INET6, libc::SOCK_DGRAM, 0)
}

/// Where a C library looks for the cache of a name service (glibc `nscd.h`).
const NAME_CACHE: &str = "/var/run/nscd/socket";

/// A connection that was refused.
pub(super) fn connect(to: Option<String>) -> Option<Refusal> {
    (to.as_deref() != Some(NAME_CACHE)).then_some(Refusal::Connect { to })
}

fn socket(family: i32, kind: i32, protocol: i32) -> Option<Refusal> {
    // Optional queries that C libraries make by themselves: for a name service's cache (glibc
    // `nscd_helper.c`), and for the machine's kinds of addresses (glibc `check_pf.c`, musl
    // `netlink.c`).
    let cache = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let own = match family {
        libc::AF_UNIX => kind == cache,
        // Probes whether an address is reachable, to sort the addresses of a name (glibc
        // `getaddrinfo.c`). Queries to a name server use a non-blocking socket instead.
        libc::AF_INET | libc::AF_INET6 => {
            kind == libc::SOCK_DGRAM | libc::SOCK_CLOEXEC && protocol == 0
                || asks_for_v6(family, kind, protocol)
        }
        libc::AF_NETLINK => {
            kind & !libc::SOCK_CLOEXEC == libc::SOCK_RAW && protocol == libc::NETLINK_ROUTE
        }
        _ => false,
    };
    (!own).then_some(Refusal::Socket {
        family,
        kind: kind & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK),
        protocol,
    })
}
