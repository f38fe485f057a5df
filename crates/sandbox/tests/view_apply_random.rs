//! Whatever a process does to whatever tree: afterwards the project is what it saw, and whatever
//! differs was listed.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use altair_sandbox::{Change, ChangeKind, Note, What};
use common::apply::as_each;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A path of up to three names.
fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..=3)
        .prop_map(|names| names.join("/"))
}

/// A command that changes something, or fails.
fn change() -> impl Strategy<Value = String> {
    let mode = prop::sample::select(vec!["u=rwX,go=", "a=rX", "u=rwX,go=rX", "u=rX,go=", "a+x"]);
    let time = 1_000_000_000u32..1_700_000_000;
    prop_oneof![
        3 => (path(), any::<u8>()).prop_map(|(path, n)| format!("echo {n} > {path}")),
        2 => (path(), any::<u8>()).prop_map(|(path, n)| format!("echo {n} >> {path}")),
        2 => path().prop_map(|path| format!("mkdir -p {path}")),
        2 => path().prop_map(|path| format!("rm -rf {path}")),
        2 => (path(), path()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("mv {from} {to}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("cp -aT --remove-destination {from} {to}")),
        1 => (path(), path()).prop_map(|(to, path)| format!("ln -sfn {to} {path}")),
        1 => (path(), path()).prop_map(|(one, two)| {
            format!("rm -rf {one} {two}; echo l > {one} && ln {one} {two}")
        }),
        1 => path().prop_map(|path| format!("mkfifo {path}")),
        1 => (path(), mode).prop_map(|(path, mode)| format!("[ -L {path} ] || chmod {mode} {path}")),
        1 => (path(), time).prop_map(|(path, time)| format!("touch -hcd @{time} {path}")),
    ]
}

/// None of them may wait for the other end of a pipe.
fn script(changes: &[String]) -> String {
    let each = changes.iter().map(|change| match change.split_once('>') {
        Some((_, path)) => {
            let path = path.trim_start_matches('>').trim();
            let path = path.split(' ').next().unwrap();
            format!("[ -p {path} ] || {{ {change}; }} 2>/dev/null\n")
        }
        None => format!("{change} 2>/dev/null\n"),
    });
    format!("{}true", each.collect::<String>())
}

/// The paths of which anything differs, but the time of a directory that changes with its entries.
fn changed<'a>(before: &'a str, after: &'a str) -> BTreeSet<&'a str> {
    let parse = |text: &'a str| -> BTreeMap<&'a str, Vec<&'a str>> {
        let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let lines = lines.filter(|fields| fields.get(3).is_some_and(|owner| owner.contains(':')));
        let is_directory = |fields: &[&str]| fields.get(1) == Some(&"d");
        lines
            .map(|mut fields| {
                if is_directory(&fields) {
                    fields[4] = "";
                }
                (fields[0], fields)
            })
            .collect()
    };
    let (before, after) = (parse(before), parse(after));
    let paths = before.keys().chain(after.keys()).copied();
    paths
        .filter(|path| before.get(path) != after.get(path))
        .collect()
}

/// Whether a change is in the list, or was in a directory that is listed as gone.
fn is_listed(changes: &[Change], path: &Path) -> bool {
    changes.iter().any(|change| {
        let is_gone = change.kind == ChangeKind::Deleted
            || change.notes.contains(&Note::Was(What::Directory));
        change.path == path || (is_gone && path.starts_with(&change.path))
    })
}

#[test]
fn what_is_applied_is_what_the_process_saw() {
    as_each(|site| {
        let changes = |most| prop::collection::vec(change(), 0..most);
        let mut runner = TestRunner::new(Config {
            cases: 40,
            failure_persistence: None,
            ..Config::default()
        });
        let case = (changes(12), changes(16));
        let tried = runner.run(&case, |(before, inside)| {
            site.outside("chmod -R u+rwX . && rm -rf *");
            // A file with several names can be written in place, and not as the process sees it.
            site.outside(&format!(
                "{}; find . -type f -links +1 -delete",
                script(&before)
            ));
            let was = site.shows();
            let left = site.run(&script(&inside));
            let applied = left.apply();
            prop_assert!(applied.is_ok(), "{applied:?}");
            prop_assert_eq!(site.shows(), left.saw.clone());
            site.has_nothing_left();
            for path in changed(&was, &left.saw) {
                prop_assert!(
                    is_listed(&left.changes(), Path::new(path)),
                    "{path} is not in {:?}",
                    left.changes()
                );
            }
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
    });
}
