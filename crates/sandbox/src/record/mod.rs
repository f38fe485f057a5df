//! What a process looks at: its own system calls, seen by Syscall User Dispatch
//! (Documentation/admin-guide/syscall-user-dispatch.rst) while it is on.
//!
//! A filter of seccomp would see the same, and stay with the process and all its forks. Dispatch is
//! switched off by writing one byte, and a fork does not inherit it.

#[cfg(target_arch = "x86_64")]
mod calls;
#[cfg(target_arch = "x86_64")]
mod context;
#[cfg(target_arch = "x86_64")]
mod dispatch;
#[cfg(target_arch = "x86_64")]
mod handler;
#[cfg(target_arch = "x86_64")]
mod kernel;
#[cfg(target_arch = "x86_64")]
mod log;
#[cfg(target_arch = "x86_64")]
mod names;
#[cfg(target_arch = "x86_64")]
mod paths;
#[cfg(target_arch = "x86_64")]
mod recording;
#[cfg(not(target_arch = "x86_64"))]
#[path = "unsupported.rs"]
mod recording;
#[cfg(target_arch = "x86_64")]
mod replay;
#[cfg(target_arch = "x86_64")]
mod sight;
#[cfg(target_arch = "x86_64")]
mod signals;

#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use calls::is_known as knows;

use std::io;

use serde::{Deserialize, Serialize};

use crate::bounded;

/// What a file was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The file type bits of the mode (`S_IFMT`) and the permission bits.
    pub mode: u32,
    /// The inode's number; 0 for directories, whose number is not the same through a layer.
    pub ino: u64,
    /// Bytes; 0 for directories.
    pub size: u64,
    /// Last change of the content, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of the content or the inode, in nanoseconds since 1970.
    pub ctime_ns: i64,
}

/// How much of a file was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Way {
    /// Whether it is there, of what kind, and for whom (the mode; not the times): `lstat` of a
    /// directory, as on the way of `realpath`; `access` to a directory or a device, and opening one.
    Passed,
    /// Its content, or its metadata.
    Read,
    /// The names in a directory.
    Listed,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Absolute, as the process named it: symbolic links and `..` are still in it.
    pub path: Vec<u8>,
    /// How much was seen, the most of all times.
    pub way: Way,
    /// The name itself was looked at (`lstat`): where it is a symbolic link, not what that leads
    /// to. To be compared in the same way.
    pub link: bool,
    /// What it was the first time; `None`: it was not there, or could not be asked for.
    pub found: Option<Identity>,
    /// A moment just before that, in nanoseconds since 1970 (`CLOCK_REALTIME`): a later change has
    /// no earlier time, but for the kernel's clock tick.
    pub at_ns: i64,
}

/// What a process did that no list of files tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unseen {
    /// It tried to make a process or to execute a program. It was refused.
    Process,
    /// It tried to make a thread. It was refused.
    Thread,
    /// It connected to, or sent to, an address.
    Connection,
    /// It looked at more than there was room for, or at what no path tells: through a descriptor
    /// from before, a handle, a mount of its own, a link that it made or a directory that it moved.
    TooMuch,
}

/// Paths of a kind that a record has at most, as a host reads it: far more than an application has
/// files that it boots with.
pub const PATHS_MAX: usize = 50_000;

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Each path once, in the order of the first look; twice where it is a symbolic link that was
    /// looked at both as such and as what it leads to.
    #[serde(deserialize_with = "bounded::at_most::<PATHS_MAX, _, _>")]
    pub looks: Vec<Look>,
    /// Paths that the process itself made, changed or removed. What is looked at there or below
    /// after that is its own doing, and is not among the looks; what it was before, is.
    #[serde(deserialize_with = "bounded::at_most::<PATHS_MAX, _, _>")]
    pub written: Vec<Vec<u8>>,
    /// Each kind once.
    #[serde(deserialize_with = "bounded::at_most::<8, _, _>")]
    pub unseen: Vec<Unseen>,
}

/// Records the calls of the calling thread, which has to be the process's only one, until it is
/// ended or dropped.
///
/// While it is on, the process makes no process and no thread (`EPERM`, `EAGAIN`), `SIGSYS` cannot
/// be blocked, and its handler cannot be changed. Afterwards nothing of it is left, but that no
/// handler from that time holds `SIGSYS` back while it runs.
///
/// What it cannot see: files that are read through descriptors from before or from another process,
/// and what is read from other than files (the clock, the environment).
///
/// ```
/// use altair_sandbox::Recorder;
///
/// # fn main() -> std::io::Result<()> {
/// # if !cfg!(target_arch = "x86_64") { return Ok(()); }
/// let recorder = Recorder::begin()?;
/// let _ = std::fs::read("/etc/hostname");
/// let record = recorder.end();
/// assert_eq!(record.looks[0].path, b"/etc/hostname");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recorder(recording::Recording);

impl Recorder {
    /// Begins. To be called before a filter forbids it (`prctl` with `PR_SET_SYSCALL_USER_DISPATCH`).
    ///
    /// # Errors
    /// `ENOSYS`/`EINVAL` where the architecture or the kernel (before 5.11) has no such dispatch;
    /// `EBUSY` where one is on already; `ENOMEM` where 32 MiB of address space are not to be had.
    pub fn begin() -> io::Result<Self> {
        recording::Recording::begin().map(Self)
    }

    /// Ends, and gives what was seen.
    #[must_use]
    pub fn end(self) -> Record {
        self.0.end()
    }
}
