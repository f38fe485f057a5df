//! Kinds of services: their names and default locations.

use std::path::{Path, PathBuf};

use super::Service;

/// A kind of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    MySql,
    PostgreSql,
    SqlServer,
    Redis,
    Memcached,
    MongoDb,
    Amqp,
    /// AMQP over TLS.
    Amqps,
}

/// Names of kinds: schemes of URLs, drivers of DSNs, and values of `DB_CONNECTION` and the like.
const NAMES: &[(&str, Kind)] = &[
    ("mysql", Kind::MySql),
    ("mysql2", Kind::MySql),
    ("mysqli", Kind::MySql),
    ("pdo-mysql", Kind::MySql),
    ("mariadb", Kind::MySql),
    ("postgres", Kind::PostgreSql),
    ("postgresql", Kind::PostgreSql),
    ("pgsql", Kind::PostgreSql),
    ("pdo-pgsql", Kind::PostgreSql),
    ("sqlsrv", Kind::SqlServer),
    ("mssql", Kind::SqlServer),
    ("pdo-sqlsrv", Kind::SqlServer),
    ("redis", Kind::Redis),
    ("rediss", Kind::Redis),
    ("valkey", Kind::Redis),
    ("valkeys", Kind::Redis),
    ("memcached", Kind::Memcached),
    ("mongodb", Kind::MongoDb),
    ("amqp", Kind::Amqp),
    ("amqps", Kind::Amqps),
];

/// Where MySQL clients look for a server on `localhost`, which means a socket to them: the paths
/// that distributions configure PHP with.
const MYSQL_SOCKETS: &[&str] = &[
    "/var/run/mysqld/mysqld.sock",
    "/run/mysqld/mysqld.sock",
    "/run/mysql/mysql.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// Where PostgreSQL's client looks for a server if no host is named (libpq,
/// `unix_socket_directories`).
const POSTGRESQL_DIRECTORIES: &[&str] = &["/var/run/postgresql", "/run/postgresql", "/tmp"];

impl Kind {
    /// The kind that a name stands for.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        let known = NAMES.iter().find(|(own, _)| *own == name);
        known.map(|(_, kind)| *kind)
    }

    /// The default port.
    pub(super) fn port(self) -> u16 {
        match self {
            Self::MySql => 3306,
            Self::PostgreSql => 5432,
            Self::SqlServer => 1433,
            Self::Redis => 6379,
            Self::Memcached => 11211,
            Self::MongoDb => 27017,
            Self::Amqp => 5672,
            Self::Amqps => 5671,
        }
    }

    /// The kind of database with this default port.
    pub(super) fn of_database_at(port: u16) -> Option<Self> {
        let databases = [Self::MySql, Self::PostgreSql, Self::SqlServer];
        databases.into_iter().find(|kind| kind.port() == port)
    }

    /// Whether it is an SQL database.
    pub(super) fn is_database(self) -> bool {
        Self::of_database_at(self.port()).is_some()
    }

    /// The services that a variable's host stands for: a name or an address, with or without a
    /// port, or a path. MySQL clients use a socket for `localhost`, whatever the port, unless told
    /// to use TCP; this gives both.
    pub(super) fn services(self, host: &str, port: u16) -> Vec<Service> {
        let host = host.trim();
        let host = host.split_once("://").map_or(host, |(_, host)| host);
        if let Some(path) = host
            .strip_prefix("unix:")
            .or(host.starts_with('/').then_some(host))
        {
            return self.of_path(path, port);
        }
        // WordPress': localhost:/run/mysqld/mysqld.sock
        if let Some((_, path)) = host.split_once(":/") {
            return self.of_path(&format!("/{path}"), port);
        }
        let with_port = match host.parse::<std::net::Ipv6Addr>() {
            Ok(v6) => format!("[{v6}]:{port}"),
            Err(_) => format!("{host}:{port}"),
        };
        let service = host.parse().or_else(|_| with_port.parse()).ok();
        let mut services: Vec<Service> = service.into_iter().collect();
        let name = host.split(':').next().unwrap_or(host);
        if self == Self::MySql && name.eq_ignore_ascii_case("localhost") {
            services.extend(first_socket(MYSQL_SOCKETS.iter().map(PathBuf::from)));
        }
        services
    }

    /// The service at a socket's path or, for PostgreSQL, in a socket's directory.
    pub(super) fn of_path(self, path: &str, port: u16) -> Vec<Service> {
        let path = if self == Self::PostgreSql && !path.contains(".s.PGSQL.") {
            postgresql_socket(Path::new(path), port)
        } else {
            path.into()
        };
        let service = path.to_str().and_then(|path| path.parse().ok());
        service.into_iter().collect()
    }

    /// Where a client looks if no host is given.
    pub(super) fn sockets(self, port: u16) -> Option<Service> {
        let directories = POSTGRESQL_DIRECTORIES.iter().map(Path::new);
        let paths = directories.map(|directory| postgresql_socket(directory, port));
        (self == Self::PostgreSql)
            .then(|| first_socket(paths))
            .flatten()
    }
}

/// Whether it is the default port of a database whose sessions can be kept read-only.
pub(super) fn has_read_only_sessions(port: u16) -> bool {
    matches!(
        Kind::of_database_at(port),
        Some(Kind::MySql | Kind::PostgreSql)
    )
}

/// Whether a socket has the name of one of such a database.
pub(super) fn is_database_socket(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let mysql = MYSQL_SOCKETS
        .iter()
        .any(|known| Path::new(known).file_name() == path.file_name());
    mysql || name.is_some_and(|name| name.starts_with(".s.PGSQL."))
}

fn postgresql_socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

fn first_socket(paths: impl Iterator<Item = PathBuf>) -> Option<Service> {
    paths
        .into_iter()
        .find(|path| path.exists())
        .map(Service::Socket)
}
