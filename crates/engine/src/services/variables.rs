//! Services that the application's environment names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Found, Service};

/// Looks up a variable: its value, and the file that it stands in; no file for the environment.
pub(crate) type Variables<'a> = dyn Fn(&str) -> Option<(String, Option<String>)> + 'a;

/// A URL whose host is a service.
const URLS: &[&str] = &[
    "DATABASE_URL",
    "REDIS_URL",
    "MEMCACHED_URL",
    "MONGODB_URI",
    "MONGODB_URL",
    "AMQP_URL",
];

/// Ports where none is named, by the scheme of a URL, which may have a driver's name before or
/// after it (`pdo-mysql`, `rediss`).
const PORTS: &[(&str, u16)] = &[
    ("mysql", 3306),
    ("mysql2", 3306),
    ("mysqli", 3306),
    ("pdo-mysql", 3306),
    ("mariadb", 3306),
    ("postgres", POSTGRESQL),
    ("postgresql", POSTGRESQL),
    ("pgsql", POSTGRESQL),
    ("pdo-pgsql", POSTGRESQL),
    ("sqlsrv", 1433),
    ("mssql", 1433),
    ("pdo-sqlsrv", 1433),
    ("redis", 6379),
    ("rediss", 6379),
    ("valkey", 6379),
    ("valkeys", 6379),
    ("tls", 6379),
    ("tcp", 6379),
    ("memcached", 11211),
    ("mongodb", 27017),
    ("amqp", 5672),
    ("amqps", 5671),
];

const POSTGRESQL: u16 = 5432;

/// Where MySQL's clients look for a server on `localhost`, which to them is a socket. What PHP was
/// configured with, in the distributions.
const MYSQL_SOCKETS: &[&str] = &[
    "/var/run/mysqld/mysqld.sock",
    "/run/mysqld/mysqld.sock",
    "/run/mysql/mysql.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// Where PostgreSQL's client looks for a server where no host is named (libpq, `unix_socket_directories`).
const POSTGRESQL_DIRECTORIES: &[&str] = &["/var/run/postgresql", "/run/postgresql", "/tmp"];

/// Services that an environment names at most: one with more is no application's.
const FOUND_MAX: usize = 100;

/// Bytes of a value that are shown.
const SHOWN_MAX: usize = 200;

/// The services that variables name. What cannot be read is passed over: how it is to be read is
/// the application's affair.
pub(super) fn services(variables: &Variables<'_>) -> Vec<Found> {
    let mut found = Finder {
        variables,
        found: Vec::new(),
    };
    for name in URLS {
        found.url(name);
    }
    found.database();
    found.host("REDIS_HOST", "REDIS_PORT", 6379);
    found.host("MEMCACHED_HOST", "MEMCACHED_PORT", 11211);
    found.list("MEMCACHED_SERVERS", 11211);
    found.path("MEMCACHED_SOCKET");
    found.found
}

struct Finder<'a> {
    variables: &'a Variables<'a>,
    found: Vec<Found>,
}

impl Finder<'_> {
    /// A variable that says something.
    fn value(&self, name: &str) -> Option<(String, Option<String>)> {
        let (value, file) = (self.variables)(name)?;
        let value = value.trim().to_owned();
        (!value.is_empty() && value != "null").then_some((value, file))
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|(value, _)| value)
    }

    /// Notes what a variable has named.
    fn note(&mut self, name: &str, services: impl IntoIterator<Item = Service>) {
        let Some((value, file)) = self.value(name) else {
            return;
        };
        let place = file.map_or_else(String::new, |file| format!(" ({file})"));
        let from: Arc<str> = format!("{name}={}{place}", shortened(shown(&value))).into();
        for service in services {
            if self.found.len() >= FOUND_MAX {
                return;
            }
            if !self.found.iter().any(|found| found.service == service) {
                self.found.push(Found {
                    service,
                    from: Arc::clone(&from),
                });
            }
        }
    }

    fn url(&mut self, name: &str) {
        if let Some(value) = self.text(name) {
            self.note(name, of_url(&value));
        }
    }

    /// `DB_HOST`, `DB_PORT`, `DB_SOCKET`, as Laravel's, WordPress' and others' configuration has them.
    fn database(&mut self) {
        let kind = self.text("DB_CONNECTION").unwrap_or_default();
        if kind.contains("sqlite") {
            return;
        }
        self.path("DB_SOCKET");
        let port = default_port(&kind).unwrap_or(3306);
        if let Some(host) = self.text("DB_HOST") {
            let own_port = self.text("DB_PORT").and_then(|port| port.parse().ok());
            let services = of_host(&host, own_port.unwrap_or(port), own_port.unwrap_or(port));
            self.note("DB_HOST", services);
        } else if port == POSTGRESQL {
            self.note("DB_CONNECTION", postgresql_sockets(port));
        }
    }

    fn host(&mut self, host: &str, port: &str, default: u16) {
        if let Some(value) = self.text(host) {
            let port = self.text(port).and_then(|port| port.parse().ok());
            self.note(host, of_host(&value, port.unwrap_or(default), default));
        }
    }

    fn list(&mut self, name: &str, port: u16) {
        if let Some(value) = self.text(name) {
            let services = value
                .split([',', ' ', ';'])
                .filter(|host| !host.is_empty())
                .take(FOUND_MAX)
                .flat_map(|host| of_host(host, port, port));
            self.note(name, services.collect::<Vec<_>>());
        }
    }

    fn path(&mut self, name: &str) {
        if let Some(value) = self.text(name) {
            self.note(name, value.parse().ok().filter(is_socket));
        }
    }
}

fn is_socket(service: &Service) -> bool {
    matches!(service, Service::Socket(_))
}

/// The port that goes with a kind of database or the scheme of a URL.
fn default_port(kind: &str) -> Option<u16> {
    let kind = kind.to_ascii_lowercase().replace('_', "-");
    let known = PORTS.iter().find(|(name, _)| *name == kind);
    known.map(|(_, port)| *port)
}

/// What the host of a variable means: a name, an address, with or without a port, or a path.
/// `database`: the port by which the kind is told.
fn of_host(host: &str, port: u16, database: u16) -> Vec<Service> {
    let host = host.trim();
    let host = host.split_once("://").map_or(host, |(_, host)| host);
    if let Some(path) = host
        .strip_prefix("unix:")
        .or(host.starts_with('/').then_some(host))
    {
        return of_path(path, port, database);
    }
    // WordPress': localhost:/run/mysqld/mysqld.sock
    if let Some((_, path)) = host.split_once(":/") {
        return of_path(&format!("/{path}"), port, database);
    }
    let with_port = match host.parse::<std::net::Ipv6Addr>() {
        Ok(v6) => format!("[{v6}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    };
    let service = host.parse().or_else(|_| with_port.parse()).ok();
    let mut services: Vec<Service> = service.into_iter().collect();
    if host.split(':').next() == Some("localhost") && database == 3306 {
        services.extend(first_socket(MYSQL_SOCKETS.iter().map(PathBuf::from)));
    }
    services
}

/// A socket's path; the directory of one, for PostgreSQL.
fn of_path(path: &str, port: u16, database: u16) -> Vec<Service> {
    let path = if database == POSTGRESQL && !path.contains(".s.PGSQL.") {
        postgresql_socket(Path::new(path), port)
    } else {
        path.into()
    };
    let service = path.to_str().and_then(|path| path.parse().ok());
    service.into_iter().collect()
}

fn postgresql_socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

fn postgresql_sockets(port: u16) -> Option<Service> {
    let directories = POSTGRESQL_DIRECTORIES.iter().map(Path::new);
    first_socket(directories.map(|directory| postgresql_socket(directory, port)))
}

fn first_socket(paths: impl Iterator<Item = PathBuf>) -> Option<Service> {
    paths
        .into_iter()
        .find(|path| path.exists())
        .map(Service::Socket)
}

/// The services of a URL, or of a DSN of PDO's. Several hosts are separated by commas.
fn of_url(url: &str) -> Vec<Service> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Vec::new();
    };
    let Some(default) = default_port(scheme).or((scheme == "unix").then_some(6379)) else {
        return Vec::new(); // sqlite, mongodb+srv, …
    };
    let Some(rest) = rest.strip_prefix("//") else {
        return of_dsn(rest, default);
    };
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may have a slash in it, and so may a path have an `@`: it is seldom both.
    let hosts = match before.rsplit_once('@') {
        Some((_, hosts)) => hosts,
        None => before,
    };
    let (hosts, path) = hosts.split_once('/').unwrap_or((hosts, ""));
    let parameters = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut port = default;
    let mut named = Vec::new();
    for (name, value) in parameters {
        let value = decoded(value);
        match name {
            "unix_socket" | "socket" => named.push(value),
            "host" => named.push(value),
            "port" => port = value.parse().unwrap_or(port),
            _ => {}
        }
    }
    let hosts = decoded(hosts);
    let mut services: Vec<Service> = hosts
        .split(',')
        .filter(|host| !host.is_empty())
        .take(FOUND_MAX)
        .chain(named.iter().take(FOUND_MAX).map(String::as_str))
        .flat_map(|host| of_host(host, port, default))
        .collect();
    if hosts.is_empty() && default == 6379 && !path.is_empty() {
        services.extend(of_path(&format!("/{path}"), port, default));
    }
    if hosts.is_empty() && services.is_empty() && default == POSTGRESQL {
        services.extend(postgresql_sockets(port));
    }
    services
}

/// The rest of a DSN of PDO's: `host=db;port=3306;dbname=shop`.
fn of_dsn(rest: &str, default: u16) -> Vec<Service> {
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
    let hosts = hosts.flat_map(|hosts| hosts.split(',').take(FOUND_MAX));
    socket
        .chain(hosts)
        .flat_map(|host| of_host(host, port.unwrap_or(default), default))
        .collect()
}

/// A value as it may be shown: a URL without its user and parameters, a DSN with what says where.
fn shown(value: &str) -> String {
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

fn shortened(mut text: String) -> String {
    if text.len() > SHOWN_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_MAX));
        text.push('…');
    }
    text
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}
