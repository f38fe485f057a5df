//! Failures of the command itself: one line on standard error, exit code 2.

use std::fmt;
use std::io::{self, Write};

use nix::errno::Errno;

use crate::escape;
use crate::exit::Exit;

/// What is wrong and what to do about it, in one sentence.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Writes the line to standard error and returns the exit code.
    pub fn report(&self) -> Exit {
        say(&self.0);
        Exit::Usage
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Writes `altair: message` to standard error as one line, whatever `message` contains.
pub fn say(message: &str) {
    // If standard error is closed, the exit code still tells.
    let _ = writeln!(io::stderr(), "altair: {}", escape::line(message.trim_end()));
}

/// An operating-system error in words for users, without Rust's `(os error 2)`.
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => Errno::from_raw(code).desc().to_lowercase(),
        None => error.to_string(),
    }
}
