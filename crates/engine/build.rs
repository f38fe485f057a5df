//! Names this build: processes that trust each other's messages must be of the same one.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What the messages between processes depend on, relative to this crate.
const SOURCES: [&str; 5] = [
    "../../Cargo.lock",
    "../../src",
    "../sandbox/src",
    "../pool/src",
    "src",
];

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        list(Path::new(source), &mut files);
    }
    files.sort();
    let mut hash = Sha256::new();
    for variable in ["TARGET", "PROFILE", "CARGO_PKG_VERSION"] {
        hash.update(std::env::var(variable).unwrap_or_default());
        hash.update([0]);
    }
    for file in files {
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(fs::read(&file).unwrap_or_default());
    }
    let name: String = hash
        .finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("cargo::rustc-env=ALTAIR_BUILD={name}");
}

/// All files at a path.
fn list(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => {
            for entry in entries.flatten() {
                list(&entry.path(), files);
            }
        }
        Err(_) => files.push(path.to_owned()),
    }
}
