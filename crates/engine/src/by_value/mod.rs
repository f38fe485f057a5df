//! PHP values as bytes: null, booleans, integers, floats, strings, and arrays of these. Objects, resources and
//! references are not among them: what has such decides before it writes.
//!
//! | value | bytes |
//! | --- | --- |
//! | null, false, true | a tag |
//! | integer | a tag, the number in zigzag as a varint |
//! | float | a tag, eight bytes, bit for bit |
//! | string | a tag, its length as a varint, its bytes |
//! | list | a tag, its length as a varint, its values |
//! | map | a tag, its length as a varint, and for each entry its key, as an integer or a string, and its value |
//!
//! A varint is a number in groups of seven bits, the low ones first, each but the last with the high bit set. It
//! has no more bytes than it needs, so that a value has one form only.
//!
//! [`Writer`] makes them, for a process that trusts its own values. [`Reader`] trusts nothing: whoever wrote them may
//! want to harm who reads.

pub mod memory;
mod reader;
#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
pub mod value;
mod writer;

pub use reader::{Build, Malformed, Reader, read};
pub use writer::{Full, Writer};

/// How deep arrays may be nested in each other, so that what walks them recursively, as PHP's own destructors do, has
/// the stack for it. For writers and readers alike.
pub const DEPTH_MAX: usize = 4096;

/// The most entries of an array: PHP has no larger ones.
pub const ENTRIES_MAX: usize = 1 << 30;

/// The key of an entry of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key<'a> {
    /// An integer.
    Int(i64),
    /// A string, which may be a number, as PHP has it in few tables: [`Build::key`] decides what becomes of that.
    String(&'a [u8]),
}

/// A value that is no array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float, with all its bits.
    Float(f64),
    /// A string of any bytes.
    String(&'a [u8]),
}

/// The first byte of a value.
mod tag {
    pub const NULL: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const INT: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const STRING: u8 = 5;
    pub const LIST: u8 = 6;
    pub const MAP: u8 = 7;
}
