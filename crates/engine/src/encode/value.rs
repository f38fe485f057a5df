//! Values: `{type, value}` and its richer kin.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::budget::{Budget, affordable, text_cost, value_cost};
use super::{TRUNCATED, head, shorten};

/// Containers nested deeper than this below the value itself (which is at depth 0) are named, not shown.
pub const MAX_DEPTH: usize = 3;
/// Items of an iterable that are shown.
pub const ITERABLE_PREVIEW: usize = 50;
/// Bytes of a string that are shown.
pub const STRING_MAX: usize = 10_000;
/// Entries of an array that are shown.
pub const MAX_ENTRIES: usize = 1_000;
/// Bytes of a whole encoded value as compact JSON: what a language model can still read, and far
/// below what the channel carries.
pub const VALUE_MAX_BYTES: usize = 1 << 20;

/// Bytes of a class name, display text or message inside a value that are shown.
const LABEL_MAX: usize = 1_000;
/// What every container keeps back for its own marks (`truncated`, `exhausted`, brackets).
const MARKS: usize = 64;

/// The application's code, run while a value was looked at, ended the whole run: `exit` or a fatal error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended;

/// What became of the application's code that was run to look at a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserCode<T> {
    /// It gave this.
    Gave(T),
    /// It threw.
    Threw(Thrown),
    /// It ended the run.
    Ended,
}

/// An exception that left the application's code while a value was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thrown {
    /// Its class.
    pub class: String,
    /// Its message.
    pub message: String,
}

/// The key of an array entry or a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// An integer key.
    Int(i64),
    /// A string key, any bytes.
    Bytes(Vec<u8>),
}

impl Key {
    fn text(&self) -> String {
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
    /// An object that is no `Traversable`.
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

/// What is known of an object without running any code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectShape {
    /// Its class.
    pub class: String,
    /// Its id while the process lives.
    pub id: u32,
    /// One line that says what it is: a date, a closure's place.
    pub display: Option<String>,
    /// The name of an enum's case.
    pub case: Option<String>,
}

/// A value that can be looked at.
pub trait Node: Sized {
    /// What it is. Runs no code of the application.
    fn shape(&self) -> Shape<'_, Self>;
    /// The backing value of a backed enum's case.
    fn backing(&self) -> Option<Self>;
    /// An object's properties, as `__debugInfo` or its public properties tell them.
    fn properties(&self) -> UserCode<Vec<(Key, Self)>>;
    /// `count()` of a `Countable`, `None` for others.
    fn size_hint(&self) -> UserCode<Option<i64>>;
    /// Starts an iteration (`first`) or goes on with it, and gives what it stands on.
    fn step(&self, first: bool) -> UserCode<Step<Self>>;
}

/// Encodes a value within the bounds of this module.
///
/// # Errors
///
/// [`Ended`] when the application's code ended the run meanwhile.
pub fn encode_value<N: Node>(node: &N) -> Result<Value, Ended> {
    Encoder {
        budget: Budget::new(VALUE_MAX_BYTES - MARKS),
        path: Vec::new(),
    }
    .value(node)
}

struct Encoder {
    budget: Budget,
    /// The ids of the objects around the value at hand.
    path: Vec<u32>,
    // Its length is not the depth: arrays count too.
}

impl Encoder {
    fn value<N: Node>(&mut self, node: &N) -> Result<Value, Ended> {
        self.at(node, 0)
    }

    fn at<N: Node>(&mut self, node: &N, depth: usize) -> Result<Value, Ended> {
        Ok(match node.shape() {
            Shape::Null => self.scalar("null", Value::Null),
            Shape::Bool(b) => self.scalar("bool", b.into()),
            Shape::Int(n) => self.scalar("int", n.into()),
            Shape::Float(f) => self.scalar("float", float(f)),
            Shape::Resource(kind) => self.scalar("resource", shorten(&kind, LABEL_MAX).into()),
            Shape::Bytes(bytes) => self.string(&bytes),
            Shape::Array {
                is_list,
                count,
                entries,
            } => self.array(is_list, count, entries, depth)?,
            Shape::Object(object) => self.object(node, object, depth)?,
            Shape::Iterable { class, id } => self.iterable(node, &class, id, depth)?,
        })
    }

    fn scalar(&mut self, kind: &str, value: Value) -> Value {
        self.paid(json!({ "type": kind, "value": value }), kind)
    }

    /// `full` where it can be paid for, else the bare mark.
    fn paid(&mut self, full: Value, kind: &str) -> Value {
        if self.budget.take(value_cost(&full)) {
            full
        } else {
            self.cut(kind)
        }
    }

    /// What stands where there was no room left. Every container sees to it that there is room
    /// for this much before it lets an entry in.
    fn cut(&mut self, kind: &str) -> Value {
        let mark = json!({ "type": kind, "truncated": true });
        self.budget.take(value_cost(&mark));
        mark
    }

    fn string(&mut self, bytes: &[u8]) -> Value {
        let budget = self.budget.left().saturating_sub(MARKS * 2);
        let (text, base64) = match utf8_head(bytes) {
            Some(text) => (Cow::Borrowed(affordable(text, budget)), false),
            None => {
                let room = budget / 4 * 3;
                (
                    Cow::Owned(base64(&bytes[..bytes.len().min(STRING_MAX).min(room)])),
                    true,
                )
            }
        };
        let shown = if base64 {
            bytes.len().min(STRING_MAX).min(budget / 4 * 3)
        } else {
            text.len()
        };
        let truncated = shown < bytes.len();
        let mut map = Map::new();
        map.insert("type".into(), "string".into());
        if base64 {
            map.insert("encoding".into(), "base64".into());
        }
        let mark = if truncated && !base64 { TRUNCATED } else { "" };
        map.insert("value".into(), format!("{text}{mark}").into());
        if truncated {
            map.insert("truncated".into(), true.into());
        }
        if truncated || base64 {
            map.insert("length".into(), bytes.len().into());
        }
        self.paid(Value::Object(map), "string")
    }

    fn array<'a, N: Node>(
        &mut self,
        is_list: bool,
        count: usize,
        entries: Box<dyn Iterator<Item = (Key, N)> + 'a>,
        depth: usize,
    ) -> Result<Value, Ended> {
        if depth > MAX_DEPTH {
            return Ok(self.paid(
                json!({ "type": "array", "count": count, "truncated": true }),
                "array",
            ));
        }
        let mut map = Map::new();
        map.insert("type".into(), "array".into());
        map.insert("is_list".into(), is_list.into());
        map.insert("count".into(), count.into());
        if !self.open(&map) {
            return Ok(self.cut("array"));
        }
        let mut list = Vec::new();
        let mut object = Map::new();
        for (key, node) in entries.take(MAX_ENTRIES) {
            let name = if is_list {
                String::new()
            } else {
                distinct(key.text(), &object)
            };
            if !self.budget.take(2 + text_cost(&name)) || self.budget.left() < MARKS {
                break;
            }
            let value = self.at(&node, depth + 1)?;
            if is_list {
                list.push(value);
            } else {
                object.insert(name, value);
            }
        }
        let shown = if is_list { list.len() } else { object.len() };
        map.insert(
            "value".into(),
            if is_list { list.into() } else { object.into() },
        );
        if shown < count {
            map.insert("truncated".into(), true.into());
        }
        Ok(Value::Object(map))
    }

    fn object<N: Node>(
        &mut self,
        node: &N,
        object: ObjectShape,
        depth: usize,
    ) -> Result<Value, Ended> {
        let class = shorten(&object.class, LABEL_MAX);
        if self.path.contains(&object.id) {
            return Ok(self.reference(&class, object.id));
        }
        let mut map = Map::new();
        map.insert("type".into(), "object".into());
        map.insert("class".into(), class.into());
        map.insert("id".into(), object.id.into());
        if let Some(display) = object.display {
            map.insert("display".into(), shorten(&display, LABEL_MAX).into());
        }
        if let Some(case) = object.case {
            map.insert("case".into(), shorten(&case, LABEL_MAX).into());
            if let Some(Shape::Int(n)) = node.backing().as_ref().map(Node::shape) {
                map.insert("backing".into(), n.into());
            } else if let Some(Shape::Bytes(bytes)) = node.backing().as_ref().map(Node::shape) {
                let text = shorten(&String::from_utf8_lossy(&bytes), LABEL_MAX);
                map.insert("backing".into(), text.into());
            }
        }
        if depth > MAX_DEPTH {
            map.insert("truncated".into(), true.into());
            return Ok(self.paid(Value::Object(map), "object"));
        }
        if !self.open(&map) {
            return Ok(self.cut("object"));
        }
        let properties = match node.properties() {
            UserCode::Gave(properties) => properties,
            UserCode::Threw(thrown) => {
                self.error(&mut map, &thrown);
                return Ok(Value::Object(map));
            }
            UserCode::Ended => return Err(Ended),
        };
        let count = properties.len();
        let mut shown = Map::new();
        self.path.push(object.id);
        for (key, value) in properties.into_iter().take(MAX_ENTRIES) {
            let name = distinct(key.text(), &shown);
            if !self.budget.take(2 + text_cost(&name)) || self.budget.left() < MARKS {
                break;
            }
            let encoded = self.at(&value, depth + 1)?;
            shown.insert(name, encoded);
        }
        self.path.pop();
        if shown.len() < count {
            map.insert("truncated".into(), true.into());
        }
        map.insert("properties".into(), shown.into());
        Ok(Value::Object(map))
    }

    fn iterable<N: Node>(
        &mut self,
        node: &N,
        class: &str,
        id: u32,
        depth: usize,
    ) -> Result<Value, Ended> {
        let class = shorten(class, LABEL_MAX);
        if self.path.contains(&id) {
            return Ok(self.reference(&class, id));
        }
        let mut map = Map::new();
        map.insert("type".into(), "iterable".into());
        map.insert("class".into(), class.into());
        if depth > MAX_DEPTH {
            map.insert("truncated".into(), true.into());
            return Ok(self.paid(Value::Object(map), "iterable"));
        }
        if !self.open(&map) {
            return Ok(self.cut("iterable"));
        }
        let (size_hint, mut thrown) = match node.size_hint() {
            UserCode::Gave(size) => (size, None),
            UserCode::Threw(thrown) => (None, Some(thrown)),
            UserCode::Ended => return Err(Ended),
        };
        let mut preview = Vec::new();
        let mut exhausted = false;
        let mut full = false;
        self.path.push(id);
        loop {
            match node.step(preview.is_empty()) {
                UserCode::Gave(Step::Done) => exhausted = true,
                UserCode::Gave(Step::Item(..)) if preview.len() == ITERABLE_PREVIEW => {}
                UserCode::Gave(Step::Item(key, value)) => {
                    if self.budget.left() > MARKS * 3 && self.budget.take(MARKS / 2) {
                        let key = self.key(&key, depth)?;
                        let value = self.at(&value, depth + 1)?;
                        preview.push(json!({ "key": key, "value": value }));
                        continue;
                    }
                    full = true;
                }
                UserCode::Threw(error) => thrown = Some(error),
                UserCode::Ended => return Err(Ended),
            }
            break;
        }
        self.path.pop();
        map.insert("preview".into(), preview.into());
        map.insert("exhausted".into(), exhausted.into());
        if let Some(size) = size_hint {
            map.insert("size_hint".into(), size.into());
        }
        if full {
            map.insert("truncated".into(), true.into());
        }
        if let Some(thrown) = thrown {
            self.error(&mut map, &thrown);
        }
        Ok(Value::Object(map))
    }

    /// The key of an iterable's item: itself where it is a plain scalar, else encoded.
    fn key<N: Node>(&mut self, node: &N, depth: usize) -> Result<Value, Ended> {
        let plain = match node.shape() {
            Shape::Null => Value::Null,
            Shape::Bool(b) => b.into(),
            Shape::Int(n) => n.into(),
            Shape::Float(f) => float(f),
            Shape::Bytes(bytes) if bytes.len() <= LABEL_MAX && bytes.is_ascii() => {
                String::from_utf8_lossy(&bytes).into()
            }
            _ => return self.at(node, depth + 1),
        };
        Ok(if self.budget.take(value_cost(&plain)) {
            plain
        } else {
            Value::Null
        })
    }

    /// Pays for a container's own keys and marks.
    fn open(&mut self, header: &Map<String, Value>) -> bool {
        let cost: usize = header
            .iter()
            .map(|(k, v)| 2 + text_cost(k) + value_cost(v))
            .sum::<usize>();
        self.budget.take(cost + MARKS)
    }

    fn reference(&mut self, class: &str, id: u32) -> Value {
        self.paid(
            json!({ "type": "reference", "class": class, "id": id }),
            "reference",
        )
    }

    fn error(&mut self, map: &mut Map<String, Value>, thrown: &Thrown) {
        let error = json!({
            "class": shorten(&thrown.class, LABEL_MAX),
            "message": shorten(&thrown.message, LABEL_MAX),
        });
        if self.budget.take(value_cost(&error) + 16) {
            map.insert("error".into(), error);
        } else {
            map.insert("truncated".into(), true.into());
        }
    }
}

/// `name`, or something like it where another key already looks the same: bytes that are not
/// UTF-8 and names that were cut can come out alike.
fn distinct(name: String, taken: &Map<String, Value>) -> String {
    if !taken.contains_key(&name) {
        return name;
    }
    let numbered = (2..).map(|n: u32| format!("{name}~{n}"));
    numbered
        .into_iter()
        .find(|name| !taken.contains_key(name))
        .unwrap_or(name.clone())
}

fn float(f: f64) -> Value {
    match serde_json::Number::from_f64(f) {
        Some(number) => Value::Number(number),
        None if f.is_nan() => "NaN".into(),
        None if f > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// The part of a string that is shown, or `None` where it is not UTF-8.
///
/// Only a string that is valid as a whole is text: one that turns binary behind its head would
/// otherwise be shown as what it is not.
fn utf8_head(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes)
        .ok()
        .map(|text| head(text, STRING_MAX))
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
