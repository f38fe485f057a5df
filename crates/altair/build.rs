//! Makes the program start faster: a pool answers in less time than the start takes. The unwinder is
//! linked in, because the loader takes a tenth of a millisecond for it as a library. What `altair eval`
//! executes is placed side by side ([`startup.ld`](../startup.ld)).

use std::path::PathBuf;

/// What the linker finds for `-lgcc_s`, which the standard library asks for: the same code as an
/// archive (GCC's manual, `-static-libgcc`).
const UNWINDER: &str = "GROUP(-lgcc_eh -lgcc)\n";

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=startup.ld");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    // Another linker than the compiler's own choice may take no script.
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let chosen = flags.contains("fuse-ld") || flags.contains("linker");
    let is_usual = !chosen && variable("RUSTC_LINKER").is_empty();
    if !is_usual || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        return Ok(());
    }
    let directory = PathBuf::from(variable("OUT_DIR"));
    std::fs::write(directory.join("libgcc_s.so"), UNWINDER)?;
    println!("cargo:rustc-link-search=native={}", directory.display());
    let script = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("startup.ld");
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
    Ok(())
}
