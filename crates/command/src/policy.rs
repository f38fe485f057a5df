//! What a command may read, write, connect to and use up.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::unistd::{AccessFlags, eaccess};

use crate::{CommandError, Memory};

/// Seconds until a command is ended, unless the policy says otherwise.
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 5;
/// The least that a timeout may be, in seconds.
pub const MIN_SECONDS: u64 = 1;
/// The most that a timeout may be, in seconds: 136 years, which can be added to any time of a clock.
pub const MAX_SECONDS: u64 = u32::MAX as u64;
/// Bytes kept of each stream, unless the policy says otherwise.
pub const DEFAULT_OUTPUT_BYTES: u64 = 1_048_576;
/// The least that may be kept of a stream, in bytes.
pub const MIN_OUTPUT_BYTES: u64 = 1024;

/// The project that a command works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectOf {
    /// Its directory.
    pub root: PathBuf,
    /// Whether nobody has named it, nor started in it: its manifest then grants no socket outside of it.
    pub is_found: bool,
}

/// What a command may read, write, connect to and use up. Plain data: a driver looks at the paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionPolicy {
    /// The directory below which a command's own directory is made.
    pub base_dir: PathBuf,
    /// Seconds until the command is ended; `None`: never.
    pub timeout_seconds: Option<u64>,
    /// Seconds without output until the command is ended; `None`: any.
    pub idle_timeout_seconds: Option<u64>,
    /// Memory of each process.
    pub memory: Memory,
    /// Files and directories that may be read.
    pub readable_paths: Vec<PathBuf>,
    /// Files and directories that may be read and written.
    pub writable_paths: Vec<PathBuf>,
    /// Directories that may be written, whose writes go to a layer.
    pub layers: Vec<PathBuf>,
    /// Addresses that may be connected to while the network is off: `host:port`, or the path of a
    /// Unix socket.
    pub services: Vec<String>,
    /// The project whose services may be connected to if `services` has none.
    pub project: Option<ProjectOf>,
    /// Variables, each once; they win over inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// Whether the caller's own variables are passed on.
    pub inherit_env: bool,
    /// Whether the network may be used.
    pub network: bool,
    /// Bytes kept of the end of standard output.
    pub stdout_limit_bytes: u64,
    /// Bytes kept of the end of standard error.
    pub stderr_limit_bytes: u64,
}

impl ExecutionPolicy {
    /// The project whose services count, if none are named.
    pub(crate) fn project_of_services(&self) -> Option<&ProjectOf> {
        self.project.as_ref().filter(|_| self.services.is_empty())
    }

    /// The defaults, with this base directory.
    #[must_use]
    pub fn in_dir(base_dir: impl Into<PathBuf>) -> Self {
        Self {
            base_dir: base_dir.into(),
            timeout_seconds: Some(DEFAULT_TIMEOUT_SECONDS),
            idle_timeout_seconds: None,
            memory: Memory::Default,
            readable_paths: Vec::new(),
            writable_paths: Vec::new(),
            layers: Vec::new(),
            services: Vec::new(),
            project: None,
            env: Vec::new(),
            inherit_env: false,
            network: false,
            stdout_limit_bytes: DEFAULT_OUTPUT_BYTES,
            stderr_limit_bytes: DEFAULT_OUTPUT_BYTES,
        }
    }

    /// The same, below another base directory.
    ///
    /// # Errors
    ///
    /// The path holds a NUL byte. Whether it is a directory is [`Self::check_base_dir`]'s question.
    pub fn with_base_dir(self, base_dir: OsString) -> Result<Self, CommandError> {
        Ok(Self {
            base_dir: path(base_dir)?,
            ..self
        })
    }

    /// The same, ended after this many seconds, at least [`MIN_SECONDS`].
    #[must_use]
    pub fn with_timeout_seconds(self, seconds: i64) -> Self {
        Self {
            timeout_seconds: Some(clamped(seconds, MIN_SECONDS).min(MAX_SECONDS)),
            ..self
        }
    }

    /// The same, ended after this many seconds without output, at least [`MIN_SECONDS`]; `None`:
    /// never.
    #[must_use]
    pub fn with_idle_timeout_seconds(self, seconds: Option<i64>) -> Self {
        Self {
            idle_timeout_seconds: seconds
                .map(|seconds| clamped(seconds, MIN_SECONDS).min(MAX_SECONDS)),
            ..self
        }
    }

    /// The same, with a memory limit in any form that [`Memory`] reads.
    ///
    /// # Errors
    ///
    /// The text is no memory limit.
    pub fn with_memory(self, limit: &str) -> Result<Self, CommandError> {
        let memory = limit.parse::<Memory>();
        Ok(Self {
            memory: memory.map_err(|error| CommandError::Invalid(error.to_string()))?,
            ..self
        })
    }

    /// The same, with these readable paths in place of the others.
    ///
    /// # Errors
    ///
    /// A path holds a NUL byte.
    pub fn with_readable_paths(self, paths: Vec<OsString>) -> Result<Self, CommandError> {
        Ok(Self {
            readable_paths: all_paths(paths)?,
            ..self
        })
    }

    /// The same, with these writable paths in place of the others.
    ///
    /// # Errors
    ///
    /// A path holds a NUL byte.
    pub fn with_writable_paths(self, paths: Vec<OsString>) -> Result<Self, CommandError> {
        Ok(Self {
            writable_paths: all_paths(paths)?,
            ..self
        })
    }

    /// The same, with these directories, whose writes go to a layer, in place of the others.
    ///
    /// # Errors
    ///
    /// A path holds a NUL byte.
    pub fn with_layers(self, paths: Vec<OsString>) -> Result<Self, CommandError> {
        Ok(Self {
            layers: all_paths(paths)?,
            ..self
        })
    }

    /// The same, with these services in place of the others.
    ///
    /// # Errors
    ///
    /// An address is no text, or holds a NUL byte.
    pub fn with_services(self, addresses: Vec<OsString>) -> Result<Self, CommandError> {
        let service = |address: OsString| {
            address
                .into_string()
                .ok()
                .filter(|address| !address.contains('\0'))
                .ok_or_else(|| {
                    CommandError::Invalid(
                        "Each of the services has to be UTF-8 without NUL bytes.".into(),
                    )
                })
        };
        Ok(Self {
            services: addresses
                .into_iter()
                .map(service)
                .collect::<Result<_, _>>()?,
            ..self
        })
    }

    /// The same, with these variables in place of the others.
    ///
    /// # Errors
    ///
    /// A name is empty or holds `=` or a NUL byte, or a value holds a NUL byte: no program can have
    /// such a variable.
    pub fn with_env(self, env: Vec<(OsString, OsString)>) -> Result<Self, CommandError> {
        for (name, value) in &env {
            let shown = || name.display().to_string().escape_debug().to_string();
            let is_name = |byte: &u8| !matches!(byte, b'=' | 0);
            if name.is_empty() || !name.as_bytes().iter().all(is_name) {
                return Err(CommandError::Invalid(format!(
                    "Invalid name of an environment variable: \"{}\"",
                    shown()
                )));
            }
            if value.as_bytes().contains(&0) {
                return Err(CommandError::Invalid(format!(
                    "The environment variable {} holds a NUL byte.",
                    shown()
                )));
            }
        }
        Ok(Self { env, ..self })
    }

    /// The same, with at most this many bytes kept of each stream, at least [`MIN_OUTPUT_BYTES`].
    #[must_use]
    pub fn with_output_caps(self, stdout_bytes: i64, stderr_bytes: i64) -> Self {
        Self {
            stdout_limit_bytes: clamped(stdout_bytes, MIN_OUTPUT_BYTES),
            stderr_limit_bytes: clamped(stderr_bytes, MIN_OUTPUT_BYTES),
            ..self
        }
    }

    /// Looks at the base directory, which has to be there when a command is run, and not before.
    ///
    /// # Errors
    ///
    /// It is no directory, or this process cannot make files in it.
    pub fn check_base_dir(&self) -> Result<(), CommandError> {
        let base_dir = &self.base_dir;
        let may_use = AccessFlags::W_OK | AccessFlags::X_OK;
        if base_dir.is_dir() && eaccess(base_dir, may_use).is_ok() {
            return Ok(());
        }
        Err(CommandError::Invalid(format!(
            "Base directory is invalid or not writable: {}",
            base_dir.display()
        )))
    }
}

/// A number, at least the minimum.
fn clamped(number: i64, minimum: u64) -> u64 {
    u64::try_from(number).unwrap_or(0).max(minimum)
}

/// A path that the kernel can be told.
fn path(path: OsString) -> Result<PathBuf, CommandError> {
    if path.as_bytes().contains(&0) {
        let shown = path.display().to_string().escape_debug().to_string();
        return Err(CommandError::Invalid(format!(
            "The path \"{shown}\" holds a NUL byte."
        )));
    }
    Ok(path.into())
}

fn all_paths(paths: Vec<OsString>) -> Result<Vec<PathBuf>, CommandError> {
    paths.into_iter().map(path).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn policy() -> ExecutionPolicy {
        ExecutionPolicy::in_dir("/tmp")
    }

    fn os(text: &str) -> OsString {
        text.into()
    }

    #[test]
    fn times_and_caps_are_clamped() {
        for (given, kept) in [
            (i64::MIN, 1),
            (0, 1),
            (1, 1),
            (7, 7),
            (i64::MAX, MAX_SECONDS),
        ] {
            let timeout = policy().with_timeout_seconds(given).timeout_seconds;
            assert_eq!(timeout, Some(kept));
            let idle = policy().with_idle_timeout_seconds(Some(given));
            assert_eq!(idle.idle_timeout_seconds, Some(kept));
        }
        let idle = policy().with_idle_timeout_seconds(Some(3));
        assert_eq!(
            idle.with_idle_timeout_seconds(None).idle_timeout_seconds,
            None
        );
        let caps = policy().with_output_caps(-1, 4096);
        assert_eq!(
            (caps.stdout_limit_bytes, caps.stderr_limit_bytes),
            (1024, 4096)
        );
    }

    #[test]
    fn what_no_program_can_be_told_is_refused() {
        let nul = || vec![os("/srv"), os("/a\0b")];
        let said = "The path \"/a\\0b\" holds a NUL byte.";
        for refused in [
            policy().with_base_dir(os("/a\0b")),
            policy().with_readable_paths(nul()),
            policy().with_writable_paths(nul()),
            policy().with_layers(nul()),
        ] {
            assert_eq!(refused.unwrap_err().to_string(), said);
        }
        assert!(policy().with_services(nul()).is_err());
        for name in ["", "=", "A=B", "A\0"] {
            let refused = policy().with_env(vec![(os(name), os("1"))]);
            let said = refused.unwrap_err().to_string();
            assert!(said.starts_with("Invalid name of an environment variable"));
        }
        let refused = policy().with_env(vec![(os("A"), os("1\0"))]);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "The environment variable A holds a NUL byte."
        );
    }

    #[test]
    fn the_base_directory_has_to_be_one_that_can_be_written() {
        let base = tempfile::tempdir().unwrap();
        let missing = base.path().join("missing");
        assert_eq!(
            ExecutionPolicy::in_dir(&missing).check_base_dir(),
            Err(CommandError::Invalid(format!(
                "Base directory is invalid or not writable: {}",
                missing.display()
            )))
        );
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(ExecutionPolicy::in_dir(file).check_base_dir().is_err());
        let policy = ExecutionPolicy::in_dir(base.path());
        assert_eq!(policy.check_base_dir(), Ok(()));
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o500)).unwrap();
        // Root may write everywhere.
        let is_refused = policy.check_base_dir().is_err();
        assert_eq!(is_refused, !nix::unistd::geteuid().is_root());
    }
}
