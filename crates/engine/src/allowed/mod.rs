//! What the user allows: what a project may not decide itself stands in one file of the user's, and
//! one of the machine's. It lifts no guard.
//!
//! ```toml
//! [project."/home/me/shop"]          # this root; a key that ends in "/" means all roots below, too
//! services = ["/run/mysqld/mysqld.sock", "127.0.0.1:9000"]
//! env = ["STRIPE_KEY"]
//! read = ["/home/me/packages/auth"]
//! max_timeout_ms = 120000
//! max_memory_mb = 1024
//! ```

mod content;
mod edit;
mod error;
mod file;
mod values;

use std::path::{Path, PathBuf};

use crate::request::{MAX_MEMORY_MB, MAX_TIMEOUT_MS};

pub use content::{Entry, Root};
pub use edit::Change;
pub use error::{AllowedError, Untrusted};
pub use file::Source;
pub use values::{MOST_MEMORY_MB, MOST_TIMEOUT_MS};

/// What the user allows for one root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Services that the project may name: `host:port`, or absolute paths of Unix sockets.
    pub services: Vec<String>,
    /// Names of environment variables that runs get.
    pub env: Vec<String>,
    /// Files and directories that may be read; absolute.
    pub read: Vec<PathBuf>,
    /// The largest deadline that a request may ask for, in milliseconds; at least the default bound.
    pub max_timeout_ms: Option<u64>,
    /// The largest memory limit that a request may ask for, in MiB; at least the default bound.
    pub max_memory_mb: Option<u64>,
}

impl Allowed {
    /// The largest deadline that a request may ask for, in milliseconds.
    #[must_use]
    pub fn most_ms(&self) -> i64 {
        let allowed = self.max_timeout_ms.and_then(|ms| i64::try_from(ms).ok());
        allowed.unwrap_or_default().max(MAX_TIMEOUT_MS)
    }

    /// The largest memory limit that a request may ask for, in MiB.
    #[must_use]
    pub fn most_mb(&self) -> i64 {
        let allowed = self.max_memory_mb.and_then(|mb| i64::try_from(mb).ok());
        allowed.unwrap_or_default().max(MAX_MEMORY_MB)
    }

    /// Adds what another entry allows.
    fn add(&mut self, entry: &Entry) {
        fn add<T: Clone + PartialEq>(to: &mut Vec<T>, from: impl Iterator<Item = T>) {
            for one in from {
                if !to.contains(&one) {
                    to.push(one);
                }
            }
        }
        add(&mut self.services, entry.services());
        add(&mut self.env, entry.env());
        add(&mut self.read, entry.read());
        // `None` is the smallest.
        self.max_timeout_ms = self.max_timeout_ms.max(entry.max_timeout_ms());
        self.max_memory_mb = self.max_memory_mb.max(entry.max_memory_mb());
    }
}

/// What is allowed for a root: all entries for it, of the machine's file and of that of the effective
/// user. A file that the root contains is the project's word and does not count.
///
/// `root` is a directory's real path.
///
/// # Errors
/// If a file is there and cannot be trusted, read or understood. What it would have allowed is then
/// not known, and the user has to be told.
pub fn allowed_for(root: &Path) -> Result<Allowed, AllowedError> {
    let mut allowed = Allowed::default();
    for source in Source::all() {
        for (key, entry) in source.read(Some(root))?.entries() {
            if key.covers(root) {
                allowed.add(entry);
            }
        }
    }
    Ok(allowed)
}

/// One thing that a user can allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allow<'a> {
    /// A service, as the project names it.
    Service(&'a str),
    /// An environment variable, by its name.
    Env(&'a str),
    /// A file or directory that may be read.
    Read(&'a Path),
}

/// The command line that allows something for a root, quoted for a shell.
#[must_use]
pub fn line(root: &Path, what: &Allow<'_>) -> String {
    let (option, value) = match what {
        Allow::Service(service) => ("service", quoted(service)),
        Allow::Env(name) => ("env", quoted(name)),
        Allow::Read(path) => ("read", quoted(&path.display().to_string())),
    };
    let root = quoted(&root.display().to_string());
    format!("altair allow --root={root} --{option}={value}")
}

/// A part of a word of a shell. Between single quotes only they themselves mean anything.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:@%+,".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests;
