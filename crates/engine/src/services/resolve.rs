//! From declared services to addresses.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use altair_sandbox::{LocalSocket, PermittedAddress, RunAs, Word, thread, with_files_of};

use super::no_project::{Places, is_of_nobody};
use super::{By, Declared, Service, Services, is_socket};
use crate::error::reason;
use crate::owner::FILE_PATIENCE;

/// How long an answer is reused: consecutive calls ask once.
const FRESH: Duration = Duration::from_secs(5);

/// Maximum wait for names that a run may not need.
const PATIENCE: Duration = Duration::from_secs(1);

/// For whom services are resolved.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The project, if there is one.
    pub root: Option<&'a Path>,
    /// The run's user, if the host is root.
    pub user: Option<RunAs>,
}

/// Resolves services. The system looks up names, as for the application outside, until `until`.
/// Sockets are examined as the run's user, since the host may have more rights. The addresses are
/// sorted: a name server may change their order, but the template must stay the same.
///
/// # Errors
/// If `strict`, since all were asked for explicitly: which name has no address, and why, in a sentence
/// for the user. Otherwise the name is left out, and the application finds no address for it.
pub fn resolve(
    services: &[Declared],
    strict: bool,
    place: Place<'_>,
    until: Instant,
) -> Result<Services, String> {
    let mut sockets = sockets(services, place, until)?;
    let mut resolved = Services::default();
    let until = match strict {
        true => until,
        false => until.min(Instant::now() + PATIENCE),
    };
    let mut answers = lookup(services);
    for Declared { service, by } in services {
        match service {
            Service::Address(address) => resolved.addresses.push(permitted(*address, *by)),
            Service::Socket(_) => {
                let Some((socket, is_socket)) = sockets.pop_front() else {
                    continue;
                };
                if strict && is_socket == Some(false) {
                    return Err(format!(
                        "The service {service} cannot be used: there is no socket at that path, but something else."
                    ));
                }
                resolved.sockets.push(socket);
            }
            Service::Host { name, port } => match answers.next(name, until, strict) {
                Ok(ips) => {
                    let addresses = ips.iter().map(|ip| SocketAddr::from((*ip, *port)));
                    let addresses = addresses.map(|address| permitted(address, *by));
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

/// An address, and whether whoever declares it may name it.
fn permitted(address: SocketAddr, by: By) -> PermittedAddress {
    PermittedAddress {
        address,
        word: word(by, || is_of_nobody(address.ip())),
    }
}

/// What a word is worth, for something that a project may name or not.
fn word(by: By, is_no_projects: impl FnOnce() -> bool) -> Word {
    match by {
        By::User => Word::User,
        By::Project if is_no_projects() => Word::Insufficient,
        By::Project => Word::Project,
    }
}

/// A socket's location, and whether a socket is there; `None` if nothing is.
type FoundSocket = (LocalSocket, Option<bool>);

/// The sockets among `services`, in order.
fn sockets(
    services: &[Declared],
    place: Place<'_>,
    until: Instant,
) -> Result<VecDeque<FoundSocket>, String> {
    let paths: Vec<(PathBuf, By)> = services
        .iter()
        .filter_map(|Declared { service, by }| match service {
            Service::Socket(path) => Some((path.clone(), *by)),
            Service::Address(_) | Service::Host { .. } => None,
        })
        .collect();
    if paths.is_empty() {
        return Ok(VecDeque::new());
    }
    let Place { root, user } = place;
    let root = root.map(Path::to_path_buf);
    let look = move || {
        let places = Places::of(root.as_deref(), user.map(|user| user.uid));
        let paths = paths.into_iter();
        paths
            .map(|(named, by)| {
                let path = real(&named);
                let is_socket = is_socket(&path);
                // A link in the project says where: that is the project's word.
                let is_in = |path: &Path| root.as_ref().is_some_and(|root| path.starts_with(root));
                let by = match is_in(&named) && !is_in(&path) {
                    true => By::Project,
                    false => by,
                };
                let word = word(by, || places.have(&path));
                (LocalSocket { named, path, word }, is_socket)
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
fn lookup(services: &[Declared]) -> Answers {
    let (mut known, mut names): (Vec<(String, Answer)>, Vec<String>) = Default::default();
    for Declared { service, .. } in services {
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
        if !ip.to_canonical().is_unspecified() && !ips.contains(&ip) {
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
