//! `Altair\Eval\EvalResult`.

use std::collections::HashSet;

use altair_engine::{EvalResult, ToldResult, answer};
use ext_php_rs::types::{ZendHashTable, ZendObject, Zval};
use ext_php_rs::zend::{ClassEntry, ExecuteData};
use serde_json::{Map, Value};

use super::eval_request::{boolean, int};
use super::exceptions::{throw, throw_error};
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::object::{self, init, new_object, property, string_bytes, this};
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, host, json};

/// The class.
pub const NAME: &str = "Altair\\Eval\\EvalResult";

static CLASS: Slot = Slot::new();

/// The properties in the order of the constructor, with the keys of `toArray()`.
const PROPERTIES: [(&str, &str); 9] = [
    ("result", "result"),
    ("stdout", "stdout"),
    ("stderr", "stderr"),
    ("exception", "exception"),
    ("durationMs", "duration_ms"),
    ("memoryPeakBytes", "memory_peak_bytes"),
    ("exitCode", "exit_code"),
    ("timedOut", "timed_out"),
    ("diagnostics", "diagnostics"),
];

const NEVER_CONSTRUCTED: &str = "The EvalResult was never constructed";

/// Registers the class.
pub fn register() {
    Class::readonly(NAME)
        .property("result", Type::ARRAY.or_null())
        .property("stdout", Type::STRING)
        .property("stderr", Type::STRING)
        .property("exception", Type::ARRAY.or_null())
        .property("durationMs", Type::INT)
        .property("memoryPeakBytes", Type::INT)
        .property("exitCode", Type::INT)
        .property("timedOut", Type::BOOL)
        .property("diagnostics", Type::ARRAY)
        .constructor(
            construct,
            vec![
                Param::required("result", Type::ARRAY.or_null()),
                Param::required("stdout", Type::STRING),
                Param::required("stderr", Type::STRING),
                Param::required("exception", Type::ARRAY.or_null()),
                Param::required("durationMs", Type::INT),
                Param::required("memoryPeakBytes", Type::INT),
                Param::required("exitCode", Type::INT),
                Param::required("timedOut", Type::BOOL),
                Param::optional("diagnostics", Type::ARRAY, "[]"),
            ],
        )
        .method("ok", ok, vec![], Type::BOOL)
        .method(
            "toArray",
            to_array,
            vec![Param::optional("verbose", Type::BOOL, "false")],
            Type::ARRAY,
        )
        .register(&CLASS);
}

extern "C" fn construct(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let (mut stdout, mut stderr): (&[u8], &[u8]) = Default::default();
        let (mut result, mut exception, mut diagnostics) = (None, None, None);
        let (mut duration, mut memory, mut exit_code) = (0_i64, 0_i64, 0_i64);
        let mut timed_out = false;
        let mut args = [
            Arg::ArrayOrNull(&mut result),
            Arg::Bytes(&mut stdout),
            Arg::Bytes(&mut stderr),
            Arg::ArrayOrNull(&mut exception),
            Arg::Int(&mut duration),
            Arg::Int(&mut memory),
            Arg::Int(&mut exit_code),
            Arg::Bool(&mut timed_out),
            Arg::Array(&mut diagnostics),
        ];
        if !parse(ex, 8, &mut args) {
            return Ok(());
        }
        let copy = |zval: Option<&Zval>| zval.map_or_else(Zval::null, Zval::shallow_clone);
        let stdout = json::string(stdout)?;
        let stderr = json::string(stderr)?;
        let diagnostics = match diagnostics {
            Some(diagnostics) => diagnostics.shallow_clone(),
            None => json::to_zval(&Value::Array(Vec::new()))?,
        };
        let object = this(ex);
        if property(object, "result").is_some() {
            throw_error("Cannot modify readonly property Altair\\Eval\\EvalResult::$result");
            return Ok(());
        }
        let values = [
            copy(result),
            stdout,
            stderr,
            copy(exception),
            int(duration),
            int(memory),
            int(exit_code),
            boolean(timed_out),
            diagnostics,
        ];
        fill(object, values);
        Ok(())
    });
}

fn fill(object: &mut ZendObject, values: [Zval; 9]) {
    for ((name, _), value) in PROPERTIES.iter().zip(values) {
        init(object, name, value);
    }
}

/// The result as an object of the class.
pub fn write(result: &EvalResult) -> Result<Zval, Bailout> {
    write_with(result, &result.diagnostics_json())
}

/// What another process has told as an object of the class; `None`, with an exception pending, for
/// what is no result. Its diagnostics are handed on as they are.
pub fn write_told(told: &ToldResult) -> Result<Option<Zval>, Bailout> {
    match told.read::<Map<String, Value>>() {
        Ok(mut result) => {
            let diagnostics = Value::Object(std::mem::take(&mut result.diagnostics));
            write_with(&result, &diagnostics).map(Some)
        }
        Err(error) => {
            throw(&error);
            Ok(None)
        }
    }
}

fn write_with<D>(result: &EvalResult<D>, diagnostics: &Value) -> Result<Zval, Bailout> {
    let optional =
        |value: &Option<Value>| json::encoded_to_zval(value.as_ref().unwrap_or(&Value::Null));
    let number = |n: u64| int(i64::try_from(n).unwrap_or(i64::MAX));
    let values = [
        optional(&result.result)?,
        json::string(result.stdout.as_bytes())?,
        json::string(result.stderr.as_bytes())?,
        optional(&result.exception)?,
        number(result.duration_ms),
        number(result.memory_peak_bytes),
        int(result.exit_code),
        boolean(result.timed_out),
        json::to_zval(diagnostics)?,
    ];
    let mut zval = new_object(&CLASS);
    if let Some(object) = zval.object_mut() {
        fill(object, values);
    }
    Ok(zval)
}

fn is_ok(result: &ZendObject) -> bool {
    let no_exception = property(result, "exception").is_some_and(Zval::is_null);
    !object::bool(result, "timedOut") && no_exception && object::int(result, "exitCode") == 0
}

extern "C" fn ok(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        if parse(ex, 0, &mut []) {
            returned.set_bool(is_ok(this(ex)));
        }
        Ok(())
    });
}

extern "C" fn to_array(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut verbose = false;
        if !parse(ex, 0, &mut [Arg::Bool(&mut verbose)]) {
            return Ok(());
        }
        let object = this(ex);
        let mut entries = vec![("ok", boolean(is_ok(object)))];
        for (name, key) in PROPERTIES {
            let Some(value) = property(object, name) else {
                throw_error(NEVER_CONSTRUCTED);
                return Ok(());
            };
            entries.push((key, value.shallow_clone()));
        }
        if let (false, Some((_, diagnostics))) = (verbose, entries.last_mut()) {
            *diagnostics = lean(diagnostics)?;
        }
        // Always an object, also where it is empty.
        if let Some((_, diagnostics)) = entries.last_mut()
            && diagnostics.array().is_some_and(|array| array.is_empty())
        {
            *diagnostics = json::to_zval(&Value::Object(Default::default()))?;
        }
        *returned = json::array(entries)?;
        Ok(())
    });
}

/// `diagnostics` without what is as it should be. Values that stay are those of the array itself.
fn lean(diagnostics: &Zval) -> Result<Zval, Bailout> {
    let text = json::encode_pretty(diagnostics)?;
    // What is nested too deep is none of ours and stays as it is.
    let expected: HashSet<_> = match serde_json::from_slice(string_bytes(&text)) {
        Ok(Value::Object(map)) => answer::expected(&map).into_iter().collect(),
        _ => HashSet::new(),
    };
    let without = |array: &Zval, of: Option<&str>| {
        let mut kept: Vec<(String, Zval)> = Vec::new();
        for (key, value) in array.array().into_iter().flat_map(ZendHashTable::iter) {
            let key = key.to_string();
            let place = match of {
                None => (key.clone(), None),
                Some(of) => (of.to_owned(), Some(key.clone())),
            };
            if !expected.contains(&place) {
                kept.push((key, value.shallow_clone()));
            }
        }
        kept
    };
    let array = |entries: Vec<(String, Zval)>| {
        let entries = entries.iter();
        json::array(
            entries
                .map(|(key, value)| (key.as_str(), value.shallow_clone()))
                .collect(),
        )
    };
    let mut kept = without(diagnostics, None);
    for (key, value) in &mut kept {
        let has_less = |(of, inner): &(String, Option<String>)| of == key && inner.is_some();
        if value.is_array() && expected.iter().any(has_less) {
            *value = array(without(value, Some(key)))?;
        }
    }
    array(kept)
}

/// What an object of the class says; `None`, with an exception pending, as above.
pub fn read(object: &ZendObject) -> Result<Option<EvalResult>, Bailout> {
    let mut shape = Map::new();
    for (name, key) in PROPERTIES {
        let Some(value) = property(object, name) else {
            throw_error(NEVER_CONSTRUCTED);
            return Ok(None);
        };
        let text = json::encode_pretty(value)?;
        // Our own values are never nested too deep for the parser; the rest is still shown.
        let value = serde_json::from_slice(string_bytes(&text))
            .unwrap_or_else(|_| format!("({key} is nested too deep)").into());
        shape.insert(key.into(), value);
    }
    Ok(Some(EvalResult::from_json(shape.into())))
}

/// The class's entry.
pub fn class() -> &'static ClassEntry {
    CLASS.get()
}
