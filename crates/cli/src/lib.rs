//! The command line of Altair Eval: evaluates a PHP snippet against an application, and shows past
//! runs.
//!
//! This crate parses arguments and prints; `altair-engine` evaluates. It links no PHP. The program
//! `altair` is built from it, and the extension runs it where that program is not built.

mod allow;
mod application;
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
pub mod json;
mod mcp;
mod output;
pub mod pool;
mod progress;
mod root;
mod run;
mod shell;
mod usage;

use std::ffi::OsString;
use std::io::Write;

use args::Command;
pub use failure::say;
pub use host::{Host, Serve, Server};

/// Runs the command line `arguments`, including the program's name in front, and returns the exit
/// code: 0, 1 or 2, as `altair --help` describes, or that of the command of `altair run`.
///
/// Reads descriptor 0 and writes to 1 and 2. A failure is one line on standard error and exit code
/// 2. SIGPIPE should be ignored, so that a closed pipe does not kill the process.
pub fn run(arguments: impl IntoIterator<Item = OsString>, host: &Host) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let exit = match args::parse(&arguments) {
        Ok(command) => dispatch(command, host).unwrap_or_else(|failure| failure.report()),
        Err(error) => usage::report(&error, &arguments),
    };
    // A command's own exit codes are its result, 2 among them.
    let exit = match exit {
        exit::Exit::Usage if run::is_asked_for(&arguments) => run::OWN_FAILURE,
        exit => exit,
    };
    // In a library, Rust's runtime does not flush at the end. If the reader closed the pipe, it has
    // seen enough; other errors were reported when they occurred.
    let _ = std::io::stdout().flush();
    exit.code()
}

fn dispatch(command: Command, host: &Host) -> Result<exit::Exit, failure::Failure> {
    match command {
        Command::Eval(args) => eval::run(args, host),
        Command::Shell(args) => shell::run(*args, host),
        Command::Run(args) => run::run(*args),
        Command::EventsTail(args) => events::run(&args),
        Command::Doctor(args) => doctor::run(&args, host),
        Command::McpServe(args) => mcp::run(args, host),
        Command::Allow(args) => allow::run(args),
        Command::Pool(args) => pool::run(args, host),
        Command::Completions { shell } => completions::run(shell),
    }
}
