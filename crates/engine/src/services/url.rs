//! Services in URLs and DSNs, and how these are shown.

use super::Service;
use super::kind::Kind;

/// The services of a URL or a PDO DSN whose scheme is that of a database or the like. Commas
/// separate several hosts, and several URLs; at most `most` are examined. `plain`: the kind if the
/// scheme only says how to connect (`tcp`, `tls`, `unix`).
pub(super) fn services(value: &str, plain: Option<Kind>, most: usize) -> Vec<Service> {
    // A comma may also be part of a password, or separate the hosts of one URL.
    let is_list = value.split(',').take(most).all(|part| part.contains("://"));
    let urls = value.split(if is_list { "," } else { "\0" }).take(most);
    urls.flat_map(|url| of_one(url.trim(), plain, most))
        .take(most)
        .collect()
}

fn of_one(url: &str, plain: Option<Kind>, most: usize) -> Vec<Service> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Vec::new();
    };
    let plain = plain.filter(|_| ["tcp", "tls", "unix"].contains(&scheme));
    let Some(kind) = Kind::named(scheme).or(plain) else {
        return Vec::new(); // sqlite, mongodb+srv, smtp, …
    };
    let Some(rest) = rest.strip_prefix("//") else {
        return of_dsn(rest, kind, most);
    };
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may contain a slash, and a path an `@`; both together are rare.
    let hosts = match before.rsplit_once('@') {
        Some((_, hosts)) => hosts,
        None => before,
    };
    let (hosts, path) = hosts.split_once('/').unwrap_or((hosts, ""));
    let parameters = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut port = kind.port();
    let mut named = Vec::new();
    for (name, value) in parameters {
        let value = decoded(value);
        match name {
            "unix_socket" | "socket" | "host" => named.push(value),
            "port" => port = value.parse().unwrap_or(port),
            _ => {}
        }
    }
    let hosts = decoded(hosts);
    let mut services: Vec<Service> = hosts
        .split(',')
        .filter(|host| !host.is_empty())
        .take(most)
        .chain(named.iter().take(most).map(String::as_str))
        .flat_map(|host| kind.services(host, port))
        .collect();
    if hosts.is_empty() && kind == Kind::Redis && !path.is_empty() {
        services.extend(kind.of_path(&format!("/{path}"), port));
    }
    if hosts.is_empty() && services.is_empty() {
        services.extend(kind.sockets(port));
    }
    services
}

/// The rest of a PDO DSN: `host=db;port=3306;dbname=shop`.
fn of_dsn(rest: &str, kind: Kind, most: usize) -> Vec<Service> {
    let value = |wanted: &str| {
        let mut pairs = rest
            .split([';', ' '])
            .filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(name, _)| name.trim() == wanted)
            .map(|(_, value)| value.trim())
    };
    let port = value("port").and_then(|port| port.parse().ok());
    let socket = value("unix_socket").into_iter();
    let hosts = value("host").into_iter();
    let hosts = hosts.flat_map(|hosts| hosts.split(',').take(most));
    socket
        .chain(hosts)
        .flat_map(|host| kind.services(host, port.unwrap_or(kind.port())))
        .collect()
}

/// A value that is safe to show: a URL without its user and parameters, a DSN with its location
/// only.
pub(super) fn shown(value: &str) -> String {
    if let Some((scheme, rest)) = value.split_once("://") {
        let before = rest.split_once('?').map_or(rest, |(before, _)| before);
        return match before.rsplit_once('@') {
            Some((_, hosts)) => format!("{scheme}://***@{hosts}"),
            None => format!("{scheme}://{before}"),
        };
    }
    match value.split_once(':') {
        Some((scheme, rest)) if rest.contains('=') => {
            let says_where = |pair: &&str| {
                let name = pair.split('=').next().unwrap_or(pair).trim();
                ["host", "port", "unix_socket", "dbname"].contains(&name)
            };
            let pairs: Vec<&str> = rest.split([';', ' ']).filter(says_where).collect();
            format!("{scheme}:{}", pairs.join(";"))
        }
        _ => value.to_owned(),
    }
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}
