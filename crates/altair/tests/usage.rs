//! Wrong usage gives one line on standard error and exit code 2. Help and versions go to standard
//! output.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use support::{altair, complaint, run, run_in, text};

#[test]
fn nothing_to_run_is_wrong_usage() {
    assert_eq!(
        complaint(&run(&["eval"])),
        "nothing to run: give a snippet, as in altair eval 'return 1;', or --file=<path>"
    );
}

#[test]
fn a_snippet_and_a_file_are_one_too_many() {
    assert_eq!(
        complaint(&run(&["eval", "--file=x.php", "return 1;"])),
        "both a snippet and --file are given; leave one of them out"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let run = |file: &str| run_in(directory.path(), &["eval".as_ref(), file.as_ref()]);
    assert_eq!(
        complaint(&run("--file=missing.php")),
        "cannot read the snippet from --file=missing.php: no such file or directory"
    );
    assert_eq!(
        complaint(&run("--file=.")),
        "cannot read the snippet from --file=.: is a directory"
    );
    assert_eq!(
        complaint(&run("--file=")),
        "'--file <path>' needs a value (see altair eval --help)"
    );
}

#[test]
fn what_is_not_known_is_named() {
    for (arguments, expected) in [
        (
            &["eval", "--wirtes", "x"][..],
            "unknown option '--wirtes'; did you mean '--writes'?",
        ),
        (
            &["eval", "--format=xml", "x"],
            "invalid value 'xml' for '--format <format>'; use one of: human, json, compact",
        ),
        (
            &["eval", "--require=luck", "x"],
            "invalid value 'luck' for '--require <guard>'; use one of: ",
        ),
        (
            &["shell", "--wirtes"],
            "unknown option '--wirtes'; did you mean '--writes'?",
        ),
        (&["evl"], "unknown command 'evl'; did you mean 'eval'?"),
        (
            &["eval", "--timeout-ms=soon", "x"],
            "invalid value 'soon' for '--timeout-ms <n>': a whole number",
        ),
        (
            &["eval", "--memory-mb=1e3", "x"],
            "invalid value '1e3' for '--memory-mb <n>': a whole number",
        ),
        (
            &["events:tail", "-n", "-3"],
            "invalid value '-3' for '-n <n>': a whole number, 0 or more",
        ),
        (
            &["completions", "tcsh"],
            "invalid value 'tcsh' for '<shell>'",
        ),
    ] {
        let output = run(arguments);
        let line = complaint(&output);
        assert!(line.starts_with(expected), "{arguments:?}: {line}");
    }
}

#[test]
fn a_bad_root_is_wrong_usage_for_every_command() {
    for command in [
        &["eval", "return 1;"][..],
        &["events:tail"],
        &["events:tail", "--follow"],
    ] {
        for root in ["--root=/nowhere/at/all", "--root=/dev/null"] {
            let output = altair().args(command).arg(root).output().unwrap();
            let line = complaint(&output).to_lowercase();
            assert!(line.contains("the project root"), "{line}");
        }
    }
}

#[test]
fn a_line_feed_in_an_argument_does_not_break_the_line() {
    let output = run(&["eval", "--file=/nowhere\n\x1b[31m"]);
    assert!(complaint(&output).contains("/nowhere\\n\\x1b[31m"));
}

#[test]
fn an_extension_that_is_no_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let output = altair()
        .env("ALTAIR_EVAL_EXTENSION", directory.path())
        .args(["eval", "return 1;"])
        .output()
        .unwrap();
    let line = complaint(&output);
    assert!(
        line.contains("ALTAIR_EVAL_EXTENSION") && line.contains("it is not a file"),
        "{line}"
    );
}

#[test]
fn snippets_may_be_any_bytes_and_start_with_a_dash() {
    // The root is wrong; the arguments themselves were accepted.
    for snippet in [&b"return '\xff';"[..], b"-1 + 2", b"--help"] {
        let arguments = ["eval", "--root=/nowhere/at/all", "--"].map(OsStr::new);
        let output = altair()
            .args(arguments)
            .arg(OsStr::from_bytes(snippet))
            .output()
            .unwrap();
        assert!(complaint(&output).contains("/nowhere/at/all"));
    }
}

#[test]
fn an_empty_snippet_is_wrong_usage_from_wherever_it_comes() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("empty.php"), "<?php\n").unwrap();
    for source in ["", "--file=empty.php", "--file=-"] {
        let output = run_in(directory.path(), &["eval".as_ref(), source.as_ref()]);
        assert!(complaint(&output).contains("empty"), "{source}: {output:?}");
    }
}

#[test]
fn numbers_beyond_all_bounds_are_numbers() {
    for number in [
        "--timeout-ms=99999999999999999999",
        "--timeout-ms=-5",
        "--memory-mb=0",
    ] {
        let output = run(&["eval", "--root=/nowhere/at/all", number, "return 1;"]);
        assert!(complaint(&output).contains("/nowhere/at/all"), "{number}");
    }
}

#[test]
fn the_bare_command_explains_itself_on_standard_error() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("Usage: altair <COMMAND>"));
}

#[test]
fn help_is_everywhere_and_says_what_helps() {
    for (arguments, expected) in [
        (
            &["--help"][..],
            &["events:tail", "Examples:", "Exit codes:"][..],
        ),
        (
            &["eval", "--help"],
            &[
                "Examples:",
                "Exit codes:",
                "100…60000",
                "16…512",
                "[default: 5000]",
                "--require",
            ],
        ),
        (
            &["shell", "--help"],
            &[
                "Examples:",
                "Exit codes:",
                "Deadline of the boot and of each line, in milliseconds, 100…60000",
                "--no-redact",
                "Ctrl-D",
            ],
        ),
        (
            &["events:tail", "--help"],
            &["--follow", "[default: 20]", ".altair/events.jsonl"],
        ),
        (
            &["completions", "--help"],
            &["bash, zsh, fish", "Examples:"],
        ),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stderr), "");
        for part in expected {
            assert!(
                text(&output.stdout).contains(part),
                "{arguments:?} lacks {part}"
            );
        }
        assert!(!text(&output.stdout).contains('\x1b'), "colour in a pipe");
    }
}

#[test]
fn the_version_is_the_packages_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    for (arguments, name) in [
        (&["--version"][..], "altair"),
        (&["-V"], "altair"),
        (&["eval", "--version"], "altair eval"),
        (&["shell", "--version"], "altair shell"),
        (&["events:tail", "--version"], "altair events:tail"),
        (&["completions", "--version"], "altair completions"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stdout), format!("{name} {version}\n"));
    }
}

#[test]
fn a_reader_that_left_is_no_reason_to_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = altair()
        .args(["completions", "bash"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_full_disk_is_told() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = altair()
        .args(["completions", "zsh"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(
        complaint(&output),
        "cannot write to standard output: no space left on device"
    );
}

#[test]
fn standard_input_is_read_to_its_end() {
    let mut child = altair()
        .args(["eval", "--file=-", "--root=/nowhere/at/all"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: this fails unless the pipe is read.
    stdin.write_all(&vec![b'1'; 1 << 20]).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(complaint(&output).contains("/nowhere/at/all"));
}
