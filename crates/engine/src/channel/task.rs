//! The task that a host gives a child.

use altair_sandbox::{FinalGuards, Landlock, Limits, OwnFiles, Renewal};
use serde::{Deserialize, Serialize};

use super::Secret;
use crate::Caller;
use crate::arguments::Arguments;
use crate::encode::Limits as ValueLimits;
use crate::guards::Insisted;
use crate::sql::Mode;

/// The version that both ends must share: this crate's, so that an extension and a command of
/// different builds do not misread each other.
pub const PROTOCOL: &str = concat!("altair-eval ", env!("CARGO_PKG_VERSION"));

/// What the child is to do. A fork of a template gets one of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// [`PROTOCOL`] of the host.
    pub protocol: String,
    /// Authenticates the child's messages.
    pub secret: Secret,
    /// The host's process id: a signal from it means that the deadline has passed.
    pub host: i32,
    /// The project root, absolute.
    pub root: Vec<u8>,
    /// The file that returns the container, absolute.
    pub bootstrap: Option<Vec<u8>>,
    /// Whether the kernel caps the process's memory.
    pub capped: bool,
    /// Whether the child is in a private root, which contains nothing that may not be read.
    pub private_root: bool,
    /// Whether the host makes unsafe runs: otherwise errors do not advise it.
    pub unsafe_runs: bool,
    /// Where frameworks have their caches, absolute; `None` if they can write to the project.
    pub caches: Option<Vec<u8>>,
    /// Applied once boot is over; `None` for an unsafe run, and for a fork, whose template has
    /// applied them.
    pub restrictions: Option<Restrictions>,
    /// How database sessions are watched, including those that boot opens; `None` if they are not,
    /// and for a fork, whose template has set this up.
    pub watched: Option<Watched>,
    /// The work to do.
    pub work: Work,
}

/// What a child is for.
#[allow(clippy::large_enum_variant)] // one is made for each child
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// One snippet.
    Snippet(SnippetTask),
    /// Boot, and fork a child for each snippet.
    Template(TemplateTask),
    /// Serve one [`Order`] after another.
    Runtime(RuntimeTask),
}

/// The task of an isolated PHP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuntimeTask {
    /// Under which guards it runs.
    pub first: SnippetTask,
    /// Who has started it.
    pub caller: Caller,
}

/// What a host asks of an isolated PHP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Keep a file for the closures in it.
    Keep(SourceFile),
    /// Enter a closure.
    Enter(EntryOrder),
    /// Run a line of a session, whose text follows.
    Line(u64),
    /// Say whether a text, which follows, is a whole snippet.
    Judge(u64),
    /// Say what may stand at the end of a text, which follows.
    Complete(u64),
}

/// A file that closures are made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// The host's number for it.
    pub id: u32,
    /// Its name, as in `__FILE__`.
    pub name: Vec<u8>,
    /// Whether `<?` opens code, as in the host.
    pub short_tags: bool,
    /// How many bytes of it follow, in packets of their own.
    pub bytes: u64,
}

/// A closure to enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryOrder {
    /// The file in which it stands.
    pub source: u32,
    /// Its number among the closures of that file.
    pub number: u32,
    /// Its first and its last line.
    pub lines: (u32, u32),
    /// How many bytes of its arguments follow, in packets of their own.
    pub bytes: u64,
    /// `memory_limit` for this entry, in bytes.
    pub memory_limit_bytes: u64,
    /// The longest value that the host takes back, in bytes.
    pub value_max_bytes: u64,
}

/// One snippet, whose [`Code`] follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnippetTask {
    /// The guards to apply before boot. A fork of a template has them already
    /// ([`TemplateTask::forks`]).
    pub guards: FinalGuards,
    /// Those of them that are required.
    pub insist: Vec<Insisted>,
    /// The limits for a fork of a template to apply; other children already have theirs.
    pub limits: Limits,
    /// `memory_limit` after boot, in bytes; `None` for an unsafe run.
    pub memory_limit_bytes: Option<u64>,
    /// Whether database statements are reported.
    pub queries: bool,
    /// How much of its value is shown.
    pub shown: ValueLimits,
    /// Whether values under secret names, and those that a model hides, are hidden.
    pub redact: bool,
    /// The file by which the application shows its objects, relative to the root; `Err` says why it
    /// cannot be used.
    pub casters: Option<Result<String, String>>,
}

/// What a child runs. It follows the task, so that a fork gets ready for code that the host may still
/// decide against.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Code {
    /// The snippet; of an isolated PHP, what it runs first, which may be nothing.
    pub snippet: Vec<u8>,
    /// Its variables.
    pub arguments: Arguments,
}

/// The task of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateTask {
    /// Whether it boots the application. Without one, its forks start with a PHP and nothing else.
    pub boots: bool,
    /// The guards that its forks apply. The template's first filter follows the task as a separate
    /// packet.
    pub forks: FinalGuards,
    /// The final guards that its forks require. Nothing runs without them, boot included.
    pub insist: Vec<Insisted>,
    /// What it and its forks see of the host's files.
    pub ground: Ground,
    /// Milliseconds without a request after which it ends.
    pub idle_ms: u64,
}

/// What a template and its forks see of the host's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ground {
    /// A private root. Landlock would forbid the mounts that its forks make anew, so the template
    /// itself is without it.
    PrivateRoot(Renewal),
    /// The host's files, behind Landlock.
    HostFiles {
        /// The rules behind which it boots. Its forks take narrower ones.
        landlock: Landlock,
        /// The directory that holds those for temporary files, absolute.
        temp: Vec<u8>,
    },
}

impl Ground {
    /// What each fork gets of its own.
    #[must_use]
    pub fn own_files(&self) -> OwnFiles {
        match self {
            Self::PrivateRoot(renewal) => OwnFiles::Mounts(renewal.clone()),
            Self::HostFiles { .. } => OwnFiles::TempDirectory,
        }
    }
}

/// The restrictions that PHP's own switches apply once boot is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restrictions {
    /// ini settings, name and value.
    pub ini: Vec<(String, String)>,
    /// The refused functions, and whose calls are refused.
    pub functions: Vec<Restricted>,
    /// Paths besides the project that PHP's own file functions may read if there is no private root
    /// to enforce this.
    pub readable: Vec<Vec<u8>>,
}

/// How database sessions are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watched {
    /// What they may do; `None`: whatever the account may do.
    pub mode: Option<Mode>,
    /// Whether SQLite sessions are read-only. They need not be if writes to the project are thrown
    /// away.
    pub keeps_sqlite: bool,
}

/// A function that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restricted {
    /// Its name, lower case.
    pub name: String,
    /// Whether only calls written in the snippet are refused, not those of the application.
    pub snippet_only: bool,
    /// The flag that allows it.
    pub lift: String,
}
