//! Reading and filling the properties of native objects.

use std::ffi::CStr;

use ext_php_rs::exception::PhpException;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::{ExecuteData, ce};

use super::class::Slot;
use super::exception::class_name;
use super::params::parse;
use super::{Bailout, attempt, ffi, host, text};

/// A property's value, read without running code; `None` if it is not initialised.
#[must_use]
pub fn property<'a>(object: &'a ZendObject, name: &str) -> Option<&'a Zval> {
    // SAFETY: a slot of the object lives as long as the object is borrowed.
    unsafe {
        ffi::altair_property(
            (&raw const *object).cast_mut(),
            name.as_ptr().cast(),
            name.len(),
        )
        .as_ref()
    }
}

/// The bytes of a string property; empty if it is not a string.
#[must_use]
pub fn bytes<'a>(object: &'a ZendObject, name: &str) -> &'a [u8] {
    property(object, name).map_or(&[], string_bytes)
}

/// An integer property.
#[must_use]
pub fn int(object: &ZendObject, name: &str) -> i64 {
    property(object, name)
        .and_then(Zval::long)
        .unwrap_or_default()
}

/// A boolean property.
#[must_use]
pub fn bool(object: &ZendObject, name: &str) -> bool {
    property(object, name)
        .and_then(Zval::bool)
        .unwrap_or_default()
}

/// The bytes of a string value; empty if it is not a string.
#[must_use]
pub fn string_bytes(value: &Zval) -> &[u8] {
    value.zend_str().map_or(&[], |text| text.as_bytes())
}

/// Initialises a declared readonly property. Called once, from a constructor.
pub fn init(object: &mut ZendObject, name: &str, value: Zval) {
    let mut value = std::mem::ManuallyDrop::new(value);
    // SAFETY: the property is declared, and the object takes ownership of the value.
    unsafe { ffi::altair_init_property(object, name.as_ptr().cast(), name.len(), &raw mut *value) };
}

/// The object a method was called on.
///
/// # Panics
///
/// In a static method.
#[must_use]
pub fn this(ex: &mut ExecuteData) -> &mut ZendObject {
    ex.get_self()
        .unwrap_or_else(|| panic!("a method without an object"))
}

/// Another reference to an object.
#[must_use]
pub fn share(object: &ZendObject) -> Zval {
    let mut zval = Zval::new();
    // SAFETY: a live object, of which `set_object` takes a reference; only its count changes.
    unsafe { zval.set_object(&mut *(&raw const *object).cast_mut()) };
    zval
}

/// A new object of one of our classes, with uninitialised properties.
pub fn new_object(class: &Slot) -> Zval {
    let mut zval = Zval::new();
    // SAFETY: a class of this module; `set_object` takes a second reference, so the first is given
    // back.
    unsafe {
        let object = ffi::altair_new_object((&raw const *class.get()).cast_mut());
        zval.set_object(&mut *object);
        (*object).gc.refcount -= 1;
    }
    zval
}

/// The case of an enum with this name.
///
/// # Errors
///
/// [`Bailout`] if PHP's memory ran out.
pub fn enum_case(of: &Slot, name: &CStr) -> Result<Zval, Bailout> {
    let ce = (&raw const *of.get()).cast_mut();
    // SAFETY: an enum of this module, which has the case and keeps it for the request.
    let case = attempt(|| unsafe { ffi::altair_case_named(ce, name.as_ptr()) })?;
    let mut zval = Zval::new();
    // SAFETY: a live object, of which `set_object` takes a reference.
    unsafe { zval.set_object(&mut *case) };
    Ok(zval)
}

/// The value that a case of an enum stands for; empty if the object is none.
#[must_use]
pub fn enum_value(case: &ZendObject) -> &[u8] {
    // SAFETY: the class of a live object.
    if !unsafe { &*case.ce }.flags().contains(ClassFlags::Enum) {
        return &[];
    }
    // SAFETY: a case, whose value lives as long as it does; null if it has none.
    unsafe { ffi::altair_enum_backing((&raw const *case).cast_mut()).as_ref() }
        .map_or(&[], string_bytes)
}

/// The native side of a method that returns the property of its own name.
pub extern "C" fn accessor(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        if !parse(ex, 0, &mut []) {
            return Ok(());
        }
        // SAFETY: the frame of a call, whose function has a name for as long.
        let name = unsafe { text(ffi::altair_called_name(&raw mut *ex)) };
        let object = this(ex);
        match property(object, &name) {
            Some(value) => *returned = value.shallow_clone(),
            None => throw_never_constructed(object),
        }
        Ok(())
    });
}

/// Throws the `Error` of an object whose properties nobody has initialised.
pub fn throw_never_constructed(object: &ZendObject) {
    let class = class_name(object);
    let short = class.rsplit('\\').next().unwrap_or(&class);
    let message = format!("The {short} was never constructed");
    PhpException::new(message, 0, ce::error()).throw();
}
