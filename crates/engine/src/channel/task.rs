//! What a host has a child do.

use altair_sandbox::{FinalGuards, Limits, Renewal};
use serde::{Deserialize, Serialize};

use super::Secret;
use crate::arguments::Arguments;
use crate::encode::Limits as ValueLimits;
use crate::guards::Insisted;
use crate::sql::Mode;

/// The version both ends must share: this crate's, so that an extension and a command of two
/// builds do not misread each other.
pub const PROTOCOL: &str = concat!("altair-eval ", env!("CARGO_PKG_VERSION"));

/// What the child is to do. A fork of a template gets one of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// [`PROTOCOL`] of the host.
    pub protocol: String,
    /// What authenticates the child's messages.
    pub secret: Secret,
    /// The host's process id: a signal of its is the deadline's.
    pub host: i32,
    /// The project root, absolute.
    pub root: Vec<u8>,
    /// The file that returns the container, absolute.
    pub bootstrap: Option<Vec<u8>>,
    /// Whether the kernel caps the process's memory.
    pub capped: bool,
    /// Whether the child is in a private root, where nothing is that is not to be read.
    pub private_root: bool,
    /// What is taken away once boot is over; `None` for an unsafe run, and for the fork of a
    /// template, which finds it done.
    pub restrictions: Option<Restrictions>,
    /// How database sessions are watched, those that boot opens included; `None`: not at all, and for
    /// the fork of a template, which finds it done.
    pub watched: Option<Watched>,
    /// What for.
    pub work: Work,
}

/// What a child is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// One snippet.
    Snippet(SnippetTask),
    /// To boot, and to fork a child for each snippet.
    Template(TemplateTask),
}

/// One snippet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnippetTask {
    /// The code.
    pub snippet: Vec<u8>,
    /// The guards to take before boot, or by a fork of a template before the snippet.
    pub guards: FinalGuards,
    /// Those of them without which nothing may run.
    pub insist: Vec<Insisted>,
    /// The limits that a fork of a template takes; other children have theirs by then.
    pub limits: Limits,
    /// `memory_limit`, in bytes, once boot is over; `None` for an unsafe run.
    pub memory_limit_bytes: Option<u64>,
    /// Whether statements of databases are told of.
    pub queries: bool,
    /// Variables of the snippet.
    pub arguments: Arguments,
    /// How much of its value is shown.
    pub shown: ValueLimits,
}

/// What a template is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateTask {
    /// Descriptors that it may have open at a time. Its first filter comes after the task, as a packet
    /// of its own.
    pub descriptors: Option<u64>,
    /// Whether its forks take Landlock, which it cannot.
    pub landlock: bool,
    /// The last guards of its forks without which nothing may run, boot included.
    pub insist: Vec<Insisted>,
    /// What its forks mount anew.
    pub renewal: Renewal,
    /// Milliseconds without a request after which it ends.
    pub idle_ms: u64,
}

/// What PHP's own switches take away once boot is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restrictions {
    /// ini settings, name and value.
    pub ini: Vec<(String, String)>,
    /// Functions and who may not call them.
    pub functions: Vec<Restricted>,
    /// Paths beside the project that PHP's own file functions may read, where there is no private
    /// root that shows nothing else.
    pub readable: Vec<Vec<u8>>,
}

/// How database sessions are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watched {
    /// What they may do; `None`: all that the account may.
    pub mode: Option<Mode>,
    /// Whether those of SQLite only read: where what is written to the project is thrown away, they
    /// need not.
    pub keeps_sqlite: bool,
}

/// A function that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restricted {
    /// Its name, lower case.
    pub name: String,
    /// Whether only code written in the snippet is refused, and not the application's own.
    pub snippet_only: bool,
    /// The flag that allows it.
    pub lift: String,
}
