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

impl<T> UserCode<T> {
    /// Its value, or what it threw.
    pub(super) fn result(self) -> Result<Result<T, Thrown>, Ended> {
        match self {
            Self::Gave(value) => Ok(Ok(value)),
            Self::Threw(thrown) => Ok(Err(thrown)),
            Self::Ended => Err(Ended),
        }
    }
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

    /// The bytes of a key that is not UTF-8, so that its text is not the key.
    pub(super) fn unprintable(&self) -> Option<&[u8]> {
        match self {
            Key::Bytes(bytes) if std::str::from_utf8(bytes).is_err() => Some(bytes),
            _ => None,
        }
    }
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::Bytes(name.as_bytes().to_vec())
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
pub enum Shape<'a> {
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
    },
    /// An object.
    Object(ObjectShape),
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
    /// What the language makes of it.
    pub kind: ObjectKind,
}

/// What the language itself makes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectKind {
    /// Nothing special.
    #[default]
    Plain,
    /// A case of an enum.
    Enum,
    /// A `Closure`.
    Closure,
    /// A `Traversable`.
    Traversable,
}

/// Who sees a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Everyone.
    Public,
    /// Its class and those below.
    Protected,
    /// Its class.
    Private,
}

/// A property as it stands in an object's slots.
#[derive(Debug, Clone)]
pub struct Property<N> {
    /// Who sees it.
    pub visibility: Visibility,
    /// The class that declares it, if it is private and hidden by a class below.
    pub hidden_in: Option<String>,
    /// Its name.
    pub name: Key,
    /// Its value; `None` for one that is typed and has none yet.
    pub value: Option<N>,
}

/// A closure's own description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClosureView {
    /// Where it is written, or what it calls.
    pub display: String,
    /// Its parameters as they are written.
    pub parameters: Vec<String>,
}

/// How far the engine has made an object of its own lazy kind (PHP 8.4).
#[derive(Debug)]
pub enum Laziness<N> {
    /// It is complete, as almost all are.
    Complete,
    /// It is not initialised.
    Waiting,
    /// It is a proxy that is initialised: what it stands for.
    Proxy(N),
}

/// A method of a class that is built into PHP: its own, whatever a class below has in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltIn {
    /// `ArrayObject::getArrayCopy()`.
    ArrayObjectCopy,
    /// `ArrayIterator::getArrayCopy()`.
    ArrayIteratorCopy,
    /// `SplObjectStorage::__debugInfo()`.
    ObjectStorageInfo,
    /// `SplDoublyLinkedList::__debugInfo()`.
    LinkedListInfo,
    /// `DateTimeInterface::format()`, as RFC 3339.
    Date,
    /// `DateTimeInterface::format("e")`: the name of its time zone.
    DateZone,
    /// `DateTimeZone::getName()`.
    ZoneName,
    /// `DateInterval::format()` with every field, separated by blanks.
    Interval,
    /// The XML of a `SimpleXMLElement` or a DOM node.
    Xml,
}

/// A value that can be inspected.
///
/// Only [`Node::debug_info`], [`Node::size_hint`], [`Node::step`] and [`Node::copy`] run code of the
/// application; everything else reads.
pub trait Node: Sized {
    /// The value's shape.
    fn shape(&self) -> Shape<'_>;
    /// The first `max` entries of an array, in order.
    fn entries(&self, max: usize) -> Vec<(Key, Self)>;
    /// The first `max` properties of an object straight from its slots, and how many there are.
    fn slots(&self, max: usize) -> (Vec<Property<Self>>, usize);

    /// A number that objects of one class have in common, and no others.
    fn class_key(&self) -> usize;
    /// Whether an object is of this class, or one below. Loads no class.
    fn is_a(&self, class: &str) -> bool;
    /// Whether its class has this method, written in PHP.
    fn has_user_method(&self, name: &str) -> bool;
    /// Whether its class has a property of this name, not static.
    fn declares(&self, name: &str) -> bool;
    /// The value of a property, as declared by `class` or, if that is empty, by the nearest class
    /// that has one of this name.
    fn property(&self, class: &str, name: &str) -> Option<Self>;
    /// The result of a built-in method, unless it threw.
    fn built_in(&self, method: BuiltIn) -> Option<Self>;
    /// Whether the engine itself holds the object back.
    fn laziness(&self) -> Laziness<Self>;
    /// What a closure is.
    fn closure(&self) -> ClosureView;
    /// A variable that a closure has used.
    fn closure_variable(&self, name: &str) -> Option<Self>;
    /// The bytes behind a resource that is a stream of memory or a file.
    fn stream_length(&self) -> Option<i64>;
    /// The name of an enum's case.
    fn case(&self) -> Option<String>;
    /// The backing value of a backed enum's case.
    fn backing(&self) -> Option<Self>;

    /// What `__debugInfo` gives; `None` for an object without one.
    fn debug_info(&self) -> UserCode<Option<Vec<(Key, Self)>>>;
    /// `count()` of a `Countable`, `None` for other objects.
    fn size_hint(&self) -> UserCode<Option<i64>>;
    /// Starts an iteration (`first`) or continues it, and returns the current item.
    fn step(&self, first: bool) -> UserCode<Step<Self>>;
    /// A clone of an object.
    fn copy(&self) -> UserCode<Self>;
}

/// Shows objects as an application itself wants them shown.
pub trait OwnCasters<N> {
    /// The fields of an object; `None` for a class that it says nothing of.
    fn cast(&mut self, object: &N) -> UserCode<Option<Vec<(Key, N)>>>;
    /// Why it cannot show anything; once, at the first object.
    fn trouble(&mut self) -> UserCode<Option<Thrown>>;
}
