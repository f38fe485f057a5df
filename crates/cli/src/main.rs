//! The `altair` command.

use std::process::ExitCode;

use altair_cli::Host;

fn main() -> ExitCode {
    ExitCode::from(altair_cli::run(std::env::args_os(), &Host::default()))
}
