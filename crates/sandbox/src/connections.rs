//! The addresses to which a process may connect while its network is closed.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::who_listens::Word;

/// The addresses to which a process may connect. The host makes each connection, on its own copy
/// of the process's socket and with its own copy of the address: a second thread of the process
/// cannot change either meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Connections {
    /// TCP: exactly these addresses and ports.
    pub addresses: Vec<PermittedAddress>,
    /// Exactly these stream sockets that have a path.
    pub sockets: Vec<LocalSocket>,
    /// Also any Internet address, TCP and UDP: the user has turned the network on.
    pub internet: bool,
    /// The process has a network of its own ([`Spaces`](crate::Spaces)): it makes connections to
    /// itself, and any other is refused.
    pub own_network: bool,
    /// Files that the host opens in place of the process, by their absolute paths, and what is in
    /// them: those by which C libraries look up names, where no private root holds them. Only used
    /// behind a filter that asks for them ([`Seccomp::files_by_host`](crate::Seccomp)).
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// An address and a TCP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermittedAddress {
    /// The address.
    pub address: SocketAddr,
    /// On whose word.
    pub word: Word,
}

/// A stream socket that has a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalSocket {
    /// The absolute path that the process may use. It may also use `path`.
    pub named: PathBuf,
    /// Its place in the host: absolute, and free of symbolic links as far as it exists. A link
    /// that appears later is not followed.
    pub path: PathBuf,
    /// On whose word.
    pub word: Word,
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

/// What the host connects to, if that word suffices for whoever listens there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) target: Target,
    pub(crate) word: Word,
}

/// Where that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Internet(SocketAddr),
    Local(PathBuf),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Local(path) => path.display().fmt(f),
        }
    }
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
        self.internet || self.addresses.iter().any(|one| one.address.is_ipv6())
    }

    /// What to connect to for an address; `None` if that is not permitted. Of several words, the
    /// user's counts.
    pub(crate) fn destination(&self, address: &Address) -> Option<Destination> {
        let (target, word) = match address {
            Address::Internet(address) => {
                let same = self
                    .addresses
                    .iter()
                    .filter(|other| is_same(*address, other.address));
                let by_network = self.internet.then_some(Word::User);
                let word = same.map(|same| same.word).chain(by_network).min()?;
                // As given: an IPv6 socket takes no other form of an IPv4 address.
                (Target::Internet(*address), word)
            }
            Address::Path(path) => {
                let socket = self
                    .sockets
                    .iter()
                    .filter(|socket| {
                        is_spelled(path, &socket.named) || is_spelled(path, &socket.path)
                    })
                    .min_by_key(|socket| socket.word)?;
                (Target::Local(socket.path.clone()), socket.word)
            }
            Address::Abstract(_) => return None,
        };
        Some(Destination { target, word })
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

    fn at(text: &str) -> PermittedAddress {
        PermittedAddress {
            address: text.parse().unwrap(),
            word: Word::Project,
        }
    }

    fn database() -> Connections {
        Connections {
            addresses: vec![at("127.0.0.1:3306"), at("[::1]:5432")],
            sockets: vec![LocalSocket {
                named: "/var/run/db.sock".into(),
                path: "/run/db.sock".into(),
                word: Word::Project,
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
            addresses: vec![at("[fe80::1%2]:3306")],
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
        let there = Some(Destination {
            target: Target::Local("/run/db.sock".into()),
            word: Word::Project,
        });
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

    #[test]
    fn of_several_words_the_user_s_counts() {
        let word = |connections: &Connections, text| {
            connections.destination(&internet(text)).map(|to| to.word)
        };
        let mut connections = database();
        assert_eq!(word(&connections, "127.0.0.1:3306"), Some(Word::Project));
        connections.addresses.push(PermittedAddress {
            word: Word::User,
            ..at("[::ffff:127.0.0.1]:3306")
        });
        assert_eq!(word(&connections, "127.0.0.1:3306"), Some(Word::User));
        assert_eq!(word(&connections, "[::1]:5432"), Some(Word::Project));
        connections.internet = true;
        assert_eq!(word(&connections, "[::1]:5432"), Some(Word::User));
    }
}
