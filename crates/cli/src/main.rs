//! The `altair` command: evaluate a PHP snippet against an application, and look at what was run.
//!
//! This crate parses arguments and prints; `altair-engine` evaluates.

mod args;
mod completions;
mod doctor;
mod escape;
mod eval;
mod events;
mod extension;
mod failure;
mod human;
mod json;
mod output;
mod progress;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use args::Command;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command = match args::parse(&arguments) {
        Ok(command) => command,
        Err(error) => return usage::report(&error, &arguments),
    };
    let outcome = match command {
        Command::Eval(args) => eval::run(args),
        Command::EventsTail(args) => events::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions { shell } => completions::run(shell),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
