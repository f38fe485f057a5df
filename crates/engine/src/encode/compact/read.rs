//! From the typed encoding, which may be anything.

use serde_json::{Map, Value, json};

use super::super::TRUNCATED;
use super::item::{Container, Cut, Item, Key, Kind, Shape, Text, integer, write_int};
use super::size::text_size;

/// Nested values that are read. The encoder stops at ten.
const DEPTH_MAX: usize = 16;

/// Where a value stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    depth: usize,
    /// An upper bound of the bytes of a JSON pointer to it.
    pointer: usize,
}

impl Place {
    /// The place of an entry.
    fn below(self, key: &Key) -> Self {
        let step = match key {
            Key::Text(name) => 2 * text_size(name),
            _ => 20,
        };
        Self {
            depth: self.depth + 1,
            // Each `/items` of a cut, an error or a list of objects; `/@map` and the place in a pair.
            pointer: self.pointer + step + 50,
        }
    }
}

pub fn item(typed: &Value, place: Place) -> Item {
    let Value::Object(typed) = typed else {
        return unknown("value");
    };
    let value = typed.get("value");
    match (text(typed, "type").unwrap_or_default(), value) {
        ("null", Some(Value::Null)) => Item::plain(Value::Null, "null"),
        ("bool", Some(Value::Bool(b))) => Item::plain((*b).into(), "bool"),
        ("int", Some(Value::Number(n))) if n.is_i64() || n.is_u64() => {
            Item::plain(write_int(n.clone()), "int")
        }
        ("float", Some(value)) => float(value),
        ("string", Some(Value::String(text))) => string(typed, text),
        ("resource", Some(Value::String(kind))) => {
            Item::plain(json!({ "@resource": kind }), "resource")
        }
        ("uninitialized", _) => Item::plain(json!({ "@uninitialized": true }), "uninitialized"),
        ("reference", _) => reference(typed, place),
        ("array" | "object" | "iterable", _) if place.depth >= DEPTH_MAX => unknown("value"),
        ("array", _) => array(typed, place),
        ("object", _) => object(typed, place),
        ("iterable", _) => iterable(typed, place),
        (kind, _) => unknown(match kind {
            "null" => "null",
            "bool" => "bool",
            "int" => "int",
            "string" => "string",
            "resource" => "resource",
            _ => "value",
        }),
    }
}

/// A value of which nothing is known but its kind.
fn unknown(kind: &'static str) -> Item {
    Item::plain(json!({ "@cut": kind }), kind)
}

fn float(value: &Value) -> Item {
    let value = match value {
        // PHP's JSON may have lost the point.
        Value::Number(n) => n.as_f64().map_or(Value::Null, Into::into),
        Value::String(name) if matches!(name.as_str(), "NaN" | "Infinity" | "-Infinity") => {
            json!({ "@float": name })
        }
        _ => Value::Null,
    };
    match value {
        Value::Null => unknown("float"),
        value => Item::plain(value, "float"),
    }
}

fn string(typed: &Map<String, Value>, text: &str) -> Item {
    let is_base64 = typed.get("encoding").is_some();
    let cut = is(typed, "truncated").then(|| Cut {
        count: number(typed, "length"),
        hint: hint(typed),
    });
    let shown = match &cut {
        Some(_) if !is_base64 => text.strip_suffix(TRUNCATED).unwrap_or(text),
        _ => text,
    };
    Item::new(Shape::Text(Text {
        shown: shown.to_owned(),
        is_base64,
        cut,
    }))
}

fn reference(typed: &Map<String, Value>, place: Place) -> Item {
    match number(typed, "id") {
        Some(id) => {
            let class = class(typed);
            Item {
                // As a pointer, or as a cut where there is no such object.
                size: 32 + place.pointer + text_size(&class),
                shape: Shape::Reference { class, id },
            }
        }
        None => unknown("object"),
    }
}

fn array(typed: &Map<String, Value>, place: Place) -> Item {
    let cut = cut(typed);
    let kind = Kind::Array;
    let Some(value) = typed.get("value") else {
        return Item::plain(kind.named(&cut.unwrap_or_default()), "array");
    };
    let mut entries = Vec::new();
    each(value, typed.get("key_bytes"), |name, bytes, value| {
        let key = match (bytes, integer(&name)) {
            (Some(bytes), _) => Key::Bytes(bytes.to_owned()),
            (None, Some(number)) => Key::Int(number),
            (None, None) => Key::Text(name),
        };
        let item = item(value, place.below(&key));
        entries.push((key, item));
    });
    container(kind, entries, cut, None)
}

fn object(typed: &Map<String, Value>, place: Place) -> Item {
    let display = text(typed, "display");
    if let Some(case) = text(typed, "case") {
        return enumeration(typed, case);
    }
    if let Some(display) = display {
        if class(typed) == "Closure" {
            return closure(typed, display);
        }
        if let Some(date) = date(typed, display) {
            return date;
        }
    }
    let cut = cut(typed);
    let kind = Kind::Object {
        class: class(typed),
        id: number(typed, "id"),
        is_lazy: is(typed, "lazy"),
        proxy: text(typed, "proxy").map(str::to_owned),
        display: display.map(str::to_owned),
    };
    let error = error(typed);
    let visible = ["properties", "protected", "private"];
    if let (Some(cut), None) = (&cut, &error)
        && !visible.iter().any(|names| typed.contains_key(*names))
        && display.is_none()
    {
        return Item::plain(kind.named(cut), "object");
    }
    let mut entries = Vec::new();
    for (names, mark) in visible.into_iter().zip(["", "#", "-"]) {
        let bytes = typed.get("key_bytes").filter(|_| mark.is_empty());
        each(
            typed.get(names).unwrap_or(&Value::Null),
            bytes,
            |name, bytes, value| {
                let key = match bytes {
                    Some(bytes) => Key::Bytes(bytes.to_owned()),
                    None if mark.is_empty() && name.starts_with(['@', '#', '-']) => {
                        Key::Text(format!("@{name}"))
                    }
                    None => Key::Text(format!("{mark}{name}")),
                };
                let item = item(value, place.below(&key));
                entries.push((key, item));
            },
        );
    }
    container(kind, entries, cut, error)
}

fn enumeration(typed: &Map<String, Value>, case: &str) -> Item {
    let mut value = json!({ "@enum": format!("{}::{case}", class(typed)) });
    match typed.get("backing") {
        Some(Value::Number(n)) if n.is_i64() => value["value"] = write_int(n.clone()),
        Some(Value::String(text)) => value["value"] = text.as_str().into(),
        _ => {}
    }
    Item::plain(value, "object")
}

fn closure(typed: &Map<String, Value>, display: &str) -> Item {
    let mut value = json!({ "@closure": display });
    if let Some(Value::Array(parameters)) = typed.get("parameters") {
        let texts: Vec<_> = parameters.iter().filter_map(Value::as_str).collect();
        if !texts.is_empty() {
            value["parameters"] = texts.into();
        }
    }
    Item::plain(value, "object")
}

/// The date whose RFC 3339 text `display` is; `None` for any other text.
///
/// A fraction of zero is left out, and an offset of zero is written `Z`.
fn date(typed: &Map<String, Value>, display: &str) -> Option<Item> {
    let (day, time) = display.split_once('T')?;
    let (clock, rest) = time.split_at_checked(8)?;
    let at = rest.find(['+', '-', 'Z'])?;
    let (fraction, offset) = rest.split_at(at);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts = |text: &str, by: char| text.split(by).filter(|part| digits(part)).count();
    let day_is_one = parts(day.trim_start_matches(['-', '+']), '-') == 3;
    let offset_is_one = offset == "Z" || parts(&offset[1..], ':') >= 2;
    if !day_is_one || parts(clock, ':') != 3 || !offset_is_one {
        return None;
    }
    let fraction = match fraction.strip_prefix('.') {
        Some(part) if !digits(part) => return None,
        Some(part) if part.bytes().any(|digit| digit != b'0') => fraction,
        None if !fraction.is_empty() => return None,
        _ => "",
    };
    let zone = text(typed, "zone").filter(|zone| *zone != offset);
    let offset = if offset == "+00:00" { "Z" } else { offset };
    let mut value = json!({ "@date": format!("{day}T{clock}{fraction}{offset}") });
    let class = class(typed);
    if class != "DateTimeImmutable" {
        value["class"] = class.into();
    }
    if let Some(zone) = zone {
        value["zone"] = zone.into();
    }
    Some(Item::plain(value, "object"))
}

fn iterable(typed: &Map<String, Value>, place: Place) -> Item {
    let class = class(typed);
    let error = error(typed);
    let preview = typed.get("preview").and_then(Value::as_array);
    let Some(preview) = preview else {
        let mut value = json!({ "@iterable": class });
        if is(typed, "lazy") {
            value["lazy"] = true.into();
            return Item::plain(value, "iterable");
        }
        let kind = Kind::Iterable {
            class,
            size_hint: None,
            more: true,
            hint: None,
        };
        return match error {
            Some(error) => container(kind, Vec::new(), None, Some(error)),
            None => Item::plain(kind.named(&cut(typed).unwrap_or_default()), "iterable"),
        };
    };
    let entries = preview.iter().filter_map(|entry| {
        let key = key(entry.get("key")?, place);
        let item = item(entry.get("value")?, place.below(&key));
        Some((key, item))
    });
    let entries = entries.collect();
    let kind = Kind::Iterable {
        class,
        size_hint: number(typed, "size_hint"),
        // What threw has no more to give.
        more: error.is_none() && !is(typed, "exhausted"),
        hint: hint(typed),
    };
    container(kind, entries, None, error)
}

/// The key of an iterable's item: encoded, or a plain scalar.
fn key(key: &Value, place: Place) -> Key {
    let item = match key {
        Value::Object(_) => item(key, place.below(&Key::Int(0))),
        Value::Number(n) if n.is_i64() => Item::plain(write_int(n.clone()), "int"),
        Value::Number(_) => float(key),
        Value::String(text) => return Key::Text(text.clone()),
        Value::Null | Value::Bool(_) => Item::plain(key.clone(), "value"),
        Value::Array(_) => unknown("value"),
    };
    match item.shape {
        Shape::Plain(Value::Number(ref n), "int") => match n.as_i64() {
            Some(n) => Key::Int(n),
            None => Key::Value(Box::new(item)),
        },
        Shape::Text(Text {
            shown,
            is_base64: false,
            cut: None,
        }) => Key::Text(shown),
        _ => Key::Value(Box::new(item)),
    }
}

fn container(
    kind: Kind,
    entries: Vec<(Key, Item)>,
    cut: Option<Cut>,
    error: Option<(String, String)>,
) -> Item {
    Item::new(Shape::Container(Container {
        kind,
        entries,
        cut,
        error,
    }))
}

/// The entries of a list or a map, each with the base64 of its key if that is not UTF-8.
fn each(entries: &Value, bytes: Option<&Value>, mut to: impl FnMut(String, Option<&str>, &Value)) {
    match entries {
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                to(at.to_string(), None, value);
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                let bytes = bytes
                    .and_then(|bytes| bytes.get(name))
                    .and_then(Value::as_str);
                to(name.clone(), bytes, value);
            }
        }
        _ => {}
    }
}

fn text<'t>(typed: &'t Map<String, Value>, key: &str) -> Option<&'t str> {
    typed.get(key).and_then(Value::as_str)
}

fn number(typed: &Map<String, Value>, key: &str) -> Option<u64> {
    typed.get(key).and_then(Value::as_u64)
}

fn is(typed: &Map<String, Value>, key: &str) -> bool {
    typed.get(key) == Some(&Value::Bool(true))
}

fn class(typed: &Map<String, Value>) -> String {
    text(typed, "class").unwrap_or_default().to_owned()
}

fn hint(typed: &Map<String, Value>) -> Option<String> {
    text(typed, "hint").map(str::to_owned)
}

fn cut(typed: &Map<String, Value>) -> Option<Cut> {
    is(typed, "truncated").then(|| Cut {
        count: number(typed, "count"),
        hint: hint(typed),
    })
}

fn error(typed: &Map<String, Value>) -> Option<(String, String)> {
    let error = typed.get("error")?;
    let part = |name| error.get(name).and_then(Value::as_str).unwrap_or_default();
    Some((part("class").to_owned(), part("message").to_owned()))
}
