//! What a program starts with, and the errors if it cannot start.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use altair_sandbox::{Launch, SpawnError, Status};
use common::{output_of, run, sh};

fn error_of(launch: Launch) -> SpawnError {
    launch.spawn().unwrap_err()
}

fn program(path: impl Into<std::path::PathBuf>) -> Launch {
    Launch {
        program: path.into(),
        ..sh("")
    }
}

#[test]
fn a_program_gets_its_arguments_and_exactly_its_environment() {
    let mut launch = program("/usr/bin/env");
    launch.args = vec![];
    launch.env = vec![("A".into(), "1".into()), ("B".into(), "x=y z".into())];
    assert_eq!(output_of(launch), "A=1\nB=x=y z\n");

    let mut launch = sh("");
    launch.args = vec![
        "-c".into(),
        "printf '%s|' \"$@\"".into(),
        "name".into(),
        "a b".into(),
        "".into(),
    ];
    assert_eq!(output_of(launch), "a b||");
}

#[test]
fn a_relative_program_is_found_from_the_hosts_directory() {
    // The host is this test program, running another test in the script's directory.
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    fs::write(&script, "#!/bin/sh\npwd\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "helper_runs_a_script_beside_it",
            "--ignored",
            "--nocapture",
        ])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("in /usr\n"), "{text}");
}

#[test]
fn a_missing_program_is_named() {
    let error = error_of(program("/nowhere/at-all"));
    assert!(
        matches!(&error, SpawnError::ProgramMissing { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("/nowhere/at-all"), "{error}");
}

#[test]
fn a_missing_interpreter_is_told_from_a_missing_program() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    fs::write(&script, "#!/nowhere/at-all\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let error = error_of(program(script));
    assert!(
        matches!(error, SpawnError::InterpreterMissing { .. }),
        "{error:?}"
    );
}

#[test]
fn a_file_without_execute_permission_is_not_executable() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"#!/bin/sh\n").unwrap();
    let error = error_of(program(file.path()));
    assert!(
        matches!(error, SpawnError::NotExecutable { .. }),
        "{error:?}"
    );
    let error = error_of(program("/usr"));
    assert!(
        matches!(error, SpawnError::NotExecutable { .. }),
        "{error:?}"
    );
}

#[test]
fn a_text_file_is_not_in_an_executable_format() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    fs::write(&text, "just text\n").unwrap();
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    let error = error_of(program(text));
    assert!(matches!(error, SpawnError::NotAProgram { .. }), "{error:?}");
}

#[test]
fn a_directory_that_cannot_be_entered_is_named() {
    let mut launch = sh("true");
    launch.cwd = "/nowhere/at-all".into();
    let error = error_of(launch);
    assert!(
        matches!(error, SpawnError::WorkingDirectory { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("/nowhere/at-all"), "{error}");
}

#[test]
fn a_nul_byte_is_refused_before_anything_starts() {
    let mut launch = sh("true");
    launch.args.push("a\0b".into());
    let error = error_of(launch);
    assert_eq!(error.to_string(), "argument 3 holds a NUL byte");
}

#[test]
fn exit_codes_and_signals_are_seen_as_they_are() {
    for code in [0, 1, 7, 126, 255] {
        assert_eq!(
            run(sh(&format!("exit {code}"))).status,
            Status::Exited(code)
        );
    }
    for signal in [1, 2, 6, 9, 11, 13, 14, 15, 24, 31, 34, 64] {
        let ended = run(sh(&format!("kill -{signal} $$")));
        assert_eq!(ended.status, Status::Signalled(signal));
    }
}

#[test]
fn a_host_without_standard_descriptors_starts_programs_all_the_same() {
    // The shell closes the host's descriptors. The host is this test program, on another test.
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "exec '{}' --exact helper_prints_what_a_program_has --ignored --nocapture 0<&- 3<&-",
        exe.display()
    );
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("<012>"), "{text}");
    assert!(text.contains("<0123>"), "{text}");
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_prints_what_a_program_has() {
    let list = "ls /proc/$$/fd; true";
    let joined = |text: String| text.replace('\n', "");
    println!("<{}>", joined(output_of(sh(list))));
    let (_host, process) = altair_sandbox::channel_pair().unwrap();
    let mut launch = sh(list);
    launch.channel = Some(process);
    println!("<{}>", joined(output_of(launch)));
}

#[test]
#[ignore = "a helper that another test runs"]
fn helper_runs_a_script_beside_it() {
    let mut launch = program("./script");
    launch.args = vec![];
    launch.cwd = "/usr".into();
    println!("in {}", output_of(launch));
}
