//! Who listens at an address, as far as the kernel tells the host, and whose word suffices for them.
//!
//! A project may name its database. It may not name the daemons of its own user (tmux, a session's
//! bus, a debugger), nor root's: they start programs for whoever connects. No list of names is
//! complete, so what counts is who listens.

mod local;
mod tcp;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::LazyLock;

use nix::unistd::geteuid;

use crate::RunAs;

pub(crate) use local::{connect_as, exactly, peer_of, probe};
pub(crate) use tcp::{is_of_this_machine, leads_elsewhere, listeners_at};

/// On whose word a process may connect to an address. The first is worth the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// The user's: whoever listens there.
    User,
    /// The project's alone: if that suffices for whoever listens there ([`Listener::takes_projects_word`]).
    Project,
    /// The project's alone, for an address that no project may name, whoever listens there. It is kept
    /// so that the refusal can say so.
    Insufficient,
}

/// Who listens at an address of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// The user that the process runs as; also if that is root.
    Own,
    /// Another user than that and root, by id: a service has its own.
    Other(u32),
    /// Root.
    Root,
    /// Somebody whose id the kernel does not tell: it is of another user namespace.
    Untold,
    /// Anybody: the kernel's list cannot be read.
    Unknown,
}

/// The id that the kernel shows in place of one that has no meaning in the reader's user namespace
/// (proc_sys_kernel(5), `overflowuid`).
const OVERFLOW_UID: u32 = 65534;

/// Whether every id has a meaning in this process's user namespace: then that id is the user `nobody`'s.
static ALL_ARE_TOLD: LazyLock<bool> = LazyLock::new(|| {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    // The first id here, the first outside, and how many (user_namespaces(7)).
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
});

/// Default ports of databases, caches and queues: MySQL, PostgreSQL, Redis, Memcached, MongoDB, SQL
/// Server, AMQP, Elasticsearch. A developer runs these as himself, too.
const DATABASE_PORTS: &[u16] = &[3306, 5432, 6379, 11211, 27017, 1433, 5672, 9200];

/// Ports of what starts programs, or changes the machine, for whoever connects. No project may name them,
/// whoever listens there: another user may be the person who has become root for a moment.
const POWERFUL_PORTS: &[u16] = &[
    1234,  // gdbserver
    2019,  // Caddy's administration
    2345,  // Delve, Go's debugger
    2375,  // Docker
    2376,  // Docker, by TLS
    2377,  // Docker's swarm
    2379,  // etcd
    2380,  // etcd's peers
    4243,  // Docker, formerly
    4646,  // Nomad
    5005,  // JDWP, Java's debugger
    5037,  // adb, Android's debugger
    5678,  // debugpy, Python's debugger
    4444,  // remote shells, Selenium's grid
    6000,  // X11
    6001,  // X11's second display
    8000,  // JDWP, formerly
    8500,  // Consul
    8787,  // JDWP, of JBoss
    8888,  // Jupyter
    9000,  // FastCGI: PHP-FPM runs any file
    9001,  // supervisord
    9222,  // Chrome's debugger
    9229,  // Node's debugger
    10250, // kubelet
    10255, // kubelet, to read
    16509, // libvirt
    16514, // libvirt, by TLS
];

impl Listener {
    /// The listener with this id, seen by a process of the user `own`.
    pub(crate) fn of(uid: u32, own: u32) -> Self {
        Self::told(uid, own, *ALL_ARE_TOLD)
    }

    fn told(uid: u32, own: u32, all_are_told: bool) -> Self {
        match uid {
            _ if uid == own => Self::Own,
            0 => Self::Root,
            OVERFLOW_UID if !all_are_told => Self::Untold,
            _ => Self::Other(uid),
        }
    }

    /// Whether a project may name it. `port`: by TCP; `None`: by a Unix socket.
    #[must_use]
    pub fn takes_projects_word(self, port: Option<u16>) -> bool {
        match (self, port) {
            (Self::Other(_), None) => true,
            (Self::Own | Self::Unknown, Some(port)) => DATABASE_PORTS.contains(&port),
            (Self::Other(_) | Self::Root | Self::Untold, Some(port)) => {
                !POWERFUL_PORTS.contains(&port)
            }
            (Self::Own | Self::Root | Self::Untold | Self::Unknown, None) => false,
        }
    }
}

/// The id of the user that a process runs as: `other`, or the host's own.
pub(crate) fn own_id(other: Option<RunAs>) -> u32 {
    other.map_or_else(|| geteuid().as_raw(), |user| user.uid)
}

/// Those who listen at an address now, seen by a process of `user`. Empty: nobody that is to be seen,
/// since the address is another machine's, or is translated, or nobody listens.
#[must_use]
pub fn listeners_of_address(address: SocketAddr, user: Option<RunAs>) -> Vec<Listener> {
    listeners_at(address, own_id(crate::other_user(user)))
}

/// Who listens at a path now. The calling thread acts as `user`, and must then end.
///
/// # Errors
/// Of connect(2): nobody listens, there is something else, the user may not connect, or there are
/// too many connections already.
pub fn listener_of_path(path: &Path, user: Option<RunAs>) -> std::io::Result<Listener> {
    let user = crate::other_user(user);
    let file = local::opened_as(path, user)?;
    let probe = local::probe(false)?;
    local::connect_as(&probe, &file, user)?;
    Ok(Listener::of(peer_of(&probe)?, own_id(user)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 1000;

    #[test]
    fn whose_word_suffices_is_a_table() {
        let rows = [
            // who listens: by a socket; by TCP at a database's port, at any other, at a powerful one
            (27, [true, true, true, false]),
            (OWN, [false, true, false, false]),
            (0, [false, true, true, false]),
            (OVERFLOW_UID, [false, true, true, false]),
        ];
        for (uid, expected) in rows {
            let listener = Listener::told(uid, OWN, false);
            let ports = [None, Some(3306), Some(40_000), Some(2375)];
            let takes = ports.map(|port| listener.takes_projects_word(port));
            assert_eq!(takes, expected, "{listener:?}");
        }
        let nobody = Listener::told(OVERFLOW_UID, OWN, true);
        assert_eq!(nobody, Listener::Other(OVERFLOW_UID));
        let root = Listener::of(0, 0);
        assert_eq!(root, Listener::Own);
        assert!(!root.takes_projects_word(Some(40_000)));
        assert!(!Listener::Unknown.takes_projects_word(Some(40_000)));
    }

    #[test]
    fn no_database_has_a_powerful_port() {
        assert!(
            DATABASE_PORTS
                .iter()
                .all(|port| !POWERFUL_PORTS.contains(port))
        );
    }
}
