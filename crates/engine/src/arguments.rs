//! Data for a snippet: values that are variables of its function.

use serde::{Deserialize, Serialize};

use crate::EvalError;
use crate::encode::Key;

/// Bytes that the arguments of one request may take, reckoned as PHP's memory: texts, names and keys by their
/// length, and 16 for each value.
pub const ARGUMENTS_MAX_BYTES: usize = 1 << 20;
/// How deeply arrays may be nested.
pub const ARGUMENTS_MAX_DEPTH: usize = 64;
/// Values that fit into [`ARGUMENTS_MAX_BYTES`].
pub const ARGUMENTS_MAX: usize = ARGUMENTS_MAX_BYTES / EACH_BYTES;
/// What each value counts beside its text. A PHP value takes 16 bytes.
const EACH_BYTES: usize = 16;

/// A value that can be given to a snippet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Datum {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float, with all its bits.
    Float(f64),
    /// A string of any bytes.
    Bytes(Vec<u8>),
    /// An array, in order. A string key that looks like an integer is one, as in PHP.
    Array(Vec<(Key, Datum)>),
}

/// The arguments of a request: names and values, in order, within their bounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Arguments(Vec<(String, Datum)>);

impl Arguments {
    /// Checks names and size.
    ///
    /// # Errors
    ///
    /// [`EvalError::InvalidRequest`] for a name that is no variable's, that is `this`, or that is there twice, for
    /// arrays that are nested deeper than [`ARGUMENTS_MAX_DEPTH`], and for more than [`ARGUMENTS_MAX_BYTES`].
    pub fn new(given: Vec<(String, Datum)>) -> Result<Self, EvalError> {
        let mut left = ARGUMENTS_MAX_BYTES;
        for (at, (name, value)) in given.iter().enumerate() {
            check_name(name)?;
            if given[..at].iter().any(|(other, _)| other == name) {
                return Err(invalid(format!("The argument ${name} is given twice.")));
            }
            left = left
                .checked_sub(name.len())
                .and_then(|left| reckon(value, left, 0))
                .ok_or_else(|| {
                    invalid(format!(
                        "The arguments are larger than {} KiB or nested deeper than {ARGUMENTS_MAX_DEPTH} arrays: write \
                         them to a file that the snippet reads.",
                        ARGUMENTS_MAX_BYTES >> 10
                    ))
                })?;
        }
        Ok(Self(given))
    }

    /// The names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Datum)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The names and values.
    pub(crate) fn into_inner(self) -> Vec<(String, Datum)> {
        self.0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Variables that are never those of a function (<https://www.php.net/manual/en/language.variables.superglobals.php>):
/// a snippet would not see an argument of such a name.
const SUPERGLOBALS: [&str; 9] = [
    "GLOBALS", "_COOKIE", "_ENV", "_FILES", "_GET", "_POST", "_REQUEST", "_SERVER", "_SESSION",
];

/// The name of a variable in PHP (<https://www.php.net/manual/en/language.variables.basics.php>), but not `this`,
/// which is none, and not that of a superglobal.
fn check_name(name: &str) -> Result<(), EvalError> {
    let is_start = |b: u8| b.is_ascii_alphabetic() || b == b'_' || b >= 0x80;
    let bytes = name.as_bytes();
    let is_name = bytes.first().is_some_and(|b| is_start(*b))
        && bytes.iter().all(|b| is_start(*b) || b.is_ascii_digit());
    match is_name && name != "this" && !SUPERGLOBALS.contains(&name) {
        true => Ok(()),
        false => Err(invalid(format!(
            "\"{}\" cannot be an argument's name. Use the name of a variable without the dollar sign; $this and superglobals \
             such as $_SERVER are not allowed.",
            name.escape_debug()
        ))),
    }
}

/// What is left of `left` bytes after a value; `None` where it does not fit or is nested too deeply.
fn reckon(value: &Datum, left: usize, depth: usize) -> Option<usize> {
    let left = left.checked_sub(EACH_BYTES)?;
    match value {
        Datum::Null | Datum::Bool(_) | Datum::Int(_) | Datum::Float(_) => Some(left),
        Datum::Bytes(bytes) => left.checked_sub(bytes.len()),
        Datum::Array(_) if depth == ARGUMENTS_MAX_DEPTH => None,
        Datum::Array(entries) => entries.iter().try_fold(left, |left, (key, value)| {
            let left = match key {
                Key::Int(_) => left,
                Key::Bytes(bytes) => left.checked_sub(bytes.len())?,
            };
            reckon(value, left, depth + 1)
        }),
    }
}

fn invalid(message: String) -> EvalError {
    EvalError::InvalidRequest(message)
}

/// JSON as PHP's `json_decode` reads it with objects as arrays: an integer beyond 64 bits is a float.
impl From<serde_json::Value> for Datum {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(b),
            Value::Number(n) => match (n.as_i64(), n.as_f64()) {
                (Some(n), _) => Self::Int(n),
                (None, f) => Self::Float(f.unwrap_or(f64::INFINITY)),
            },
            Value::String(text) => Self::Bytes(text.into_bytes()),
            Value::Array(items) => {
                let items = items.into_iter().zip(0..);
                Self::Array(
                    items
                        .map(|(item, at)| (Key::Int(at), item.into()))
                        .collect(),
                )
            }
            Value::Object(map) => {
                let entries = map.into_iter();
                let entries =
                    entries.map(|(key, item)| (Key::Bytes(key.into_bytes()), item.into()));
                Self::Array(entries.collect())
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(name: &str, value: impl Into<Datum>) -> Result<Arguments, EvalError> {
        Arguments::new(vec![(name.to_owned(), value.into())])
    }

    #[test]
    fn names_are_those_of_variables() {
        for name in ["a", "_", "_server", "THIS", "userId", "été", "x1"] {
            assert!(one(name, json!(1)).is_ok(), "{name}");
        }
        for name in [
            "", "this", "GLOBALS", "_SERVER", "1x", "a-b", "$a", "a b", "a\0",
        ] {
            assert!(one(name, json!(1)).is_err(), "{name}");
        }
        let twice = vec![("a".to_owned(), Datum::Null), ("a".to_owned(), Datum::Null)];
        let why = Arguments::new(twice).unwrap_err().to_string();
        assert!(why.contains("$a is given twice"), "{why}");
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let most = ARGUMENTS_MAX_BYTES - 1 - EACH_BYTES;
        assert!(one("a", json!("x".repeat(most))).is_ok());
        assert!(one("a", json!("x".repeat(most + 1))).is_err());
        assert!(one("a", json!(vec![0; 100_000])).is_err());
        let nested = |depth| {
            (0..depth).fold(Datum::Null, |inner, _| {
                Datum::Array(vec![(Key::Int(0), inner)])
            })
        };
        assert!(one("a", nested(ARGUMENTS_MAX_DEPTH)).is_ok());
        assert!(one("a", nested(ARGUMENTS_MAX_DEPTH + 1)).is_err());
    }

    #[test]
    fn json_is_read_as_php_reads_it() {
        let value = json!({"1": [true, null], "a": 1.5, "big": 18_446_744_073_709_551_615_u64});
        let key = |text: &str| Key::Bytes(text.as_bytes().to_vec());
        let list = vec![(Key::Int(0), Datum::Bool(true)), (Key::Int(1), Datum::Null)];
        let expected = Datum::Array(vec![
            (key("1"), Datum::Array(list)),
            (key("a"), Datum::Float(1.5)),
            (key("big"), Datum::Float(18_446_744_073_709_551_615.0)),
        ]);
        assert_eq!(Datum::from(value), expected);
    }
}
