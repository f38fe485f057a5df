//! Who gets which variables.
#![allow(clippy::unwrap_used)]

use super::*;

fn pairs(names: &[&str]) -> Vec<Variable> {
    names
        .iter()
        .map(|name| (name.into(), format!("of {name}").into()))
        .collect()
}

fn named(names: &[&str]) -> Names {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

/// The names that it gets.
fn got(receiver: &Receiver, environment: &[&str], in_files: &[&str]) -> Vec<String> {
    let filtered = receiver.filter(&pairs(environment), &named(in_files));
    let got = filtered.variables.into_iter();
    got.map(|(name, _)| name.into_string().unwrap()).collect()
}

fn own() -> Receiver {
    Receiver::default()
}

fn others(container: &[&str]) -> Receiver {
    Receiver {
        other: Some(OtherUser {
            home: Some("/home/other".into()),
            container: pairs(container),
        }),
        ..Receiver::default()
    }
}

#[test]
fn what_steers_a_loader_or_is_a_cloud_key_passes_nowhere() {
    let never = [
        "LD_PRELOAD",
        "PYTHONPATH",
        "PHPRC",
        "AWS_SECRET_ACCESS_KEY",
        "npm_config__auth",
    ];
    let passed = never.map(str::to_owned).to_vec();
    for receiver in [own(), others(&never)] {
        let receiver = Receiver {
            passed: passed.clone(),
            ..receiver
        };
        let got = got(&receiver, &never, &never);
        assert!(got.is_empty() || got == ["HOME"], "{got:?}");
    }
    assert_eq!(
        got(&own(), &["GCONV_PATHS", "PATH"], &[]),
        ["GCONV_PATHS", "PATH"]
    );
}

#[test]
fn a_terminals_and_the_callers_credentials_pass_where_the_project_or_the_user_names_them() {
    let all = [
        "SHLVL",
        "TERM_PROGRAM",
        "SSH_AUTH_SOCK",
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "DOCKER_HOST",
        "composer_auth",
    ];
    assert!(got(&own(), &all, &[]).is_empty());
    assert_eq!(got(&own(), &all, &all), all);
    let user = Receiver {
        passed: vec!["GITHUB_TOKEN".into()],
        ..own()
    };
    assert_eq!(got(&user, &all, &[]), ["GITHUB_TOKEN"]);
    let kept = ["HOME", "TERMS", "PWDX", "DATABASE_URL", "AWS_REGION"];
    assert_eq!(got(&own(), &kept, &[]), kept);
}

#[test]
fn another_user_gets_what_is_no_secret_and_its_own_home() {
    let all = [
        "PATH",
        "LANG",
        "LC_ALL",
        "TZ",
        "HOME",
        "APP_ENV",
        "APP_DEBUG",
        "KERNEL_CLASS",
        "USER",
        "DATABASE_URL",
        "SOME_SECRET",
        "GITHUB_TOKEN",
    ];
    let filtered = others(&[]).filter(&pairs(&all), &Names::new());
    let names: Vec<_> = filtered.variables.iter().map(|(name, _)| name).collect();
    let expected = [
        "PATH",
        "LANG",
        "LC_ALL",
        "TZ",
        "APP_ENV",
        "APP_DEBUG",
        "KERNEL_CLASS",
        "HOME",
    ];
    assert_eq!(names, expected);
    assert_eq!(filtered.variables.last().unwrap().1, "/home/other");
    assert!(filtered.withheld.iter().all(|(name, _)| name != "HOME"));
}

#[test]
fn that_a_foreign_project_names_a_variable_gives_it_nothing() {
    let all = ["SOME_SECRET", "GITHUB_TOKEN"];
    assert_eq!(got(&others(&[]), &all, &all), ["HOME"]);
    // The user's word does.
    let receiver = Receiver {
        passed: vec!["SOME_SECRET".into(), "HOME".into()],
        ..others(&[])
    };
    assert_eq!(
        got(&receiver, &["SOME_SECRET", "HOME"], &[]),
        ["SOME_SECRET", "HOME"]
    );
}

#[test]
fn what_the_containers_first_process_has_passes_with_the_same_value() {
    let container = ["DATABASE_URL", "OTHER", "GITHUB_TOKEN", "HOME"];
    let receiver = others(&container);
    let mut environment = pairs(&["DATABASE_URL", "GITHUB_TOKEN", "HOME", "SOME_SECRET"]);
    environment.push(("OTHER".into(), "with another value".into()));
    let filtered = receiver.filter(&environment, &Names::new());
    let expected: Vec<Variable> = vec![
        ("DATABASE_URL".into(), "of DATABASE_URL".into()),
        ("HOME".into(), "/home/other".into()),
    ];
    assert_eq!(filtered.variables, expected);
    // A token is the container's configuration where the application says that it has one.
    let filtered = receiver.filter(&environment, &named(&["GITHUB_TOKEN"]));
    assert!(
        filtered
            .variables
            .iter()
            .any(|(name, _)| name == "GITHUB_TOKEN")
    );
}

#[test]
fn the_user_cannot_pass_what_no_run_gets_or_is_no_name() {
    let said = |name: &str| check(&[name.to_owned()]).unwrap_err().to_string();
    assert!(said("LD_PRELOAD").contains("unsafe run"));
    assert!(said("AWS_SECRET_ACCESS_KEY").contains(".env"));
    for name in ["", "A=1", "A\0B"] {
        assert!(said(name).contains("--env=NAME"), "{name:?}");
    }
    assert!(check(&["GITHUB_TOKEN".into(), "ANY".into()]).is_ok());
}

#[test]
fn what_names_code_is_as_it_was_at_the_start() {
    let all = |list: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
        let pairs = list.iter();
        pairs
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    };
    let mut now = all(&[
        ("OPENSSL_CONF", "/put/there/later"),
        ("SASL_PATH", "/put/there/later"),
        ("APP_ENV", "later"),
    ]);
    let start = all(&[("OPENSSL_CONF", "/etc/ssl/own.cnf"), ("APP_ENV", "start")]);

    restore_code(&mut now, &start);

    let expected = all(&[("APP_ENV", "later"), ("OPENSSL_CONF", "/etc/ssl/own.cnf")]);
    assert_eq!(now, expected);
}
