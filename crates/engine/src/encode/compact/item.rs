//! A value between its two encodings: what is shown of it, and how many bytes that takes.

use serde_json::{Value, json};

use super::size::{text_size, value_size};

/// A value, and an upper bound of the bytes of its compact JSON.
#[derive(Debug)]
pub struct Item {
    pub shape: Shape,
    pub size: usize,
}

#[derive(Debug)]
pub enum Shape {
    /// Written as it is. The name is its kind, for the cut that may replace it.
    Plain(Value, &'static str),
    Text(Text),
    /// An enclosing object.
    Reference {
        class: String,
        id: u64,
    },
    Container(Container),
}

/// A string.
#[derive(Debug)]
pub struct Text {
    /// The text, or base64 of it.
    pub shown: String,
    pub is_base64: bool,
    /// What is missing. `count` is the length in bytes.
    pub cut: Option<Cut>,
}

/// An array, an object or an iterable.
#[derive(Debug)]
pub struct Container {
    pub kind: Kind,
    pub entries: Vec<(Key, Item)>,
    /// Whether any entries are missing. Those of an iterable have [`Kind::Iterable::more`].
    pub cut: Option<Cut>,
    /// Class and message of what its own code threw.
    pub error: Option<(String, String)>,
}

#[derive(Debug)]
pub enum Kind {
    Array,
    Object {
        class: String,
        id: Option<u64>,
        is_lazy: bool,
        proxy: Option<String>,
        display: Option<String>,
    },
    Iterable {
        class: String,
        size_hint: Option<u64>,
        more: bool,
        hint: Option<String>,
    },
}

/// What is missing of a value.
#[derive(Debug, Clone, Default)]
pub struct Cut {
    pub count: Option<u64>,
    pub hint: Option<String>,
}

#[derive(Debug)]
pub enum Key {
    Int(i64),
    /// A text; of an object's property, as it is written.
    Text(String),
    /// Base64 of a name that is not UTF-8.
    Bytes(String),
    /// The key of an iterable, which may be any value.
    Value(Box<Item>),
}

/// How the entries of a container are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    List,
    Object,
    Map,
}

impl Item {
    pub fn plain(value: Value, kind: &'static str) -> Self {
        Self {
            size: value_size(&value),
            shape: Shape::Plain(value, kind),
        }
    }

    pub fn new(shape: Shape) -> Self {
        let size = match &shape {
            Shape::Plain(value, _) => value_size(value),
            Shape::Text(text) => text.size(),
            Shape::Reference { class, .. } => 32 + text_size(class),
            Shape::Container(container) => {
                let layout = container.layout();
                let entries = container.entries.iter();
                let entries = entries.map(|(key, item)| key.size(layout) + item.size);
                container.frame(layout) + entries.sum::<usize>()
            }
        };
        Self { shape, size }
    }

    /// The kind's name in a cut.
    pub fn kind(&self) -> &'static str {
        match &self.shape {
            Shape::Plain(_, kind) => kind,
            Shape::Text(_) => "string",
            Shape::Reference { .. } => "object",
            Shape::Container(container) => container.kind.name(),
        }
    }
}

impl Text {
    pub fn size(&self) -> usize {
        let shown = text_size(&self.shown) + if self.is_base64 { 12 } else { 0 };
        let cut = self.cut.as_ref().map(|cut| 32 + cut.size());
        shown + cut.unwrap_or_default()
    }
}

impl Cut {
    /// The bytes of `"count":…,"hint":…,`.
    pub fn size(&self) -> usize {
        let hint = self.hint.as_ref().map(|hint| text_size(hint) + 8);
        self.count.map_or(0, |n| 10 + value_size(&n.into())) + hint.unwrap_or_default()
    }
}

impl Kind {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Object { .. } => "object",
            Self::Iterable { .. } => "iterable",
        }
    }

    /// The value without anything of its content.
    pub fn named(&self, cut: &Cut) -> Value {
        let mut named = match self {
            Self::Array => json!({}),
            Self::Object { class, .. } => json!({ "@object": class }),
            Self::Iterable { class, .. } => json!({ "@iterable": class }),
        };
        named["@cut"] = self.name().into();
        if let (Self::Array | Self::Iterable { .. }, Some(count)) = (self, cut.count) {
            named["count"] = count.into();
        }
        if let Some(hint) = &cut.hint {
            named["hint"] = hint.as_str().into();
        }
        named
    }
}

impl Container {
    /// The bytes of everything but its entries.
    pub fn frame(&self, layout: Layout) -> usize {
        let own = match &self.kind {
            Kind::Array => 2,
            Kind::Object {
                class,
                proxy,
                display,
                ..
            } => {
                let optional =
                    |text: &Option<String>| text.as_ref().map_or(0, |t| text_size(t) + 12);
                14 + text_size(class) + optional(proxy) + optional(display)
            }
            Kind::Iterable {
                class,
                size_hint,
                hint,
                ..
            } => {
                let hint = hint.as_ref().map_or(0, |hint| text_size(hint) + 8);
                // `{"@iterable":…,"items":[],"more":true}`
                38 + text_size(class) + hint + size_hint.map_or(0, |n| 9 + value_size(&n.into()))
            }
        };
        let map = if layout == Layout::Map { 10 } else { 0 };
        let cut = self.cut.as_ref().map(|cut| 30 + cut.size());
        let error = self.error.as_ref();
        let error = error.map(|(class, message)| 32 + text_size(class) + text_size(message));
        own + map + cut.unwrap_or_default() + error.unwrap_or_default()
    }

    pub fn layout(&self) -> Layout {
        let is_object = matches!(self.kind, Kind::Object { .. });
        let mut keys = self.entries.iter().map(|(key, _)| key);
        let counts =
            |(at, key): (usize, &Key)| matches!(key, Key::Int(n) if usize::try_from(*n) == Ok(at));
        if !is_object && keys.clone().enumerate().all(counts) {
            return Layout::List;
        }
        let is_name = |key: &Key| matches!(key, Key::Text(name) if integer(name).is_none());
        if !keys.all(is_name) {
            return Layout::Map;
        }
        // Only an iterable gives a key twice.
        if let Kind::Iterable { .. } = self.kind {
            let mut seen = std::collections::HashSet::new();
            let names = self.entries.iter().filter_map(|(key, _)| key.name());
            if !names.into_iter().all(|name| seen.insert(name)) {
                return Layout::Map;
            }
        }
        Layout::Object
    }

    /// The class, where the value is `{"@object": class, …}` with at least one property and no other
    /// tag.
    pub fn plain_object(&self) -> Option<&str> {
        match &self.kind {
            Kind::Object {
                class,
                is_lazy: false,
                proxy: None,
                display: None,
                ..
            } if self.cut.is_none()
                && self.error.is_none()
                && !self.entries.is_empty()
                && self.layout() == Layout::Object =>
            {
                Some(class)
            }
            _ => None,
        }
    }
}

impl Key {
    /// The bytes of the key and of what parts it from its value and from the next entry.
    pub fn size(&self, layout: Layout) -> usize {
        match (layout, self) {
            (Layout::List, _) => 1,
            // An escape, a colon and a comma.
            (Layout::Object, Self::Text(name)) => {
                text_size(name) + 2 + usize::from(name.starts_with('@'))
            }
            (Layout::Map, Self::Text(name)) => text_size(name) + 4,
            (_, Self::Int(n)) => value_size(&write_int(*n)) + 4,
            (_, Self::Bytes(base64)) => text_size(base64) + 15,
            (_, Self::Value(item)) => item.size + 4,
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Text(name) => Some(name),
            _ => None,
        }
    }
}

/// Up to here JavaScript's numbers hold every integer.
const EXACT: u64 = 1 << 53;

/// An integer, in a tag where JavaScript's numbers do not hold it.
pub fn write_int(n: impl Into<serde_json::Number>) -> Value {
    let n = n.into();
    match n.as_i64().map(i64::unsigned_abs) {
        Some(..=EXACT) => n.into(),
        _ => json!({ "@int": n.to_string() }),
    }
}

/// The number of a canonical decimal integer. JavaScript reorders such keys, and PHP's arrays take
/// them for integers.
pub fn integer(name: &str) -> Option<i64> {
    let number: i64 = name.parse().ok()?;
    (number.to_string() == name).then_some(number)
}
