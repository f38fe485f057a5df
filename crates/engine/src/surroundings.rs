//! What an evaluation takes from the process that asks for it, besides its settings and the request.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use crate::began::Began;

/// The environment of a process: name and value of each variable.
pub type Environment = Arc<[(OsString, OsString)]>;

/// What an evaluation takes from the process that asks for it, as it is at this moment. A process
/// that evaluates for another one is told of the other's.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// When it asked: the deadline counts from here.
    pub began: Began,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The names of those of its variables that it has set itself since it was started: they are not the
    /// user's word, since a project's `.env` file may have said so.
    pub set_later: Vec<OsString>,
}

/// The environment that this process was started with, as the kernel shows it (proc_pid_environ(5)):
/// empty if it does not, or if the process has written a title over it.
static AT_START: LazyLock<HashMap<OsString, OsString>> = LazyLock::new(|| {
    let variables = std::fs::read("/proc/self/environ").unwrap_or_default();
    let variables = variables.split(|byte| *byte == 0);
    let pairs = variables.filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        let (name, value) = variable.split_at(at);
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((text(name), text(value.get(1..)?)))
    });
    // The first counts, as in getenv(3).
    pairs.rev().collect()
});

/// Remembers the environment that this process was started with, for a host that may hide it later: by
/// the title of a process, or by another user.
pub fn remember_start() {
    LazyLock::force(&AT_START);
}

/// The names of the variables that this process was not started with, or with another value.
pub(crate) fn set_later(environment: &[(OsString, OsString)]) -> Vec<OsString> {
    let later = environment
        .iter()
        .filter(|(name, value)| AT_START.get(name) != Some(value));
    later.map(|(name, _)| name.clone()).collect()
}

impl Surroundings {
    /// Those of this process, now.
    pub(crate) fn here() -> Self {
        let began = Began::now();
        let environment: Vec<_> = std::env::vars_os().collect();
        Self {
            began,
            set_later: set_later(&environment),
            environment,
        }
    }

    /// The value of a variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        variable(&self.environment, name)
    }
}

/// The value of a variable in an environment; the first, as in getenv(3).
#[must_use]
pub fn variable<'e>(environment: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let found = environment.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_os_str())
}

/// The directory for temporary files that an environment names, as in [`std::env::temp_dir`].
pub(crate) fn temp_dir(environment: &[(OsString, OsString)]) -> PathBuf {
    variable(environment, "TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from)
}
