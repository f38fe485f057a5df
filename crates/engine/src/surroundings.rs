//! What an evaluation takes from the process that asks for it, besides its settings and the request.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

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

impl Surroundings {
    /// Those of this process, now. `started_with`: the environment that it was started with; `None` for a
    /// program whose environment nobody changes.
    pub(crate) fn here(started_with: Option<&[(OsString, OsString)]>) -> Self {
        let began = Began::now();
        let environment: Vec<_> = std::env::vars_os().collect();
        let is_set_later = |(name, value): &&(OsString, OsString)| {
            started_with.is_some_and(|start| variable(start, name) != Some(value.as_os_str()))
        };
        let later = environment.iter().filter(is_set_later);
        Self {
            began,
            set_later: later.map(|(name, _)| name.clone()).collect(),
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
pub fn variable(environment: &[(OsString, OsString)], name: impl AsRef<OsStr>) -> Option<&OsStr> {
    let found = environment.iter().find(|(known, _)| known == name.as_ref());
    found.map(|(_, value)| value.as_os_str())
}

/// The directory for temporary files that an environment names, as in [`std::env::temp_dir`].
pub(crate) fn temp_dir(environment: &[(OsString, OsString)]) -> PathBuf {
    variable(environment, "TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from)
}
