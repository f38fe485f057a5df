//! Why the command itself did not work: one line on standard error, exit code 2.

use std::fmt;
use std::io::{self, Write};

use nix::errno::Errno;

use crate::escape;
use crate::exit::Exit;

/// What is wrong and what to do about it, in one sentence.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Writes the one line to standard error and gives the end that goes with it.
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

/// Writes `altair: message` to standard error as one line, whatever `message` holds.
pub fn say(message: &str) {
    // A closed standard error leaves nobody to tell: the exit code still speaks.
    let _ = writeln!(io::stderr(), "altair: {}", escape::line(message.trim_end()));
}

/// An operating-system error in the words a user reads, without Rust's `(os error 2)`.
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => Errno::from_raw(code).desc().to_lowercase(),
        None => error.to_string(),
    }
}
