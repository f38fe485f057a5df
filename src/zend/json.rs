//! From JSON to PHP's values.

use std::mem::ManuallyDrop;

use ext_php_rs::types::Zval;
use serde_json::Value;

use super::object::string_bytes;
use super::{Bailout, attempt, ffi};

/// The value in PHP: objects become arrays, except those that would print as lists.
///
/// # Errors
///
/// [`Bailout`] if PHP's memory ran out.
pub fn to_zval(value: &Value) -> Result<Zval, Bailout> {
    attempt(|| ManuallyDrop::new(convert(value, Maps::KeptInJson))).map(ManuallyDrop::into_inner)
}

/// An encoded value as PHP's: all objects become arrays. [`encode_pretty`] knows which were maps.
///
/// # Errors
///
/// [`Bailout`] where PHP's memory ran out.
pub fn encoded_to_zval(value: &Value) -> Result<Zval, Bailout> {
    attempt(|| ManuallyDrop::new(convert(value, Maps::Arrays))).map(ManuallyDrop::into_inner)
}

/// What becomes of objects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maps {
    /// Arrays.
    Arrays,
    /// Arrays, or a `stdClass` where an array would print as a list.
    KeptInJson,
}

/// A PHP string.
///
/// # Errors
///
/// [`Bailout`] if PHP's memory ran out.
pub fn string(text: &[u8]) -> Result<Zval, Bailout> {
    attempt(|| ManuallyDrop::new(make_string(text))).map(ManuallyDrop::into_inner)
}

pub(super) fn make_string(text: &[u8]) -> Zval {
    let mut zval = Zval::new();
    // SAFETY: `zval` is empty; the engine copies the bytes.
    unsafe { ffi::altair_make_string(&raw mut zval, text.as_ptr().cast(), text.len()) };
    zval
}

pub(super) fn make_array(len: usize) -> Zval {
    let mut array = Zval::new();
    // SAFETY: `array` is empty.
    unsafe { ffi::altair_make_array(&raw mut array, u32::try_from(len).unwrap_or(u32::MAX)) };
    array
}

fn convert(value: &Value, maps: Maps) -> Zval {
    let mut zval = Zval::new();
    match value {
        Value::Null => zval.set_null(),
        Value::Bool(b) => zval.set_bool(*b),
        Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => zval.set_long(n),
            (None, Some(f)) => zval.set_double(f),
            (None, None) => zval.set_null(),
        },
        Value::String(text) => return make_string(text.as_bytes()),
        Value::Array(items) => {
            let mut array = make_array(items.len());
            for item in items {
                let mut item = ManuallyDrop::new(convert(item, maps));
                // SAFETY: `array` is an array of its own, which takes the item over.
                unsafe { ffi::altair_array_push(&raw mut array, &raw mut *item) };
            }
            return array;
        }
        Value::Object(map) => {
            let mut array = make_array(map.len());
            for (key, item) in map {
                let mut item = ManuallyDrop::new(convert(item, maps));
                // SAFETY: as above; the engine copies the key.
                unsafe {
                    ffi::altair_array_set(
                        &raw mut array,
                        key.as_ptr().cast(),
                        key.len(),
                        &raw mut *item,
                    );
                }
            }
            if maps == Maps::KeptInJson {
                // SAFETY: `array` is an array of its own.
                unsafe { ffi::altair_keep_as_object(&raw mut array) };
            }
            return array;
        }
    }
    zval
}

/// An array of the given entries.
///
/// # Errors
///
/// [`Bailout`] if PHP's memory ran out.
pub fn array(entries: Vec<(&str, Zval)>) -> Result<Zval, Bailout> {
    let entries = entries.into_iter();
    array_by_bytes(entries.map(|(key, item)| (key.as_bytes(), item)).collect())
}

/// An array of the given entries, whose keys need not be text.
///
/// # Errors
///
/// [`Bailout`] if PHP's memory ran out.
pub fn array_by_bytes(entries: Vec<(&[u8], Zval)>) -> Result<Zval, Bailout> {
    let mut entries: Vec<_> = entries
        .into_iter()
        .map(|(k, v)| (k, ManuallyDrop::new(v)))
        .collect();
    attempt(|| {
        let mut array = make_array(entries.len());
        for (key, item) in &mut entries {
            // SAFETY: `array` is an array of its own, which takes the item over.
            unsafe {
                ffi::altair_array_set(
                    &raw mut array,
                    key.as_ptr().cast(),
                    key.len(),
                    &raw mut **item,
                );
            }
        }
        ManuallyDrop::new(array)
    })
    .map(ManuallyDrop::into_inner)
}

/// A list of the given items.
///
/// # Errors
///
/// [`Bailout`] if PHP's memory ran out.
pub fn list(items: Vec<Zval>) -> Result<Zval, Bailout> {
    let mut items: Vec<_> = items.into_iter().map(ManuallyDrop::new).collect();
    attempt(|| {
        let mut list = make_array(items.len());
        for item in &mut items {
            // SAFETY: `list` is an array of its own, which takes the item over.
            unsafe { ffi::altair_array_push(&raw mut list, &raw mut **item) };
        }
        ManuallyDrop::new(list)
    })
    .map(ManuallyDrop::into_inner)
}

/// A string, a number or a boolean as a string, as `(string)` makes it; `None` for another value.
///
/// # Errors
///
/// [`Bailout`] if PHP's memory ran out.
pub fn scalar_text(value: &Zval) -> Result<Option<Zval>, Bailout> {
    let value = value.dereference();
    if !(value.is_string() || value.is_long() || value.is_double() || value.is_bool()) {
        return Ok(None);
    }
    let mut text = ManuallyDrop::new(Zval::new());
    let (from, to) = ((&raw const *value).cast_mut(), &raw mut *text);
    // SAFETY: the caller holds the value; of a scalar no code runs.
    attempt(|| unsafe { ffi::altair_scalar_text(from, to) })?;
    Ok(Some(ManuallyDrop::into_inner(text)))
}

/// A value as `(string)` makes it, which may run an object's code. An exception may be pending.
///
/// # Errors
///
/// [`Bailout`] if the engine bailed out.
pub fn text_of(value: &Zval) -> Result<Vec<u8>, Bailout> {
    let mut text = ManuallyDrop::new(Zval::new());
    let (from, to) = ((&raw const *value).cast_mut(), &raw mut *text);
    // SAFETY: the caller holds the value; the engine writes a string.
    attempt(|| unsafe { ffi::altair_scalar_text(from, to) })?;
    let text = ManuallyDrop::into_inner(text);
    Ok(string_bytes(&text).to_vec())
}

/// `json_encode` with the flags of an answer, and the maps of encoded values as objects: pretty, slashes and Unicode as they are, what is not
/// UTF-8 replaced, what cannot be encoded null; with a final newline.
///
/// # Errors
///
/// [`Bailout`] if the engine bailed out.
pub fn encode_pretty(value: &Zval) -> Result<Zval, Bailout> {
    let mut text = ManuallyDrop::new(Zval::new());
    let (from, to) = ((&raw const *value).cast_mut(), &raw mut *text);
    // SAFETY: the caller holds the value; the engine writes the text.
    attempt(|| unsafe { ffi::altair_json_encode(from, to) })?;
    Ok(ManuallyDrop::into_inner(text))
}
