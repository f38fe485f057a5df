//! An entry: what is checked before it, and what becomes of its outcome.

use std::sync::Arc;
use std::time::Duration;

use altair_engine::runtime::{Entered, Entry, Runtime, Source, VALUE_MAX_BYTES};
use altair_engine::{EvalError, MIN_MEMORY_MB};
use ext_php_rs::types::{ZendObject, Zval};

use super::NAME;
use super::caller::Caller;
use super::exceptions::{throw, throw_start};
use crate::zend::Bailout;
use crate::zend::by_value::{self, Unencodable};
use crate::zend::closure::{self, Refused};
use crate::zend::host::{self, Wants};
use crate::zend::runtime::memory_left;

/// Throws a `ValueError` for a number that is not positive.
pub(super) fn are_positive(numbers: &[(&str, Option<i64>)]) -> bool {
    for (index, (name, number)) in numbers.iter().enumerate() {
        if number.is_some_and(|number| number < 1) {
            host::throw_value_error(&format!(
                "{NAME}::enter(): Argument #{} (${name}) must be at least 1",
                index + 3
            ));
            return false;
        }
    }
    true
}

/// An entry that may be made.
pub(super) struct Prepared {
    found: Arc<closure::Found>,
    arguments: Vec<u8>,
    timeout: Option<Duration>,
    memory_limit_bytes: Option<u64>,
    value_max_bytes: u64,
}

/// Why an entry may not be made.
pub(super) enum NotSent {
    /// A rule of entry points forbids it.
    Rule(String),
    /// Its source cannot be sent.
    Source(String),
}

/// Checks a closure and its arguments, in the order of the contract. `memory_limit`: that of entries
/// that ask for none, in bytes.
pub(super) fn prepare(
    given: &ZendObject,
    argv: Option<&Zval>,
    timeout: Option<i64>,
    memory: Option<i64>,
    memory_limit: u64,
) -> Result<Prepared, NotSent> {
    closure::check_types(given).map_err(NotSent::Rule)?;
    let memory_limit_bytes = memory.map(|mb| {
        let mb = u64::try_from(mb.max(MIN_MEMORY_MB)).unwrap_or(u64::MAX);
        mb.saturating_mul(1 << 20)
    });
    // What travels fits into the memory of both sides. An array that holds another many times does
    // not show its size, so that the limit also bounds the time it takes.
    let of_entry = memory_limit_bytes.unwrap_or(memory_limit);
    let value_max_bytes = memory_left()
        .unwrap_or(VALUE_MAX_BYTES)
        .min(of_entry)
        .min(VALUE_MAX_BYTES);
    let most = usize::try_from(value_max_bytes).unwrap_or(usize::MAX);
    let none = Zval::new();
    let arguments = match argv {
        Some(argv) => by_value::encode_arguments(argv, most).map_err(NotSent::of_argument)?,
        None => by_value::encode(&none, by_value::Objects::Refuse, most)
            .map_err(|why| NotSent::of_argument((0, why)))?,
    };
    let found = closure::find(given).map_err(|refused| match refused {
        Refused::Rule(message) => NotSent::Rule(message),
        Refused::Source(why) => NotSent::Source(why),
    })?;
    Ok(Prepared {
        found,
        arguments,
        timeout: timeout.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        memory_limit_bytes,
        value_max_bytes,
    })
}

impl NotSent {
    fn of_argument((number, why): (usize, Unencodable)) -> Self {
        let what = match why {
            Unencodable::Object => "object",
            Unencodable::Resource => "resource",
            Unencodable::TooDeep => "nested too deeply, or in itself",
            Unencodable::TooLarge => "larger than the memory limit",
        };
        Self::Rule(format!(
            "illegal variable ({what}) passed to sandbox at argument {number}"
        ))
    }
}

/// What became of an entry: the engine's answer, or what the caller's own code wants.
pub(super) type Served = Result<Result<Entered, EvalError>, Wants>;

pub(super) fn serve(runtime: &mut Runtime, prepared: Prepared) -> Served {
    let found = &prepared.found;
    let entry = Entry {
        source: Source {
            name: &found.file,
            text: &found.source,
            short_tags: found.short_tags,
        },
        number: found.number,
        lines: found.lines,
        arguments: prepared.arguments,
        timeout: prepared.timeout,
        memory_limit_bytes: prepared.memory_limit_bytes,
        value_max_bytes: prepared.value_max_bytes,
    };
    let mut observer = Caller(Ok(()));
    let entered = runtime.enter(entry, &mut observer);
    observer.0.map(|()| entered)
}

/// Returns the value of an entry, or throws.
pub(super) fn finish(is_other: bool, served: Served, returned: &mut Zval) -> Result<(), Bailout> {
    match served {
        Ok(Ok(Entered::Returned(value))) => {
            // A short value can need much memory, and who sends it may want to exhaust the caller's.
            let most = memory_left().unwrap_or(VALUE_MAX_BYTES);
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            match by_value::decode(&value, most) {
                Ok(value) => *returned = value,
                Err(by_value::Undecodable::Bailout) => return Err(Bailout),
                Err(by_value::Undecodable::Memory) => throw(
                    is_other,
                    "sandbox bailed out: its value is larger than the memory limits of the entry and the caller allow",
                ),
                Err(by_value::Undecodable::Malformed(_)) => {
                    throw(is_other, "sandbox bailed out: its value cannot be read");
                }
            }
        }
        Ok(Ok(Entered::CutShort(why) | Entered::Refused(why))) => {
            throw(is_other, &format!("sandbox bailed out: {why}"));
        }
        Ok(Ok(Entered::Ended(why))) => throw(is_other, &format!("sandbox unusable: {why}")),
        Ok(Err(error)) => throw_start(is_other, &error),
        Err(Wants::Throw) => {}
        Err(Wants::Bailout) => return Err(Bailout),
    }
    Ok(())
}
