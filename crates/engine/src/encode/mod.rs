//! The representation of values and exceptions in an answer: typed, bounded, the same for every
//! caller.
//!
//! The shapes and their bounds are decided here, based on [`Node`], which describes a value. The
//! extension implements `Node` for PHP's values, the tests for trees of their own.

mod bounds;
mod budget;
mod casters;
mod compact;
mod exception;
mod hints;
mod node;
mod read;
mod value;

pub use bounds::{ITERABLE_PREVIEW, Limits, MAX_DEPTH, MAX_ENTRIES, STRING_MAX, VALUE_MAX_BYTES};
pub use compact::{COMPACT_MAX_BYTES, compact};
pub use exception::{
    Code, ExceptionView, Frame, MAX_PREVIOUS_CHAIN, MAX_TRACE_FRAMES, Previous, encode_exception,
    format_frames,
};
pub use node::{
    BuiltIn, ClosureView, Ended, Key, Laziness, Node, ObjectKind, ObjectShape, OwnCasters,
    Property, Shape, Step, Thrown, UserCode, Visibility,
};
pub(crate) use read::read_bounded;
pub use read::{EXCEPTION_MAX_BYTES, read_exception, read_value};
pub use value::{Options, encode_value};

/// Appended to a text that was cut.
pub const TRUNCATED: &str = "...(truncated)";

/// The longest prefix of at most `max` bytes that does not end inside a UTF-8 character.
#[must_use]
pub fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// `text` itself if it has at most `max` bytes, otherwise its head with [`TRUNCATED`].
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    if text.len() <= max {
        text.to_owned()
    } else {
        format!("{}{TRUNCATED}", head(text, max))
    }
}
