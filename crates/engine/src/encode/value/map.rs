//! Entries by name: of arrays that are no list, and properties.

use serde_json::{Map, Value};

use super::Encoder;
use super::scalar::base64;
use crate::encode::bounds::{LABEL_MAX, MARKS};
use crate::encode::budget::text_cost;
use crate::encode::casters::Item;
use crate::encode::node::{Ended, Key, Node, Shape};
use crate::redaction::is_secret_name;

/// The entries that are shown, by name.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) shown: Map<String, Value>,
    /// The names that are not what they look like, and their bytes.
    pub(super) bytes: Map<String, Value>,
}

impl Entries {
    /// Adds them to what they are entries of. The brackets and names are paid for as marks.
    pub(super) fn insert(self, name: &str, map: &mut Map<String, Value>) {
        map.insert(name.into(), self.shown.into());
        if !self.bytes.is_empty() {
            map.insert("key_bytes".into(), self.bytes.into());
        }
    }
}

impl<N: Node> Encoder<'_, N> {
    /// Adds an entry; `false` if there is no room for it.
    pub(super) fn entry(
        &mut self,
        entries: &mut Entries,
        key: &Key,
        value: &Item<N>,
        depth: usize,
    ) -> Result<bool, Ended> {
        self.named_entry(entries, key.text(), key, value, depth)
    }

    /// The same under another name than the key's own.
    pub(super) fn named_entry(
        &mut self,
        entries: &mut Entries,
        name: String,
        key: &Key,
        value: &Item<N>,
        depth: usize,
    ) -> Result<bool, Ended> {
        let name = distinct(name, &entries.shown);
        if !self.budget.take(2 + text_cost(&name)) || self.budget.left() < MARKS {
            return Ok(false);
        }
        if let Some(bytes) = key.unprintable() {
            let bytes = base64(&bytes[..bytes.len().min(LABEL_MAX)]);
            if !self.budget.take(6 + text_cost(&name) + text_cost(&bytes))
                || self.budget.left() < MARKS
            {
                return Ok(false);
            }
            entries.bytes.insert(name.clone(), bytes.into());
        }
        let encoded = if self.hides(key, value) {
            self.hidden()
        } else {
            self.item(value, depth)?
        };
        entries.shown.insert(name, encoded);
        Ok(true)
    }

    /// Encodes what a caster gives.
    pub(super) fn item(&mut self, item: &Item<N>, depth: usize) -> Result<Value, Ended> {
        Ok(match item {
            Item::Node(node) => self.at(node, depth)?,
            Item::Text(text) => self.string(text.as_bytes()),
            Item::Int(n) => self.scalar("int", (*n).into()),
            Item::Bool(b) => self.scalar("bool", (*b).into()),
            Item::Hidden if self.redact => self.hidden(),
            Item::Hidden => self.scalar("null", Value::Null),
            Item::Uninitialized => self.uninitialized(),
            // What a caster groups is no deeper than what it groups.
            Item::List(items) => {
                let items: Vec<_> = items.iter().map(|item| (Key::Int(0), item)).collect();
                self.group(true, &items, items.len(), depth)?
            }
            Item::Map(entries, count) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, item)| (key.clone(), item))
                    .collect();
                self.group(false, &entries, *count, depth)?
            }
        })
    }

    fn group(
        &mut self,
        is_list: bool,
        entries: &[(Key, &Item<N>)],
        count: usize,
        depth: usize,
    ) -> Result<Value, Ended> {
        let mut map = Map::new();
        map.insert("type".into(), "array".into());
        map.insert("is_list".into(), is_list.into());
        map.insert("count".into(), count.into());
        if !self.open(&map) {
            return Ok(self.cut("array"));
        }
        let mut list = Vec::new();
        let mut shown = Entries::default();
        for (key, item) in entries.iter().take(self.limits.entries) {
            if is_list {
                if !self.budget.take(2) || self.budget.left() < MARKS {
                    break;
                }
                list.push(self.item(item, depth)?);
            } else if !self.entry(&mut shown, key, item, depth)? {
                break;
            }
        }
        let number = if is_list {
            list.len()
        } else {
            shown.shown.len()
        };
        if is_list {
            map.insert("value".into(), list.into());
        } else {
            shown.insert("value", &mut map);
        }
        let mut marks = Map::new();
        if number < count {
            self.mark_cut(&mut marks, number, count, self.limits.entries);
        }
        self.close(marks, &mut map);
        Ok(Value::Object(map))
    }

    /// Whether a value is not shown for its name: a text inside of an object, whose parts nobody
    /// named. The keys of an array that the snippet itself gives are what it asked for.
    fn hides(&self, key: &Key, value: &Item<N>) -> bool {
        let Key::Bytes(name) = key else {
            return false;
        };
        self.redact
            && self.guarded > 0
            && has_text(value)
            && is_secret_name(&String::from_utf8_lossy(name))
    }
}

fn has_text<N: Node>(item: &Item<N>) -> bool {
    match item {
        Item::Text(text) => !text.is_empty(),
        Item::Node(node) => matches!(node.shape(), Shape::Bytes(bytes) if !bytes.is_empty()),
        _ => false,
    }
}

/// `name`, or a numbered variant if another key already looks the same: names that are not UTF-8 or
/// were cut can collide.
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
