//! Reading and filling the properties of native objects.

use ext_php_rs::ffi::{object_properties_init, zend_objects_new};
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::ExecuteData;

use super::class::Slot;
use super::ffi;

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
    // SAFETY: a class without a creator of its own; `set_object` takes a second reference, so the
    // first is given back.
    unsafe {
        let object = zend_objects_new((&raw const *class.get()).cast_mut());
        object_properties_init(object, (*object).ce);
        zval.set_object(&mut *object);
        (*object).gc.refcount -= 1;
    }
    zval
}
