//! The `altair` command.

mod serve;

use std::process::ExitCode;

use altair_cli::Host;

fn main() -> ExitCode {
    let host = Host {
        is_program: true,
        serve: Some(serve::serve),
        ..Host::default()
    };
    ExitCode::from(altair_cli::run(std::env::args_os(), &host))
}
