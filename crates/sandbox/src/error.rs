//! Why a process could not be started.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;

/// A step between the host's request and the program's first instruction, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Step {
    /// The keeper takes its own session and becomes the parent of orphans.
    Keeper = 1,
    /// The keeper makes the process.
    Clone,
    /// The process takes its own session.
    Session,
    /// Descriptors 0 to 3 are put in place and all others closed.
    Descriptors,
    /// `SIGXFSZ` is ignored and all signals are unblocked.
    Signals,
    /// `RLIMIT_CORE` is set to 1.
    CoreLimit,
    /// `RLIMIT_DATA` is set.
    DataLimit,
    /// `RLIMIT_AS` is set.
    AddressSpaceLimit,
    /// `RLIMIT_CPU` is set.
    CpuLimit,
    /// `RLIMIT_FSIZE` is set.
    FileSizeLimit,
    /// `RLIMIT_SIGPENDING` is set.
    PendingSignalLimit,
    /// `RLIMIT_NOFILE` is set.
    DescriptorLimit,
    /// `RLIMIT_NPROC` is set.
    ProcessLimit,
    /// A mount namespace is made, in a user namespace if needed.
    Namespace,
    /// The user and group are mapped into the user namespace.
    IdMaps,
    /// Readable paths are mounted in the private root.
    PrivateRoot,
    /// The throwaway layer is mounted over the project.
    ProjectLayer,
    /// The project is mounted as it is.
    Project,
    /// The project's directory that no process may write is made if need be, and covered.
    Seal,
    /// The private root becomes the root.
    PivotRoot,
    /// The secure bits are set and locked.
    SecureBits,
    /// The capability bounding set is emptied.
    BoundingSet,
    /// The ambient capability set is emptied.
    AmbientSet,
    /// Supplementary groups are dropped.
    Groups,
    /// The group id is changed.
    Gid,
    /// The user id is changed.
    Uid,
    /// The effective, permitted and inheritable capability sets are emptied.
    Capabilities,
    /// `no_new_privs` is set.
    NoNewPrivileges,
    /// The process is tied to the life of its keeper.
    ParentWatch,
    /// The working directory is entered.
    WorkingDirectory,
    /// The fork's directory for temporary files is made.
    TempDirectory,
    /// Landlock is taken.
    Landlock,
    /// The filter of system calls is taken.
    Seccomp,
    /// The program is executed.
    Exec,
}

impl Step {
    const ALL: [Self; 34] = [
        Self::Keeper,
        Self::Clone,
        Self::Session,
        Self::Descriptors,
        Self::Signals,
        Self::CoreLimit,
        Self::DataLimit,
        Self::AddressSpaceLimit,
        Self::CpuLimit,
        Self::FileSizeLimit,
        Self::PendingSignalLimit,
        Self::DescriptorLimit,
        Self::ProcessLimit,
        Self::Namespace,
        Self::IdMaps,
        Self::PrivateRoot,
        Self::ProjectLayer,
        Self::Project,
        Self::Seal,
        Self::PivotRoot,
        Self::SecureBits,
        Self::BoundingSet,
        Self::AmbientSet,
        Self::Groups,
        Self::Gid,
        Self::Uid,
        Self::Capabilities,
        Self::NoNewPrivileges,
        Self::ParentWatch,
        Self::WorkingDirectory,
        Self::TempDirectory,
        Self::Landlock,
        Self::Seccomp,
        Self::Exec,
    ];

    /// This step, failed with `errno`.
    pub(crate) fn failed(self, errno: Errno) -> Failure {
        Failure { step: self, errno }
    }

    /// Whether this step is part of making the [`View`](crate::View).
    #[must_use]
    pub fn is_of_view(self) -> bool {
        matches!(
            self,
            Self::Namespace
                | Self::IdMaps
                | Self::PrivateRoot
                | Self::ProjectLayer
                | Self::Project
                | Self::PivotRoot
        )
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Keeper => "set up its keeper",
            Self::Clone => "make the process",
            Self::Session => "start its own session",
            Self::Descriptors => "put its descriptors in place",
            Self::Signals => "reset its signals",
            Self::CoreLimit => "set the limit for core files (RLIMIT_CORE)",
            Self::DataLimit => "set the limit for memory (RLIMIT_DATA)",
            Self::AddressSpaceLimit => "set the limit for address space (RLIMIT_AS)",
            Self::CpuLimit => "set the limit for processor time (RLIMIT_CPU)",
            Self::FileSizeLimit => "set the limit for file size (RLIMIT_FSIZE)",
            Self::PendingSignalLimit => "set the limit for pending signals (RLIMIT_SIGPENDING)",
            Self::DescriptorLimit => "set the limit for open descriptors (RLIMIT_NOFILE)",
            Self::ProcessLimit => "set the limit for processes (RLIMIT_NPROC)",
            Self::Namespace => "make its own namespaces",
            Self::IdMaps => "map its user into a user namespace",
            Self::PrivateRoot => "mount what it may read in a private root",
            Self::ProjectLayer => "mount a throwaway layer over the project",
            Self::Project => "mount the project",
            Self::Seal => "protect the project's directory that no process may write",
            Self::PivotRoot => "make the private root its root",
            Self::SecureBits => "set the secure bits",
            Self::BoundingSet => "clear the capability bounding set",
            Self::AmbientSet => "clear the ambient capability set",
            Self::Groups => "drop its supplementary groups",
            Self::Gid => "change its group id",
            Self::Uid => "change its user id",
            Self::Capabilities => "drop its capabilities",
            Self::NoNewPrivileges => "set no_new_privs",
            Self::ParentWatch => "tie its life to its keeper",
            Self::WorkingDirectory => "enter its working directory",
            Self::TempDirectory => "make its directory for temporary files",
            Self::Landlock => "take its Landlock rules",
            Self::Seccomp => "take its filter of system calls",
            Self::Exec => "execute the program",
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.describe())
    }
}

/// A failed step, small enough to be made and sent where nothing may be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: Errno,
}

/// Bytes of an encoded [`Report`].
pub(crate) const REPORT_BYTES: usize = 8;

/// The keeper's one report to the host: the process that runs its program, or the step that failed.
pub(crate) type Report = Result<i32, Failure>;

/// Encodes a report: the number of the step (0 for success), then the `errno` or the process's id.
pub(crate) fn encode(report: Report) -> [u8; REPORT_BYTES] {
    let (step, errno) = match report {
        Ok(pid) => (0, pid),
        Err(failure) => (failure.step as i32, failure.errno as i32),
    };
    let [a, b, c, d] = step.to_ne_bytes();
    let [e, f, g, h] = errno.to_ne_bytes();
    [a, b, c, d, e, f, g, h]
}

/// Decodes a report; `None` if it is none.
pub(crate) fn decode(bytes: [u8; REPORT_BYTES]) -> Option<Report> {
    let [a, b, c, d, e, f, g, h] = bytes;
    let second = i32::from_ne_bytes([e, f, g, h]);
    let errno = Errno::from_raw(second);
    match i32::from_ne_bytes([a, b, c, d]) {
        0 => Some(Ok(second)),
        code => Step::ALL
            .into_iter()
            .find(|step| *step as i32 == code)
            .map(|step| Err(step.failed(errno))),
    }
}

/// Why a process could not be started. Nothing of it is left when this is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program.
    #[error("{} cannot be started: there is no such file", .program.display())]
    ProgramMissing {
        /// The program as it was given.
        program: PathBuf,
    },
    /// The program is there, but the interpreter or loader that it names is not.
    #[error("{} cannot be started: the interpreter or loader that it names does not exist", .program.display())]
    InterpreterMissing {
        /// The program as it was given.
        program: PathBuf,
    },
    /// The program may not be executed: it is a directory, has no execute permission for the
    /// process's user, or is on a file system mounted `noexec`.
    #[error("{} cannot be started: it may not be executed by the process's user ({source})", .program.display())]
    NotExecutable {
        /// The program as it was given.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not in a format that the kernel executes: `ENOEXEC`.
    #[error("{} cannot be started: it is not in an executable format", .program.display())]
    NotAProgram {
        /// The program as it was given.
        program: PathBuf,
    },
    /// An argument, a variable or a path holds a NUL byte, which no process can be given.
    #[error("{what} holds a NUL byte")]
    NulByte {
        /// Which one.
        what: String,
    },
    /// The process could not enter its working directory as its own user.
    #[error("the working directory {} cannot be entered: {source}", .cwd.display())]
    WorkingDirectory {
        /// The directory as it was given.
        cwd: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The project's directory that no process may write could not be protected.
    #[error("{} cannot be protected from writes: {source}", .path.display())]
    Sealed {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// By the time the project was mounted, it had been replaced by another directory.
    #[error("the project was replaced by another directory while the process was started")]
    Replaced,
    /// The host could not make what the start needs.
    #[error("cannot start a process: {what}: {source}")]
    Host {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The new process could not take a step.
    #[error("{} cannot be started: the process could not {step}: {source}", .program.display())]
    Step {
        /// The program as it was given.
        program: PathBuf,
        /// The step.
        step: Step,
        /// What the system said.
        source: io::Error,
    },
    /// The keeper ended before the program ran; something outside must have ended it.
    #[error("{} cannot be started: its keeper was ended before the program ran", .program.display())]
    KeeperLost {
        /// The program as it was given.
        program: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_step_survives_the_way_to_the_host() {
        for (index, step) in Step::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, index + 1, "{step} is in its place");
            let report = Err(step.failed(Errno::EPERM));
            assert_eq!(decode(encode(report)).unwrap(), report);
        }
        assert_eq!(Step::ALL.last(), Some(&Step::Exec));
        assert_eq!(decode(encode(Ok(4711))), Some(Ok(4711)));
        assert_eq!(decode([0xff; REPORT_BYTES]), None);
    }
}
