//! What a policy means for each driver that is another program: a command line.
//!
//! Everything that these functions need to know is an argument, so each gives the same
//! [`Invocation`] for the same [`Order`] everywhere.

pub mod bubblewrap;
pub mod container;
pub mod firejail;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use altair_sandbox::Limits;

use crate::{ExecutionPolicy, PolicyPaths};

/// Bytes of each file system in memory that a command may write, where its size can be chosen.
pub const MEMORY_FILES_BYTES: u64 = 64 << 20;

/// What name resolution reads, on systems where `/etc/resolv.conf` leads here. A service that
/// resolves names for those who have no network listens there, too.
const RESOLVER: &str = "/run/systemd/resolve";

/// A command for a driver's program.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The driver's program ([`binary::find`](crate::binary::find)).
    pub program: &'a Path,
    /// The command and its arguments; not empty.
    pub argv: &'a [OsString],
    /// Its variables ([`environment`](crate::environment())).
    pub env: &'a [(OsString, OsString)],
    /// Its directory on the host ([`WorkDir`](crate::WorkDir)).
    pub work_dir: &'a Path,
    /// Where it sees this directory ([`seen_at`](crate::work_dir::seen_at)).
    pub seen_at: &'a Path,
    /// Network, memory, and the variables that were chosen rather than inherited.
    pub policy: &'a ExecutionPolicy,
    /// The policy's paths, resolved.
    pub paths: &'a PolicyPaths,
    /// Places where something is mounted ([`writable_mounts`](crate::writable_mounts)).
    pub mounts: &'a [PathBuf],
    /// Whether it gets something on standard input.
    pub has_input: bool,
}

/// How to start a driver's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The driver's program.
    pub program: PathBuf,
    /// Its arguments, the command's among them.
    pub args: Vec<OsString>,
    /// The whole environment of the driver's program.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Limits to set on the driver's program, which the command inherits. The program enforces the
    /// others itself.
    pub limits: Limits,
    /// The program's arguments that remove what outlives it, if anything does. To be run, with the
    /// same environment and working directory, after each command that did not end by itself.
    pub cleanup: Option<Vec<OsString>>,
}

/// The memory limit, for programs that have none or only one that many commands do not survive:
/// node hangs when its address space is limited (`RLIMIT_AS`).
fn memory_limit(policy: &ExecutionPolicy) -> Limits {
    Limits {
        data_bytes: policy.memory.bytes(),
        ..Limits::default()
    }
}

/// Whether `path` is strictly below `directory`.
fn is_below(path: &Path, directory: &Path) -> bool {
    path != directory && path.starts_with(directory)
}

/// `prefix` and then `rest`, as one argument.
fn joined(prefix: &str, rest: impl AsRef<OsStr>) -> OsString {
    let mut argument = OsString::from(prefix);
    argument.push(rest);
    argument
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing {
    use super::*;

    /// An order to build upon, with everything that it borrows.
    pub(super) struct Given {
        pub argv: Vec<OsString>,
        pub env: Vec<(OsString, OsString)>,
        pub work_dir: PathBuf,
        pub seen_at: PathBuf,
        pub policy: ExecutionPolicy,
        pub paths: PolicyPaths,
        pub mounts: Vec<PathBuf>,
        pub has_input: bool,
    }

    impl Given {
        /// `echo hello`, under the default policy.
        pub(super) fn new() -> Self {
            Self {
                argv: vec!["echo".into(), "hello".into()],
                env: Vec::new(),
                work_dir: "/srv/base/sandbox-abc".into(),
                seen_at: "/work".into(),
                policy: ExecutionPolicy::in_dir("/srv/base"),
                paths: PolicyPaths::default(),
                mounts: vec!["/".into(), "/proc".into()],
                has_input: false,
            }
        }

        pub(super) fn order(&self) -> Order<'_> {
            Order {
                program: Path::new("/usr/bin/program"),
                argv: &self.argv,
                env: &self.env,
                work_dir: &self.work_dir,
                seen_at: &self.seen_at,
                policy: &self.policy,
                paths: &self.paths,
                mounts: &self.mounts,
                has_input: self.has_input,
            }
        }
    }

    pub(super) fn strings(args: &[OsString]) -> Vec<&str> {
        args.iter().map(|arg| arg.to_str().unwrap()).collect()
    }

    /// The arguments of `given` that `base` has not, and those that only `base` has.
    pub(super) fn difference<'a>(
        given: &'a [OsString],
        base: &'a [OsString],
    ) -> (Vec<&'a str>, Vec<&'a str>) {
        let only = |these: &'a [OsString], those: &[OsString]| {
            let mut these = strings(these);
            these.retain(|arg| !those.iter().any(|other| other == arg));
            these
        };
        (only(given, base), only(base, given))
    }
}
