//! Bounds on how much of a value is shown.

use serde::{Deserialize, Serialize};

/// Containers nested this deep below the value itself, which is at depth 0, are named, not shown.
pub const MAX_DEPTH: usize = 3;
/// Items of an iterable that are shown.
pub const ITERABLE_PREVIEW: usize = 50;
/// Bytes of a string that are shown.
pub const STRING_MAX: usize = 10_000;
/// Entries of an array that are shown.
pub const MAX_ENTRIES: usize = 1_000;
/// Bytes of a whole encoded value as compact JSON: still readable for a language model, and far
/// below the channel's capacity.
pub const VALUE_MAX_BYTES: usize = 1 << 20;

/// How much of a value is shown, where a request says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Containers nested this deep are named, not shown; the value itself is at depth 0.
    pub depth: usize,
    /// Entries of an array and properties of an object.
    pub entries: usize,
    /// Items of an iterable.
    pub preview: usize,
    /// Bytes of a string.
    pub string: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: MAX_DEPTH,
            entries: MAX_ENTRIES,
            preview: ITERABLE_PREVIEW,
            string: STRING_MAX,
        }
    }
}

/// Bytes of a class name, display text or message inside a value that are shown.
pub(super) const LABEL_MAX: usize = 1_000;
/// Bytes that every container reserves for its own marks (`truncated`, `hint`, `exhausted`, brackets)
/// and gives back when it is finished.
pub(super) const MARKS: usize = 128;
/// Values that are looked at, in one encoding, to say which depth would show all of what was cut.
pub(super) const LOOKED_AHEAD: usize = 500;
