//! What a host and a pool say to one another.

use std::borrow::Cow;

use altair_engine::Delegation;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Bytes of a packet's content. Several must fit into a socket buffer of the system's default size
/// (`net.core.wmem_default`, 212992 bytes).
pub(crate) const PACKET_BYTES: usize = 32 * 1024;
/// Bytes of the largest message of a host: a snippet, its arguments and an environment.
pub(crate) const ORDER_MAX_BYTES: usize = 32 << 20;
/// Bytes of the largest message of a pool: a result with its output.
pub(crate) const ANSWER_MAX_BYTES: usize = 256 << 20;

/// Bytes of the largest [`Intent`] and [`Proof`].
pub(crate) const SHORT_MAX_BYTES: usize = 1 << 10;

/// The first message of a host. What it is going to ask for is settled with it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// `None`: it knows the pool.
    pub shows: Option<Shows>,
    /// Whether it asks again over this connection, if it may.
    pub keeps: bool,
    /// [`digest`] of [`Order::work`].
    pub digest: [u8; 32],
}

/// A descriptor, whose name the pool finds by looking. A host tells nothing more before: a confined
/// process could pose as the pool.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Shows {
    /// The process id of a child of the host, which has the descriptor. `None`: the host has it.
    pub witness: Option<i32>,
    /// Its number.
    pub descriptor: i32,
}

/// The second message of a host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// A [`Salted`].
    #[serde(with = "bytes")]
    pub work: Vec<u8>,
}

/// The third message of a host: the name that it has found by looking into the pool
/// ([`Answer::Looked`]).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub name: String,
}

/// What a host asks for over a connection that it keeps.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Again<'w> {
    /// The name that it has found by looking into the pool ([`Next`]).
    pub name: String,
    pub work: Work<'w>,
}

/// What the pool is to do, with a number that keeps others from guessing it by its digest.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Salted<'w> {
    pub salt: [u8; 16],
    pub work: Work<'w>,
}

/// What an [`Intent`] tells of [`Order::work`].
pub(crate) fn digest(work: &[u8]) -> [u8; 32] {
    Sha256::digest(work).into()
}

/// What the pool is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
// There is one at a time, which a host borrows.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Work<'w> {
    /// One evaluation.
    Run {
        delegation: Cow<'w, Delegation>,
        /// Whether output is to be streamed.
        listens: bool,
    },
    /// To tell what is there.
    State,
    /// To end.
    Stop,
}

/// What a host needs for its next request over the same connection: numbers of descriptors of the pool.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Next {
    /// The one whose name is the host's proof.
    pub proof: i32,
    /// The [`Permit`](crate::permit::Permit) of each request.
    pub permit: i32,
}

/// What a pool answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The first one: the pool looks at the host, or has looked. The name of the host's descriptor
    /// ([`Intent`]), if it has told one, and the number of one of the pool, whose name is the host's
    /// proof. It was made when it was settled what the host asks for: whoever settles that within a
    /// sandbox cannot have seen it outside.
    Looked {
        name: Option<String>,
        descriptor: i32,
    },
    /// Nothing was done, and the host must do it; why.
    Refused(String),
    /// The run has not begun: a boot is under way, or was. That it begins will be told. A host that is
    /// not told of a boot takes it that its run has begun, or looks for its
    /// [`Permit`](crate::permit::Permit): to tell it would wake it while its run needs the processors.
    Working,
    /// The run begins, after [`Answer::Working`].
    Begins,
    /// The run has written something.
    Output {
        is_error: bool,
        #[serde(with = "bytes")]
        chunk: Vec<u8>,
    },
    /// The result, as JSON of an `EvalResult`.
    Result {
        #[serde(with = "bytes")]
        json: Vec<u8>,
        /// `None`: the pool does not keep the connection.
        next: Option<Next>,
    },
    /// There is none.
    Failed { is_request: bool, message: String },
    /// What is there, as JSON of [`State`].
    State {
        #[serde(with = "bytes")]
        json: Vec<u8>,
        next: Option<Next>,
    },
    /// The pool ends.
    Stopping,
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
    /// Forks of it that wait for a task.
    pub spares: usize,
    /// Bytes of memory that it shares with no other process (`Pss` of `/proc/<pid>/smaps_rollup`),
    /// if the kernel tells.
    pub memory_bytes: Option<u64>,
}
