#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use variables::Environment;

mod variables;

/// Services of the user.
fn declared_by_user<S: AsRef<str>>(list: &[S]) -> Vec<Declared> {
    By::User.declares(declared(list).unwrap())
}

/// Outside of any project.
const NOWHERE: Place<'_> = Place {
    root: None,
    user: None,
};

fn addresses(services: &Services) -> Vec<SocketAddr> {
    services.addresses().iter().map(|one| one.address).collect()
}

fn parse(text: &str) -> Result<String, String> {
    text.parse::<Service>().map(|service| service.to_string())
}

#[test]
fn an_address_a_name_or_a_path_is_a_service() {
    for (text, service) in [
        ("127.0.0.1:3306", "127.0.0.1:3306"),
        ("[::1]:5432", "[::1]:5432"),
        ("[fe80::1%2]:5432", "[fe80::1%2]:5432"),
        ("DB.Example:1", "db.example:1"),
        ("my_db-1:65535", "my_db-1:65535"),
        ("localhost:03306", "localhost:3306"),
        ("db1:3306", "db1:3306"),
        ("/run/mysqld/mysqld.sock", "/run/mysqld/mysqld.sock"),
        ("/run/a:b/c-d", "/run/a:b/c-d"),
    ] {
        assert_eq!(parse(text).as_deref(), Ok(service), "{text}");
    }
}

#[test]
fn what_is_no_service_is_told_why() {
    let long = format!("/{}", "x".repeat(107));
    for (text, why) in [
        ("", "empty"),
        ("db", "port is missing"),
        ("db:", "port is missing"),
        ("127.0.0.1", "port is missing"),
        ("[::1]", "port is missing"),
        ("[::1", "not closed"),
        ("[db]:1", "no IPv6 address"),
        ("::1", "in brackets"),
        ("::1:3306", "in brackets"),
        ("db:3306-3310", "several ports"),
        ("db:3306,3307", "several ports"),
        ("db:*", "several ports"),
        ("*:3306", "several hosts"),
        ("*.example:3306", "several hosts"),
        ("db:0", "1 to 65535"),
        ("db:65536", "1 to 65535"),
        ("db:+1", "1 to 65535"),
        ("db:mysql", "1 to 65535"),
        (":3306", "host is missing"),
        ("10.0.0.0/8:3306", "range of addresses"),
        ("10.0.0.0/8", "range of addresses"),
        ("mysql://db:3306/shop", "URL"),
        ("var/db.sock", "absolute"),
        ("./db.sock", "absolute"),
        ("/run/", "directory"),
        ("/", "directory"),
        ("/run/..", "directory"),
        (&long, "107 bytes"),
        ("/run/a\0b", "NUL"),
        ("d b:1", "valid name"),
        ("db\n:1", "valid name"),
        ("dü:1", "valid name"),
        ("0.0.0.0:3306", "any address"),
        ("[::]:3306", "any address"),
        ("[::ffff:0.0.0.0]:1", "any address"),
        ("127.1:3306", "four numbers"),
        ("10.0.0.256:3306", "four numbers"),
        ("0x7f.1:1", "four numbers"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn a_list_has_each_service_once_and_a_thousand_at_most() {
    assert_eq!(
        declared(&["db:1", "DB:1", "db:01", "db:2"]).unwrap().len(),
        2
    );
    let many = |count: usize| {
        (1..=count)
            .map(|port| format!("db:{port}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(declared(&many(1000)).unwrap().len(), 1000);
    assert!(declared(&many(1001)).unwrap_err().contains("at most 1000"));
    let error = declared(&["db:1", "d\u{7}b"]).unwrap_err();
    assert!(error.contains("\"d\\u{7}b\"") && error.contains("host:port or the absolute path"));
}

proptest! {
    #[test]
    fn no_text_panics_and_what_is_read_reads_the_same_again(text in ".{0,60}|[0-9a-f:.\\[\\]/%*-]{0,30}") {
        if let Ok(service) = text.parse::<Service>() {
            prop_assert_eq!(service.to_string().parse::<Service>().unwrap(), service);
        }
    }
}

fn of_manifest(text: &str) -> Option<Result<String, String>> {
    let declarations = Declarations::of(Some(text.as_bytes()), &Environment(&[]));
    let texts = |services: Vec<Service>| {
        let texts: Vec<String> = services.iter().map(ToString::to_string).collect();
        texts.join(" ")
    };
    declarations.manifest.map(|services| services.map(texts))
}

#[test]
fn composer_json_declares_a_list_or_nothing() {
    let extra = |own: &str| format!(r#"{{"extra": {{"altair-eval": {own}}}}}"#);
    assert_eq!(
        of_manifest(&extra(r#"{"services": ["db:1", "/run/x"]}"#)),
        Some(Ok("db:1 /run/x".into()))
    );
    assert_eq!(
        of_manifest(&extra(r#"{"services": []}"#)),
        Some(Ok(String::new()))
    );
    let twice = r#"{"extra": {}, "extra": {"altair-eval": {"services": []}}}"#;
    assert_eq!(of_manifest(twice), Some(Ok(String::new())));
    let broken = of_manifest(r#"{"extra": {"altair-eval": {"services": []}}"#).unwrap();
    assert!(broken.unwrap_err().contains("may declare services"));
    for nothing in ["{}", "no JSON", r#"{"extra": {}}"#, &extra("{}")] {
        assert_eq!(of_manifest(nothing), None, "{nothing}");
    }
    for wrong in [
        r#"{"services": "db:1"}"#,
        r#"{"services": [1]}"#,
        r#"{"services": ["db"]}"#,
    ] {
        let error = of_manifest(&extra(wrong)).unwrap().unwrap_err();
        assert!(
            error.contains("extra.altair-eval.services in composer.json"),
            "{error}"
        );
    }
    // Its list replaces the services of the environment, even if it is empty.
    let environment = Environment(&[("DATABASE_URL", "mysql://db/x")]);
    let none = extra(r#"{"services": []}"#);
    let declarations = Declarations::of(Some(none.as_bytes()), &environment);
    assert_eq!(declarations.services(), Ok(Vec::new()));
    let declarations = Declarations::of(Some(b"{}"), &environment);
    assert_eq!(declarations.services().unwrap().len(), 1);
}

#[test]
fn names_get_the_system_s_answers_and_a_file_with_nothing_else() {
    let until = Instant::now() + Duration::from_secs(20);
    let list = declared_by_user(&["localhost:1", "127.0.0.1:1", "127.0.0.9:2", "localhost:3"]);
    let services = resolve(&list, true, NOWHERE, until).unwrap();
    assert!(addresses(&services).contains(&"127.0.0.1:3".parse().unwrap()));
    assert_eq!(services.ports(), [1, 2, 3]);
    let one = "127.0.0.1:1".parse().unwrap();
    let all = addresses(&services);
    assert_eq!(all.iter().filter(|address| **address == one).count(), 1);
    let files: HashMap<_, _> = services.files().into_iter().collect();
    let hosts = String::from_utf8(files[&PathBuf::from("/etc/hosts")].clone()).unwrap();
    assert!(hosts.lines().all(|line| line.ends_with(" localhost")) && hosts.contains("127.0.0.1 "));
    let switch = switch(b"passwd: files\n hosts: files dns\nhosts:\tdns");
    assert_eq!(switch, b"hosts: files\npasswd: files\n");
}

#[test]
fn a_name_without_an_address_is_an_error_where_it_was_asked_for() {
    let until = Instant::now() + Duration::from_secs(20);
    // Reserved for tests like this (RFC 6761, 6.4).
    let list = declared_by_user(&["db.invalid:3306", "127.0.0.1:1"]);
    let error = resolve(&list, true, NOWHERE, until).unwrap_err();
    assert!(
        error.starts_with("The service db.invalid:3306 cannot be used: "),
        "{error}"
    );
    let services = resolve(&list, false, NOWHERE, until).unwrap();
    assert_eq!(addresses(&services), ["127.0.0.1:1".parse().unwrap()]);
    // No name is waited for beyond the deadline.
    let now = Instant::now();
    let other = declared_by_user(&["other.db.invalid:1"]);
    let error = resolve(&other, true, NOWHERE, now).unwrap_err();
    assert!(
        error.contains("in time") && now.elapsed() < Duration::from_secs(2),
        "{error}"
    );
}

#[test]
fn a_socket_is_where_its_directory_is() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap().join("real");
    std::fs::create_dir(&real).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let named = link.join("db.sock");
    let list = declared_by_user(&[named.to_str().unwrap()]);
    let services = resolve(&list, true, NOWHERE, Instant::now()).unwrap();
    let connections = services.connections(false);
    assert_eq!(connections.sockets[0].path, real.join("db.sock"));
    assert_eq!(connections.sockets[0].named, named);
    assert!(services.has_sockets() && !services.has_tcp() && !services.is_empty());
}

#[test]
fn a_word_is_worth_what_whoever_gives_it_may_name() {
    let until = Instant::now() + Duration::from_secs(20);
    let root = tempfile::tempdir().unwrap();
    let place = Place {
        root: Some(root.path()),
        user: None,
    };
    let own = root.path().join("own.sock").display().to_string();
    for (text, by_project) in [
        ("127.0.0.1:3306", Word::Project),
        ("10.0.0.5:80", Word::Project),
        ("169.254.169.254:80", Word::Insufficient),
        ("[fe80::1]:80", Word::Insufficient),
        ("[::ffff:169.254.1.1]:80", Word::Insufficient),
        ("[fd00:ec2::254]:80", Word::Insufficient),
        ("/run/mysqld.none/mysqld.sock", Word::Project),
        ("/run/user/1/bus", Word::Insufficient),
        (&own, Word::Insufficient),
    ] {
        for (by, expected) in [(By::User, Word::User), (By::Project, by_project)] {
            let list = by.declares(declared(&[text]).unwrap());
            let services = resolve(&list, false, place, until).unwrap();
            let addresses = services.addresses().iter().map(|one| one.word);
            let sockets = services.sockets().iter().map(|one| one.word);
            let words: Vec<Word> = addresses.chain(sockets).collect();
            assert_eq!(words, [expected], "{text} by {by:?}");
            // Where nobody looks who listens, the user's word is needed.
            assert_eq!(services.of_user().is_empty(), by == By::Project);
        }
    }
}

#[test]
fn where_a_link_in_the_project_leads_is_the_projects_word() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap();
    let place = Place {
        root: Some(&path),
        user: None,
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let socket = elsewhere.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink(&socket, path.join("link.sock")).unwrap();
    // No project may name one in the directory for temporary files.
    for (name, expected) in [("link.sock", Word::Insufficient), ("own.sock", Word::User)] {
        let list = declared_by_user(&[path.join(name).to_str().unwrap()]);
        let services = resolve(&list, false, place, Instant::now()).unwrap();
        let words: Vec<Word> = services.sockets().iter().map(|one| one.word).collect();
        assert_eq!(words, [expected], "{name}");
    }
}

#[test]
fn what_is_no_socket_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().canonicalize().unwrap().join("file");
    std::fs::write(&file, "secret").unwrap();
    let socket = file.with_file_name("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let parent = file.parent().unwrap();
    let list = declared_by_user(&[text(&file), text(parent), text(&socket)]);
    // Nor connected to; the latter is the kernel's to say, the former that of what a run may read.
    let services = resolve(&list, false, NOWHERE, Instant::now()).unwrap();
    assert_eq!(
        services.paths().collect::<Vec<_>>(),
        [file.clone(), parent.into(), socket]
    );
    let error = resolve(&list, true, NOWHERE, Instant::now()).unwrap_err();
    assert!(error.contains("no socket at that path"), "{error}");
}

#[test]
fn the_file_of_casters_is_below_the_root() {
    let declared = |casters: &str| {
        let text = format!("{{\"extra\": {{\"altair-eval\": {{\"casters\": {casters}}}}}}}");
        Declarations::of(Some(text.as_bytes()), &Environment(&[])).casters
    };
    assert_eq!(
        declared("\"eval/casters.php\""),
        Some(Ok("eval/casters.php".into()))
    );
    for wrong in [
        "\"\"",
        "\"/etc/passwd\"",
        "\"../x.php\"",
        "\"a/../../x.php\"",
        "\"a\\u0000b\"",
    ] {
        let why = declared(wrong).unwrap().unwrap_err();
        assert!(why.contains("has to be in the project"), "{wrong}: {why}");
    }
    let why = declared("[]").unwrap().unwrap_err();
    assert!(why.contains("path of a PHP file"), "{why}");
    assert_eq!(
        Declarations::of(Some(b"{}"), &Environment(&[])).casters,
        None
    );
    assert_eq!(
        Declarations::of(Some(b"{"), &Environment(&[])).casters,
        None
    );
}

#[test]
fn databases_with_read_only_sessions_are_told_by_port_and_socket() {
    for (service, expected) in [
        ("127.0.0.1:3306", true),
        ("db.example:5432", true),
        ("/var/run/postgresql/.s.PGSQL.5433", true),
        ("/srv/mysqld.sock", true),
        ("db.example:1433", false),
        ("127.0.0.1:6379", false),
        ("/run/redis.sock", false),
    ] {
        let service: Service = service.parse().unwrap();
        assert_eq!(service.is_read_only_database(), expected, "{service}");
    }
}
