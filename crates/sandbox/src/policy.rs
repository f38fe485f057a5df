//! What a process may do, as plain data.

use crate::{Connections, Limits, Privileges, View};

/// What one process may do. The guards are derived from it; nothing else decides.
///
/// The process guard (own session, closed descriptors, no core file, ends with its host) and the
/// deadline are no part of it: they are always on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Resource limits.
    pub limits: Limits,
    /// Whether the process keeps what its host may do.
    pub privileges: Privileges,
    /// The files that are there; `None`: those of the host.
    pub view: Option<View>,
    /// Where it may connect to; matters behind a filter that permits the sockets for it
    /// ([`Seccomp`](crate::Seccomp)).
    pub connections: Connections,
    /// Whether files that it makes outlive it. They then get the modes that the host's umask gives;
    /// else they are its own user's only.
    pub makes_real_files: bool,
}

impl Policy {
    /// No limit but "no core file", and all the privileges of the host.
    #[must_use]
    pub fn unconfined() -> Self {
        Self {
            limits: Limits::default(),
            privileges: Privileges::Keep,
            view: None,
            connections: Connections::default(),
            makes_real_files: true,
        }
    }
}
