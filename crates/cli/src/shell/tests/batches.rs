//! Snippets from standard input.

use std::io::Write;
use std::process::Stdio;

use super::super::batch;
use super::play::{setting, shared};
use super::terminal::program;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Reader;

/// What each snippet of `input` has run, and how it ended.
fn run(input: &str) -> (Vec<String>, Result<Exit, Failure>) {
    let mut shown = Vec::new();
    let mut print = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        let ran = text.lines().find_map(|line| line.strip_prefix("ran: "));
        shown.push(ran.unwrap_or(&text).to_owned());
        Ok(Reader::There)
    };
    let exit = batch::run(&shared(), &setting(), input.as_bytes(), &mut print);
    (shown, exit)
}

#[test]
fn each_whole_snippet_has_its_answer_and_the_last_gives_the_exit_code() {
    let (ran, exit) = run("throw\n\nif (x) {\n\n  f();\n}\n2");
    assert_eq!(ran, ["throw", "if (x) {||  f();|}", "2"]);
    assert_eq!(exit, Ok(Exit::Clean));
    assert_eq!(run("1\nthrow\n").1, Ok(Exit::NotClean));
    assert_eq!(run("").1, Ok(Exit::Clean));
}

#[test]
fn what_is_unfinished_at_the_end_is_run() {
    let (ran, exit) = run("1\nif (x) {\n");
    assert_eq!(ran, ["1", "if (x) {"]);
    assert_eq!(exit, Ok(Exit::Clean));
}

#[test]
fn exit_ends_it_and_leaves_the_exit_code_of_the_last_snippet() {
    let (ran, exit) = run("throw\nexit\n2\n");
    assert_eq!((ran, exit), (vec!["throw".into()], Ok(Exit::NotClean)));
    let (ran, exit) = run("exit(3)\n2\n");
    assert_eq!((ran, exit), (vec!["exit(3)".into()], Ok(Exit::NotClean)));
}

#[test]
fn a_command_is_one_only_where_a_snippet_begins() {
    let (shown, exit) = run(":blocked\nf(x() ? {1\n:changes}\n");
    assert!(shown[0].contains("--network allows it"), "{shown:?}");
    assert_eq!(shown[1..], ["f(x() ? {1|:changes}"]);
    assert_eq!(exit, Ok(Exit::Clean));
    let (shown, exit) = run("1\n:nope\n2\n");
    assert_eq!(shown, ["1"]);
    assert!(
        exit.unwrap_err()
            .to_string()
            .starts_with("there is no :nope")
    );
}

#[test]
fn a_reader_that_has_gone_ends_it() {
    let mut answers = 0;
    let mut print = |_: &[u8]| {
        answers += 1;
        Ok(Reader::Gone)
    };
    let exit = batch::run(&shared(), &setting(), "1\n2\n".as_bytes(), &mut print);
    assert_eq!((exit, answers), (Ok(Exit::Clean), 1));
}

#[test]
fn without_a_terminal_answers_go_to_standard_output_and_the_rest_to_standard_error() {
    let state = tempfile::tempdir().unwrap();
    let mut shell = program(&[], state.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    input
        .write_all(b"f(function () {\n});\ntouch\ncrash\n")
        .unwrap();
    drop(input);
    let output = shell.wait_with_output().unwrap();
    let (shown, said) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(shown.contains("ran: f(function () {|});\n"), "{shown}");
    assert!(!shown.contains("php> "), "{shown}");
    assert_eq!(
        said,
        "altair: changed since the session has loaded it: src/Mailer.php, /lib/x.php; :restart boots anew\n\
         altair: the session began anew: the process crashed; $orders, $mailer are lost\n"
    );
    assert!(!state.path().join("altair").exists());
}
