//! The addresses to which a process may connect while its network is closed.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The addresses to which a process may connect. The host makes each connection, on its own copy
/// of the process's socket and with its own copy of the address: a second thread of the process
/// cannot change either meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Connections {
    /// TCP: exactly these addresses and ports.
    pub addresses: Vec<SocketAddr>,
    /// Exactly these stream sockets that have a path.
    pub sockets: Vec<LocalSocket>,
    /// Also any Internet address, TCP and UDP: the network is on.
    pub internet: bool,
    /// The process has a network of its own ([`Spaces`](crate::Spaces)): it makes connections to
    /// itself, and any other is refused.
    pub own_network: bool,
    /// Files that the host opens in place of the process, by their absolute paths, and what is in
    /// them: those by which C libraries look up names, where no private root holds them. Only used
    /// behind a filter that asks for them ([`Seccomp::files_by_host`](crate::Seccomp)).
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// A stream socket that has a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalSocket {
    /// The absolute path that the process may use. It may also use `path`.
    pub named: PathBuf,
    /// Its place in the host: absolute, and free of symbolic links as far as it exists. A link
    /// that appears later is not followed.
    pub path: PathBuf,
}

/// An address that a process passed to `connect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Internet(SocketAddr),
    Path(PathBuf),
    /// The name of an abstract socket (unix(7)), without the zero byte before it.
    Abstract(Vec<u8>),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Path(path) => path.display().fmt(f),
            Self::Abstract(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
        }
    }
}

/// What the host connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Internet(SocketAddr),
    Local(PathBuf),
}

impl Connections {
    /// Whether the process makes a connection in its own network: to itself.
    pub(crate) fn is_to_itself(&self, address: &Address) -> bool {
        match address {
            Address::Internet(address) => {
                let ip = address.ip().to_canonical();
                self.own_network && (ip.is_loopback() || ip.is_unspecified())
            }
            Address::Path(_) | Address::Abstract(_) => false,
        }
    }

    /// Whether there is an IPv6 address to connect to.
    pub(crate) fn has_v6(&self) -> bool {
        self.internet || self.addresses.iter().any(SocketAddr::is_ipv6)
    }

    /// What to connect to for an address; `None` if that is not permitted.
    pub(crate) fn destination(&self, address: &Address) -> Option<Destination> {
        match address {
            Address::Internet(address) => {
                let permitted =
                    self.internet || self.addresses.iter().any(|other| is_same(*address, *other));
                // As given: an IPv6 socket takes no other form of an IPv4 address.
                permitted.then_some(Destination::Internet(*address))
            }
            Address::Path(path) => self
                .sockets
                .iter()
                .find(|socket| is_spelled(path, &socket.named) || is_spelled(path, &socket.path))
                .map(|socket| Destination::Local(socket.path.clone())),
            Address::Abstract(_) => None,
        }
    }
}

/// Whether two addresses are the same, in whichever form an IPv4 address is written.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    let scope = |address| match address {
        SocketAddr::V6(v6) => v6.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    one.port() == other.port()
        && one.ip().to_canonical() == other.ip().to_canonical()
        && scope(one) == scope(other)
}

/// Compares bytes: comparing paths would ignore `.` and doubled slashes.
fn is_spelled(path: &Path, other: &Path) -> bool {
    path.as_os_str().as_bytes() == other.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn internet(text: &str) -> Address {
        Address::Internet(text.parse().unwrap())
    }

    fn database() -> Connections {
        Connections {
            addresses: vec![
                "127.0.0.1:3306".parse().unwrap(),
                "[::1]:5432".parse().unwrap(),
            ],
            sockets: vec![LocalSocket {
                named: "/var/run/db.sock".into(),
                path: "/run/db.sock".into(),
            }],
            ..Connections::default()
        }
    }

    #[test]
    fn an_address_is_permitted_with_its_port_only() {
        let permitted = |text| database().destination(&internet(text)).is_some();
        assert!(permitted("127.0.0.1:3306") && permitted("[::1]:5432"));
        assert!(permitted("[::ffff:127.0.0.1]:3306"));
        for other in [
            "127.0.0.1:3307",
            "127.0.0.2:3306",
            "0.0.0.0:3306",
            "[::1]:3306",
            "[::]:5432",
            "[::ffff:127.0.0.1]:5432",
            "127.0.0.1:5432",
        ] {
            assert!(!permitted(other), "{other}");
        }
        let mut all = database();
        all.internet = true;
        assert!(all.destination(&internet("192.0.2.1:80")).is_some());
    }

    #[test]
    fn an_address_of_a_link_is_one_on_that_link() {
        let connections = Connections {
            addresses: vec!["[fe80::1%2]:3306".parse().unwrap()],
            ..Connections::default()
        };
        assert!(
            connections
                .destination(&internet("[fe80::1%2]:3306"))
                .is_some()
        );
        assert!(
            connections
                .destination(&internet("[fe80::1%3]:3306"))
                .is_none()
        );
        assert!(
            connections
                .destination(&internet("[fe80::1]:3306"))
                .is_none()
        );
    }

    #[test]
    fn a_socket_is_permitted_under_its_two_names_and_is_reached_where_it_is() {
        let destination = |path: &str| database().destination(&Address::Path(path.into()));
        let there = Some(Destination::Local("/run/db.sock".into()));
        assert_eq!(destination("/run/db.sock"), there);
        assert_eq!(destination("/var/run/db.sock"), there);
        for other in [
            "/run/./db.sock",
            "/run//db.sock",
            "db.sock",
            "/run/db",
            "/run/db.sock/",
        ] {
            assert_eq!(destination(other), None, "{other}");
        }
        let name = Address::Abstract(b"/run/db.sock".to_vec());
        assert_eq!(database().destination(&name), None);
    }
}
