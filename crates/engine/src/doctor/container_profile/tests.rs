//! What the printed profiles allow.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ADDED, DEFAULT, LATER_ALLOWED, LATER_REFUSED, ProfileFormat, container_profile};

fn rules(profile: &Value) -> Vec<Value> {
    profile["syscalls"].as_array().unwrap().clone()
}

/// The names of calls in rules that allow without a condition.
fn allowed(profile: &Value) -> BTreeSet<String> {
    let is_given = |value: &Value| match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    rules(profile)
        .iter()
        .filter(|rule| rule["action"] == "SCMP_ACT_ALLOW")
        .filter(|rule| {
            !["includes", "excludes", "args"]
                .iter()
                .any(|it| is_given(&rule[*it]))
        })
        .flat_map(|rule| rule["names"].as_array().unwrap().clone())
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_profile_is_the_engines_and_what_is_listed() {
    let engines: Value = serde_json::from_str(DEFAULT).unwrap();
    let profile = container_profile(ProfileFormat::Docker).unwrap();
    let mut expected = allowed(&engines);
    for call in LATER_REFUSED.iter().chain(&["socket"]) {
        assert!(expected.remove(*call), "{call}");
    }
    for call in LATER_ALLOWED.iter().chain(&ADDED) {
        assert!(
            expected.insert((*call).to_owned()),
            "{call} is allowed already"
        );
    }
    assert_eq!(allowed(&profile), expected);
    // All other rules, with their conditions, are the engine's.
    let count = rules(&engines).len();
    assert_eq!(rules(&profile)[1..count], rules(&engines)[1..]);
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
}

#[test]
fn a_profile_without_conditions_allows_what_a_container_without_flags_may() {
    let profile = container_profile(ProfileFormat::Kubernetes).unwrap();
    let calls = allowed(&profile);
    for call in ADDED.iter().chain(&["chroot", "read"]) {
        assert!(calls.contains(*call), "{call}");
    }
    // To root with a capability alone.
    for call in [
        "bpf",
        "setns",
        "perf_event_open",
        "init_module",
        "reboot",
        "clone3",
        "pidfd_getfd",
    ] {
        assert!(!calls.contains(call), "{call}");
    }
    for rule in rules(&profile) {
        for field in rule.as_object().unwrap().keys() {
            assert!(
                ["names", "action", "errnoRet", "args"].contains(&field.as_str()),
                "{field}"
            );
        }
    }
}
