//! The messages of a child.

use std::time::Duration;

use altair_sandbox::Record;
use altair_sandbox::bounded::at_most;
use serde::{Deserialize, Serialize};

use crate::encode::EXCEPTION_MAX_BYTES;
use crate::guards::ToldStates;
use crate::hints::HINTS_MAX;
use crate::queries::News;
use crate::result::{Blocked, Location, Phase};
use crate::shell::{Completion, Judgement};

/// The longest message that a host assembles: a boot's record of what it accessed.
pub const MESSAGE_MAX_BYTES: usize = 8 << 20;

/// Entries of a list of guards to read.
pub(super) const GUARDS_MAX: usize = 16;
/// The maximum number of variables that a child reports.
pub const VARIABLES_MAX: usize = 4096;
/// The maximum bytes of variables, names and values, that a child reports.
pub const VARIABLES_MAX_BYTES: usize = 256 << 10;
/// The maximum number of short class names of a snippet that are looked up.
pub const RESOLVED_MAX: usize = 16;
/// The maximum bytes of the name of a class that is found for a short one.
pub const RESOLVED_MAX_BYTES: usize = 255;
/// The maximum number of variables that a child tells it has looked for in vain.
pub const SOUGHT_MAX: usize = 256;
/// The maximum bytes of the name of such a variable.
pub const SOUGHT_NAME_MAX_BYTES: usize = 255;
/// The maximum number of files that a message of loaded ones names.
pub const LOADED_MAX: usize = 100;
/// The maximum number of variables that a session names.
pub const VARIABLES_NAMED_MAX: usize = 100;
/// The maximum number of ini file paths that a template reports.
pub const INI_MAX: usize = 1000;

/// The maximum bytes of a message that a host assembles, by kind in the order of [`Message`]: what
/// the longest of each kind takes. Without these bounds a compromised child could make its host
/// allocate memory for messages of any number and length, and many times the bytes sent for their
/// contents.
pub(super) const KIND_MAX_BYTES: [usize; 16] = [
    64,                               // Entered
    16 << 10,                         // Ready
    32 << 10,                         // Stopped: one packet
    EXCEPTION_MAX_BYTES + (64 << 10), // Report: an exception, or less
    16 << 10,                         // Guarded
    64 << 10,                         // Refused: names of functions, statements of SQL
    64 << 10,                         // Outside: a path
    2 * VARIABLES_MAX_BYTES,          // Variables: with the length of each
    MESSAGE_MAX_BYTES,                // Booted
    16 << 10,                         // Unable
    64,                               // SecondThread
    256 << 10,                        // Queries: with the text of each
    16 << 10,                         // Resolved
    EXCEPTION_MAX_BYTES + (64 << 10), // Left: as a report
    512 << 10,                        // Loaded
    128 << 10,                        // Sought
];

/// A message from the child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The child's own code has begun. The first message of every run.
    Entered {
        /// When, in nanoseconds of `CLOCK_MONOTONIC`, which both processes share.
        at_ns: u64,
    },
    /// Boot is over and the guards are on; the snippet is next.
    Ready {
        /// How long boot took, in microseconds.
        boot_us: u64,
        /// The states of the guards that the child itself applies.
        #[serde(deserialize_with = "at_most::<GUARDS_MAX, _, _>")]
        guards: ToldStates,
        /// When the fork of a template began, as in `Entered`, which a fork does not send: until it
        /// is ready it only applies its guards.
        entered_ns: Option<u64>,
        /// When boot was over, by [`timestamp`](crate::file_changes::timestamp).
        boot_ended: Duration,
    },
    /// The deadline's signal interrupted the code here.
    Stopped {
        /// What was under way.
        phase: Phase,
        /// Where.
        location: Option<Location>,
        /// PHP's real peak, in bytes.
        memory_peak_bytes: u64,
    },
    /// How it ended. The last message.
    Report(Report),
    /// The guards that were applied before boot.
    Guarded {
        /// Their states.
        #[serde(deserialize_with = "at_most::<GUARDS_MAX, _, _>")]
        guards: ToldStates,
    },
    /// The child itself has refused something. Sent once for each thing, as it happens.
    Refused(Blocked),
    /// One of PHP's own file functions could not open a file outside the accessible paths. Sent
    /// once for each file, as it happens.
    Outside(Outside),
    /// Variables left by boot that may hold secrets: name and value.
    Variables(
        #[serde(deserialize_with = "at_most::<VARIABLES_MAX, _, _>")] Vec<(Vec<u8>, Vec<u8>)>,
    ),
    /// A template is ready for requests.
    Booted(BootReport),
    /// A template, or a fork of one, cannot do its work and ends.
    Unable {
        /// Why, in words for the user.
        why: String,
    },
    /// There is a second thread, which the guards would not cover. The child waits to be ended.
    SecondThread,
    /// Statements that were sent to databases, and their changes.
    Queries(News),
    /// Short class names of the snippet that mean classes of the project, and those classes. Sent
    /// once, before the snippet runs.
    Resolved(#[serde(deserialize_with = "at_most::<RESOLVED_MAX, _, _>")] Vec<(String, String)>),
    /// An isolated PHP has done what it was asked, and waits for the next order.
    Left(Left),
    /// Files that the code of a session has loaded, each told once.
    Loaded(#[serde(deserialize_with = "at_most::<LOADED_MAX, _, _>")] Vec<Vec<u8>>),
    /// Names of variables of the environment that PHP looked for and that are not there, each told
    /// once. Which of them the host has only the host knows.
    Sought(#[serde(deserialize_with = "at_most::<SOUGHT_MAX, _, _>")] Vec<Vec<u8>>),
}

/// How an entry ended in an isolated PHP that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Left {
    /// The closure returned. Its value came before, in packets of its own.
    Returned,
    /// The closure was cut short.
    CutShort(Ending),
    /// The closure was not entered, or its value does not travel; why, in words for the user.
    Refused(String),
    /// A line has ended.
    Ran {
        /// How.
        report: Report,
        /// Whether the host's signal ended it.
        was_stopped: bool,
        /// The names of the session's variables now, without `$`.
        #[serde(deserialize_with = "at_most::<VARIABLES_NAMED_MAX, _, _>")]
        variables: Vec<String>,
    },
    /// Whether a text is a whole snippet.
    Judged(Judgement),
    /// What may stand at the end of a text.
    Completed(Completion),
}

/// A template's report of its boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootReport {
    /// How long boot took, in microseconds.
    pub boot_us: u64,
    /// What boot accessed, or why that could not be observed.
    pub record: Result<Record, String>,
    /// The ini files that PHP has read, and the directories in which it searched for them.
    #[serde(deserialize_with = "at_most::<INI_MAX, _, _>")]
    pub ini: Vec<Vec<u8>>,
}

/// How a run ended, according to the child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The ending itself.
    pub ending: Ending,
    /// What was under way.
    pub phase: Phase,
    /// PHP's real peak, in bytes.
    pub memory_peak_bytes: u64,
    /// How long the snippet took, in microseconds, if it began.
    pub snippet_us: Option<u64>,
    /// How long encoding took, in microseconds, if it began.
    pub encode_us: Option<u64>,
    /// What may have been meant instead of what does not exist.
    #[serde(deserialize_with = "at_most::<HINTS_MAX, _, _>")]
    pub hints: Vec<String>,
}

/// A file outside the accessible paths that a run tried to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// The path, absolute.
    pub path: Vec<u8>,
    /// Whether it was to be written, created or removed.
    pub write: bool,
    /// The system's error number; 0 if PHP's own `open_basedir` refused.
    pub errno: i32,
}

/// The endings that a child can report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The snippet returned; the encoded value as JSON text.
    Returned(String),
    /// An exception left it; encoded, as JSON text.
    Threw(String),
    /// `exit` with this status.
    Exited(u8),
    /// A fatal error.
    Fatal {
        /// PHP's message.
        message: String,
        /// Where.
        location: Location,
    },
    /// Memory ran out.
    OutOfMemory {
        /// PHP's message.
        message: String,
        /// Where, if that is known.
        location: Option<Location>,
    },
    /// The application could not be booted.
    BootFailed {
        /// Why.
        message: String,
        /// The exception, encoded as JSON text, if there was one.
        exception: Option<String>,
    },
}

/// [`Message::Stopped`] with borrowed texts, field by field the same on the wire.
#[derive(Debug, Serialize)]
pub struct StoppedRef<'a> {
    /// What was under way.
    pub phase: Phase,
    /// Where.
    pub location: Option<LocationRef<'a>>,
    /// PHP's real peak, in bytes.
    pub memory_peak_bytes: u64,
}

/// [`Location`] with borrowed texts, field by field the same on the wire.
#[derive(Debug, Serialize)]
pub struct LocationRef<'a> {
    /// The file.
    pub file: &'a str,
    /// The line.
    pub line: u32,
    /// The frames.
    pub stack_trace: &'a [&'a str],
}

/// [`Message`] as far as a signal handler needs it, with its variants in the same order.
#[derive(Serialize)]
#[allow(dead_code)] // Entered and Ready keep Stopped's index.
pub(super) enum MessageRef<'a> {
    Entered,
    Ready,
    Stopped(&'a StoppedRef<'a>),
}
