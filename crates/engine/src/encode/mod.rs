//! How values and exceptions look in an answer: typed, bounded, the same for every caller.
//!
//! The shapes and their bounds are decided here, on a [`Node`] that says what a value is; the
//! extension implements `Node` for PHP's values, the tests for trees of their own.

mod budget;
mod exception;
mod read;
mod value;

pub use exception::{
    Code, ExceptionView, Frame, MAX_PREVIOUS_CHAIN, MAX_TRACE_FRAMES, Previous, encode_exception,
    format_frames,
};
pub(crate) use read::read_bounded;
pub use read::{EXCEPTION_MAX_BYTES, read_exception, read_value};
pub use value::{
    Ended, ITERABLE_PREVIEW, Key, MAX_DEPTH, MAX_ENTRIES, Node, ObjectShape, STRING_MAX, Shape,
    Step, Thrown, UserCode, VALUE_MAX_BYTES, encode_value,
};

/// What follows a text that was cut.
pub const TRUNCATED: &str = "...(truncated)";

/// The longest prefix of at most `max` bytes that does not end inside a UTF-8 character.
#[must_use]
pub fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// `text` itself where it has at most `max` bytes, else its head with [`TRUNCATED`].
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    if text.len() <= max {
        text.to_owned()
    } else {
        format!("{}{TRUNCATED}", head(text, max))
    }
}
