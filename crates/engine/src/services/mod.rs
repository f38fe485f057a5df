//! Services: addresses that a run may connect to while the network is off.
//!
//! They are declared by the request, else by the project's `composer.json`, else found in the
//! application's environment; the first source that exists decides. What the user's file allows is
//! added, unless the request decides. Names are resolved here, once for each run: the child finds
//! exactly these answers in a hosts file of its own, and queries no name server.
//!
//! Each carries who declares it. A project's word suffices for its servers, and not for what would
//! start programs outside for whoever connects ([`altair_sandbox::Listener`]).

mod address;
mod declarations;
mod kind;
mod no_project;
mod resolve;
mod url;
mod variables;

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use altair_sandbox::{Connections, Listener, LocalSocket, PermittedAddress, Word};
use serde::{Deserialize, Serialize};

use crate::allowed::Allowed;

pub use address::declared;
pub(crate) use declarations::Declarations;
pub use declarations::DeclaredService;
pub use resolve::{Place, resolve};
pub(crate) use variables::Variables;

/// Maximum number of services of a run: declaring more is a mistake.
pub const SERVICES_MAX: usize = 1000;

/// Maximum bytes of `composer.json`: a larger file is ignored.
pub(crate) const MANIFEST_MAX_BYTES: u64 = 1 << 20;

/// A service as it was declared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Service {
    /// An address and a TCP port.
    Address(SocketAddr),
    /// The name of a host and a TCP port.
    Host {
        /// The name, lower case.
        name: String,
        /// The port.
        port: u16,
    },
    /// The path of a Unix socket, absolute.
    Socket(PathBuf),
}

/// Who declares a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The user: options, requests, the user's file, the environment that the host was started with.
    User,
    /// The project: `composer.json`, `.env` files, and whatever put those into the host's environment.
    Project,
}

/// A service, and who declares it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Declared {
    /// The service.
    pub service: Service,
    /// Who declares it.
    pub by: By,
}

impl By {
    /// All of these services, declared by it.
    #[must_use]
    pub fn declares(self, services: Vec<Service>) -> Vec<Declared> {
        let services = services.into_iter();
        services
            .map(|service| Declared { service, by: self })
            .collect()
    }
}

/// Services that are declared, and those that the user's file allows the project. What both name is the
/// user's.
///
/// # Errors
/// What is wrong with the file, in sentences for the user.
pub(crate) fn with_allowed(
    declared: Vec<Declared>,
    allowed: &Allowed,
) -> Result<Vec<Declared>, String> {
    let mut all = By::User.declares(address::declared(&allowed.services)?);
    for one in declared {
        if !all.iter().any(|other| other.service == one.service) {
            all.push(one);
        }
    }
    Ok(all)
}

/// Why a project's word does not suffice for an address or a path. `listener`: who listens there; `None`:
/// whoever does.
pub(crate) fn why_not_by_project(to: &str, listener: Option<Listener>) -> String {
    let why = match listener {
        Some(Listener::Own) => "a program of the run's own user listens there".to_owned(),
        Some(Listener::Other(uid)) => format!("user {uid} listens there"),
        Some(Listener::Root) => "root listens there".to_owned(),
        Some(Listener::Untold) => "the kernel does not tell who listens there".to_owned(),
        Some(Listener::Unknown) => "the list of who listens cannot be read".to_owned(),
        None if to.starts_with('/') => "sockets in this place are the users' own".to_owned(),
        None => "it is link-local, or clouds give keys there".to_owned(),
    };
    format!("only the project names it, and {why}")
}

impl Service {
    /// Whether it looks like an SQL database whose sessions can be kept read-only: MySQL, MariaDB
    /// or PostgreSQL, by the default port or the name of the socket.
    #[must_use]
    pub fn is_read_only_database(&self) -> bool {
        match self {
            Self::Address(address) => kind::has_read_only_sessions(address.port()),
            Self::Host { port, .. } => kind::has_read_only_sessions(*port),
            Self::Socket(path) => kind::is_database_socket(path),
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Host { name, port } => write!(f, "{name}:{port}"),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

/// Services with their resolved addresses, for one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Services {
    addresses: Vec<PermittedAddress>,
    sockets: Vec<LocalSocket>,
    /// Names and their answers, in order.
    names: Vec<(String, Vec<IpAddr>)>,
}

/// Sources of name lookups, and their order (nsswitch.conf(5)).
const SWITCH: &str = "/etc/nsswitch.conf";

impl Services {
    /// Whether there are no services.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_tcp() && !self.has_sockets()
    }

    /// Whether a service is reached by TCP.
    #[must_use]
    pub fn has_tcp(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Whether a service has a path.
    #[must_use]
    pub fn has_sockets(&self) -> bool {
        !self.sockets.is_empty()
    }

    /// Leaves out the project's sockets that are not below a directory.
    pub fn keep_sockets_below(&mut self, directory: &Path) {
        let real = directory.canonicalize();
        self.sockets.retain(|socket| {
            socket.word == Word::User
                || real
                    .as_ref()
                    .is_ok_and(|real| socket.path.starts_with(real))
        });
    }

    /// The paths of services that have one. The file there may not be a socket.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.sockets.iter().map(|socket| socket.named.clone())
    }

    /// The same services that stand on the user's word, where nobody looks who listens.
    #[must_use]
    pub(crate) fn of_user(&self) -> Self {
        let mut services = self.clone();
        services.addresses.retain(|one| one.word == Word::User);
        services.sockets.retain(|one| one.word == Word::User);
        services
    }

    /// The addresses of services that have some, and on whose word.
    pub(crate) fn addresses(&self) -> &[PermittedAddress] {
        &self.addresses
    }

    /// The sockets of services that have some.
    pub(crate) fn sockets(&self) -> &[LocalSocket] {
        &self.sockets
    }

    /// Each TCP port once.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let ports = self.addresses.iter().map(|one| one.address.port());
        let mut ports: Vec<u16> = ports.collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// What the host connects a run to. `internet`: also any other address.
    #[must_use]
    pub fn connections(&self, internet: bool) -> Connections {
        Connections {
            addresses: self.addresses.clone(),
            sockets: self.sockets.clone(),
            internet,
            own_network: false,
            files: Vec::new(),
        }
    }

    /// The files by which a run looks up names: only these names and `localhost`.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut hosts = String::new();
        for (name, answers) in &self.names {
            for answer in answers {
                hosts.push_str(&format!("{answer} {name}\n"));
            }
        }
        if !self.names.iter().any(|(name, _)| name == "localhost") {
            hosts.push_str("127.0.0.1 localhost\n::1 localhost\n");
        }
        vec![
            ("/etc/hosts".into(), hosts.into_bytes()),
            // All addresses of a name, not only the first (host.conf(5)).
            ("/etc/host.conf".into(), b"multi on\n".to_vec()),
            (
                SWITCH.into(),
                switch(&std::fs::read(SWITCH).unwrap_or_default()),
            ),
        ]
    }
}

/// Whether there is a socket at a path; `None` if nothing is there.
fn is_socket(path: &Path) -> Option<bool> {
    let meta = path.symlink_metadata().ok()?;
    Some(meta.file_type().is_socket())
}

/// The host's own switch, with its `hosts` line replaced.
fn switch(own: &[u8]) -> Vec<u8> {
    let mut text = b"hosts: files\n".to_vec();
    for line in own.split_inclusive(|byte| *byte == b'\n') {
        if !line.trim_ascii_start().starts_with(b"hosts:") {
            text.extend_from_slice(line);
        }
    }
    text
}

#[cfg(test)]
mod tests;
