//! From declared services to addresses.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use altair_sandbox::{LocalSocket, RunAs, thread, with_files_of};

use super::{Service, Services, is_socket};
use crate::error::reason;
use crate::owner::FILE_PATIENCE;

/// How long an answer is reused: consecutive calls ask once.
const FRESH: Duration = Duration::from_secs(5);

/// Maximum wait for names that a run may not need.
const PATIENCE: Duration = Duration::from_secs(1);

/// Resolves services. The system looks up names, as for the application outside, until `until`. If
/// not `strict`, nobody asked for these services explicitly: link-local addresses and sockets of
/// daemons are left out. Sockets are examined as `user`, the run's user, since the host may have
/// more rights. The addresses are sorted: a name server may change their order, but the template
/// must stay the same.
///
/// # Errors
/// If `strict`: which name has no address, and why, in a sentence for the user. Otherwise the name
/// is left out, and the application finds no address for it.
pub fn resolve(
    services: &[Service],
    strict: bool,
    user: Option<RunAs>,
    until: Instant,
) -> Result<Services, String> {
    let mut sockets = sockets(services, user, until)?;
    let mut resolved = Services::default();
    let until = match strict {
        true => until,
        false => until.min(Instant::now() + PATIENCE),
    };
    let mut answers = lookup(services);
    for service in services {
        match service {
            Service::Address(address) if strict || !is_of_link(address.ip()) => {
                resolved.addresses.push(*address);
            }
            Service::Socket(_) => {
                let Some((socket, is_socket)) = sockets.pop_front() else {
                    continue;
                };
                // Nobody asked for these explicitly.
                if !strict && (is_of_daemon(&socket.named) || is_of_daemon(&socket.path)) {
                    continue;
                }
                if strict && is_socket == Some(false) {
                    return Err(format!(
                        "The service {service} cannot be used: there is no socket at that path, but something else."
                    ));
                }
                resolved.sockets.push(socket);
            }
            // Nobody asked for this one explicitly.
            Service::Address(_) => {}
            Service::Host { name, port } => match answers.next(name, until, strict) {
                Ok(mut ips) => {
                    ips.retain(|ip| strict || !is_of_link(*ip));
                    let addresses = ips.iter().map(|ip| SocketAddr::from((*ip, *port)));
                    resolved.addresses.extend(addresses);
                    if !resolved.names.iter().any(|(other, _)| other == name) {
                        resolved.names.push((name.clone(), ips));
                    }
                }
                Err(why) if strict => {
                    return Err(format!("The service {service} cannot be used: {why}."));
                }
                Err(_) => {}
            },
        }
    }
    resolved.addresses.sort_unstable();
    resolved.addresses.dedup();
    Ok(resolved)
}

/// Link-local addresses, including those at which clouds give keys to anyone who asks.
fn is_of_link(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Sockets of daemons that act on requests with more rights than the requester has.
const DAEMONS: &[&str] = &[
    "containerd.sock",
    "crio.sock",
    "docker.sock",
    "podman.sock",
    "system_bus_socket",
];

fn is_of_daemon(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| DAEMONS.iter().any(|daemon| name == *daemon))
}

/// A socket's location, and whether a socket is there; `None` if nothing is.
type FoundSocket = (LocalSocket, Option<bool>);

/// The sockets among `services`, in order.
fn sockets(
    services: &[Service],
    user: Option<RunAs>,
    until: Instant,
) -> Result<VecDeque<FoundSocket>, String> {
    let paths: Vec<PathBuf> = services
        .iter()
        .filter_map(|service| match service {
            Service::Socket(path) => Some(path.clone()),
            Service::Address(_) | Service::Host { .. } => None,
        })
        .collect();
    if paths.is_empty() {
        return Ok(VecDeque::new());
    }
    let look = move || {
        let paths = paths.into_iter();
        paths
            .map(|named| {
                let path = real(&named);
                let is_socket = is_socket(&path);
                (LocalSocket { named, path }, is_socket)
            })
            .collect()
    };
    let patience = until.saturating_duration_since(Instant::now());
    with_files_of(user, patience.clamp(PATIENCE_MIN, FILE_PATIENCE), look).map_err(|e| {
        format!(
            "The sockets of services cannot be looked at: {}.",
            reason(&e)
        )
    })
}

/// Minimum time for examining paths, which takes microseconds.
const PATIENCE_MIN: Duration = Duration::from_millis(50);

/// The real path of a socket. If it does not exist yet, its name in the real path of its directory.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
        match (directory, path.file_name()) {
            (Some(directory), Some(name)) => directory.join(name),
            _ => path.to_owned(),
        }
    })
}

type Answer = Result<Vec<IpAddr>, String>;

/// The last answers. The lock is only tried: in a fork of the host, a thread that does not exist
/// there may hold it.
static KNOWN: LazyLock<Mutex<HashMap<String, (Answer, Instant)>>> = LazyLock::new(Mutex::default);

/// Maximum number of remembered names.
const KNOWN_MAX: usize = 2 * super::SERVICES_MAX;

fn remember(name: &str, answer: &Answer) {
    if let Ok(mut known) = KNOWN.try_lock() {
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), (answer.clone(), Instant::now()));
    }
}

fn remembered(name: &str) -> Option<Answer> {
    let known = KNOWN.try_lock().ok()?;
    let (answer, at) = known.get(name)?;
    (at.elapsed() < FRESH).then(|| answer.clone())
}

/// Answers to names.
struct Answers {
    of_thread: Receiver<(String, Answer)>,
    known: Vec<(String, Answer)>,
}

/// Looks up all names on a separate thread: the system's lookup has no timeout, and waits for an
/// unresponsive name server longer than a run may take. The thread ends with its lookup.
fn lookup(services: &[Service]) -> Answers {
    let (mut known, mut names): (Vec<(String, Answer)>, Vec<String>) = Default::default();
    for service in services {
        if let Service::Host { name, .. } = service
            && !names.contains(name)
            && !known.iter().any(|(other, _)| other == name)
        {
            match remembered(name) {
                Some(answer) => known.push((name.clone(), answer)),
                None => names.push(name.clone()),
            }
        }
    }
    let (sender, of_thread) = channel();
    if !names.is_empty() {
        // If no thread can be started, no answer arrives.
        let _ = thread::start("altair-names", move || {
            for name in names {
                let answer = look_up(&name);
                remember(&name, &answer);
                if sender.send((name, answer)).is_err() {
                    return; // the receiver is gone
                }
            }
        });
    }
    Answers { of_thread, known }
}

fn look_up(name: &str) -> Answer {
    // The port does not matter.
    let found = (name, 0).to_socket_addrs().map_err(|error| {
        let text = error.to_string();
        let why = text.rsplit(": ").next().unwrap_or(&text).to_lowercase();
        format!("its name does not resolve ({why})")
    })?;
    let mut ips = Vec::new();
    for ip in found.map(|address| address.ip()) {
        // An unspecified address means that the name is blocked; connecting to it would connect to
        // this machine.
        if !ip.is_unspecified() && !ips.contains(&ip) {
            ips.push(ip);
        }
    }
    ips.sort_unstable();
    match ips.is_empty() {
        true => Err("its name has no address".into()),
        false => Ok(ips),
    }
}

impl Answers {
    /// Waits for the answer to a name.
    fn next(&mut self, name: &str, until: Instant, strict: bool) -> Answer {
        loop {
            if let Some((_, answer)) = self.known.iter().find(|(known, _)| known == name) {
                return answer.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.of_thread.recv_timeout(left) {
                Ok(answered) => self.known.push(answered),
                Err(_) => {
                    let answer = Err("no name server has answered in time".into());
                    if !strict {
                        // The next call must not wait as long for it again.
                        remember(name, &answer);
                    }
                    return answer;
                }
            }
        }
    }
}
