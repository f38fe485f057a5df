//! What is known from files.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::services::Variables;

fn of(text: &str) -> Vec<(String, String)> {
    let environment = [("HOST".into(), "database.example".into())];
    let files = [(".env".to_owned(), text.as_bytes().to_vec())];
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
    let (_, entries) = of_files(&files, &environment).remove(0);
    let values = entries
        .iter()
        .flat_map(|entry| entry.values.iter().map(|value| (&entry.name, value)));
    values.map(|(a, b)| (text(a), text(b))).collect()
}

#[test]
fn variables_that_name_each_other_again_and_again_take_no_more_than_their_files() {
    // Each line refers to the line before ten times, in all the ways that names are written.
    let ways: [fn(usize) -> (String, String); 4] = [
        |line| (format!("A{line}"), format!("${{A{line}}}")),
        |line| (format!("A{line}"), format!("$A{line}-")),
        |line| (format!("A.{line}"), format!("${{A.{line}}}")),
        |line| (format!("export\tA{line}"), format!("${{A{line}}}")),
    ];
    for way in ways {
        let mut text = format!("{}=0123456789\n", way(0).0);
        for line in 1..20 {
            let before = way(line - 1).1.repeat(10);
            text.push_str(&format!("{}=\"{before}\"\n", way(line).0));
        }
        let sum: usize = of(&text).iter().map(|(_, value)| value.len()).sum();
        assert!(sum <= VARIABLES_MAX + 2 * text.len(), "{sum}");
    }
}

#[test]
fn what_is_written_is_secret_too_where_it_says_more_than_the_value() {
    let texts = |line: &str| {
        let files = [(".env".to_owned(), line.as_bytes().to_vec())];
        let (_, entries) = of_files(&files, &[]).remove(0);
        let all = entries.iter().flat_map(may_be_secret);
        all.map(|(_, value)| String::from_utf8(value).unwrap())
            .collect::<Vec<_>>()
    };
    for (line, expected) in [
        ("A_TOKEN=abc123", vec!["abc123"]),
        ("A_TOKEN=\"abc123\" # mine", vec!["abc123"]),
        ("A_TOKEN='abc123'", vec!["abc123"]),
        ("A_TOKEN=pa$word123", vec!["pa", "pa$word123"]),
        ("A_TOKEN=\"ab\\\"c123\"", vec!["ab\"c123", "\"ab\\\"c123\""]),
        ("A_TOKEN='Bob's 123'", vec!["'Bob's 123'", "Bob's 123"]),
        ("A_TOKEN=two words", vec!["two words", "two words"]),
        ("A_TOKEN=", vec!["", ""]),
        // For other names only the parsed value counts.
        ("A_URL='Bob's'", vec![]),
        ("A_URL=\"ab\\\"c\"", vec!["ab\"c"]),
    ] {
        assert_eq!(texts(line), expected, "{line}");
    }
}

#[test]
fn a_later_file_may_name_what_the_first_has() {
    let files = [
        (".env", "DB=one\n"),
        (".env.local", "URL=mysql://${DB}/x\n"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let read = of_files(&files, &[]);
    let effective = Effective::new(&[], &[], &read);
    let (value, file) = effective.value("URL").unwrap();
    assert_eq!(
        (value.as_str(), file.as_deref()),
        ("mysql://one/x", Some(".env.local"))
    );
    assert_eq!(effective.names(), ["URL", "DB"]);
}

#[test]
fn what_a_host_was_not_started_with_is_not_the_user_s() {
    let pair = |name: &str, value: &str| (name.into(), value.into());
    let environment = [
        pair("DATABASE_URL", "mysql://db/x"),
        pair("REDIS_HOST", "cache"),
        pair("PGHOST", "10.0.0.5"),
        pair("AMQP_URL", "amqp://queue"),
    ];
    let files = [(
        ".env".to_owned(),
        b"DB_SOCKET=/run/x.sock\nPGPORT=22\n".to_vec(),
    )];
    let read = of_files(&files, &environment);
    let later = ["REDIS_HOST".into()];
    let effective = Effective::new(&environment, &later, &read);
    let declarations = Declarations::of(None, &effective);
    let found: Vec<String> = declarations
        .environment
        .iter()
        .map(|found| format!("{} {:?}", found.service, found.by))
        .collect();
    assert_eq!(
        found,
        [
            "db:3306 User",
            "queue:5672 User",
            "cache:6379 Project",
            // The user's host at the project's port.
            "10.0.0.5:22 Project",
            "/run/x.sock Project",
        ]
    );
}

#[test]
fn no_service_is_made_from_what_is_withheld() {
    let project = tempfile::tempdir().unwrap();
    let text = "A=mysql://u@${GITHUB_TOKEN}.example/db\nB=mysql://u@${AWS_SECRET_ACCESS_KEY}.example/db\n\
                C=mysql://u@${STAGE}.example/db\n";
    std::fs::write(project.path().join(".env"), text).unwrap();
    let environment = ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "STAGE"]
        .map(|name| (name.into(), format!("of-{}", name.to_lowercase()).into()));
    let known = ProjectEnvironment::of(
        &environment,
        &[],
        Receiver::default(),
        &Place::find(project.path()).unwrap(),
        Duration::from_secs(60),
    )
    .unwrap();
    let found = format!("{:?}", known.services.services().unwrap());
    assert!(found.contains("of-stage.example"), "{found}");
    assert!(!found.contains("of-github_token"), "{found}");
    assert!(!found.contains("of-aws_secret"), "{found}");
}

#[test]
fn a_variable_is_put_in_where_that_is_not_too_much() {
    let text =
        "DB=db\nURL=mysql://${DB}:$PORT/shop\nAT=\"$HOST:1\"\nPLAIN=\"\\$DB\"\nBROKEN=${DB\n";
    let found = of(text);
    let value = |name: &str| {
        found
            .iter()
            .find(|(own, _)| own == name)
            .unwrap()
            .1
            .as_str()
    };
    assert_eq!(value("URL"), "mysql://db:/shop");
    assert_eq!(value("AT"), "database.example:1");
    assert_eq!(value("PLAIN"), "$DB");
}

#[test]
fn secrets_of_the_projects_files_are_known_and_known_anew_when_they_change() {
    let project = tempfile::tempdir().unwrap();
    let names = |root: &Path| {
        let all = ProjectEnvironment::of(
            &[],
            &[],
            Receiver::default(),
            &Place::find(root).unwrap(),
            Duration::from_secs(60),
        )
        .unwrap();
        let secrets = all
            .secrets
            .secrets
            .as_ref()
            .map(|secrets| format!("{secrets:?}"));
        secrets.unwrap_or_default()
    };
    assert_eq!(names(project.path()), "");

    std::fs::write(
        project.path().join(".env"),
        "APP_NAME=shop\n=\nDB_PASSWORD=\"pass word\" # a comment\nexport API_TOKEN='abcdef6h'\n",
    )
    .unwrap();
    assert_eq!(
        names(project.path()),
        "Secrets([\"DB_PASSWORD\", \"API_TOKEN\"])"
    );
    std::fs::write(project.path().join(".env.test"), "TEST_SECRET=ijkl_nop\n").unwrap();
    std::fs::write(project.path().join(".env"), "DB_PASSWORD=abcdef6h\n").unwrap();
    assert_eq!(
        names(project.path()),
        "Secrets([\"DB_PASSWORD\", \"TEST_SECRET\"])"
    );
    let known = || {
        ProjectEnvironment::of(
            &[],
            &[],
            Receiver::default(),
            &Place::find(project.path()).unwrap(),
            Duration::from_secs(60),
        )
        .unwrap()
    };
    // Another test may have replaced it in between.
    assert!((0..1000).any(|_| Arc::ptr_eq(&known(), &known())));
    // A FIFO is neither read nor waited for.
    std::fs::remove_file(project.path().join(".env")).unwrap();
    nix::unistd::mkfifo(&project.path().join(".env"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(names(project.path()), "Secrets([\"TEST_SECRET\"])");
}

#[test]
fn a_file_that_comes_is_seen_where_its_directory_has_long_been_without() {
    let project = tempfile::tempdir().unwrap();
    let root = Place::find(project.path()).unwrap();
    let known = ProjectEnvironment::of(
        &[],
        &[],
        Receiver::default(),
        &root,
        Duration::from_secs(60),
    )
    .unwrap();
    // Until then, a name could come without a trace.
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while known.none_since.load(Relaxed) == 0 && std::time::Instant::now() < until {
        assert!(known.is_known_to_hold(&root));
    }
    assert_ne!(known.none_since.load(Relaxed), 0);
    assert!(known.is_known_to_hold(&root));
    for name in [".env.prod", "other"] {
        std::fs::write(project.path().join(name), "A=b\n").unwrap();
        assert_eq!(known.is_known_to_hold(&root), name == "other", "{name}");
        std::fs::remove_file(project.path().join(name)).unwrap();
        assert!(known.is_known_to_hold(&root));
    }
}
