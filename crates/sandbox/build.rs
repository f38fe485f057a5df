//! Compiles the keeper's own program, which the crate contains.

use std::env;
use std::path::PathBuf;

const SOURCE: &str = "src/keeper/init.c";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    let Some(directory) = env::var_os("OUT_DIR") else {
        panic!("cargo runs this");
    };
    let program = PathBuf::from(directory).join("keeper_init");
    // A program without C library, so that executing it costs as little as possible.
    let mut compiler = cc::Build::new().get_compiler().to_command();
    let compiled = compiler
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-ffreestanding"])
        .args(["-nostdlib", "-static", "-no-pie", "-fno-pic"])
        .args(["-fno-stack-protector", "-fno-asynchronous-unwind-tables"])
        .args(["-s", "-Wl,--build-id=none", "-Wl,-z,noexecstack"])
        .arg("-o")
        .arg(&program)
        .arg(SOURCE)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        panic!(
            "{SOURCE} cannot be compiled: a C compiler and the kernel's headers are needed (Debian: gcc, linux-libc-dev)"
        );
    }
}
