//! Parameters, parsed by the engine itself, with its coercions and errors.

use std::ffi::{CStr, c_char, c_void};

use ext_php_rs::ffi::{zend_string, zend_wrong_parameters_count_error};
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::{ClassEntry, ExecuteData};

use super::ffi;

/// The type of a parameter, and the target for its value. If it is not passed, the target is
/// unchanged and keeps its default.
///
/// The values belong to the caller's frame and live as long as the call.
pub enum Arg<'t, 'a> {
    /// `string`
    Bytes(&'t mut &'a [u8]),
    /// `?string`
    BytesOrNull(&'t mut Option<&'a [u8]>),
    /// `int`
    Int(&'t mut i64),
    /// `?int`
    IntOrNull(&'t mut Option<i64>),
    /// `float`
    Float(&'t mut f64),
    /// `bool`
    Bool(&'t mut bool),
    /// `?bool`
    BoolOrNull(&'t mut Option<bool>),
    /// `array`
    Array(&'t mut Option<&'a Zval>),
    /// `?array`
    ArrayOrNull(&'t mut Option<&'a Zval>),
    /// `?object`
    ObjectOrNull,
    /// An object of a class.
    Of(&'static ClassEntry, &'t mut Option<&'a ZendObject>),
    /// The same, or null.
    OfOrNull(&'static ClassEntry, &'t mut Option<&'a ZendObject>),
    /// `string ...`, as the last one: all that follows, also what was passed by a name that no
    /// parameter has, as a function in PHP takes it.
    Rest(&'t mut Vec<&'a [u8]>),
    /// `?callable`
    CallableOrNull(&'t mut Option<&'a Zval>),
    /// `iterable`
    Iterable(&'t mut Option<&'a Zval>),
    /// `mixed`
    Value(&'t mut Option<&'a Zval>),
}

/// How many arguments a call has by position, or by the name of a parameter.
#[must_use]
pub fn given(ex: &ExecuteData) -> usize {
    // SAFETY: in the frame of a call the union holds the number of its arguments.
    unsafe { ex.This.u2.num_args as usize }
}

/// Parses the parameters of a call, of which the first `required` must be passed. `false` with a
/// pending exception if they are invalid.
pub fn parse(ex: &ExecuteData, required: usize, args: &mut [Arg<'_, '_>]) -> bool {
    let given = given(ex);
    let has_rest = matches!(args.last(), Some(Arg::Rest(_)));
    if given < required || given > args.len() && !has_rest {
        // SAFETY: throws.
        unsafe { zend_wrong_parameters_count_error(bound(required), bound(args.len())) };
        return false;
    }
    let last = args.len().saturating_sub(1);
    let positional = (0..given).all(|at| {
        // SAFETY: the frame has as many arguments as it says.
        let value = unsafe { ex.zend_call_arg(at) };
        match (args.get_mut(at.min(last)), value) {
            (Some(arg), Some(value)) => arg.take(bound(at + 1), value),
            _ => false,
        }
    });
    positional && (!has_rest || named(ex, given, &mut args[last]))
}

/// Takes what was passed by name beyond the parameters.
fn named(ex: &ExecuteData, given: usize, rest: &mut Arg<'_, '_>) -> bool {
    // SAFETY: the frame of a call.
    let named = unsafe { ffi::altair_extra_named((&raw const *ex).cast_mut()) };
    // SAFETY: null or the frame's own array, which nobody else sees.
    let values = unsafe { named.as_mut() }.map_or_else(Vec::new, |named| {
        let values = named.values().map(|value| (&raw const *value).cast_mut());
        values.collect()
    });
    (given + 1..).zip(values).all(|(number, value)| {
        // SAFETY: a value of that array; parsing may convert it in place, but moves none.
        unsafe { value.as_mut() }.is_some_and(|value| rest.take(bound(number), value))
    })
}

/// A count as the engine's.
fn bound(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl<'a> Arg<'_, 'a> {
    fn take(&mut self, number: u32, value: &'a mut Zval) -> bool {
        // A built-in function accepts null for a scalar with a notice; a function in PHP throws.
        let scalar = match self {
            Self::Bytes(_) | Self::Rest(_) => Some(c"string"),
            Self::Int(_) => Some(c"int"),
            Self::Float(_) => Some(c"float"),
            Self::Bool(_) => Some(c"bool"),
            _ => None,
        };
        if let Some(expected) = scalar
            && value.is_null()
        {
            return wrong_type(number, expected, value);
        }
        let value = &raw mut *value;
        match self {
            Self::Bytes(target) => match string(number, value) {
                Some(text) => {
                    **target = text;
                    true
                }
                None => false,
            },
            Self::Rest(target) => match string(number, value) {
                Some(text) => {
                    target.push(text);
                    true
                }
                None => false,
            },
            Self::BytesOrNull(target) => {
                let mut text: *mut zend_string = std::ptr::null_mut();
                // SAFETY: `S!` writes a string or null.
                let ok = unsafe { one(number, value, c"S!", (&raw mut text).cast()) };
                // SAFETY: as above.
                **target = (!text.is_null()).then(|| unsafe { super::bytes(text) });
                ok
            }
            // SAFETY: `l` writes an integer.
            Self::Int(target) => unsafe { one(number, value, c"l", (&raw mut **target).cast()) },
            // SAFETY: `d` writes a number.
            Self::Float(target) => unsafe { one(number, value, c"d", (&raw mut **target).cast()) },
            // SAFETY: `b` writes a boolean.
            Self::Bool(target) => unsafe { one(number, value, c"b", (&raw mut **target).cast()) },
            Self::IntOrNull(target) => {
                let (mut number_given, mut is_null) = (0_i64, false);
                // SAFETY: `l!` writes an integer and whether it is null.
                let ok = unsafe {
                    ffi::zend_parse_parameter(
                        0,
                        number,
                        value,
                        c"l!".as_ptr(),
                        &raw mut number_given,
                        &raw mut is_null,
                    ) == 0
                };
                **target = (!is_null).then_some(number_given);
                ok
            }
            Self::BoolOrNull(target) => {
                let (mut flag, mut is_null) = (false, false);
                // SAFETY: `b!` writes a boolean and whether it is null.
                let ok = unsafe {
                    ffi::zend_parse_parameter(
                        0,
                        number,
                        value,
                        c"b!".as_ptr(),
                        &raw mut flag,
                        &raw mut is_null,
                    ) == 0
                };
                **target = (!is_null).then_some(flag);
                ok
            }
            Self::Array(target) => a_value(number, value, c"a", target),
            Self::ArrayOrNull(target) => a_value(number, value, c"a!", target),
            Self::ObjectOrNull => a_value(number, value, c"o!", &mut None),
            Self::Of(class, target) => an_object(number, value, c"O", class, target),
            Self::OfOrNull(class, target) => an_object(number, value, c"O!", class, target),
            Self::CallableOrNull(target) => {
                // SAFETY: the argument.
                let ok = unsafe { ffi::altair_parse_callable(number, value) };
                // SAFETY: the argument.
                **target = unsafe { value.as_ref() }.filter(|value| !value.is_null());
                ok
            }
            Self::Iterable(target) => {
                // SAFETY: the argument.
                let Some(value) = (unsafe { value.as_mut() }) else {
                    return false;
                };
                if !value.is_iterable() {
                    return wrong_type(number, c"iterable", value);
                }
                **target = Some(value);
                true
            }
            Self::Value(target) => {
                // SAFETY: the argument.
                **target = unsafe { value.as_ref() };
                true
            }
        }
    }
}

fn wrong_type(number: u32, expected: &CStr, given: &mut Zval) -> bool {
    // SAFETY: throws.
    unsafe { ffi::altair_wrong_type(number, expected.as_ptr(), given) };
    false
}

/// A string argument; `None` with a pending exception if it is none.
fn string<'a>(number: u32, value: *mut Zval) -> Option<&'a [u8]> {
    let mut text: *mut zend_string = std::ptr::null_mut();
    // SAFETY: `S` writes a string.
    let ok = unsafe { one(number, value, c"S", (&raw mut text).cast()) };
    // SAFETY: null or the argument's string, in the caller's frame.
    ok.then(|| unsafe { super::bytes(text) })
}

/// Parses an argument for `spec`, the letter of an object of a class.
fn an_object(
    number: u32,
    value: *mut Zval,
    spec: &CStr,
    class: &'static ClassEntry,
    target: &mut Option<&ZendObject>,
) -> bool {
    let mut found: *mut Zval = std::ptr::null_mut();
    let class = &raw const *class;
    // SAFETY: `O` takes where to put the value, and its class.
    let ok = unsafe {
        ffi::zend_parse_parameter(0, number, value, spec.as_ptr(), &raw mut found, class) == 0
    };
    // SAFETY: null or the argument, in the caller's frame.
    *target = unsafe { found.as_ref() }.and_then(Zval::object);
    ok
}

/// Parses an argument for `spec`, the letter of a value.
fn a_value(number: u32, value: *mut Zval, spec: &CStr, target: &mut Option<&Zval>) -> bool {
    let mut found: *mut Zval = std::ptr::null_mut();
    // SAFETY: such a letter writes a pointer to a value.
    let ok = unsafe { one(number, value, spec, (&raw mut found).cast()) };
    // SAFETY: null or the argument, in the caller's frame.
    *target = unsafe { found.as_ref() };
    ok
}

/// # Safety
///
/// `spec` is one letter that writes what `target` points to, and nothing else.
unsafe fn one(number: u32, value: *mut Zval, spec: &CStr, target: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    unsafe { ffi::zend_parse_parameter(0, number, value, spec.as_ptr(), target) == 0 }
}

/// The value of an ini setting, as text.
#[must_use]
pub fn ini(name: &CStr) -> String {
    value(name, false)
}

/// The value of an ini setting as text, as it was before the application changed it.
#[must_use]
pub fn configured(name: &CStr) -> String {
    value(name, true)
}

fn value(name: &CStr, original: bool) -> String {
    // SAFETY: the name is a string; the result is null or a string of the engine's.
    unsafe {
        let value: *const c_char =
            ffi::zend_ini_string(name.as_ptr(), name.to_bytes().len(), original.into());
        if value.is_null() {
            String::new()
        } else {
            CStr::from_ptr(value).to_string_lossy().into_owned()
        }
    }
}
