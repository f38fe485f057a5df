//! How the program begins, as it brings its own `main`.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use support::{altair, text};

/// A shell command in which `$0` is the program.
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command, env!("CARGO_BIN_EXE_altair")]);
    shell
}

#[test]
fn the_standard_descriptors_are_open_so_that_no_file_gets_their_numbers() {
    let mut server = shell("exec \"$0\" mcp:serve --transport=http --port=0 <&- >&-")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has opened sockets by then.
    let mut said = String::new();
    let mut errors = BufReader::new(server.stderr.take().unwrap());
    while !said.contains("127.0.0.1:") && errors.read_line(&mut said).unwrap() > 0 {}
    let descriptors = [0, 1].map(|fd| std::fs::read_link(format!("/proc/{}/fd/{fd}", server.id())));
    server.kill().unwrap();
    server.wait().unwrap();
    for descriptor in descriptors {
        assert_eq!(descriptor.unwrap().to_str(), Some("/dev/null"), "{said}");
    }
}

#[test]
fn a_closed_pipe_is_an_error_and_no_signal() {
    let closed = shell("{ sleep 0.2; \"$0\" completions bash; echo $? >&2; } | true")
        .output()
        .unwrap();
    let code = text(&closed.stderr).lines().last().unwrap();
    assert!(code.parse::<i32>().unwrap() < 128, "{code}");
}

#[test]
fn arguments_arrive_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let argument = std::ffi::OsStr::from_bytes(b"e\xff");
    let output = altair().arg(argument).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains('e'), "{said}");
}
