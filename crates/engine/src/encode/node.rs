//! How a value describes itself to the encoder.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::bounds::LABEL_MAX;
use super::shorten;

/// Application code that ran to inspect a value ended the whole run, by `exit` or a fatal error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended;

/// The outcome of application code that ran to inspect a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserCode<T> {
    /// It returned this.
    Gave(T),
    /// It threw.
    Threw(Thrown),
    /// It ended the run.
    Ended,
}

/// An exception thrown by application code while a value was inspected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thrown {
    /// Its class.
    pub class: String,
    /// Its message.
    pub message: String,
}

/// The key of an array entry or a property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// An integer key.
    Int(i64),
    /// A string key, any bytes.
    Bytes(Vec<u8>),
}

impl Key {
    pub(super) fn text(&self) -> String {
        match self {
            Key::Int(n) => n.to_string(),
            Key::Bytes(bytes) => shorten(&String::from_utf8_lossy(bytes), LABEL_MAX),
        }
    }
}

/// One step of an iteration.
#[derive(Debug)]
pub enum Step<N> {
    /// A key and a value.
    Item(N, N),
    /// The end.
    Done,
}

/// What a value is.
pub enum Shape<'a, N: Node> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string of any bytes.
    Bytes(Cow<'a, [u8]>),
    /// An array.
    Array {
        /// Whether its keys are 0, 1, 2 ….
        is_list: bool,
        /// How many entries it has.
        count: usize,
        /// The entries, in order.
        entries: Box<dyn Iterator<Item = (Key, N)> + 'a>,
    },
    /// An object that is not a `Traversable`.
    Object(ObjectShape),
    /// A `Traversable`.
    Iterable {
        /// Its class.
        class: String,
        /// Its id while the process lives.
        id: u32,
    },
    /// A resource, by its kind.
    Resource(String),
}

/// What is known about an object without running any code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectShape {
    /// Its class.
    pub class: String,
    /// Its id while the process lives.
    pub id: u32,
    /// A one-line description: a date, a closure's place.
    pub display: Option<String>,
    /// The name of an enum's case.
    pub case: Option<String>,
}

/// A value that can be inspected.
pub trait Node: Sized {
    /// The value's shape. Runs no code of the application.
    fn shape(&self) -> Shape<'_, Self>;
    /// The backing value of a backed enum's case.
    fn backing(&self) -> Option<Self>;
    /// An object's properties, from `__debugInfo` or its public properties.
    fn properties(&self) -> UserCode<Vec<(Key, Self)>>;
    /// `count()` of a `Countable`, `None` for other objects.
    fn size_hint(&self) -> UserCode<Option<i64>>;
    /// Starts an iteration (`first`) or continues it, and returns the current item.
    fn step(&self, first: bool) -> UserCode<Step<Self>>;
}
