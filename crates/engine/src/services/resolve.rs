//! From declared services to addresses.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use altair_sandbox::{LocalSocket, thread};

use super::{Service, Services};

/// Resolves services. A name is looked up by the system, as the application would outside, until
/// `until`.
///
/// # Errors
/// Where `strict`: which name has no address, and why, in a sentence for the user. Else it is left
/// out, and the application finds that it has none.
pub(crate) fn resolve(
    services: &[Service],
    strict: bool,
    until: Instant,
) -> Result<Services, String> {
    let mut resolved = Services::default();
    let mut answers = lookup(services);
    for service in services {
        match service {
            Service::Address(address) => resolved.addresses.push(*address),
            Service::Socket(path) => resolved.sockets.push(LocalSocket {
                named: path.clone(),
                path: real(path),
            }),
            Service::Host { name, port } => match answers.next(name, until) {
                Ok(ips) => {
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
    let mut seen = std::collections::HashSet::new();
    resolved.addresses.retain(|address| seen.insert(*address));
    Ok(resolved)
}

/// Where a socket is. One that is not there yet is where its directory is.
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

/// Answers to names.
struct Answers {
    of_thread: Receiver<(String, Answer)>,
    known: Vec<(String, Answer)>,
}

/// Looks up all names, on a thread of its own: the system's lookup cannot be told how long to wait,
/// and a name server that does not answer is waited for longer than a run may take. The thread ends
/// with its lookup.
fn lookup(services: &[Service]) -> Answers {
    let mut names: Vec<String> = Vec::new();
    for service in services {
        if let Service::Host { name, .. } = service
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    let (sender, of_thread) = channel();
    if !names.is_empty() {
        // Where there is no thread to be had, nothing comes.
        let _ = thread::start("altair-names", move || {
            for name in names {
                let answer = look_up(&name);
                if sender.send((name, answer)).is_err() {
                    return; // nobody waits any more
                }
            }
        });
    }
    Answers {
        of_thread,
        known: Vec::new(),
    }
}

fn look_up(name: &str) -> Answer {
    // The port is left as it is given.
    let found = (name, 0).to_socket_addrs().map_err(|error| {
        let text = error.to_string();
        let why = text.rsplit(": ").next().unwrap_or(&text).to_lowercase();
        format!("its name does not resolve ({why})")
    })?;
    let mut ips = Vec::new();
    for ip in found.map(|address| address.ip()) {
        // Whoever answers that means a name that is blocked; to connect there is to connect here.
        if !ip.is_unspecified() && !ips.contains(&ip) {
            ips.push(ip);
        }
    }
    match ips.is_empty() {
        true => Err("its name has no address".into()),
        false => Ok(ips),
    }
}

impl Answers {
    /// The answer to a name.
    fn next(&mut self, name: &str, until: Instant) -> Answer {
        loop {
            if let Some((_, answer)) = self.known.iter().find(|(known, _)| known == name) {
                return answer.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.of_thread.recv_timeout(left) {
                Ok(answered) => self.known.push(answered),
                Err(_) => return Err("no name server has answered in time".into()),
            }
        }
    }
}
