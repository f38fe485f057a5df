//! Runs the built command.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The command, without environment variables that would change its output.
pub fn altair() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_altair"));
    command.stdin(Stdio::null());
    for name in [
        "ALTAIR_EVAL_EXTENSION",
        "ALTAIR_EVAL_BOOTSTRAP",
        "CLICOLOR_FORCE",
        "NO_COLOR",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs the command in `directory`.
pub fn run_in(directory: &Path, arguments: &[&OsStr]) -> Output {
    altair()
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs the command in the tests' directory.
pub fn run(arguments: &[&str]) -> Output {
    altair().args(arguments).output().unwrap()
}

/// The output, which must be UTF-8.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The line that reports wrong usage: exit code 2, nothing on standard output.
pub fn complaint(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(text(&output.stdout), "");
    let line = text(&output.stderr).strip_suffix('\n').unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line.strip_prefix("altair: ").unwrap()
}
