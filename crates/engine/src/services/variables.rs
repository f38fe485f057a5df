//! Services that the application's environment names.

use std::cell::Cell;
use std::sync::Arc;

use super::kind::Kind;
use super::{By, DeclaredService, Service, url};

/// The variables of an application.
pub(crate) trait Variables {
    /// The value of a variable, and the file that sets it; `None` for the environment.
    fn value(&self, name: &str) -> Option<(String, Option<String>)>;
    /// Whether the user has set it: the host was started with this value.
    fn is_of_user(&self, name: &str) -> bool;
    /// All names, each once.
    fn names(&self) -> Vec<&str>;
}

/// Maximum number of services found in an environment: no application has more.
const FOUND_MAX: usize = 100;

/// Maximum bytes of a value that are shown.
const SHOWN_MAX: usize = 200;

/// Words of a name that say which service it is about.
const SUBJECTS: &[(&str, Option<Kind>)] = &[
    // Another variable names the kind.
    ("DB", None),
    ("DATABASE", None),
    ("MYSQL", Some(Kind::MySql)),
    ("MARIADB", Some(Kind::MySql)),
    ("PG", Some(Kind::PostgreSql)),
    ("PGSQL", Some(Kind::PostgreSql)),
    ("POSTGRES", Some(Kind::PostgreSql)),
    ("POSTGRESQL", Some(Kind::PostgreSql)),
    ("MSSQL", Some(Kind::SqlServer)),
    ("REDIS", Some(Kind::Redis)),
    ("VALKEY", Some(Kind::Redis)),
    ("MEMCACHED", Some(Kind::Memcached)),
    ("MONGO", Some(Kind::MongoDb)),
    ("MONGODB", Some(Kind::MongoDb)),
    ("AMQP", Some(Kind::Amqp)),
    ("RABBITMQ", Some(Kind::Amqp)),
];

/// Words of a name that say which of several hosts: `DB_READ_HOST`, `DB_HOST_REPLICA`.
const ROLES: &[&str] = &[
    "READ", "WRITE", "READER", "WRITER", "PRIMARY", "REPLICA", "MASTER", "SLAVE",
];

/// Last words of variables that name the kind of a database: Laravel's, and that of other
/// configurations.
const KINDS: &[&str] = &["CONNECTION", "DRIVER"];

/// The services that variables name. Unreadable values are skipped: only the application knows how
/// to read them.
pub(super) fn services(variables: &dyn Variables) -> Vec<DeclaredService> {
    let mut found = Finder {
        variables,
        by: Cell::new(By::User),
        found: Vec::new(),
    };
    for name in variables.names() {
        found.url(name);
    }
    let mut has_host = found
        .text("DB_URL")
        .or(found.text("DATABASE_URL"))
        .is_some();
    for name in variables.names() {
        if let Some(host) = HostName::of(name) {
            has_host |= host.is_plain_database();
            found.host(name, &host);
        }
        if name.strip_suffix("DB_SOCKET").is_some_and(is_prefix) {
            found.path(name);
        }
    }
    if !has_host {
        found.default_database();
    }
    found.list("MEMCACHED_SERVERS", Kind::Memcached);
    found.path("MEMCACHED_SOCKET");
    found.found
}

/// The name of a variable that holds a host, or several.
#[derive(Debug, PartialEq, Eq)]
struct HostName<'a> {
    /// The part before the subject: `SHOP_` of `SHOP_DB_HOST`.
    prefix: &'a str,
    /// `DB`, `MYSQL` and their like.
    subject: &'a str,
    kind: Option<Kind>,
    /// Names of variables that may have its port, in order of precedence.
    ports: Vec<String>,
}

impl<'a> HostName<'a> {
    /// Parses a name: `DB_HOST`, `SHOP_DB_HOST`, `DB_READ_HOST`, `DB_HOST_2`, `PGHOST`.
    fn of(name: &'a str) -> Option<Self> {
        let (before, after) = name.rsplit_once("HOST")?;
        let plural = ["NAME", "S"].iter().find_map(|it| after.strip_prefix(it));
        let after = plural.unwrap_or(after);
        let (prefix, subject, kind) = SUBJECTS.iter().find_map(|(subject, kind)| {
            // `PGHOST`; otherwise words, the last of which may be a role.
            let words = before.strip_suffix('_').unwrap_or(before);
            let words =
                words.rsplit_once('_').map_or(
                    words,
                    |(first, last)| {
                        if is_role(last) { first } else { words }
                    },
                );
            let numbered = words.trim_end_matches(|c: char| c.is_ascii_digit());
            let prefix = numbered.strip_suffix(subject)?;
            is_prefix(prefix).then(|| (prefix, &words[prefix.len()..], *kind))
        })?;
        if !after.is_empty() && !after.strip_prefix('_').is_some_and(is_role) {
            return None;
        }
        let joint = if before.ends_with('_') { "_" } else { "" };
        let mut ports = vec![
            format!("{before}PORT{after}"),
            format!("{prefix}{subject}{joint}PORT"),
        ];
        ports.dedup();
        Some(Self {
            prefix,
            subject,
            kind,
            ports,
        })
    }

    /// Whether it is the host of the default database.
    fn is_plain_database(&self) -> bool {
        self.prefix.is_empty() && ["DB", "DATABASE"].contains(&self.subject)
    }
}

fn is_role(word: &str) -> bool {
    ROLES.contains(&word) || (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_prefix(text: &str) -> bool {
    text.is_empty() || text.ends_with('_')
}

struct Finder<'a> {
    variables: &'a dyn Variables,
    /// Who has set the variables that make the service which is looked for: with a project's port, the
    /// user's host is the project's service.
    by: Cell<By>,
    found: Vec<DeclaredService>,
}

impl Finder<'_> {
    /// A variable whose value is neither empty nor `null`.
    fn value(&self, name: &str) -> Option<(String, Option<String>)> {
        let (value, file) = self.variables.value(name)?;
        let value = value.trim().to_owned();
        if value.is_empty() || value == "null" {
            return None;
        }
        if !self.variables.is_of_user(name) {
            self.by.set(By::Project);
        }
        Some((value, file))
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|(value, _)| value)
    }

    /// Records the services that a variable names.
    fn note(&mut self, name: &str, services: impl IntoIterator<Item = Service>) {
        let mut services = services.into_iter().peekable();
        let named = self.value(name);
        let by = self.by.get();
        if services.peek().is_none() {
            return;
        }
        let Some((value, file)) = named else {
            return;
        };
        let place = file.map_or_else(String::new, |file| format!(" ({file})"));
        let from: Arc<str> = format!("{name}={}{place}", shortened(url::shown(&value))).into();
        for service in services {
            if self.found.len() >= FOUND_MAX {
                return;
            }
            let from = Arc::clone(&from);
            let known = self.found.iter_mut().find(|found| found.service == service);
            match known {
                Some(known) if known.by <= by => {}
                Some(known) => *known = DeclaredService { service, by, from },
                None => self.found.push(DeclaredService { service, by, from }),
            }
        }
    }

    /// A variable of any name whose value is the URL of a database or the like.
    fn url(&mut self, name: &str) {
        self.by.set(By::User);
        if let Some(value) = self.text(name) {
            let is_redis = ["REDIS", "VALKEY"].iter().any(|it| name.contains(it));
            let plain = (is_redis && name.ends_with("_URL")).then_some(Kind::Redis);
            self.note(name, url::services(&value, plain, FOUND_MAX));
        }
    }

    /// The kind of the databases whose variables begin with `before`, if a variable names it.
    fn database(&self, before: &str) -> Option<String> {
        KINDS
            .iter()
            .find_map(|last| self.text(&format!("{before}_{last}")))
    }

    fn host(&mut self, name: &str, host: &HostName<'_>) {
        self.by.set(By::User);
        let Some(value) = self.text(name) else {
            return;
        };
        let ports = host.ports.iter().find_map(|name| self.text(name));
        let ports: Vec<Option<u16>> = ports
            .iter()
            .flat_map(|ports| ports.split(',').take(FOUND_MAX))
            .map(|port| port.trim().parse().ok())
            .collect();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().flatten();
        let own = self.database(&format!("{}{}", host.prefix, host.subject));
        if host.kind.is_none() && own.as_ref().is_some_and(|own| own.contains("sqlite")) {
            return;
        }
        let kind = host.kind.or_else(|| match host.prefix {
            "WORDPRESS_" => Some(Kind::MySql),
            _ => own
                .and_then(|own| Kind::named(&own))
                .or_else(|| port(0).and_then(Kind::of_database_at))
                .or_else(|| Kind::named(&self.database("DB")?)),
        });
        let kind = kind.unwrap_or(Kind::MySql);
        let hosts = value.split(',').map(str::trim).enumerate().take(FOUND_MAX);
        let services = hosts
            .filter(|(_, host)| !host.is_empty())
            .flat_map(|(at, host)| kind.services(host, port(at).unwrap_or(kind.port())));
        self.note(name, services.collect::<Vec<_>>());
    }

    /// Records where Laravel looks for a database of which only the kind is set.
    fn default_database(&mut self) {
        self.by.set(By::User);
        if self.text("DB_SOCKET").is_some() {
            return;
        }
        let Some(kind) = self
            .text("DB_CONNECTION")
            .and_then(|kind| Kind::named(&kind))
        else {
            return;
        };
        if !kind.is_database() {
            return;
        }
        let port = self.text("DB_PORT").and_then(|port| port.parse().ok());
        let port = port.unwrap_or(kind.port());
        let mut services = kind.services("127.0.0.1", port);
        services.extend(kind.sockets(port));
        self.note("DB_CONNECTION", services);
    }

    fn list(&mut self, name: &str, kind: Kind) {
        self.by.set(By::User);
        if let Some(value) = self.text(name) {
            let services = value
                .split([',', ' ', ';'])
                .filter(|host| !host.is_empty())
                .take(FOUND_MAX)
                .flat_map(|host| kind.services(host, kind.port()));
            self.note(name, services.collect::<Vec<_>>());
        }
    }

    fn path(&mut self, name: &str) {
        self.by.set(By::User);
        if let Some(value) = self.text(name) {
            self.note(name, value.parse().ok().filter(is_socket));
        }
    }
}

fn is_socket(service: &Service) -> bool {
    matches!(service, Service::Socket(_))
}

fn shortened(mut text: String) -> String {
    if text.len() > SHOWN_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_MAX));
        text.push('…');
    }
    text
}
