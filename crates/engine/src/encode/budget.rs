//! The remaining size of an encoded value.

use serde_json::Value;

/// Bytes left. Every part is charged before it is added, so the sum never exceeds the initial
/// budget.
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes `bytes` off; takes nothing if fewer are left.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        match self.0.checked_sub(bytes) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }

    /// Gives back bytes that were taken and not used.
    pub(super) fn give(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    pub(super) fn left(&self) -> usize {
        self.0
    }
}

/// The bytes of a text as JSON, quotes included, in the longest form that a consumer may print:
/// PHP's `json_encode` without flags escapes slashes and everything beyond ASCII.
pub(super) fn text_cost(text: &str) -> usize {
    2 + text.chars().map(char_cost).sum::<usize>()
}

fn char_cost(c: char) -> usize {
    match c {
        '"' | '\\' | '/' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        ' '..='~' => 1,
        '\u{10000}'.. => 12,
        _ => 6,
    }
}

/// The longest head of `text` whose JSON form takes at most `bytes`, quotes included.
pub(super) fn affordable(text: &str, bytes: usize) -> &str {
    let mut left = match bytes.checked_sub(2) {
        Some(left) => left,
        None => return "",
    };
    for (at, c) in text.char_indices() {
        match left.checked_sub(char_cost(c)) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// The cost of a small finished value. Numbers get an upper bound: a float can be printed with 17
/// digits and an exponent.
pub(super) fn value_cost(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 26,
        Value::String(text) => text_cost(text),
        Value::Array(items) => 2 + items.iter().map(|item| 1 + value_cost(item)).sum::<usize>(),
        Value::Object(map) => {
            2 + map
                .iter()
                .map(|(key, item)| 2 + text_cost(key) + value_cost(item))
                .sum::<usize>()
        }
    }
}
