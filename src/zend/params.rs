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
    /// `?callable`
    CallableOrNull(&'t mut Option<&'a Zval>),
    /// `iterable`
    Iterable(&'t mut Option<&'a Zval>),
    /// `mixed`
    Value(&'t mut Option<&'a Zval>),
}

/// Parses the parameters of a call, of which the first `required` must be passed. `false` with a
/// pending exception if they are invalid.
pub fn parse(ex: &ExecuteData, required: usize, args: &mut [Arg<'_, '_>]) -> bool {
    // SAFETY: in the frame of a call the union holds the number of its arguments.
    let given = unsafe { ex.This.u2.num_args } as usize;
    if given < required || given > args.len() {
        let bound = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        // SAFETY: throws.
        unsafe { zend_wrong_parameters_count_error(bound(required), bound(args.len())) };
        return false;
    }
    (1..).zip(args.iter_mut()).take(given).all(|(number, arg)| {
        // SAFETY: the frame has as many arguments as it says.
        match unsafe { ex.zend_call_arg(number as usize - 1) } {
            Some(value) => arg.take(number, value),
            None => false,
        }
    })
}

impl<'a> Arg<'_, 'a> {
    fn take(&mut self, number: u32, value: &'a mut Zval) -> bool {
        // A built-in function accepts null for a scalar with a notice; a function in PHP throws.
        let scalar = match self {
            Self::Bytes(_) => Some(c"string"),
            Self::Int(_) => Some(c"int"),
            Self::Bool(_) => Some(c"bool"),
            _ => None,
        };
        if let Some(expected) = scalar
            && value.is_null()
        {
            return wrong_type(number, expected, value);
        }
        let value = &raw mut *value;
        let mut found: *mut Zval = std::ptr::null_mut();
        match self {
            Self::Bytes(target) => {
                let mut text: *mut zend_string = std::ptr::null_mut();
                // SAFETY: `S` writes a string.
                let ok = unsafe { one(number, value, c"S", (&raw mut text).cast()) };
                // SAFETY: null or the argument's string.
                **target = unsafe { super::bytes(text) };
                ok
            }
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
            Self::Of(class, target) => {
                let class = &raw const **class;
                // SAFETY: `O` takes where to put the value, and its class.
                let ok = unsafe {
                    ffi::zend_parse_parameter(
                        0,
                        number,
                        value,
                        c"O".as_ptr(),
                        &raw mut found,
                        class,
                    ) == 0
                };
                // SAFETY: null or the argument.
                **target = unsafe { found.as_ref() }.and_then(Zval::object);
                ok
            }
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
    // SAFETY: the name is a string; the result is null or a string of the engine's.
    unsafe {
        let value: *const c_char = ffi::zend_ini_string(name.as_ptr(), name.to_bytes().len(), 0);
        if value.is_null() {
            String::new()
        } else {
            CStr::from_ptr(value).to_string_lossy().into_owned()
        }
    }
}
