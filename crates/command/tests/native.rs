//! The driver `native` against real commands.
#![allow(clippy::unwrap_used, missing_docs)]

use std::ffi::OsString;
use std::path::Path;

use altair_command::{
    Command, Driver, ExecutionPolicy, Outcome, Sandbox, Stdin, TimeoutReason, WorksIn,
};
use altair_engine::Silent;
use altair_engine::programs::Programs;

fn run(policy: ExecutionPolicy, script: &str) -> Outcome {
    let command = Command {
        sandbox: Sandbox {
            driver: Driver::Native,
            binary: None,
            image: None,
        },
        policy,
        works_in: WorksIn::Own,
        argv: ["sh", "-c", script].map(OsString::from).into(),
        stdin: Stdin::Empty,
        terminal: None,
        environment: Vec::new(),
        started_with: [].into(),
        programs: Programs::All,
        diff: true,
        listed: 100,
    };
    command.prepare().unwrap().run(&mut Silent, None).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_command_sees_what_its_policy_names_and_a_directory_of_its_own() {
    let base = tempfile::tempdir().unwrap();
    let named = tempfile::tempdir().unwrap();
    std::fs::write(named.path().join("file"), "named").unwrap();
    std::fs::write(base.path().join("file"), "not named").unwrap();
    let mut policy = ExecutionPolicy::in_dir(base.path());
    policy.readable_paths = vec![named.path().to_owned()];
    let script = format!(
        "ls -A; echo x > own; cat own {}/file {}/file",
        named.path().display(),
        base.path().display()
    );

    let outcome = run(policy, &script);

    assert_eq!(text(&outcome.stdout), "x\nnamed");
    assert!(text(&outcome.stderr).contains("No such file"));
    assert_eq!(outcome.exit_code, 1);
    assert_eq!(base.path().read_dir().unwrap().count(), 1, "only the file");
}

#[test]
fn a_commands_exit_code_is_its_own_or_its_signals_or_the_deadlines() {
    let policy = || ExecutionPolicy::in_dir("/tmp");
    assert_eq!(run(policy(), "exit 3").exit_code, 3);
    assert_eq!(run(policy(), "kill -9 $$").exit_code, 137);
    assert_eq!(run(policy(), "exec altair-is-not-there").exit_code, 127);
    let mut short = policy();
    short.timeout_seconds = Some(1);
    let ended = run(short, "trap '' TERM; while :; do sleep 100; done");
    assert_eq!(ended.exit_code, 124);
    assert_eq!(ended.timeout, Some(TimeoutReason::Wall));
}

#[test]
fn writes_to_a_layer_are_told_and_made_real_only_by_applying_it() {
    let files = tempfile::tempdir().unwrap();
    let made = files.path().join("made");
    let mut policy = ExecutionPolicy::in_dir("/tmp");
    policy.layers = vec![files.path().to_owned()];

    let outcome = run(policy, &format!("echo x > {}", made.display()));

    let changes = outcome.changes.unwrap();
    let created: Vec<_> = changes.created.iter().map(|change| &change.path).collect();
    assert_eq!(created, ["made"]);
    assert!(!Path::new(&made).exists());
    outcome.layer.unwrap().apply().unwrap();
    assert_eq!(std::fs::read_to_string(made).unwrap(), "x\n");
}
