//! Describes refused system calls.

use std::borrow::Cow;
use std::path::Path;

use altair_sandbox::Refusal;
use nix::libc;

use crate::allowed::{Allow, line};
use crate::guards::Guard;
use crate::result::Blocked;
use crate::services::{self, Service};

/// The flag that allows what was refused.
pub(super) type Lift = Option<Cow<'static, str>>;

const NETWORK: Lift = Some(Cow::Borrowed("--network"));
const UNSAFE: Lift = Some(Cow::Borrowed("--unsafe"));

/// The entries for `refusals` in the project at `root`, in order.
pub(super) fn list(refusals: &[Refusal], root: Option<&Path>) -> impl Iterator<Item = Blocked> {
    // A program that connects even without its socket reveals the address, which is more
    // informative.
    let says_where_to = refusals
        .iter()
        .any(|refusal| matches!(refusal, Refusal::Connect { to: Some(to) } if is_of_internet(to)));
    refusals
        .iter()
        .filter(move |refusal| !(says_where_to && is_internet_socket(refusal)))
        .map(move |refusal| {
            let (what, lift) = describe(refusal, nix::unistd::geteuid().is_root(), root);
            let guard = match refusal {
                Refusal::FileLock { .. } | Refusal::TooManyProcesses { .. } => Guard::Limits,
                _ => Guard::Seccomp,
            };
            Blocked {
                what,
                guard,
                lift: lift.map(Cow::into_owned),
            }
        })
}

/// What was tried, and the flag that allows it; `is_root`: whether the host is root.
pub(super) fn describe(refusal: &Refusal, is_root: bool, root: Option<&Path>) -> (String, Lift) {
    let what = match refusal {
        Refusal::Socket {
            family,
            kind,
            protocol,
        } => return socket(*family, *kind, *protocol),
        Refusal::Connect { to: Some(to) } if to.parse::<Service>().is_ok() => {
            let lift = format!("--service={to}");
            return (format!("connect to {to}"), Some(lift.into()));
        }
        Refusal::Connect { to: Some(to) } => format!("connect to {to}"),
        Refusal::NotByProject { to, listener } => {
            let why = services::why_not_by_project(to, *listener);
            let line = root.map_or_else(String::new, |root| {
                format!("; for all runs: {}", line(root, &Allow::Service(to)))
            });
            let what = format!("connect to {to}: {why}{line}");
            return (what, Some(format!("--service={to}").into()));
        }
        Refusal::Connect { to: None } => {
            return ("connect to an address".into(), NETWORK);
        }
        Refusal::Unserved { to, because } => {
            let what = format!(
                "connect to {to}: it is allowed, but the host cannot do it for the run ({because})"
            );
            return (what, None);
        }
        Refusal::Listen { at: Some(at) } => format!("listen on {at}"),
        Refusal::Listen { at: None } => "listen for connections".into(),
        Refusal::Execute { path: Some(path) } => format!("execute {}", path.display()),
        Refusal::Execute { path: None } => "execute a program".into(),
        Refusal::Process => "start a process (fork)".into(),
        Refusal::Thread { most } => format!("have more than {most} threads"),
        Refusal::TooManyProcesses { most } => {
            return (format!("have more than {most} processes and threads"), None);
        }
        Refusal::FileLock { most } => {
            format!("hold more than {most} file locks, which ended the run")
        }
        Refusal::Signal { pid, signal } => signal_to(*pid, *signal),
        Refusal::Link => "make a link to a file".into(),
        Refusal::Inspect { call } => format!("reach into another process: {call}()"),
        Refusal::Kernel { call } => {
            let lift = if is_root || !altair_sandbox::ROOT_ONLY_CALLS.contains(call) {
                UNSAFE
            } else {
                None
            };
            return (format!("call {call}()"), lift);
        }
        _ => "make a system call".into(),
    };
    (what, UNSAFE)
}

fn socket(family: i32, kind: i32, protocol: i32) -> (String, Lift) {
    let of_internet = family == libc::AF_INET || family == libc::AF_INET6;
    let what = match (kind, protocol) {
        (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) if of_internet => {
            return (
                "open a TCP socket".into(),
                Some("--service=<host:port>".into()),
            );
        }
        (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) if of_internet => {
            let what = "open a UDP socket (to look up a name, most likely)";
            return (what.into(), NETWORK);
        }
        (libc::SOCK_RAW, _) if of_internet => "open a raw Internet socket".into(),
        _ if of_internet => format!("open an Internet socket of protocol {protocol}"),
        _ => match family {
            libc::AF_UNIX if kind == libc::SOCK_STREAM => {
                return ("open a Unix socket".into(), Some("--service=<path>".into()));
            }
            libc::AF_UNIX => "open a Unix socket".into(),
            libc::AF_NETLINK => "open a netlink socket".into(),
            libc::AF_PACKET => "open a packet socket".into(),
            libc::AF_VSOCK => "open a socket to the virtual machine's host".into(),
            libc::AF_ALG => "open a socket to the kernel's cryptography".into(),
            _ => format!("open a socket of family {family}"),
        },
    };
    (what, UNSAFE)
}

fn is_internet_socket(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Socket { family: libc::AF_INET | libc::AF_INET6, kind, .. }
            if *kind != libc::SOCK_RAW
    )
}

fn is_of_internet(address: &str) -> bool {
    address.parse::<std::net::SocketAddr>().is_ok()
}

fn signal_to(pid: i32, signal: i32) -> String {
    let whom = match pid {
        0 => "its process group".to_owned(),
        -1 => "every process".to_owned(),
        1.. => format!("process {pid}"),
        group => format!("process group {}", group.unsigned_abs()),
    };
    match signal {
        0 => format!("ask whether a signal to {whom} would arrive"),
        signal => format!("send signal {signal} to {whom}"),
    }
}
