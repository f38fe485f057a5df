//! A system call that was refused, as the host learns of it.

use std::path::PathBuf;

/// A system call that a process made and that its filter refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// `socket`.
    Socket {
        /// `AF_…`.
        family: i32,
        /// `SOCK_…`, without `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
        kind: i32,
        /// `IPPROTO_…`, or 0 for the one that goes with the kind.
        protocol: i32,
    },
    /// `connect`: the address in words (`127.0.0.1:80`, `[::1]:80`, a socket's path, `@name` for an
    /// abstract one), where it could be read.
    Connect {
        /// Where to.
        to: Option<String>,
    },
    /// `connect` to where the process may connect to, and the host could not do it for it.
    Unserved {
        /// Where to.
        to: String,
        /// Why not: it has no copy of the process's socket.
        because: String,
    },
    /// `bind`, `listen` or `accept`: the address in words, where there is one and it could be read.
    Listen {
        /// Where.
        at: Option<String>,
    },
    /// `execve` or `execveat`, with the path as it was given, where it could be read.
    Execute {
        /// The program.
        path: Option<PathBuf>,
    },
    /// `fork`, `vfork` or `clone` of a process.
    Process,
    /// `clone` of a further thread.
    Thread {
        /// How many a process may have.
        most: usize,
    },
    /// A lock on a range of a file, of so many that the host has ended the process.
    FileLock {
        /// How many a process may have.
        most: usize,
    },
    /// `kill` and its kind.
    Signal {
        /// Whom: a process id, or as kill(2) has it.
        pid: i32,
        /// Which, by number.
        signal: i32,
    },
    /// `link` or `symlink`.
    Link,
    /// Looking into another process: `ptrace`, `process_vm_readv`, `pidfd_getfd`, …
    Inspect {
        /// The system call's name.
        call: &'static str,
    },
    /// Another call that only an attempt on the system makes: `mount`, `unshare`, `bpf`, …
    Kernel {
        /// The system call's name.
        call: &'static str,
    },
}
