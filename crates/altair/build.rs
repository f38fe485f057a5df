//! Makes the program start faster: a pool answers in less time than the start takes. The unwinder is
//! linked in, because the loader takes a tenth of a millisecond for it as a library. What `altair eval`
//! executes is placed side by side ([`startup.ld`](../startup.ld)). Relocations are packed, which take a tenth
//! of the start otherwise.

use std::path::PathBuf;
use std::process::Command;

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
    if variable("HOST") == variable("TARGET") && packs_relocations() {
        // A linker before Binutils 2.38 ignores it.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

/// The first release of the GNU C library whose loader knows packed relocations, `DT_RELR` (its NEWS).
const PACKED_SINCE: [u32; 2] = [2, 36];

/// Whether the loader of this machine knows packed relocations.
fn packs_relocations() -> bool {
    let asked = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let told = asked.map(|output| output.stdout).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let version = told.split_ascii_whitespace().nth(1).unwrap_or_default();
    let mut parts = version.split('.').map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
        return false;
    };
    [major, minor] >= PACKED_SINCE
}
