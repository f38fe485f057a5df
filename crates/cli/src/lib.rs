//! The command line of Altair Eval: evaluate a PHP snippet against an application, and look at what
//! was run.
//!
//! This crate parses arguments and prints; `altair-engine` evaluates. It links no PHP, and is
//! what the program `altair` is made of, and what the extension runs where that program is not built.

mod args;
mod completions;
mod doctor;
pub mod escape;
mod eval;
mod events;
mod exit;
mod extension;
mod failure;
mod host;
pub mod human;
mod json;
mod mcp;
mod output;
mod progress;
mod usage;

use std::ffi::OsString;
use std::io::Write;

use args::Command;
pub use failure::say;
pub use host::{Host, Serve, Server};

/// Runs the command line `arguments`, the first of which is the program's name, to its end, and
/// gives the exit code: 0, 1 or 2, as `altair --help` tells.
///
/// Reads descriptor 0 and writes to 1 and 2. What goes wrong is one line on standard error and the
/// exit code 2. SIGPIPE should be ignored: a reader that has gone is then no reason to end by it.
pub fn run(arguments: impl IntoIterator<Item = OsString>, host: &Host) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let exit = match args::parse(&arguments) {
        Ok(command) => dispatch(command, host).unwrap_or_else(|failure| failure.report()),
        Err(error) => usage::report(&error, &arguments),
    };
    // In a library Rust's runtime does not do it at the end. A reader that has gone has seen what
    // it wanted; any other error was told where it was written.
    let _ = std::io::stdout().flush();
    exit.code()
}

fn dispatch(command: Command, host: &Host) -> Result<exit::Exit, failure::Failure> {
    match command {
        Command::Eval(args) => eval::run(args, host),
        Command::EventsTail(args) => events::run(&args),
        Command::Doctor(args) => doctor::run(&args, host),
        Command::McpServe(args) => mcp::run(args, host),
        Command::Completions { shell } => completions::run(shell),
    }
}
