//! What an environment names.

use proptest::prelude::*;

use super::super::{Declarations, Variables};

proptest! {
    #[test]
    fn no_variable_panics(value in ".{0,80}|(mysql|pgsql|redis|unix|tls):(//)?[a-z@:/?,%=&.;\\[\\]0-9]{0,60}") {
        for name in ["DATABASE_URL", "DB_HOST", "REDIS_HOST", "MEMCACHED_SERVERS", "DB_SOCKET"] {
            found(&[(name, &value)]);
        }
    }

    #[test]
    fn no_name_panics(name in "((DB|MYSQL|PG|READ|HOST|HOSTS|NAME|2|_|é)){0,6}") {
        found(&[(&name, "db")]);
    }
}

/// An environment without files.
pub(super) struct Environment<'a>(pub(super) &'a [(&'a str, &'a str)]);

impl Variables for Environment<'_> {
    fn value(&self, name: &str) -> Option<(String, Option<String>)> {
        let (_, value) = self.0.iter().find(|(own, _)| *own == name)?;
        Some(((*value).to_owned(), None))
    }

    fn is_of_user(&self, _: &str) -> bool {
        true
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }
}

/// The services of an environment, and where each was found.
fn found(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    let declarations = Declarations::of(None, &Environment(variables));
    let services = declarations.environment.into_iter();
    services
        .map(|found| (found.service.to_string(), found.from.to_string()))
        .collect()
}

fn services(variables: &[(&str, &str)]) -> Vec<String> {
    found(variables)
        .into_iter()
        .map(|(service, _)| service)
        .collect()
}

#[test]
fn urls_name_a_service_with_the_port_of_their_kind() {
    for (name, url, expected) in [
        ("DATABASE_URL", "mysql://shop:s3cret@db/shop", "db:3306"),
        (
            "DATABASE_URL",
            "mysql://shop:s3cret@db:33060/shop?charset=utf8mb4",
            "db:33060",
        ),
        ("DATABASE_URL", "mysql://shop:p@ss/w:rd@db/shop", "db:3306"),
        (
            "DATABASE_URL",
            "postgresql://app:x@10.0.0.5/app?serverVersion=15",
            "10.0.0.5:5432",
        ),
        ("DATABASE_URL", "postgres://[::1]/app", "[::1]:5432"),
        ("DATABASE_URL", "pdo_pgsql://db", "db:5432"),
        (
            "DATABASE_URL",
            "mariadb://root@db/x?unix_socket=/srv/db.sock",
            "db:3306 /srv/db.sock",
        ),
        (
            "DATABASE_URL",
            "mysql://root@/x?unix_socket=/srv/db.sock",
            "/srv/db.sock",
        ),
        (
            "DATABASE_URL",
            "pgsql:///app?host=/srv/pg&port=5433",
            "/srv/pg/.s.PGSQL.5433",
        ),
        (
            "DATABASE_URL",
            "postgres://u@%2Fsrv%2Fpg/app",
            "/srv/pg/.s.PGSQL.5432",
        ),
        (
            "DATABASE_URL",
            "mysql:host=db;port=3307;dbname=shop",
            "db:3307",
        ),
        (
            "DATABASE_URL",
            "mysql:unix_socket=/srv/db.sock;dbname=shop",
            "/srv/db.sock",
        ),
        ("DATABASE_URL", "pgsql:host=a,b port=5433", "a:5433 b:5433"),
        (
            "DATABASE_URL",
            "sqlite:///%kernel.project_dir%/var/data.db",
            "",
        ),
        ("DATABASE_URL", "sqlite::memory:", ""),
        ("DATABASE_URL", "no URL at all", ""),
        ("REDIS_URL", "redis://cache", "cache:6379"),
        ("REDIS_URL", "rediss://:s3cret@cache:6380/1", "cache:6380"),
        ("REDIS_URL", "redis:///srv/redis.sock", "/srv/redis.sock"),
        ("REDIS_URL", "unix:///srv/redis.sock", "/srv/redis.sock"),
        ("MEMCACHED_URL", "memcached://mc", "mc:11211"),
        (
            "MONGODB_URI",
            "mongodb://u:p@m1,m2:27018/db?replicaSet=r",
            "m1:27017 m2:27018",
        ),
        ("MONGODB_URL", "mongodb+srv://cluster.example/db", ""),
        ("AMQP_URL", "amqp://guest:guest@mq/%2f", "mq:5672"),
        ("AMQP_URL", "amqps://mq", "mq:5671"),
        ("MAILER_DSN", "smtp://mail:25", ""),
        ("MAILER_URL", "smtp://mail:25", ""),
        // Of any name.
        (
            "DB_URL",
            "mysql://root:x@127.0.0.1:3307/laravel",
            "127.0.0.1:3307",
        ),
        ("SHOP_DATABASE_URL", "pdo-mysql://db/shop", "db:3306"),
        (
            "DATABASE_REPLICA_URL",
            "mysqli://replica/shop",
            "replica:3306",
        ),
        ("REDIS_TLS_URL", "rediss://:x@cache:6380", "cache:6380"),
        ("REDIS_TLS_URL", "tls://cache", "cache:6379"),
        (
            "MESSENGER_TRANSPORT_DSN",
            "amqps://mq/%2f/messages",
            "mq:5671",
        ),
        ("LOCK_DSN", "redis://a,b:6380", "a:6379 b:6380"),
        ("REPORTS", "sqlsrv://sa:x@mssql/x", "mssql:1433"),
        ("CLUSTER", "redis://a:7000, redis://b:7001", "a:7000 b:7001"),
        ("LEGACY_DSN", "mysql:host=db;dbname=shop", "db:3306"),
        // Of no database's scheme, or none of its own.
        ("DOCKER_HOST", "tcp://10.0.0.1:2375", ""),
        ("DOCKER_HOST", "unix:///run/docker.sock", ""),
        ("DB_PORT", "tcp://10.0.0.1:3306", ""),
        ("APP_URL", "https://shop.example", ""),
        ("MESSENGER_TRANSPORT_DSN", "doctrine://default", ""),
        ("NOTE", "redis: a cache", ""),
    ] {
        assert_eq!(services(&[(name, url)]).join(" "), expected, "{url}");
    }
}

#[test]
fn hosts_and_ports_of_their_own_variables_name_services() {
    for (variables, expected) in [
        (vec![("DB_HOST", "db")], "db:3306"),
        (vec![("DB_HOST", "db"), ("DB_PORT", "3307")], "db:3307"),
        (
            vec![("DB_HOST", "db"), ("DB_CONNECTION", "pgsql")],
            "db:5432",
        ),
        (vec![("DB_HOST", "::1")], "[::1]:3306"),
        (vec![("DB_HOST", "db:3308")], "db:3308"),
        (
            vec![("DB_HOST", "127.0.0.1"), ("DB_CONNECTION", "sqlite")],
            "",
        ),
        (vec![("DB_HOST", "x:/srv/db.sock")], "/srv/db.sock"),
        (
            vec![("DB_HOST", "/srv/pg"), ("DB_CONNECTION", "pgsql")],
            "/srv/pg/.s.PGSQL.5432",
        ),
        (vec![("DB_SOCKET", "/srv/db.sock")], "/srv/db.sock"),
        (vec![("DB_SOCKET", "db.sock")], ""),
        (vec![("DB_HOST", ""), ("DB_SOCKET", "null")], ""),
        (vec![("REDIS_HOST", "cache")], "cache:6379"),
        (
            vec![("REDIS_HOST", "tls://cache"), ("REDIS_PORT", "6380")],
            "cache:6380",
        ),
        (vec![("REDIS_HOST", "/srv/redis.sock")], "/srv/redis.sock"),
        (vec![("REDIS_PORT", "6380")], ""),
        (
            vec![("MEMCACHED_HOST", "mc"), ("MEMCACHED_PORT", "1")],
            "mc:1",
        ),
        (vec![("MEMCACHED_SERVERS", "a:1, b")], "a:1 b:11211"),
        (
            vec![
                ("DATABASE_URL", "mysql://db/x"),
                ("DB_HOST", "db"),
                ("REDIS_URL", "redis://r"),
            ],
            "db:3306 r:6379",
        ),
    ] {
        assert_eq!(services(&variables).join(" "), expected, "{variables:?}");
    }
}

#[test]
fn a_host_has_the_port_of_its_database_s_kind() {
    for (variables, expected) in [
        // The configured port takes precedence over the kind's.
        (
            vec![
                ("DB_CONNECTION", "pgsql"),
                ("DB_HOST", "db"),
                ("DB_PORT", "3306"),
            ],
            "db:3306",
        ),
        (
            vec![("DB_CONNECTION", "sqlsrv"), ("DB_HOST", "db")],
            "db:1433",
        ),
        (
            vec![("DB_DRIVER", "pdo_pgsql"), ("DB_HOST", "db")],
            "db:5432",
        ),
        // A connection of the application's own: the port tells its kind.
        (
            vec![
                ("DB_CONNECTION", "tenant"),
                ("DB_HOST", "/srv/pg"),
                ("DB_PORT", "5432"),
            ],
            "/srv/pg/.s.PGSQL.5432",
        ),
        // For PostgreSQL a path is a directory, whatever the port.
        (
            vec![
                ("DB_CONNECTION", "pgsql"),
                ("DB_HOST", "/srv/pg"),
                ("DB_PORT", "5433"),
            ],
            "/srv/pg/.s.PGSQL.5433",
        ),
        // A `DB_PORT` that Docker has set for a linked container.
        (
            vec![("DB_HOST", "db"), ("DB_PORT", "tcp://10.0.0.1:3306")],
            "db:3306",
        ),
        (vec![("MYSQL_HOST", "db")], "db:3306"),
        (vec![("MYSQLHOST", "db"), ("MYSQLPORT", "3307")], "db:3307"),
        (vec![("MARIADB_HOST", "db")], "db:3306"),
        (vec![("POSTGRES_HOST", "db")], "db:5432"),
        (vec![("PGHOST", "db"), ("PGPORT", "5433")], "db:5433"),
        (
            vec![("PGHOST", "a,b"), ("PGPORT", "5433,5434")],
            "a:5433 b:5434",
        ),
        (vec![("PGHOST", "/srv/pg")], "/srv/pg/.s.PGSQL.5432"),
        (vec![("MONGODB_HOST", "db")], "db:27017"),
        (vec![("RABBITMQ_HOST", "mq")], "mq:5672"),
        (vec![("MYSQL_ROOT_HOST", "%")], ""),
        (
            vec![("MAIL_HOST", "mail"), ("APP_HOST", "shop"), ("HOST", "x")],
            "",
        ),
        (vec![("DB_HOST_PORT", "3306")], ""),
    ] {
        assert_eq!(services(&variables).join(" "), expected, "{variables:?}");
    }
}

#[test]
fn several_hosts_and_several_databases_are_all_found() {
    for (variables, expected) in [
        (vec![("DB_HOST", "a, b:3307,c")], "a:3306 b:3307 c:3306"),
        (
            vec![
                ("DB_READ_HOST", "r1,r2"),
                ("DB_WRITE_HOST", "w"),
                ("DB_PORT", "3307"),
            ],
            "r1:3307 r2:3307 w:3307",
        ),
        (
            vec![
                ("DB_HOST_READ", "r"),
                ("DB_CONNECTION", "pgsql"),
                ("DB_PORT_READ", "5433"),
            ],
            "r:5433",
        ),
        (vec![("DB_HOST_2", "b"), ("DB2_HOST", "c")], "b:3306 c:3306"),
        (
            vec![("SHOP_DB_HOST", "db"), ("SHOP_DB_CONNECTION", "pgsql")],
            "db:5432",
        ),
        // Its own port, not that of another host.
        (
            vec![
                ("SHOP_DB_HOST", "db"),
                ("DB_PORT", "3307"),
                ("DB_CONNECTION", "pgsql"),
            ],
            "db:5432 127.0.0.1:3307",
        ),
        (vec![("WORDPRESS_DB_HOST", "db:3307")], "db:3307"),
        (
            vec![("WORDPRESS_DB_HOST", "db"), ("DB_CONNECTION", "pgsql")],
            "db:3306 127.0.0.1:5432",
        ),
        (
            vec![("WORDPRESS_DB_HOST", "localhost:/srv/mysqld.sock")],
            "/srv/mysqld.sock",
        ),
        (vec![("SHOP_DB_SOCKET", "/srv/db.sock")], "/srv/db.sock"),
    ] {
        let found = services(&variables);
        let found = found.iter().filter(|one| !one.contains("/.s.PGSQL"));
        let found: Vec<&str> = found.map(String::as_str).collect();
        assert_eq!(found.join(" "), expected, "{variables:?}");
    }
}

#[test]
fn a_database_of_which_only_the_kind_is_said_is_on_this_machine() {
    for (variables, expected) in [
        (vec![("DB_CONNECTION", "mysql")], "127.0.0.1:3306"),
        (vec![("DB_CONNECTION", "mariadb")], "127.0.0.1:3306"),
        (vec![("DB_CONNECTION", "pgsql")], "127.0.0.1:5432"),
        (
            vec![("DB_CONNECTION", "mysql"), ("DB_PORT", "33060")],
            "127.0.0.1:33060",
        ),
        (vec![("DB_CONNECTION", "sqlite")], ""),
        (vec![("DB_CONNECTION", "redis")], ""),
        (vec![("DB_CONNECTION", "tenant")], ""),
        // Another variable names the location.
        (
            vec![("DB_CONNECTION", "mysql"), ("DB_URL", "mysql://db/x")],
            "db:3306",
        ),
        (
            vec![("DB_CONNECTION", "mysql"), ("DB_SOCKET", "/srv/db.sock")],
            "/srv/db.sock",
        ),
        (
            vec![
                ("DB_CONNECTION", "mysql"),
                ("DB_READ_HOST", "r"),
                ("DB_WRITE_HOST", "w"),
            ],
            "r:3306 w:3306",
        ),
    ] {
        let found = services(&variables);
        let found = found.iter().filter(|one| !one.contains("/.s.PGSQL"));
        let found: Vec<&str> = found.map(String::as_str).collect();
        assert_eq!(found.join(" "), expected, "{variables:?}");
    }
}

#[test]
fn localhost_is_an_address_and_to_mysql_s_clients_a_socket() {
    // Includes the socket of a server on this machine, if there is one.
    let socket = |found: &[String]| found.iter().skip(1).all(|one| one.ends_with(".sock"));
    for (variables, first) in [
        (vec![("DB_HOST", "localhost")], "localhost:3306"),
        (
            vec![("DB_HOST", "localhost"), ("DB_PORT", "3307")],
            "localhost:3307",
        ),
        (
            vec![("DATABASE_URL", "mysql://localhost:3307/x")],
            "localhost:3307",
        ),
    ] {
        let found = services(&variables);
        assert_eq!(found[0], first);
        assert!(socket(&found), "{found:?}");
    }
    // Not for PostgreSQL, whatever the port.
    let pgsql = [
        ("DB_CONNECTION", "pgsql"),
        ("DB_HOST", "localhost"),
        ("DB_PORT", "3306"),
    ];
    assert_eq!(services(&pgsql), ["localhost:3306"]);
}

#[test]
fn an_environment_names_a_hundred_services_at_most() {
    let many: Vec<String> = (1..=1000).map(|port| format!("db:{port}")).collect();
    for (name, value) in [
        ("DB_HOST", many.join(",")),
        ("CACHE_DSN", format!("redis://{}", many.join(","))),
        ("CLUSTER", format!("redis://{}", many.join(",redis://"))),
    ] {
        assert_eq!(services(&[(name, &value)]).len(), 100, "{name}");
    }
    let names: Vec<String> = (1..=1000).map(|n| format!("S{n}_DB_HOST")).collect();
    let each: Vec<(&str, &str)> = names
        .iter()
        .map(|name| (name.as_str(), name.as_str()))
        .collect();
    assert_eq!(services(&each).len(), 100);
}

#[test]
fn where_a_service_was_found_is_said_without_a_password() {
    for (name, value, from) in [
        (
            "DATABASE_URL",
            "mysql://shop:s3/c@ret@db/shop?p=s3cret",
            "mysql://***@db/shop",
        ),
        (
            "REDIS_URL",
            "redis://s3cret@cache:6380",
            "redis://***@cache:6380",
        ),
        (
            "DATABASE_URL",
            "mysql:host=db;password=s3cret;port=1",
            "mysql:host=db;port=1",
        ),
        ("DB_HOST", "db", "db"),
        ("AMQP_URL", "amqp://mq", "amqp://mq"),
    ] {
        let (_, said) = found(&[(name, value)]).swap_remove(0);
        assert_eq!(said, format!("{name}={from}"));
    }
}
