//! A project to attack from, and a target outside of it. Removes itself.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::channel::Secret;

/// A directory with a project and a secret beside it.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: TempDir,
    token: String,
}

/// The autoloader of a project that has nothing to load.
const AUTOLOADER: &str = "<?php\n";

impl Scratch {
    /// Creates one in the host's directory for temporary files.
    pub fn new() -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("altair-doctor-")
            .tempdir()?;
        let token = token()?;
        let scratch = Self { dir, token };
        std::fs::create_dir_all(scratch.project().join("vendor"))?;
        std::fs::create_dir(scratch.outside())?;
        std::fs::write(scratch.project().join("vendor/autoload.php"), AUTOLOADER)?;
        std::fs::write(scratch.secret_file(), &scratch.token)?;
        Ok(scratch)
    }

    /// The project.
    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// A directory outside of it.
    pub fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    /// A file outside of it that holds the token.
    pub fn secret_file(&self) -> PathBuf {
        self.outside().join("secret")
    }

    /// Random text that can only be known by reading it.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        altair_sandbox::remove_directory(self.dir.path(), None);
    }
}

fn token() -> io::Result<String> {
    let secret = Secret::generate().map_err(|e| io::Error::other(e.to_string()))?;
    Ok(secret.bytes()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// A path as a PHP string literal.
pub(super) fn literal(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    // Escapes all but the plainest bytes: no byte of a path can end the literal.
    let mut text = String::from("\"");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                text.push(char::from(*byte));
            }
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}
