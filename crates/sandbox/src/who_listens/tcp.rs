//! The kernel's list of TCP sockets that listen.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::socket::{SockaddrIn, SockaddrIn6, getsockname};

use super::Listener;
use crate::system_calls;

/// A socket that listens.
#[derive(Debug, PartialEq, Eq)]
struct Listening {
    ip: IpAddr,
    port: u16,
    uid: u32,
}

/// Those who listen where a connection to an address may arrive, seen by a process of the user `own`.
/// Empty if the address is not one of this machine's.
///
/// Which of several gets it is the kernel's affair (by address, by device, by chance with
/// `SO_REUSEPORT`): all count.
pub(crate) fn listeners_at(address: SocketAddr, own: u32) -> Vec<Listener> {
    if !is_of_this_machine(address) {
        return Vec::new();
    }
    match listening() {
        Ok(all) => all
            .iter()
            .filter(|one| may_get(one, address))
            .map(|one| Listener::of(one.uid, own))
            .collect(),
        Err(_) => vec![Listener::Unknown],
    }
}

/// Whether a connection to an address may arrive at a socket.
fn may_get(one: &Listening, address: SocketAddr) -> bool {
    let (ip, to) = (one.ip.to_canonical(), address.ip().to_canonical());
    // The list does not say whether `::` takes IPv4, too (ipv6(7), `IPV6_V6ONLY`). To connect to no address
    // is to connect to this machine (ip(7)).
    let takes_all = to.is_unspecified()
        || match ip {
            IpAddr::V4(v4) => v4.is_unspecified() && to.is_ipv4(),
            IpAddr::V6(v6) => v6.is_unspecified(),
        };
    one.port == address.port() && (ip == to || takes_all)
}

/// Whether an address is one of this machine's. If that cannot be told, it is.
pub(crate) fn is_of_this_machine(address: SocketAddr) -> bool {
    let to = match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match address.ip().to_canonical() {
            IpAddr::V4(v4) => (v4, v6.port()).into(),
            IpAddr::V6(_) => address,
        },
    };
    let mut own = to;
    own.set_port(0);
    match UdpSocket::bind(own) {
        // Not one of an interface, but possibly of a route to this machine, which has no other source.
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => is_routed_here(to),
        Ok(_) | Err(_) => true,
    }
}

/// Whether a packet to an address leaves from there, or from loopback. Nothing is sent.
fn is_routed_here(to: SocketAddr) -> bool {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip().is_loopback() || source.ip() == to.ip())
}

/// Whether a connection of this machine's has left it: its other end is none of this network's sockets, and
/// still there.
pub(crate) fn leads_elsewhere(socket: &OwnedFd, to: SocketAddr) -> bool {
    let own = match to {
        SocketAddr::V4(_) => {
            getsockname(socket.as_raw_fd()).map(|own: SockaddrIn| (own.ip().into(), own.port()))
        }
        SocketAddr::V6(_) => {
            getsockname(socket.as_raw_fd()).map(|own: SockaddrIn6| (own.ip().into(), own.port()))
        }
    };
    let Ok(own) = own else {
        return false;
    };
    let (own, to) = (canonical(own), canonical((to.ip(), to.port())));
    let is_other_end = |row: &Row| canonical(row.own) == to && canonical(row.peer) == own;
    let mut is_here = false;
    let read = each(|row| {
        is_here |= is_other_end(&row);
        !is_here
    });
    // Only then: an end that has gone before it was looked for would not be seen, either.
    read.is_ok() && !is_here && !system_calls::has_hung_up(socket.as_fd())
}

fn canonical((ip, port): (IpAddr, u16)) -> (IpAddr, u16) {
    (ip.to_canonical(), port)
}

/// All sockets that listen in the calling thread's network.
fn listening() -> io::Result<Vec<Listening>> {
    let mut found = Vec::new();
    each(
        |Row {
             own: (ip, port),
             listens,
             uid,
             ..
         }| {
            if listens {
                found.push(Listening { ip, port, uid });
            }
            // Listening sockets come before all others (net/ipv4/tcp_ipv4.c, `tcp_get_idx`), of which there may
            // be very many.
            listens
        },
    )?;
    Ok(found)
}

/// Calls `goes_on` with each socket of the lists, and leaves a list when it says so.
fn each(mut goes_on: impl FnMut(Row) -> bool) -> io::Result<()> {
    for (list, is_optional) in [("tcp", false), ("tcp6", true)] {
        let list = match File::open(format!("/proc/thread-self/net/{list}")) {
            // A kernel without IPv6 has no such list.
            Err(error) if is_optional && error.kind() == io::ErrorKind::NotFound => continue,
            list => list?,
        };
        // The first line has the names of the columns.
        for line in BufReader::new(list).lines().skip(1) {
            let row = Row::read(&line?).ok_or(io::ErrorKind::InvalidData)?;
            if !goes_on(row) {
                break;
            }
        }
    }
    Ok(())
}

/// A line of a list (proc_pid_net(5)).
#[derive(Debug, PartialEq, Eq)]
struct Row {
    own: (IpAddr, u16),
    peer: (IpAddr, u16),
    listens: bool,
    uid: u32,
}

impl Row {
    /// `0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   106 ...`: number, own
    /// address, peer, state, queues, timer, retransmissions, user.
    fn read(line: &str) -> Option<Self> {
        /// `TCP_LISTEN` (include/net/tcp_states.h).
        const LISTENS: &str = "0A";
        let mut fields = line.split_ascii_whitespace().skip(1);
        Some(Self {
            own: address(fields.next()?)?,
            peer: address(fields.next()?)?,
            listens: fields.next()? == LISTENS,
            uid: fields.nth(3)?.parse().ok()?,
        })
    }
}

/// `0100007F:0CEA`: words of 32 bits as this machine reads them from memory, and the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = ip.get(8 * at..8 * at + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            IpAddr::from(bytes)
        }
        _ => return None,
    };
    Some((ip, port))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_is_seen_at_every_address_at_which_it_is_reached() {
        let own = nix::unistd::geteuid().as_raw();
        for (at, reached, not) in [
            (
                "127.77.0.1:0",
                &["127.77.0.1", "::ffff:127.77.0.1"][..],
                &["127.77.0.2", "::1"][..],
            ),
            (
                "0.0.0.0:0",
                &["127.77.0.1", "127.0.0.1"],
                &["::1", "192.0.2.1"],
            ),
            (
                "[::]:0",
                &["127.77.0.1", "::1"],
                &["192.0.2.1", "2001:db8::1"],
            ),
            ("[::1]:0", &["::1"], &["127.0.0.1"]),
            (
                "[::ffff:127.77.0.3]:0",
                &["127.77.0.3"],
                &["127.77.0.4", "::1"],
            ),
        ] {
            let Ok(listener) = TcpListener::bind(at) else {
                assert!(at.starts_with('['), "IPv4 is everywhere");
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let seen = |ip: &&str| listeners_at((ip.parse::<IpAddr>().unwrap(), port).into(), own);
            for ip in reached {
                assert_eq!(seen(ip), [Listener::Own], "{at} by {ip}");
            }
            for ip in not {
                assert_eq!(seen(ip), [], "{at} by {ip}");
            }
            drop(listener);
            assert_eq!(seen(&reached[0]), [], "{at} is closed");
        }
    }

    #[test]
    fn a_line_has_both_addresses_whether_it_listens_and_the_user() {
        let line = "   0: 0100007F:0CEA 0200007F:0001 0A 00000000:00000000 00:00000000 00000000   106        0 1 1";
        let row = Row::read(line).unwrap();
        assert_eq!(row.own, (Ipv4Addr::LOCALHOST.into(), 3306));
        assert_eq!(row.peer, (Ipv4Addr::new(127, 0, 0, 2).into(), 1));
        assert_eq!((row.listens, row.uid), (true, 106));
        assert!(!Row::read(&line.replace(" 0A ", " 01 ")).unwrap().listens);
        for unreadable in [
            line.replace("106", "x"),
            line.replace("0CEA", ""),
            String::new(),
        ] {
            assert_eq!(Row::read(&unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn no_address_at_all_is_every_socket_of_this_machine() {
        let one = Listening {
            ip: Ipv4Addr::LOCALHOST.into(),
            port: 40,
            uid: 1000,
        };
        for at in [
            "0.0.0.0:40",
            "[::]:40",
            "[::ffff:0.0.0.0]:40",
            "127.0.0.1:40",
        ] {
            assert!(may_get(&one, at.parse().unwrap()), "{at}");
        }
        assert!(!may_get(&one, "0.0.0.0:41".parse().unwrap()));
    }

    #[test]
    fn a_connection_to_a_socket_of_this_network_does_not_lead_elsewhere() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(at) else {
                continue; // there is no IPv6
            };
            let to = listener.local_addr().unwrap();
            let waits = OwnedFd::from(std::net::TcpStream::connect(to).unwrap());
            assert!(!leads_elsewhere(&waits, to), "nobody has accepted it");
            let accepted = std::net::TcpStream::connect(to).unwrap();
            let _streams = [listener.accept().unwrap(), listener.accept().unwrap()];
            let accepted = OwnedFd::from(accepted);
            assert!(!leads_elsewhere(&accepted, to));
            drop(listener);
            assert!(!leads_elsewhere(&accepted, to), "nobody listens any more");
        }
    }
}
