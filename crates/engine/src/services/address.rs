//! Reading a service's address.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::{SERVICES_MAX, Service};

/// Maximum bytes of a Unix socket's path (unix(7), `sun_path`, without the final zero byte).
const PATH_MAX: usize = 107;

/// Maximum characters of a host's name (RFC 1035, 2.3.4).
const NAME_MAX: usize = 253;

/// The services that a list declares, each once.
///
/// # Errors
/// Which of them is invalid, and why, in a sentence for the user.
pub fn declared<S: AsRef<str>>(list: &[S]) -> Result<Vec<Service>, String> {
    let mut services = Vec::new();
    let mut known = HashSet::new();
    for text in list {
        let text = text.as_ref();
        let service: Service = text.parse().map_err(|why| {
            format!(
                "The service \"{}\" cannot be used: {why}. A service is host:port or the absolute path of a Unix socket.",
                text.escape_debug()
            )
        })?;
        if known.insert(service.clone()) {
            services.push(service);
        }
        if services.len() > SERVICES_MAX {
            return Err(format!(
                "{} services are declared; a run may have at most {SERVICES_MAX}.",
                list.len()
            ));
        }
    }
    Ok(services)
}

impl std::str::FromStr for Service {
    type Err = String;

    /// Reads `host:port`, `address:port`, `[address]:port`, or the absolute path of a Unix socket.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('/') {
            return socket(text);
        }
        if text.is_empty() {
            return Err("it is empty".into());
        }
        if text.contains("://") {
            return Err("it is a URL; only its host and port are needed".into());
        }
        if text.contains('/') {
            return Err(
                if text.parse::<std::net::SocketAddr>().is_err()
                    && text
                        .split('/')
                        .next()
                        .is_some_and(|ip| ip.parse::<IpAddr>().is_ok())
                {
                    "it is a range of addresses; each has to be declared".into()
                } else {
                    "a socket's path has to be absolute".into()
                },
            );
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or("its bracket is not closed")?;
                (host, port.strip_prefix(':').ok_or("its port is missing")?)
            }
            None if text.parse::<Ipv6Addr>().is_ok() => {
                return Err("an IPv6 address has to be in brackets: [::1]:3306".into());
            }
            None => text.rsplit_once(':').ok_or("its port is missing")?,
        };
        let port = port_of(port)?;
        if let Ok(SocketAddr::V6(address)) = format!("[{host}]:{port}").parse() {
            return address_of(SocketAddr::V6(address));
        }
        match host.parse::<IpAddr>() {
            Ok(ip) => address_of((ip, port).into()),
            Err(_) if text.starts_with('[') => {
                Err("there is no IPv6 address in its brackets".into())
            }
            Err(_) => Ok(Self::Host {
                name: name(host)?,
                port,
            }),
        }
    }
}

fn address_of(address: SocketAddr) -> Result<Service, String> {
    if address.ip().to_canonical().is_unspecified() {
        return Err("it means any address, but a service needs a specific one".into());
    }
    Ok(Service::Address(address))
}

fn socket(text: &str) -> Result<Service, String> {
    if text.contains('\0') {
        return Err("it contains a NUL byte, which no path may have".into());
    }
    if text.len() > PATH_MAX {
        return Err(format!(
            "a socket's path has at most {PATH_MAX} bytes, this one has {}",
            text.len()
        ));
    }
    if text.ends_with('/') || Path::new(text).file_name().is_none() {
        return Err("it is a directory, but a socket's path is needed".into());
    }
    Ok(Service::Socket(text.into()))
}

fn port_of(text: &str) -> Result<u16, String> {
    if text.is_empty() {
        return Err("its port is missing".into());
    }
    if text.contains(['-', ',', '*']) {
        return Err("it names several ports; each has to be declared".into());
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port > 0 => Ok(port),
        _ => Err("its port is not a number from 1 to 65535".into()),
    }
}

/// The name of a host. Underscores are common in names of containers.
fn name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("its host is missing".into());
    }
    if text.contains('*') {
        return Err("it names several hosts; each has to be declared".into());
    }
    if text.contains(':') {
        return Err("an IPv6 address has to be in brackets: [::1]:3306".into());
    }
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.len() > NAME_MAX || !text.bytes().all(is_of_a_name) {
        return Err("its host is not a valid name".into());
    }
    // Looks like an address, but is not one: 127.1, 0x7f.1, 10.0.0.256.
    if text
        .bytes()
        .last()
        .is_some_and(|byte| byte.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || b".xX".contains(&byte))
        && text.contains('.')
    {
        return Err("its host is not an address of four numbers".into());
    }
    Ok(text.to_ascii_lowercase())
}
