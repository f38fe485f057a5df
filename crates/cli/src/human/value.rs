//! An encoded value as a line and the indented tree below it.
//!
//! The shapes are those of `Altair\Eval\Encoder\ValueEncoder`. The value comes from the child and
//! is not trusted: an unknown shape is shown as JSON.

use std::collections::HashSet;

use serde_json::Value;

use super::{Theme, exception, field, line};
use crate::escape;

/// The value in one line: `int = 2`, `array(2)`, `object App\User`.
pub fn headline(value: &Value) -> String {
    describe(value, &referenced(value))
}

/// Appends what is nested in `value`, one step deeper for each level.
pub fn tree(out: &mut String, value: &Value, theme: Theme) {
    let referenced = referenced(value);
    Printer {
        referenced: &referenced,
        theme,
    }
    .children(out, value, 1);
}

/// Prints nested values.
struct Printer<'a> {
    /// Objects that a reference points to. Only these show their number.
    referenced: &'a HashSet<String>,
    theme: Theme,
}

impl Printer<'_> {
    fn children(&self, out: &mut String, value: &Value, level: usize) {
        let shown = match value.get("type").and_then(Value::as_str) {
            Some("array") => self.entries(out, value.get("value"), level),
            Some("object") => self.properties(out, value, level),
            Some("iterable") => self.preview(out, value, level),
            _ => 0,
        };
        if let Some(error) = value.get("error") {
            line(
                out,
                level,
                &self.theme.bad(&format!("! {}", exception(error))),
            );
        }
        if let Some(rest) = rest(value, shown) {
            line(out, level, &self.theme.dim(&rest));
        }
    }

    /// Prints the properties of an object: protected ones with `#`, private ones with `-`. What says
    /// itself in one line needs none.
    fn properties(&self, out: &mut String, value: &Value, level: usize) -> usize {
        if value.get("display").is_some() {
            return 0;
        }
        let mut number = 0;
        for (kind, mark) in [("properties", ""), ("protected", "#"), ("private", "-")] {
            match value.get(kind) {
                Some(Value::Object(map)) => {
                    for (name, item) in map {
                        self.entry(out, &format!("{mark}{}", property(name)), item, level);
                    }
                    number += map.len();
                }
                other => number += self.entries(out, other, level),
            }
        }
        number
    }

    /// Prints a list or a map of encoded values; returns their number.
    fn entries(&self, out: &mut String, entries: Option<&Value>, level: usize) -> usize {
        match entries {
            Some(Value::Array(list)) => {
                for (index, item) in list.iter().enumerate() {
                    self.entry(out, &index.to_string(), item, level);
                }
                list.len()
            }
            Some(Value::Object(map)) => {
                for (name, item) in map {
                    self.entry(out, &key(name), item, level);
                }
                map.len()
            }
            _ => 0,
        }
    }

    fn preview(&self, out: &mut String, value: &Value, level: usize) -> usize {
        let items = value
            .get("preview")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        for item in items {
            let name = item
                .get("key")
                .map_or_else(String::new, |key| self.preview_key(key));
            self.entry(out, &name, item.get("value").unwrap_or(&Value::Null), level);
        }
        items.len()
    }

    /// An iterator's key may be any value. A plain one looks like an array key.
    fn preview_key(&self, key_of_item: &Value) -> String {
        match key_of_item {
            Value::String(text) => key(text),
            // As an array's key would be shown.
            Value::Object(map) => match (map.get("type").and_then(Value::as_str), map.get("value"))
            {
                (Some("string"), Some(Value::String(text))) if map.len() == 2 => key(text),
                (Some("int" | "float" | "bool" | "null"), Some(plain)) => scalar(plain),
                _ => describe(key_of_item, self.referenced),
            },
            plain => scalar(plain),
        }
    }

    fn entry(&self, out: &mut String, name: &str, value: &Value, level: usize) {
        let text = format!(
            "{}: {}",
            self.theme.name(name),
            describe(value, self.referenced)
        );
        line(out, level, &text);
        self.children(out, value, level + 1);
    }
}

/// The note on what is missing below a value of which `shown` entries were printed.
fn rest(value: &Value, shown: usize) -> Option<String> {
    if value.get("exhausted") == Some(&Value::Bool(false)) && value.get("error").is_none() {
        return Some(format!("… and more{}", hint(value)));
    }
    if !is_truncated(value) || shown == 0 {
        return None;
    }
    let count = value.get("count").and_then(Value::as_u64);
    let left = count.and_then(|count| count.checked_sub(u64::try_from(shown).ok()?));
    let rest = match left {
        Some(left) if left > 0 => format!("… and {left} more"),
        _ => "… and more".into(),
    };
    Some(format!("{rest}{}", hint(value)))
}

/// What would show more, behind what says that there is more.
fn hint(value: &Value) -> String {
    match value.get("hint").and_then(Value::as_str) {
        Some(hint) => format!(" ({})", escape::line(hint)),
        None => String::new(),
    }
}

fn is_truncated(value: &Value) -> bool {
    value.get("truncated") == Some(&Value::Bool(true))
}

/// Whether any content of a container is printed below it.
fn has_children(value: &Value) -> bool {
    ["value", "properties", "protected", "private", "preview"]
        .iter()
        .any(|name| match value.get(name) {
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            _ => false,
        })
}

fn describe(value: &Value, referenced: &HashSet<String>) -> String {
    let class = || escape::line(&field(value, "class"));
    let Some(kind) = value.get("type").and_then(Value::as_str) else {
        return escape::line(&value.to_string());
    };
    // The limit on the whole encoded value left room only for the type.
    if is_truncated(value)
        && ["value", "count", "class"]
            .iter()
            .all(|name| value.get(name).is_none())
    {
        return format!("{}{}", escape::line(kind), cut(value));
    }
    let text = match kind {
        "null" => "null".into(),
        "uninitialized" => "uninitialized".into(),
        "bool" | "int" | "float" => format!("{kind} = {}", escape::line(&field(value, "value"))),
        "string" => return string(value),
        "array" => format!("array({})", escape::line(&field(value, "count"))),
        "object" => object(value, referenced),
        "iterable" if value.get("size_hint").is_some() => {
            format!(
                "iterable {} ({})",
                class(),
                escape::line(&field(value, "size_hint"))
            )
        }
        "iterable" => format!("iterable {}", class()),
        "resource" => format!("resource ({})", escape::line(&field(value, "value"))),
        "reference" => format!(
            "reference to {} #{}",
            class(),
            escape::line(&field(value, "id"))
        ),
        _ => escape::line(&value.to_string()),
    };
    let lazy = match value.get("lazy") {
        Some(Value::Bool(true)) => " (lazy)",
        _ => "",
    };
    if is_truncated(value) && !has_children(value) {
        format!("{text}{lazy}{}", cut(value))
    } else {
        format!("{text}{lazy}")
    }
}

/// `(truncated)`, or with what would show more.
fn cut(value: &Value) -> String {
    match value.get("hint").and_then(Value::as_str) {
        Some(hint) => format!(" (truncated; {})", escape::line(hint)),
        None => " (truncated)".into(),
    }
}

fn string(value: &Value) -> String {
    if value.get("hidden") == Some(&Value::Bool(true)) {
        return "string (hidden)".into();
    }
    let encoding = match value.get("encoding") {
        Some(_) => format!(" ({})", escape::line(&field(value, "encoding"))),
        None => String::new(),
    };
    // The length is given if the text does not show it: cut, or encoded.
    let length = match value.get("length") {
        Some(_) => {
            let length = escape::line(&field(value, "length"));
            match value.get("hint").and_then(Value::as_str) {
                Some(hint) => format!(" ({length} bytes; {})", escape::line(hint)),
                None => format!(" ({length} bytes)"),
            }
        }
        None => String::new(),
    };
    format!(
        "string{encoding} = {}{length}",
        escape::quoted(&field(value, "value"))
    )
}

fn object(value: &Value, referenced: &HashSet<String>) -> String {
    let mut text = format!("object {}", escape::line(&field(value, "class")));
    if value.get("case").is_some() {
        text.push_str(&format!("::{}", escape::line(&field(value, "case"))));
    }
    match value.get("backing") {
        Some(Value::String(backing)) => text.push_str(&format!(" = {}", escape::quoted(backing))),
        // A backing value that is no bare scalar is encoded like any other value.
        Some(Value::Object(_)) => {
            let backing = value
                .get("backing")
                .and_then(|backing| backing.get("value"));
            text.push_str(&format!(" = {}", backing.map_or_else(String::new, scalar)));
        }
        Some(backing) => text.push_str(&format!(" = {}", scalar(backing))),
        None => {}
    }
    let id = field(value, "id");
    if referenced.contains(&id) {
        text.push_str(&format!(" #{}", escape::line(&id)));
    }
    if value.get("display").is_some() {
        let mut display = field(value, "display");
        if let Some(Value::Array(parameters)) = value.get("parameters") {
            let parameters = parameters.iter().filter_map(Value::as_str);
            let parameters = parameters.collect::<Vec<_>>().join(", ");
            display = format!("fn ({parameters}) {display}");
        }
        if value.get("zone").is_some() {
            display.push_str(&format!(" {}", field(value, "zone")));
        }
        text.push_str(&format!(" ({})", escape::line(&display)));
    }
    text
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => escape::quoted(text),
        other => escape::line(&other.to_string()),
    }
}

/// A key as is if it is unambiguous, otherwise in quotes.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.chars().all(plain) {
        name.into()
    } else {
        escape::quoted(name)
    }
}

/// The name of a property: as a key, with the class that declares it where another hides it.
fn property(name: &str) -> String {
    match name.rsplit_once("::") {
        Some((class, name)) if !class.is_empty() => {
            format!("{}::{}", escape::line(class), key(name))
        }
        _ => key(name),
    }
}

/// The numbers of all objects that a `reference` in `value` points to.
fn referenced(value: &Value) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(list) => todo.extend(list),
            Value::Object(map) => {
                if map.get("type").and_then(Value::as_str) == Some("reference") {
                    found.insert(field(value, "id"));
                }
                todo.extend(map.values());
            }
            _ => {}
        }
    }
    found
}
