//! The output that people read, case by case.
#![allow(clippy::unwrap_used)]

mod changes;
mod controls;
mod values;

use std::collections::BTreeMap;

use altair_engine::guards::{Guard, GuardState};
use altair_engine::{Blocked, Diagnostics, EvalResult, Location, Outcome, OutputTruncated, Phase};
use serde_json::json;

use super::{Theme, render};

fn result(outcome: Outcome) -> EvalResult {
    EvalResult {
        result: None,
        stdout: String::new(),
        stderr: String::new(),
        exception: None,
        duration_ms: 12,
        memory_peak_bytes: 8 << 20,
        exit_code: 0,
        timed_out: false,
        diagnostics: Diagnostics::of(outcome),
    }
}

fn plain(result: &EvalResult) -> String {
    render(result, Theme::new(false))
}

fn first(result: &EvalResult) -> String {
    plain(result).lines().next().unwrap().to_owned()
}

#[test]
fn an_exception_shows_where_and_why() {
    let thrown = json!({
        "class": "RuntimeException", "message": "boom\n2", "file": "src/Repo.php", "line": 9, "code": 5,
        "stack_trace": ["App\\Repo->find (src/Repo.php:9)", "{main} (snippet:1)"],
        "previous": [{"class": "PDOException", "message": "gone", "file": "src/Db.php", "line": 3}],
    });
    let threw = EvalResult {
        exception: Some(thrown),
        exit_code: 1,
        ..result(Outcome::Threw)
    };
    assert_eq!(
        plain(&threw),
        "✗ RuntimeException: boom\\n2\n\
        \x20 duration=12ms  memory=8192 KB  exit=1\n\
        \x20 at src/Repo.php:9 (code 5)\n\
        \x20   App\\Repo->find (src/Repo.php:9)\n\
        \x20   {main} (snippet:1)\n\
        \x20 previous: PDOException: gone (src/Db.php:3)\n"
    );
}

#[test]
fn hints_stand_above_the_place_and_a_parse_error_has_a_caret() {
    let thrown = json!({"class": "ParseError", "message": "no", "file": "snippet", "line": 3});
    let mut threw = EvalResult {
        exception: Some(thrown),
        exit_code: 1,
        ..result(Outcome::Threw)
    };
    threw.diagnostics.hints = vec![
        "line 3, column 6: a\u{202e}b {c".into(),
        "did you mean\x1b b?".into(),
    ];
    let shown = plain(&threw);
    assert_eq!(
        shown.split_once("exit=1\n").unwrap().1,
        "\x20 line 3, column 6:\n\
        \x20   a\\u{202e}b {c\n\
        \x20               ^\n\
        \x20 did you mean\\x1b b?\n\
        \x20 at snippet:3\n"
    );
    threw.diagnostics.redacted = vec!["APP_KEY".into()];
    assert!(!plain(&threw).contains('^'));
}

#[test]
fn every_way_to_end_has_its_line() {
    let ended = |outcome, exit_code, message: Option<&str>| {
        let mut ended = EvalResult {
            exit_code,
            ..result(outcome)
        };
        ended.diagnostics.message = message.map(str::to_owned);
        ended
    };
    assert_eq!(first(&ended(Outcome::Exited, 3, None)), "✗ Exited 3.");
    assert_eq!(first(&ended(Outcome::Exited, 0, None)), "✓ Exited 0.");
    assert_eq!(
        first(&ended(Outcome::Fatal, 255, Some("Cannot redeclare f()"))),
        "✗ Fatal: Cannot redeclare f()"
    );
    assert_eq!(
        first(&ended(Outcome::OutOfMemory, 255, Some("128 MiB used"))),
        "✗ Out of memory: 128 MiB used"
    );
    assert_eq!(
        first(&ended(Outcome::BootFailed, 2, Some("no autoloader"))),
        "✗ Boot failed: no autoloader"
    );
    assert_eq!(
        first(&ended(Outcome::NoReport, 1, Some("forged"))),
        "✗ No genuine report: forged"
    );
    assert_eq!(first(&ended(Outcome::Fatal, 255, None)), "✗ Fatal.");

    let mut killed = ended(Outcome::Signalled, 137, None);
    killed.diagnostics.signal = Some(9);
    assert_eq!(first(&killed), "✗ Killed by signal 9 (SIGKILL).");
    killed.diagnostics.signal = Some(40);
    assert_eq!(first(&killed), "✗ Killed by signal 40.");
}

#[test]
fn a_timeout_shows_where_the_code_was() {
    let mut late = EvalResult {
        exit_code: 124,
        timed_out: true,
        duration_ms: 405,
        ..result(Outcome::TimedOut)
    };
    late.diagnostics.message = Some("The deadline passed.".into());
    late.diagnostics.phase = Some(Phase::Encode);
    late.diagnostics.location = Some(Location {
        file: "src/Slow.php".into(),
        line: 4,
        stack_trace: vec!["slow (src/Slow.php:4)".into()],
    });
    assert_eq!(
        plain(&late),
        "✗ Timed out after 405ms.\n\
        \x20 duration=405ms  memory=8192 KB  exit=124\n\
        \x20 while the result was encoded\n\
        \x20 at src/Slow.php:4\n\
        \x20   slow (src/Slow.php:4)\n"
    );
}

#[test]
fn a_boot_that_threw_shows_what() {
    let thrown = json!({"class": "DomainException", "message": "no .env", "file": "config/container.php", "line": 2, "code": 0, "stack_trace": []});
    let mut failed = EvalResult {
        exception: Some(thrown),
        exit_code: 2,
        ..result(Outcome::BootFailed)
    };
    assert_eq!(first(&failed), "✗ Boot failed: DomainException: no .env");
    failed.diagnostics.message = Some("config/container.php threw".into());
    assert_eq!(
        plain(&failed),
        "✗ Boot failed: config/container.php threw\n\
        \x20 duration=12ms  memory=8192 KB  exit=2\n\
        \x20 DomainException: no .env\n\
        \x20 at config/container.php:2\n"
    );
}

#[test]
fn refusals_name_what_lifts_them_and_missing_guards_are_told() {
    let mut blocked = result(Outcome::Returned);
    blocked.diagnostics.blocked = vec![
        Blocked {
            what: "shell_exec()".into(),
            guard: Guard::Ini,
            lift: Some("--unsafe".into()),
        },
        Blocked {
            what: "ptrace".into(),
            guard: Guard::Seccomp,
            lift: None,
        },
    ];
    let missing = || GuardState::Missing {
        because: "the kernel has none".into(),
    };
    blocked.diagnostics.guards = BTreeMap::from([
        (Guard::Landlock, missing()),
        (Guard::Privileges, GuardState::InForce),
        (Guard::Seccomp, missing()),
        (
            Guard::Filesystem,
            GuardState::Degraded {
                to: "landlock".into(),
            },
        ),
    ]);
    assert_eq!(
        plain(&blocked),
        "✓ null\n\
        \x20 duration=12ms  memory=8192 KB  exit=0\n\
        \x20 refused: shell_exec() by ini; --unsafe allows it\n\
        \x20 refused: ptrace by seccomp; nothing allows it\n\
        \x20 not in force: filesystem (degraded to landlock)\n\
        \x20 not in force: landlock, seccomp (missing: the kernel has none)\n"
    );
}

#[test]
fn output_stands_last_line_for_line() {
    let mut chatty = result(Outcome::Returned);
    chatty.stdout = "one\r\n\ttwo\u{1b}]0;title\u{7}".into();
    chatty.stderr = "aa\n...(truncated)".into();
    chatty.diagnostics.output_truncated = Some(OutputTruncated {
        stdout: 16,
        stderr: 99_999,
    });
    assert_eq!(
        plain(&chatty),
        "✓ null\n\
        \x20 duration=12ms  memory=8192 KB  exit=0\n\
        — stdout —\none\\r\n\ttwo\\x1b]0;title\\x07\n\
        — stderr — cut, 99999 bytes in all\naa\n...(truncated)\n"
    );
}

#[test]
fn colour_is_there_only_when_asked_for() {
    let text = render(&result(Outcome::Returned), Theme::new(true));
    assert!(
        text.starts_with("\u{1b}[32;1m✓\u{1b}[0m null\n"),
        "{text:?}"
    );
    assert!(!plain(&result(Outcome::Returned)).contains('\u{1b}'));
}
