//! What a process may do, as plain data.

use crate::{Connections, FinalGuards, Limits, Privileges, View};

/// What one process may do. The guards are derived from it; nothing else decides.
///
/// The process guard (own session, closed descriptors, no core file, ends with its host) and the
/// deadline are not part of it: they are always on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Resource limits.
    pub limits: Limits,
    /// Whether the process keeps the host's privileges.
    pub privileges: Privileges,
    /// The files that it sees; `None`: those of the host.
    pub view: Option<View>,
    /// Where it may connect to; only used behind a filter that permits sockets for it
    /// ([`Seccomp`](crate::Seccomp)).
    pub connections: Connections,
    /// Who may access the files that it makes.
    pub made: Made,
    /// Namespaces of its own for what is not files. Only with a view, which has the matching
    /// `/proc`. `None`: those of the host.
    pub spaces: Option<Spaces>,
    /// Guards that it takes right before the program is executed, for a program that does not take
    /// them by itself.
    pub before_exec: Option<FinalGuards>,
}

/// What becomes of the files that a process makes, and so with what umask it starts (umask(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// They end with it: nobody but its own user may access them.
    ForItself,
    /// They outlive it, with the modes that the host would give them.
    AsByHost,
    /// They outlive it, without these permissions.
    Without(u32),
}

/// A process's own namespaces: of processes, of System V IPC and POSIX message queues, and of the
/// machine's name (namespaces(7)). It sees and signals only what it started itself, all of which
/// ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spaces {
    /// Whether it also has a network of its own, in which there is only the loopback interface.
    pub network: bool,
}

impl Policy {
    /// Sets no limit but "no core file", and keeps all privileges of the host.
    #[must_use]
    pub fn unconfined() -> Self {
        Self {
            limits: Limits::default(),
            privileges: Privileges::Keep,
            view: None,
            connections: Connections::default(),
            made: Made::AsByHost,
            spaces: None,
            before_exec: None,
        }
    }
}
