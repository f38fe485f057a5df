//! Reads encoded values in the host. Their writer may not have kept to the encoder's bounds.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::VALUE_MAX_BYTES;

/// The maximum bytes of an exception's text: a chain of eleven with three texts of 10,000 bytes
/// each, plus the frames that are shown, with up to six bytes for each byte.
pub const EXCEPTION_MAX_BYTES: usize = 4 << 20;

/// Bytes of memory that a value may take here, counted as below. The encoder's output stays below
/// it even for the smallest scalars: about 29,000 of them make [`VALUE_MAX_BYTES`] of text.
const MEMORY_MAX: usize = 24 << 20;
/// The memory for an array or an object, here and later as PHP's array.
const CONTAINER_BYTES: usize = 480;
/// The memory for any other value and for each key; a text's length is added.
const SCALAR_BYTES: usize = 64;

/// Levels of arrays and objects in an encoded value; the encoder makes no more than a third of them. An
/// answer has the value some levels deeper, and whoever reads that with `serde_json` goes down 127.
const LEVELS_MAX: usize = 100;

/// Reads an encoded value; `None` for a text that no encoder produces.
#[must_use]
pub fn read_value(text: &str) -> Option<Value> {
    read(text, VALUE_MAX_BYTES)
}

/// Reads an encoded exception; `None` as for [`read_value`].
#[must_use]
pub fn read_exception(text: &str) -> Option<Value> {
    read(text, EXCEPTION_MAX_BYTES)
}

fn read(text: &str, most: usize) -> Option<Value> {
    if text.len() > most {
        return None;
    }
    read_bounded(text.as_bytes()).ok()
}

/// Reads any untrusted JSON that takes no more memory than an encoded value may, and is no deeper.
///
/// # Errors
/// If it is not JSON, takes more or is deeper.
pub(crate) fn read_bounded(text: &[u8]) -> serde_json::Result<Value> {
    let left = Cell::new(MEMORY_MAX);
    let mut from = serde_json::Deserializer::from_slice(text);
    let bounded = Bounded {
        left: &left,
        levels: LEVELS_MAX,
    };
    let value = bounded.deserialize(&mut from)?;
    from.end()?;
    Ok(value)
}

/// Reads a value as long as memory and levels are left for it.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    /// Bytes.
    left: &'a Cell<usize>,
    levels: usize,
}

impl Bounded<'_> {
    fn take<E: Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(bytes);
        self.left
            .set(left.ok_or_else(|| E::custom("it is too large"))?);
        Ok(())
    }

    /// What is in an array or an object.
    fn inner<E: Error>(self) -> Result<Self, E> {
        self.take(CONTAINER_BYTES)?;
        let levels = self.levels.checked_sub(1);
        Ok(Self {
            levels: levels.ok_or_else(|| E::custom("it is nested too deep"))?,
            ..self
        })
    }

    fn scalar<E: Error>(self, value: impl Into<Value>) -> Result<Value, E> {
        self.take(SCALAR_BYTES)?;
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an encoded value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.take(text.len())?;
        self.scalar(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut read = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.take(SCALAR_BYTES + key.len())?;
            read.insert(key, entries.next_value_seed(inner)?);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn a_value_is_read_as_it_was_written(text in ".{0,40}", number in any::<i64>(), float in any::<f64>()) {
            let value = json!({"type": "array", "value": {"a": text, "b": [number, null, true]}, "c": float});
            prop_assert_eq!(read_value(&value.to_string()).unwrap(), value);
        }

        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = read_value(&text);
        }
    }

    #[test]
    fn what_the_encoder_makes_of_the_smallest_scalars_is_read() {
        let scalar = json!({"type": "null", "value": null});
        let row = json!({"type": "array", "value": vec![scalar; 1000]});
        let value = json!({"type": "array", "value": vec![row; 29]});
        let text = value.to_string();
        assert!(text.len() < VALUE_MAX_BYTES && text.len() > VALUE_MAX_BYTES / 10 * 7);
        assert_eq!(read_value(&text), Some(value));
    }

    #[test]
    fn what_no_encoder_makes_is_not_read() {
        let arrays = format!("[{}[0]]", "[0],".repeat(200_000));
        assert!(arrays.len() < VALUE_MAX_BYTES);
        assert_eq!(read_value(&arrays), None);
        let objects = format!("[{}{{}}]", "{},".repeat(200_000));
        assert_eq!(read_value(&objects), None);
        assert_eq!(
            read_value(&format!("\"{}\"", "x".repeat(VALUE_MAX_BYTES))),
            None
        );
        assert_eq!(read_value(&"[".repeat(100_000)), None);
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read_value(&nested(LEVELS_MAX)).is_some());
        assert_eq!(read_value(&nested(LEVELS_MAX + 1)), None);
        for broken in ["", "[1,]", "{\"a\"}", "1 2", "nul"] {
            assert_eq!(read_value(broken), None, "{broken}");
        }
    }
}
