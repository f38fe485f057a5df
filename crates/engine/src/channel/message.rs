//! What a child says.

use altair_sandbox::Record;
use altair_sandbox::bounded::at_most;
use serde::{Deserialize, Serialize};

use crate::encode::EXCEPTION_MAX_BYTES;
use crate::guards::ToldStates;
use crate::queries::News;
use crate::result::{Blocked, Location, Phase};

/// The longest message that is put together: a boot's record of what it looked at.
pub const MESSAGE_MAX_BYTES: usize = 8 << 20;

/// Entries of a list of guards that are read.
pub(super) const GUARDS_MAX: usize = 16;
/// Variables that a child tells of at most.
pub const VARIABLES_MAX: usize = 4096;
/// Bytes of variables, names and values, that a child tells of at most.
pub const VARIABLES_MAX_BYTES: usize = 256 << 10;
/// Paths of ini files that a template tells of at most.
pub const INI_MAX: usize = 1000;

/// Bytes of messages by kind, in the order of [`Message`], as far as a host puts them together: what
/// the longest of each takes. A child that is not what it should be could have its host take memory
/// for as many messages as it likes, each of them as long as it likes, and many times as much as it
/// sends for what is in them.
pub(super) const KIND_MAX_BYTES: [usize; 12] = [
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
];

/// What the child says.
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
        /// Guard → state, of the guards that the child itself puts on.
        #[serde(deserialize_with = "at_most::<GUARDS_MAX, _, _>")]
        guards: ToldStates,
        /// When the fork of a template began, as in `Entered`, which it does not say besides: all
        /// that it does until it is ready is to take its guards.
        entered_ns: Option<u64>,
    },
    /// The deadline's signal met the code here.
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
    /// The guards that were taken before boot.
    Guarded {
        /// Guard → state.
        #[serde(deserialize_with = "at_most::<GUARDS_MAX, _, _>")]
        guards: ToldStates,
    },
    /// The child itself has refused something. Said once for each thing, as it happens.
    Refused(Blocked),
    /// One of PHP's own file functions could not open a file outside of what is there to be
    /// opened. Said once for each file, as it happens.
    Outside(Outside),
    /// Variables that boot has left, of those that may hold secrets: name and value.
    Variables(
        #[serde(deserialize_with = "at_most::<VARIABLES_MAX, _, _>")] Vec<(Vec<u8>, Vec<u8>)>,
    ),
    /// A template waits for requests.
    Booted(BootReport),
    /// A template, or a fork of one, cannot do its work, and ends.
    Unable {
        /// Why, in words for the user.
        why: String,
    },
    /// There is a second thread, which would stay free of the guards. The child waits for its end.
    SecondThread,
    /// Statements that were sent to databases, and what they have changed.
    Queries(News),
}

/// What a template has to say of its boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootReport {
    /// How long boot took, in microseconds.
    pub boot_us: u64,
    /// What boot looked at; `None` where that cannot be seen, with the reason.
    pub record: Result<Record, String>,
    /// The ini files that PHP has read, and the directories in which it looked for them.
    #[serde(deserialize_with = "at_most::<INI_MAX, _, _>")]
    pub ini: Vec<Vec<u8>>,
}

/// How a run ended, as the child saw it.
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
}

/// A file outside of what a run may touch, that it tried to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// The path, absolute.
    pub path: Vec<u8>,
    /// Whether it was to be written, made or removed.
    pub write: bool,
    /// What the system said; 0 where PHP's own `open_basedir` refused.
    pub errno: i32,
}

/// The ways in which a child can end and still say so.
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
        /// What PHP said.
        message: String,
        /// Where.
        location: Location,
    },
    /// Memory ran out.
    OutOfMemory {
        /// What PHP said.
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

/// [`Message`] as far as a signal handler needs it: the variants stand in the same order.
#[derive(Serialize)]
#[allow(dead_code)] // Entered and Ready hold Stopped's place.
pub(super) enum MessageRef<'a> {
    Entered,
    Ready,
    Stopped(&'a StoppedRef<'a>),
}
