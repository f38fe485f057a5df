//! What a process looks at: its own system calls, seen by Syscall User Dispatch
//! (Documentation/admin-guide/syscall-user-dispatch.rst) while it is on.
//!
//! A filter of seccomp would see the same, and stay with the process and all its forks. Dispatch is
//! switched off by writing one byte, and a fork does not inherit it.

use std::io;

use serde::{Deserialize, Serialize};

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
    /// Whether it is there, and what kind of file it is: `lstat` of a directory, as on the way of
    /// `realpath`.
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
    /// What it was the first time; `None`: it was not there.
    pub found: Option<Identity>,
    /// When that was, in nanoseconds since 1970 (`CLOCK_REALTIME`).
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
    /// It looked at more than there was room for.
    TooMuch,
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Each path once, in the order of the first look.
    pub looks: Vec<Look>,
    /// Paths that the process itself made, changed or removed. What is looked at there after that
    /// is its own doing, and is not among the looks.
    pub written: Vec<Vec<u8>>,
    /// Each kind once.
    pub unseen: Vec<Unseen>,
}

/// Records the calls of the calling thread, which has to be the process's only one, until it is
/// ended.
#[derive(Debug)]
pub struct Recorder(());

impl Recorder {
    /// Begins. To be called before a filter forbids it (`prctl` with `PR_SET_SYSCALL_USER_DISPATCH`).
    ///
    /// # Errors
    /// `ENOSYS`/`EINVAL` where the kernel (before 5.11) or the architecture has no such dispatch.
    pub fn begin() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends, and gives what was seen.
    #[must_use]
    pub fn end(self) -> Record {
        Record::default()
    }
}
