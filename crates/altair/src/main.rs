//! The `altair` command.
//!
//! With glibc it has the C library's `main`. Rust's runtime would first look for the end of the main
//! thread's stack in `/proc/self/maps`, to tell a stack overflow from another access to memory that
//! is not there. That takes a quarter of a millisecond, a twentieth of a call that a pool answers.

#![cfg_attr(target_env = "gnu", no_main)]

mod serve;

use altair_cli::Host;

fn run() -> u8 {
    let host = Host {
        is_program: true,
        serve: Some(serve::serve),
        ..Host::default()
    };
    altair_cli::run(std::env::args_os(), &host)
}

#[cfg(not(target_env = "gnu"))]
fn main() -> std::process::ExitCode {
    run().into()
}

/// What a program of Rust's exits with after a panic.
#[cfg(target_env = "gnu")]
const PANICKED: u8 = 101;

/// glibc hands the arguments to Rust's standard library by itself ([`std::env::args`]).
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
// SAFETY: the C library calls it, once, by this name; nothing else has it, as there is no other `main`.
#[unsafe(no_mangle)]
extern "C" fn main() -> std::ffi::c_int {
    if let Err(error) = altair_sandbox::begin_program() {
        altair_cli::say(&format!("the program cannot begin: {error}"));
        return 2;
    }
    std::panic::catch_unwind(run).unwrap_or(PANICKED).into()
}
