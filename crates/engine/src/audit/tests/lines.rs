//! The content of a run's lines.

use std::fs;
use std::io::Write;

use nix::unistd::geteuid;
use serde_json::{Value, json};

use super::{begin, fine, found, lines, project, request};
use crate::audit::{Actor, AuditedRun, Ending};
use crate::redaction::Secrets;
use crate::{Diagnostics, EvalResult, Outcome};

fn result(outcome: Outcome, exit_code: i32) -> EvalResult {
    EvalResult {
        result: None,
        stdout: String::new(),
        stderr: String::new(),
        exception: None,
        duration_ms: 405,
        memory_peak_bytes: 0,
        exit_code,
        timed_out: outcome == Outcome::TimedOut,
        diagnostics: Diagnostics::of(outcome),
    }
}

#[test]
fn a_run_leaves_two_lines_that_one_id_joins() {
    let root = project();
    let run = AuditedRun::begin(
        &found(root.path()),
        Actor::Mcp,
        Some("editor"),
        &request(b"exit(3);"),
        None,
    )
    .unwrap();
    assert_eq!(
        lines(root.path()).len(),
        1,
        "the first line stands before anything runs"
    );
    run.end(Ending::from(&result(Outcome::Exited, 3))).unwrap();

    let lines = lines(root.path());
    let [first, last] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert_eq!(first["extra"]["run"], last["extra"]["run"]);
    let ids = [&first["id"], &last["id"], &first["extra"]["run"]].map(|id| id.as_str().unwrap());
    for id in ids {
        assert_eq!(ulid::Ulid::from_string(id).unwrap().to_string(), id);
    }
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);

    let mut known = first.clone();
    let user = nix::unistd::User::from_uid(geteuid())
        .unwrap()
        .unwrap()
        .name;
    for field in ["id", "timestamp"] {
        known[field] = Value::Null;
    }
    known["extra"]["run"] = Value::Null;
    let wanted = json!({
        "id": null, "timestamp": null, "actor": "mcp", "user": user, "client": "editor",
        "command": "eval", "kind": "eval", "status": "partial", "duration_ms": 0, "error": null,
        "extra": {
            "run": null, "unsafe": true, "allow_writes": true, "allow_network": false,
            "snippet_length": 8,
            "snippet_sha256": "6a33a136e7a53ba19a41b517cf2e961f8052155b413bd8f1b635259ff1d7584a",
            "snippet": "exit(3);", "exit_code": null, "timed_out": false,
        },
    });
    // As text, so that the order of the fields counts.
    assert_eq!(known.to_string(), wanted.to_string());
    assert_eq!(last["status"], "fail");
    assert_eq!(last["error"], "exit code 3");
    assert_eq!(last["duration_ms"], 405);
    assert_eq!(last["extra"]["exit_code"], 3);
}

#[test]
fn a_timestamp_has_milliseconds_and_a_numeric_offset() {
    let root = project();
    let before = jiff::Timestamp::now();
    begin(root.path()).unwrap().end(fine()).unwrap();
    let after = jiff::Timestamp::now();
    for line in lines(root.path()) {
        let text = line["timestamp"].as_str().unwrap();
        assert_eq!(text.len(), "2026-01-02T03:04:05.678+01:00".len(), "{text}");
        assert_eq!(&text[19..20], ".");
        assert!(
            matches!(&text[23..24], "+" | "-") && &text[26..27] == ":",
            "{text}"
        );
        let moment: jiff::Timestamp = text.parse().unwrap();
        // The milliseconds are cut, not rounded.
        assert!(
            moment.as_millisecond() >= before.as_millisecond() && moment <= after,
            "{text}"
        );
    }
}

#[test]
fn the_snippet_is_measured_whole_and_shown_masked_cut_and_valid() {
    let root = project();
    let mut snippet = b"$password = 'hunter2'; // \xff\n".to_vec();
    snippet.resize(4000, b' ');
    snippet.extend("é".repeat(1000).bytes());
    let request = request(&snippet);
    AuditedRun::begin(&found(root.path()), Actor::Cli, None, &request, None)
        .unwrap()
        .end(fine())
        .unwrap();
    for line in lines(root.path()) {
        let extra = &line["extra"];
        assert_eq!(extra["snippet_length"], 6000);
        assert_eq!(extra["snippet_sha256"], sha256_of_tool(&snippet));
        let shown = extra["snippet"].as_str().unwrap();
        assert!(
            shown.starts_with("$password = '***'; // \u{fffd}\n"),
            "{shown}"
        );
        assert!(
            (4095..=4096).contains(&shown.len()) && shown.ends_with('é'),
            "{}",
            shown.len()
        );
        assert_eq!(line["actor"], "cli");
        assert_eq!(line["client"], Value::Null);
    }
}

/// The digest as coreutils computes it.
fn sha256_of_tool(bytes: &[u8]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let out = std::process::Command::new("sha256sum")
        .arg(file.path())
        .output()
        .unwrap();
    String::from_utf8(out.stdout).unwrap()[..64].to_owned()
}

#[test]
fn a_failure_always_has_an_error() {
    let thrown = |exception: Value| {
        let mut result = result(Outcome::Threw, 1);
        result.exception = Some(exception);
        result
    };
    let mut signalled = result(Outcome::Signalled, 137);
    signalled.diagnostics.signal = Some(9);
    let mut fatal = result(Outcome::Fatal, 255);
    fatal.diagnostics.message = Some("Call to a member function f() on null".to_owned());
    let mut blank = result(Outcome::Fatal, 255);
    blank.diagnostics.message = Some(" ".to_owned());
    let table = [
        (
            thrown(json!({"class": "RuntimeException", "message": "boom"})),
            "RuntimeException: boom",
        ),
        (
            thrown(json!({"class": "LogicException", "message": ""})),
            "LogicException",
        ),
        (thrown(json!({})), "exit code 1"),
        (result(Outcome::TimedOut, 124), "timed out after 405 ms"),
        (signalled, "killed by signal 9"),
        (fatal, "Call to a member function f() on null"),
        (blank, "exit code 255"),
        (result(Outcome::NoReport, 1), "exit code 1"),
    ];
    let root = project();
    for (result, wanted) in &table {
        begin(root.path())
            .unwrap()
            .end(Ending::from(result))
            .unwrap();
        let line = lines(root.path()).pop().unwrap();
        assert_eq!(
            (&line["status"], &line["error"]),
            (&json!("fail"), &json!(wanted))
        );
        assert_eq!(line["extra"]["timed_out"], result.timed_out);
    }
    for (exit_code, wanted) in [(None, "failed"), (Some(7), "exit code 7")] {
        let error = Some("\n".to_owned());
        let ending = Ending {
            ok: false,
            error,
            duration_ms: 1,
            exit_code,
            timed_out: false,
        };
        begin(root.path()).unwrap().end(ending).unwrap();
        assert_eq!(lines(root.path()).pop().unwrap()["error"], wanted);
    }
}

#[test]
fn a_clean_run_has_no_error() {
    let root = project();
    begin(root.path())
        .unwrap()
        .end(Ending::from(&result(Outcome::Returned, 0)))
        .unwrap();
    let line = lines(root.path()).pop().unwrap();
    assert_eq!(
        (&line["status"], &line["error"]),
        (&json!("ok"), &Value::Null)
    );
}

#[test]
fn an_error_shows_no_secret() {
    let root = project();
    let error = Some("PDOException: cannot reach mysql://u:hunter2@h".to_owned());
    let ending = Ending {
        ok: false,
        error,
        ..fine()
    };
    begin(root.path()).unwrap().end(ending).unwrap();
    let error = &lines(root.path())[1]["error"];
    assert_eq!(error, "PDOException: cannot reach mysql://u:***@h");
}

#[test]
fn a_run_that_is_dropped_is_recorded_as_interrupted() {
    let root = project();
    let outcome = std::panic::catch_unwind(|| {
        let _run = begin(root.path()).unwrap();
        std::panic::resume_unwind(Box::new("a panic of the host"));
    });
    assert!(outcome.is_err());
    let lines = lines(root.path());
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["status"], "fail");
    assert_eq!(lines[1]["error"], "interrupted");
    assert_eq!(lines[1]["extra"]["run"], lines[0]["extra"]["run"]);
}

#[test]
fn a_copy_in_another_process_does_not_end_the_run() {
    let root = project();
    let mut run = begin(root.path()).unwrap();
    run.process += 1; // as a fork of the host sees it
    drop(run);
    assert_eq!(lines(root.path()).len(), 1);
}

#[test]
fn the_end_is_recorded_though_the_log_has_vanished() {
    let root = project();
    let run = begin(root.path()).unwrap();
    fs::remove_dir_all(root.path().join(".altair")).unwrap();
    run.end(fine()).unwrap();
    assert_eq!(lines(root.path())[0]["status"], "ok");
}

#[test]
fn secrets_that_are_known_stand_in_no_line() {
    let root = project();
    let variables = [("SHOP_WORD", "nothing"), ("SHOP_TOKEN", "abcdef6h")];
    let secrets = Secrets::of(&variables.map(|(name, value)| (name.into(), value.into())));
    let run = AuditedRun::begin(
        &found(root.path()),
        Actor::Cli,
        None,
        &request(b"f('abcdef6h', 'nothing');"),
        secrets,
    )
    .unwrap();
    let ending = Ending {
        error: Some("cannot connect with abcdef6h".into()),
        ..Ending::from(&result(Outcome::Fatal, 255))
    };
    run.end(ending).unwrap();

    let lines = lines(root.path());
    for line in &lines {
        assert_eq!(
            line["extra"]["snippet"],
            "f('[redacted:SHOP_TOKEN]', 'nothing');"
        );
    }
    assert_eq!(
        lines[1]["error"],
        "cannot connect with [redacted:SHOP_TOKEN]"
    );
}
