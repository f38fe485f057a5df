//! The bytes of a value as JSON without spaces, exactly.

use serde_json::Value;

/// The bytes of a text, quotes included.
pub fn text_size(text: &str) -> usize {
    2 + text.chars().map(char_size).sum::<usize>()
}

/// The longest head of `text` that takes at most `bytes`, quotes included.
pub fn head_of(text: &str, bytes: usize) -> &str {
    let mut left = bytes.saturating_sub(2);
    for (at, c) in text.char_indices() {
        match left.checked_sub(char_size(c)) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

fn char_size(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

/// The bytes of a value that is not deeply nested.
pub fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(n) => n.to_string().len(),
        Value::String(text) => text_size(text),
        // Brackets, and a comma between each two.
        Value::Array(items) => {
            1 + items
                .iter()
                .map(|item| 1 + value_size(item))
                .sum::<usize>()
                .max(1)
        }
        Value::Object(map) => {
            let entries = map.iter();
            let sizes = entries.map(|(key, item)| 2 + text_size(key) + value_size(item));
            1 + sizes.sum::<usize>().max(1)
        }
    }
}
