//! What a host and a pool say to one another.

use altair_engine::Delegation;
use serde::{Deserialize, Serialize};

/// Bytes of a packet's content. Several must fit into a socket buffer of the system's default size
/// (`net.core.wmem_default`, 212992 bytes).
pub(crate) const PACKET_BYTES: usize = 32 * 1024;
/// Bytes of the largest message of a host: a snippet, its arguments and an environment.
pub(crate) const ASK_MAX_BYTES: usize = 32 << 20;
/// Bytes of the largest message of a pool: a result with its output.
pub(crate) const ANSWER_MAX_BYTES: usize = 256 << 20;

/// Bytes of the largest proof, a host's second message: the name that it has found by looking into
/// the pool ([`Answer::Challenge`]).
pub(crate) const PROOF_MAX_BYTES: usize = 1 << 10;

/// What the pool is to do: a host's first message, but for [`Work::Look`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// One evaluation.
    Run {
        delegation: Box<Delegation>,
        /// Whether output is to be streamed.
        listens: bool,
    },
    /// To tell what is there.
    State,
    /// To end.
    Stop,
    /// Before one of the others: to show that the pool may look into the host, which must not tell a
    /// confined process that poses as the pool what it wants. The number of a descriptor of the
    /// host.
    Look { descriptor: i32 },
}

/// What a pool answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The first one to a host that has the pool's rights: the number of a descriptor of the pool,
    /// whose name is the proof. It was made after the host had asked: whoever asks from within a
    /// sandbox cannot have seen it outside.
    Challenge { descriptor: i32 },
    /// The host is served.
    Accepted,
    /// Nothing was done, and the host must do it; why.
    Refused(String),
    /// The pool is at work: a boot is under way.
    Working,
    /// From now on the run has effects.
    Begins,
    /// The run has written something.
    Output {
        is_error: bool,
        #[serde(with = "bytes")]
        chunk: Vec<u8>,
    },
    /// The result, as JSON in its public shape.
    Result(#[serde(with = "bytes")] Vec<u8>),
    /// There is none.
    Failed { is_request: bool, message: String },
    /// What is there, as JSON of [`State`].
    State(#[serde(with = "bytes")] Vec<u8>),
    /// The pool ends.
    Stopping,
    /// The name of the host's descriptor ([`Work::Look`]).
    Seen(String),
}

/// Byte strings as such: `serde` takes a vector for a sequence of numbers.
mod bytes {
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl serde::de::Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
            fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(bytes)
            }
        }
        from.deserialize_byte_buf(Bytes)
    }
}

/// What a pool holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub age_seconds: u64,
    /// Requests that it has served.
    pub served: u64,
    /// Runs under way.
    pub running: usize,
    /// Its templates, the last used first.
    pub templates: Vec<TemplateState>,
}

/// One template of a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TemplateState {
    /// The application.
    pub root: String,
    /// `booting`, `ready`, `unforkable` (the application boots in each run) or `unable`.
    pub state: String,
    /// Its process id, if it has one.
    pub pid: Option<i32>,
    /// Seconds since it was asked for first.
    pub age_seconds: u64,
    /// Seconds since it was used last.
    pub idle_seconds: u64,
    /// How often it was used.
    pub uses: u64,
    /// Bytes of memory that it shares with no other process (`Pss` of `/proc/<pid>/smaps_rollup`),
    /// if the kernel tells.
    pub memory_bytes: Option<u64>,
}
