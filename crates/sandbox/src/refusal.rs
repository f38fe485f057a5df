//! Refused system calls, as reported to the host.

use std::path::PathBuf;

use crate::Listener;

/// A system call that a process made and its filter refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// `socket`.
    Socket {
        /// `AF_…`.
        family: i32,
        /// `SOCK_…`, without `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
        kind: i32,
        /// `IPPROTO_…`, or 0 for the kind's default.
        protocol: i32,
    },
    /// `connect`, with the address in words (`127.0.0.1:80`, `[::1]:80`, a socket's path, `@name`
    /// for an abstract one) if it could be read.
    Connect {
        /// The address.
        to: Option<String>,
    },
    /// `connect` to a permitted address that the host could not make for the process.
    Unserved {
        /// The address, or in words which.
        to: String,
        /// Why: the host has no copy of the process's socket, or no thread that could connect it.
        because: String,
    },
    /// `connect` to an address that only the project declares, whose word does not suffice there.
    NotByProject {
        /// The address, as for [`Refusal::Connect`].
        to: String,
        /// Who listens there; `None`: no project may name this address, whoever listens.
        listener: Option<Listener>,
    },
    /// `bind`, `listen` or `accept`, with the address in words if there is one and it could be
    /// read.
    Listen {
        /// The address.
        at: Option<String>,
    },
    /// `execve` or `execveat`, with the path as given if it could be read.
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
    /// Another process or thread of a command, by the host's count.
    TooManyProcesses {
        /// How many it may have.
        most: usize,
    },
    /// A lock on a range of a file, by a process with so many that the host has ended it.
    FileLock {
        /// How many a process may have.
        most: usize,
    },
    /// `kill` and similar calls.
    Signal {
        /// The target: a process id, or another value as in kill(2).
        pid: i32,
        /// The signal's number.
        signal: i32,
    },
    /// `link` or `symlink`.
    Link,
    /// Inspecting another process: `ptrace`, `process_vm_readv`, `pidfd_getfd`, …
    Inspect {
        /// The system call's name.
        call: &'static str,
    },
    /// Another call that only an attack on the system makes: `mount`, `unshare`, `bpf`, …
    Kernel {
        /// The system call's name.
        call: &'static str,
    },
}
