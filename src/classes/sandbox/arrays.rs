//! What callers give as arrays, and what they get as arrays.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use altair_command::CommandError;
use altair_engine::encode::Key;
use ext_php_rs::types::Zval;

use crate::zend::node::{ZvalNode, entries};
use crate::zend::object::string_bytes;
use crate::zend::{Bailout, json};

/// Bytes of PHP's as text of the system's.
pub fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

/// Text of the system's as a string of PHP's.
pub fn string(text: impl AsRef<OsStr>) -> Result<Zval, Bailout> {
    json::string(text.as_ref().as_bytes())
}

/// The strings of an array, without its keys. `what` they are is for the message.
pub fn strings(array: &Zval, what: &str) -> Result<Vec<OsString>, CommandError> {
    let items = items(array).into_iter();
    items
        .map(|(_, item)| {
            let item = item.value();
            if item.is_string() {
                Ok(os(string_bytes(item)))
            } else {
                Err(CommandError::Invalid(format!(
                    "Each of the {what} has to be a string."
                )))
            }
        })
        .collect()
}

/// The variables of an array, whose values are strings, numbers or booleans.
pub fn variables(array: &Zval) -> Result<Result<Vec<(OsString, OsString)>, CommandError>, Bailout> {
    let mut variables = Vec::new();
    for (name, value) in items(array) {
        let name = match name {
            Key::Int(n) => n.to_string().into(),
            Key::Bytes(bytes) => OsString::from_vec(bytes),
        };
        let Some(text) = json::scalar_text(value.value())? else {
            return Ok(Err(CommandError::Invalid(format!(
                "The environment variable {} has to be a string.",
                name.display()
            ))));
        };
        variables.push((name, os(string_bytes(&text))));
    }
    Ok(Ok(variables))
}

/// Texts as a list of strings.
pub fn list<T: AsRef<OsStr>>(texts: &[T]) -> Result<Zval, Bailout> {
    json::list(texts.iter().map(string).collect::<Result<_, _>>()?)
}

/// Variables as an array of strings by name.
pub fn by_name(variables: &[(OsString, OsString)]) -> Result<Zval, Bailout> {
    let entries = variables
        .iter()
        .map(|(name, value)| Ok((name.as_bytes(), string(value)?)));
    json::array_by_bytes(entries.collect::<Result<_, _>>()?)
}

fn items(array: &Zval) -> Vec<(Key, ZvalNode)> {
    let array = array.array();
    array.map_or_else(Vec::new, |array| entries(array, usize::MAX))
}
