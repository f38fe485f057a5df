//! Secrets in encoded values.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Secrets, UNSEARCHED, Used, is_secret_name, is_secret_variable};

/// Keys of an encoded value that hold no data of the snippet.
const SHAPE: [&str; 9] = [
    "type",
    "encoding",
    "is_list",
    "count",
    "length",
    "id",
    "truncated",
    "size_hint",
    "exhausted",
];

impl Secrets {
    /// Replaces the secrets in an encoded value: in its texts, its numbers, and its keys.
    pub(super) fn json(&self, value: &mut Value, used: &mut Used) {
        match value {
            Value::String(text) => {
                self.text(text, false, used);
            }
            Value::Number(number) => {
                let text = number.to_string();
                // A longer number that contains the secret is a different number.
                let spans = self.finder.spans(text.as_bytes(), false, used.until);
                match spans.as_deref() {
                    None => *value = UNSEARCHED.into(),
                    Some([(span, of)]) if *span == (0..text.len()) => {
                        used.secrets.insert(*of);
                        *value = self.replacement(*of).into();
                    }
                    Some(_) => {}
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item, used)),
            Value::Object(map) => {
                let is_cut = map.get("truncated") == Some(&Value::Bool(true));
                let is_encoded = map.get("type").is_some_and(Value::is_string);
                // An entry of an iteration.
                if let Some(Value::String(key)) = map.get("key").cloned()
                    && let Some(item) = map.get_mut("value")
                {
                    self.named(&key, item, used);
                }
                for (key, item) in map.iter_mut() {
                    match (key.as_str(), item) {
                        // These keys belong to the encoding; a secret may equal a word in them.
                        (key, _) if is_encoded && SHAPE.contains(&key) => {}
                        // Truncated base64 has no truncation mark.
                        ("value", Value::String(text)) if is_cut => {
                            self.text(text, true, used);
                        }
                        ("value" | "properties", Value::Object(entries)) if is_encoded => {
                            for (key, entry) in entries.iter_mut() {
                                self.named(key, entry, used);
                                self.json(entry, used);
                            }
                            self.keys(entries, used);
                        }
                        (_, item) => self.json(item, used),
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Replaces a weak secret that is the whole of an encoded value whose key names a secret.
    fn named(&self, key: &str, entry: &mut Value, used: &mut Used) {
        let Some(value) = entry.get_mut("value") else {
            return;
        };
        let of = match &*value {
            Value::String(text) => self.places.whole(text.as_bytes()),
            Value::Number(number) => self.places.whole(number.to_string().as_bytes()),
            _ => None,
        };
        let names_secret = |key| is_secret_name(key) || is_secret_variable(key);
        if let Some(of) = of.filter(|_| names_secret(key)) {
            used.secrets.insert(of);
            *value = self.replacement(of).into();
        }
    }

    /// Replaces the secrets in keys. Keys that become equal are numbered.
    fn keys(&self, map: &mut Map<String, Value>, used: &mut Used) {
        let until = used.until;
        let is_clean = |key: &String| {
            let spans = self.finder.spans(key.as_bytes(), false, until);
            spans.is_some_and(|spans| spans.is_empty())
        };
        if map.keys().all(is_clean) {
            return;
        }
        let mut clean = Map::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (mut key, item) in std::mem::take(map) {
            self.text(&mut key, false, used);
            let mut distinct = key.clone();
            while clean.contains_key(&distinct) {
                // Continues after the last number used for this key.
                let number = numbers.entry(key.clone()).or_insert(1);
                *number += 1;
                distinct = format!("{key} ({number})");
            }
            clean.insert(distinct, item);
        }
        *map = clean;
    }
}
