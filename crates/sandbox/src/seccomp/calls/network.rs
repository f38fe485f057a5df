//! Sockets. Only pairs; with the network on, outbound TCP and UDP; for declared services, the
//! sockets that the host may connect to them.

use nix::libc::*;

use crate::seccomp::call::Answer::{Allow, AllowIf, Refuse};
use crate::seccomp::call::Kind::{Bind, Connect, Listen, Socket};
use crate::seccomp::call::Refuse::{Quietly, Told};
use crate::seccomp::call::When::{Args, Connecting, Network, NetworkAnd, Sockets};
use crate::seccomp::call::{Arg, Call, Rules, at_least, at_most, bits, calls, is, without};

/// The type of a socket, ignoring the flags in the same argument (socket(2)).
const fn kind(kind: i32) -> Arg {
    bits(1, !((SOCK_CLOEXEC | SOCK_NONBLOCK) as u32), kind as u32)
}

const STREAM: Arg = kind(SOCK_STREAM);
const DATAGRAM: Arg = kind(SOCK_DGRAM);
const PACKETS: Arg = kind(SOCK_SEQPACKET);
const LOCAL: Arg = is(0, AF_UNIX as u32);
const V4: Arg = is(0, AF_INET as u32);
const V6: Arg = is(0, AF_INET6 as u32);
const ANY_PROTOCOL: Arg = is(2, 0);
const TCP: Arg = is(2, IPPROTO_TCP as u32);
const UDP: Arg = is(2, IPPROTO_UDP as u32);

/// TCP and UDP; no raw sockets, no ping, no other protocol.
const INTERNET: Rules = &[
    &[V4, STREAM, ANY_PROTOCOL],
    &[V4, STREAM, TCP],
    &[V4, DATAGRAM, ANY_PROTOCOL],
    &[V4, DATAGRAM, UDP],
    &[V6, STREAM, ANY_PROTOCOL],
    &[V6, STREAM, TCP],
    &[V6, DATAGRAM, ANY_PROTOCOL],
    &[V6, DATAGRAM, UDP],
];

/// TCP only.
const TCP_ONLY: Rules = &[
    &[V4, STREAM, ANY_PROTOCOL],
    &[V4, STREAM, TCP],
    &[V6, STREAM, ANY_PROTOCOL],
    &[V6, STREAM, TCP],
];

/// Sockets that connect to a Unix socket path.
const LOCAL_STREAM: Rules = &[&[LOCAL, STREAM, ANY_PROTOCOL]];

/// Pairs that are permanently connected. An end of a pair of datagram sockets could send to any
/// Unix socket path.
const PAIR: Rules = &[
    &[LOCAL, STREAM, ANY_PROTOCOL],
    &[LOCAL, PACKETS, ANY_PROTOCOL],
];

/// Sending without the flag that also connects.
const NO_FAST_OPEN: u32 = MSG_FASTOPEN as u32;

/// A range of options of one level.
const fn options(level: i32, from: i32, to: i32) -> [Arg; 3] {
    [
        is(1, level as u32),
        at_least(2, from as u32),
        at_most(2, to as u32),
    ]
}

/// Options that may be set (socket.h, tcp.h, in.h, in6.h). Not `SO_LINGER`: closing a lingering
/// socket blocks, and the host closes sockets that the process sends to it. Not
/// `TCP_FASTOPEN_CONNECT` and `TCP_ULP`, nor options that attach programs, name devices or join
/// groups.
pub(super) const SET_OPTIONS: Rules = &[
    &options(SOL_SOCKET, SO_REUSEADDR, SO_REUSEADDR),
    // With SNDBUF, RCVBUF and KEEPALIVE.
    &options(SOL_SOCKET, SO_BROADCAST, SO_OOBINLINE),
    &options(SOL_SOCKET, SO_REUSEPORT, SO_REUSEPORT),
    &options(SOL_SOCKET, SO_RCVTIMEO, SO_SNDTIMEO),
    &options(IPPROTO_TCP, TCP_NODELAY, TCP_NODELAY),
    // With KEEPIDLE and KEEPINTVL.
    &options(IPPROTO_TCP, TCP_CORK, TCP_KEEPCNT),
    &options(IPPROTO_TCP, TCP_QUICKACK, TCP_QUICKACK),
    &options(IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_USER_TIMEOUT),
    &options(IPPROTO_IP, IP_TOS, IP_TTL),
    &options(IPPROTO_IP, IP_MTU_DISCOVER, IP_RECVERR),
    &options(IPPROTO_IPV6, IPV6_UNICAST_HOPS, IPV6_UNICAST_HOPS),
    &options(IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_MTU_DISCOVER),
    &options(IPPROTO_IPV6, IPV6_RECVERR, IPV6_V6ONLY),
    &options(IPPROTO_IPV6, IPV6_TCLASS, IPV6_TCLASS),
];

/// Options that may be read: facts about the socket itself, up to the last that is a plain number
/// (socket.h, tcp.h). Later ones return descriptors or memory.
pub(super) const GET_OPTIONS: Rules = &[
    &[is(1, SOL_SOCKET as u32), at_most(2, SO_DOMAIN as u32)],
    &[is(1, IPPROTO_TCP as u32), at_most(2, TCP_QUICKACK as u32)],
    &[is(1, IPPROTO_IP as u32), at_most(2, IP_MTU as u32)],
    &[is(1, IPPROTO_IPV6 as u32), at_most(2, IPV6_V6ONLY as u32)],
];

/// On every architecture.
pub(super) const CALLS: &[Call] = calls! {
    SYS_socket: AllowIf(Sockets { internet: INTERNET, tcp: TCP_ONLY, local: LOCAL_STREAM }, Told(Socket)), "TCP and UDP, with the network on; sockets for declared services";
    SYS_socketpair: AllowIf(Args(PAIR), Quietly), "event loops, curl's resolver thread";
    SYS_connect: AllowIf(Connecting, Told(Connect)), "with the network on; to declared services through the host";
    SYS_bind: Refuse(Told(Bind)), "nothing listens, and no socket path may be created";
    SYS_listen: Refuse(Told(Listen)), "nothing listens";
    SYS_accept: Refuse(Told(Listen)), "nothing listens";
    SYS_accept4: Refuse(Told(Listen)), "nothing listens";
    SYS_sendto: AllowIf(Args(&[&[without(3, NO_FAST_OPEN)]]), Quietly), "pairs, sockets, the channel";
    SYS_sendmsg: AllowIf(Args(&[&[without(2, NO_FAST_OPEN)]]), Quietly), "pairs, sockets, the channel";
    SYS_sendmmsg: AllowIf(NetworkAnd(&[&[without(3, NO_FAST_OPEN)]]), Quietly), "name resolution";
    SYS_recvfrom: Allow, "pairs, sockets, the channel";
    SYS_recvmsg: Allow, "pairs, sockets, the channel";
    SYS_recvmmsg: AllowIf(Network, Quietly), "name resolution of some libraries";
    SYS_shutdown: Allow, "stream_socket_shutdown()";
    SYS_getsockname: Allow, "stream_socket_get_name()";
    SYS_getpeername: Allow, "stream_socket_get_name()";
    SYS_setsockopt: AllowIf(Args(SET_OPTIONS), Quietly), "timeouts, keep-alive, buffers";
    SYS_getsockopt: AllowIf(Args(GET_OPTIONS), Quietly), "connection state, buffers";
};
