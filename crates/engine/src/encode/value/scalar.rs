//! Scalars: one-line values, and strings.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::Encoder;
use crate::encode::bounds::MARKS;
use crate::encode::budget::affordable;
use crate::encode::hints;
use crate::encode::node::Node;
use crate::encode::{TRUNCATED, head};

/// Stands for a value that is not shown.
const HIDDEN: &str = "[hidden]";

impl<N: Node> Encoder<'_, N> {
    pub(super) fn hidden(&mut self) -> Value {
        self.paid(
            json!({ "type": "string", "value": HIDDEN, "hidden": true }),
            "string",
        )
    }

    pub(super) fn uninitialized(&mut self) -> Value {
        self.paid(json!({ "type": "uninitialized" }), "uninitialized")
    }

    pub(super) fn scalar(&mut self, kind: &str, value: Value) -> Value {
        self.paid(json!({ "type": kind, "value": value }), kind)
    }

    pub(super) fn string(&mut self, bytes: &[u8]) -> Value {
        let budget = self.budget.left().saturating_sub(MARKS * 2);
        let (text, base64) = match utf8_head(bytes, self.limits.string) {
            Some(text) => (Cow::Borrowed(affordable(text, budget)), false),
            None => {
                let room = budget / 4 * 3;
                (
                    Cow::Owned(base64(
                        &bytes[..bytes.len().min(self.limits.string).min(room)],
                    )),
                    true,
                )
            }
        };
        let shown = if base64 {
            bytes.len().min(self.limits.string).min(budget / 4 * 3)
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
        if truncated {
            // Near the limit of the request, characters are not cut.
            let hint = if shown + 4 > self.limits.string {
                hints::string(self.limits.string, bytes.len())
            } else {
                Some(hints::LESS.to_owned())
            };
            if let Some(hint) = hint {
                map.insert("hint".into(), hint.into());
            }
        }
        self.paid(Value::Object(map), "string")
    }
}

pub(super) fn float(f: f64) -> Value {
    match serde_json::Number::from_f64(f) {
        Some(number) => Value::Number(number),
        None if f.is_nan() => "NaN".into(),
        None if f > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// The part of a string to show, or `None` if it is not UTF-8.
///
/// Only a string that is valid as a whole is text: one that turns binary behind its head would
/// otherwise be shown as what it is not.
fn utf8_head(bytes: &[u8], max: usize) -> Option<&str> {
    std::str::from_utf8(bytes).ok().map(|text| head(text, max))
}

/// RFC 4648, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
