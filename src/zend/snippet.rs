//! The snippet: what it lacks, its variables, its run.

use std::ffi::{c_char, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};

use altair_engine::arguments::{Arguments, Datum};
use altair_engine::encode::Key;
use ext_php_rs::types::Zval;

use super::child::{Cut, run, value};
use super::ffi::{self, OpArray, RawImport};
use super::json::{make_array, make_string};
use super::{Bailout, attempt};

/// Short names of classes that are looked for in one snippet; others stay what they are.
const MISSING_MAX: usize = 16;

/// A class that the snippet names by one name and that nobody has loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingClass {
    /// The name, as it is written.
    pub name: String,
    /// The line where it stands first.
    pub line: u32,
}

/// A class that the snippet is to know by a short name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The short name.
    pub name: String,
    /// The class.
    pub class: String,
}

/// The compiled snippet.
pub struct Code(*mut OpArray);

/// What came of compiling the snippet.
pub enum Compiled {
    /// It can be run.
    Code(Code),
    /// It names classes that nobody has loaded. Nothing was compiled.
    Missing(Vec<MissingClass>),
}

/// What a snippet has returned.
pub struct Returned {
    /// The value.
    pub value: Zval,
    /// Whether it is what was asked for: what a `return` gave, or the only expression. Else it is what the last of
    /// several statements happens to be.
    pub is_asked_for: bool,
}

/// Compiles a snippet that names no classes that are yet to be loaded.
///
/// # Errors
///
/// How that was cut short: by a parse error.
pub fn compile(code: &[u8]) -> Result<Compiled, Cut> {
    extern "C" fn missing(context: *mut c_void, name: *const c_char, len: usize, line: u32) {
        // SAFETY: the vector below, and the engine's text, for the time of the call.
        let (missing, name) = unsafe {
            (
                &mut *context.cast::<Vec<MissingClass>>(),
                std::slice::from_raw_parts(name.cast::<u8>(), len),
            )
        };
        if let Ok(name) = std::str::from_utf8(name)
            && missing.len() < MISSING_MAX
        {
            let name = name.to_owned();
            missing.push(MissingClass { name, line });
        }
    }
    let mut classes: Vec<MissingClass> = Vec::new();
    let context = (&raw mut classes).cast();
    // SAFETY: the code is copied, the hook runs no PHP code, and `classes` outlives the call.
    let compiled = run(|| unsafe {
        ffi::altair_compile_snippet(
            code.as_ptr().cast(),
            code.len(),
            Some(missing),
            context,
            null(),
            0,
        )
    })?;
    Ok(match compiled.is_null() {
        true => Compiled::Missing(classes),
        false => Compiled::Code(Code(compiled)),
    })
}

/// Compiles a snippet as if it began with `imports`.
///
/// # Errors
///
/// As for [`compile`].
pub fn compile_with(code: &[u8], imports: &[Import]) -> Result<Code, Cut> {
    let raw = imports.iter().map(|import| RawImport {
        name: import.name.as_ptr().cast(),
        name_len: import.name.len(),
        class_name: import.class.as_ptr().cast(),
        class_len: import.class.len(),
    });
    let raw: Vec<RawImport> = raw.collect();
    // SAFETY: the code and the names are copied.
    run(|| unsafe {
        ffi::altair_compile_snippet(
            code.as_ptr().cast(),
            code.len(),
            None,
            null_mut(),
            raw.as_ptr(),
            raw.len(),
        )
    })
    .map(Code)
}

/// Compiles a few lines for nothing, so that compiling a snippet takes less time.
///
/// # Errors
///
/// [`Bailout`]: nothing can be run.
pub fn rehearse() -> Result<(), Bailout> {
    // SAFETY: runs no code, and the engine frees what it allocates.
    attempt(|| unsafe { ffi::altair_rehearse() })
}

/// Whether there is a class of that name, or one of the application's autoloaders makes one.
///
/// # Errors
///
/// How an autoloader was cut short.
pub fn class_exists(name: &str) -> Result<bool, Cut> {
    // SAFETY: the name is copied.
    run(|| unsafe { ffi::altair_class_exists(name.as_ptr().cast(), name.len()) })
}

/// What a snippet ends with that is wrong in that line.
#[must_use]
pub fn error_at(message: &str, line: u32) -> Option<Cut> {
    // SAFETY: the message is copied.
    run(|| unsafe { ffi::altair_throw_error(message.as_ptr().cast(), message.len(), line) }).err()
}

/// Runs the snippet in a scope of its own, in which the arguments are variables.
///
/// # Errors
///
/// How it was cut short.
pub fn run_with(code: Code, arguments: &Arguments) -> Result<Returned, Cut> {
    let mut took_last = false;
    let value = value(|result| {
        for (name, datum) in arguments.iter() {
            let mut variable = ManuallyDrop::new(convert(datum));
            // SAFETY: the name is copied, the value taken over.
            unsafe {
                ffi::altair_set_variable(name.as_ptr().cast(), name.len(), &raw mut *variable);
            }
        }
        // SAFETY: the code is run once and never freed, because the process ends with it.
        took_last = unsafe { ffi::altair_run_snippet(code.0, result) };
    })?;
    Ok(Returned {
        value,
        is_asked_for: !took_last,
    })
}

/// A value of PHP's. Owns nothing that a bailout would have to free but what the engine knows itself.
fn convert(datum: &Datum) -> Zval {
    let mut zval = Zval::new();
    match datum {
        Datum::Null => zval.set_null(),
        Datum::Bool(b) => zval.set_bool(*b),
        Datum::Int(n) => zval.set_long(*n),
        Datum::Float(f) => zval.set_double(*f),
        Datum::Bytes(bytes) => return make_string(bytes),
        Datum::Array(entries) => {
            let mut array = make_array(entries.len());
            for (key, item) in entries {
                let mut item = ManuallyDrop::new(convert(item));
                let (array, item) = (&raw mut array, &raw mut *item);
                // SAFETY: `array` is an array of its own, which takes the item over; the key is copied.
                unsafe {
                    match key {
                        Key::Int(n) => ffi::altair_array_set_index(array, *n, item),
                        Key::Bytes(key) => {
                            ffi::altair_array_set(array, key.as_ptr().cast(), key.len(), item);
                        }
                    }
                }
            }
            return array;
        }
    }
    zval
}
