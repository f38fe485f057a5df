//! Records which files a process looks at, by intercepting its own system calls.
//!
//! Two things can intercept them, for the same handler: Syscall User Dispatch
//! (Documentation/admin-guide/syscall-user-dispatch.rst), or, where that is refused or not there, a
//! seccomp filter. Neither stays with the process or its forks: dispatch is switched off by writing
//! one byte, and the filter is on a thread of the kernel that ends with the recording
//! ([`handover`]).

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod calls;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod concern;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod context;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod dispatch;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod handler;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod handover;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod kernel;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod log;
#[cfg(target_arch = "aarch64")]
#[path = "machine/aarch64.rs"]
pub(crate) mod machine;
#[cfg(target_arch = "x86_64")]
#[path = "machine/x86_64.rs"]
pub(crate) mod machine;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod names;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod paths;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod recording;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "unsupported.rs"]
mod recording;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod replay;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod sight;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod signals;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod sigsys;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod trap;

#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use calls::is_known as knows;

use std::io;

use serde::{Deserialize, Serialize};

use crate::bounded;

/// The state of a file when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The file type bits of the mode (`S_IFMT`) and the permission bits.
    pub mode: u32,
    /// The inode number; 0 for directories, whose number differs when seen through a layer.
    pub ino: u64,
    /// Size in bytes; 0 for directories.
    pub size: u64,
    /// Last change of the content, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of the content or the inode, in nanoseconds since 1970.
    pub ctime_ns: i64,
}

/// How much of a file was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Way {
    /// Its existence, file type and permissions (the mode, not the times): `lstat` of a directory,
    /// as by `realpath`; `access` to a directory or a device, and opening one.
    Passed,
    /// Its content, or its metadata.
    Read,
    /// The names in a directory.
    Listed,
}

/// A path that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Absolute, as the process named it, with symbolic links and `..`.
    pub path: Vec<u8>,
    /// The most that was seen in any look.
    pub way: Way,
    /// The name itself was looked at (`lstat`): a symbolic link was not followed. Compare it in the
    /// same way.
    pub link: bool,
    /// Its state at the first look; `None`: it did not exist or was inaccessible.
    pub found: Option<Identity>,
    /// A time just before the first look, in nanoseconds since 1970 (`CLOCK_REALTIME`). Later
    /// changes have no earlier timestamp, except within the kernel's clock tick.
    pub at_ns: i64,
}

/// What a process did that a list of files cannot describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unseen {
    /// It tried to make a process or to execute a program. This was refused.
    Process,
    /// It tried to make a thread. This was refused.
    Thread,
    /// It connected to, or sent to, an address.
    Connection,
    /// It looked at more than the record can hold, or at something without a known path: through a
    /// descriptor opened before, a file handle, its own mount, a link that it made or a directory
    /// that it moved.
    TooMuch,
}

/// Maximum number of paths in each list of a record that a host accepts: far more than an
/// application's boot uses.
pub const PATHS_MAX: usize = 50_000;

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Each path once, in the order of the first look; twice if it is a symbolic link that was both
    /// looked at itself and followed.
    #[serde(deserialize_with = "bounded::at_most::<PATHS_MAX, _, _>")]
    pub looks: Vec<Look>,
    /// Paths that the process itself made, changed or removed. Later looks at or below them show
    /// its own changes and are not in `looks`; earlier ones are.
    #[serde(deserialize_with = "bounded::at_most::<PATHS_MAX, _, _>")]
    pub written: Vec<Vec<u8>>,
    /// Each kind once.
    #[serde(deserialize_with = "bounded::at_most::<8, _, _>")]
    pub unseen: Vec<Unseen>,
}

/// Records the system calls of the calling thread, which must be the process's only one, until it
/// is ended or dropped. Both ways to begin give the same record.
///
/// Meanwhile the process can make no process and no thread (`EPERM`, `EAGAIN`), `SIGSYS` cannot be
/// blocked, and its handler cannot be changed. Afterwards everything is restored, except that
/// signal handlers from that time do not block `SIGSYS` while they run.
///
/// It cannot see files that are read through descriptors opened before or received from another
/// process, nor other inputs (the clock, the environment).
///
/// ```
/// use altair_sandbox::Recorder;
///
/// # fn main() -> std::io::Result<()> {
/// let recorder = Recorder::begin().or_else(|_| Recorder::begin_by_trap())?;
/// let _ = std::fs::read("/etc/hostname");
/// let record = recorder.end();
/// assert_eq!(record.looks[0].path, b"/etc/hostname");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recorder(recording::Recording);

impl Recorder {
    /// Begins, by Syscall User Dispatch. Call it before a filter forbids `prctl` with
    /// `PR_SET_SYSCALL_USER_DISPATCH`.
    ///
    /// # Errors
    /// `ENOSYS`/`EINVAL` if the architecture or the kernel (before 5.11) has no Syscall User
    /// Dispatch; `EPERM` if a filter forbids it; `EBUSY` if a recording is already on; `ENOMEM` if
    /// 32 MiB of address space are unavailable.
    pub fn begin() -> io::Result<Self> {
        recording::Recording::begin().map(Self)
    }

    /// Begins, by a filter that exists only until the end of the recording: a second thread of the
    /// kernel continues the calling one. So settings that the kernel keeps for each thread and that
    /// are changed meanwhile (nice value, processors, name, credentials, filters, Landlock) are the
    /// former ones again at the end. The process gets `no_new_privs` meanwhile.
    ///
    /// In a template, use [`FirstGuard::record`](crate::FirstGuard::record).
    ///
    /// # Errors
    /// `EPERM`/`EACCES` if a filter forbids another one or a thread; `ENOSYS` on other architectures
    /// than x86-64 and aarch64; `ENOTSUP` with a shadow stack; `EBUSY` and `ENOMEM` as above.
    pub fn begin_by_trap() -> io::Result<Self> {
        recording::Recording::begin_by_trap().map(Self)
    }

    /// Ends, and returns the record.
    #[must_use]
    pub fn end(self) -> Record {
        self.0.end()
    }
}
