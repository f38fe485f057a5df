//! `altair events:tail` on various logs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use support::{altair, complaint, text};
use tempfile::TempDir;

/// How long a follower may take to show a line before the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

struct Project(TempDir);

impl Project {
    fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with_log(content: &[u8]) -> Self {
        let project = Self::empty();
        project.write(content);
        project
    }

    fn log(&self) -> PathBuf {
        self.0.path().join(".altair/events.jsonl")
    }

    fn write(&self, content: &[u8]) {
        fs::create_dir_all(self.0.path().join(".altair")).unwrap();
        fs::write(self.log(), content).unwrap();
    }

    fn append(&self, content: &[u8]) {
        append(&self.log(), content);
    }

    fn tail(&self, arguments: &[&str]) -> Output {
        altair()
            .arg("events:tail")
            .current_dir(self.0.path())
            .args(arguments)
            .output()
            .unwrap()
    }
}

fn append(path: &Path, content: &[u8]) {
    OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(content)
        .unwrap();
}

/// An event as the engine writes it.
fn event(status: &str, snippet: &str) -> String {
    format!(
        r#"{{"id":"01J","timestamp":"2026-01-02T03:04:05.678+00:00","actor":"cli","user":"ada","client":null,"command":"eval","kind":"eval","status":"{status}","duration_ms":12,"error":"","extra":{{"run":"01J","unsafe":true,"allow_writes":false,"allow_network":false,"snippet":"{snippet}"}}}}"#
    )
}

#[test]
fn events_are_lines_for_people() {
    let log = format!(
        "{}\n{}\n",
        event("partial", "return 1;"),
        event("ok", "return 1;")
    );
    let output = Project::with_log(log.as_bytes()).tail(&[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        text(&output.stdout),
        "2026-01-02T03:04:05.678+00:00  partial  cli  ada  eval  unsafe  return 1;\n\
         2026-01-02T03:04:05.678+00:00  ok       cli  ada  eval  12ms  unsafe  return 1;\n"
    );
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn json_prints_the_last_valid_lines_as_they_are() {
    let (one, two, three) = (
        event("ok", "one"),
        event("ok", "two"),
        event("fail", "three"),
    );
    let log = format!("{one}\nnot json\n{two}\n\n[1]\n{{\"torn\": \n{three}\n{{\"id\":\"01");
    let project = Project::with_log(log.as_bytes());
    let json = |count: &str| {
        let output = project.tail(&["--format=json", "-n", count]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(json("20"), format!("{one}\n{two}\n{three}\n"));
    assert_eq!(json("2"), format!("{two}\n{three}\n"));
    assert_eq!(json("0"), "");
}

#[test]
fn bytes_that_are_no_text_are_garbage_like_any_other() {
    let mut log = b"\xff\xfe\0\n{\"a\":\"\xff\"}\n".to_vec();
    log.extend_from_slice(event("ok", "fine").as_bytes());
    let output = Project::with_log(&log).tail(&["--format=json"]);
    assert_eq!(text(&output.stdout), format!("{}\n", event("ok", "fine")));
}

#[test]
fn twenty_are_shown_unless_said_otherwise() {
    let log: String = (0..50)
        .map(|n| event("ok", &n.to_string()) + "\n")
        .collect();
    let output = Project::with_log(log.as_bytes()).tail(&[]);
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 20);
    assert!(
        lines[0].ends_with("  30") && lines[19].ends_with("  49"),
        "{lines:?}"
    );
}

#[test]
fn no_log_yet_is_no_failure() {
    let output = Project::empty().tail(&[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "");
    assert!(
        text(&output.stderr).starts_with("altair: no audit log at "),
        "{output:?}"
    );
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

#[test]
fn the_log_of_another_project_can_be_named() {
    let project = Project::with_log(format!("{}\n", event("ok", "here")).as_bytes());
    let mut root = std::ffi::OsString::from("--root=");
    root.push(project.0.path());
    let output = altair()
        .arg("events:tail")
        .arg(root)
        .current_dir("/")
        .output()
        .unwrap();
    assert!(text(&output.stdout).ends_with("  here\n"), "{output:?}");
}

#[test]
fn a_link_in_place_of_the_log_is_refused() {
    let project = Project::empty();
    fs::create_dir(project.0.path().join(".altair")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", project.log()).unwrap();
    for arguments in [&[][..], &["--follow"]] {
        assert!(complaint(&project.tail(arguments)).contains("is not a regular file"));
    }
}

/// A running `events:tail --follow` whose lines arrive as they are printed.
struct Follow {
    child: Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

impl Follow {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut child = altair()
            .args(["events:tail", "--follow"])
            .args(arguments)
            .current_dir(project.0.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let errors = lines_of(child.stderr.take().unwrap());
        Self {
            child,
            lines,
            errors,
        }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn lines_of(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    receiver
}

#[test]
fn follow_shows_what_is_added_and_a_line_only_once_it_is_whole() {
    let (one, two, three) = (event("ok", "one"), event("ok", "two"), event("ok", "three"));
    let project = Project::with_log(format!("{one}\n{}", &two[..20]).as_bytes());
    let follow = Follow::start(&project, &["--format=json"]);
    assert_eq!(follow.next(), one);
    project.append(format!("{}\ngarbage\n", &two[20..]).as_bytes());
    assert_eq!(follow.next(), two);
    project.append(format!("{three}\n").as_bytes());
    assert_eq!(follow.next(), three);
}

#[test]
fn follow_waits_for_a_log_that_is_not_there_yet() {
    let project = Project::empty();
    let follow = Follow::start(&project, &["--format=json"]);
    let said = follow.errors.recv_timeout(PATIENCE).unwrap();
    assert!(said.contains("waiting for the first run"), "{said}");
    project.write(format!("{}\n", event("ok", "first")).as_bytes());
    assert_eq!(follow.next(), event("ok", "first"));
}

#[test]
fn follow_goes_on_after_truncation_and_rotation() {
    let (one, two, three) = (
        event("ok", "one, the longest"),
        event("ok", "two"),
        event("ok", "3"),
    );
    let project = Project::with_log(format!("{one}\n").as_bytes());
    let follow = Follow::start(&project, &["--format=json"]);
    assert_eq!(follow.next(), one);
    project.write(format!("{two}\n").as_bytes());
    assert_eq!(follow.next(), two);
    fs::rename(project.log(), project.0.path().join("rotated")).unwrap();
    project.write(format!("{three}\n").as_bytes());
    assert_eq!(follow.next(), three);
}

#[test]
fn follow_ends_when_nobody_reads_any_more() {
    let project = Project::with_log(format!("{}\n", event("ok", "one")).as_bytes());
    let mut child = altair()
        .args(["events:tail", "--follow"])
        .current_dir(project.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    assert!(line.ends_with("  one\n"), "{line}");
    // Nothing is added to the log: the closed pipe alone ends it, and so closes its standard error.
    let errors = lines_of(child.stderr.take().unwrap());
    drop(reader);
    let ended = errors.recv_timeout(PATIENCE);
    if ended != Err(RecvTimeoutError::Disconnected) {
        child.kill().unwrap();
    }
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
