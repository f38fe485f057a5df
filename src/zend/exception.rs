//! Exceptions: taking, throwing, reading.

use altair_engine::encode::{
    Code, ExceptionView, Frame, MAX_PREVIOUS_CHAIN, MAX_TRACE_FRAMES, Previous,
};
use ext_php_rs::ffi::zend_object;
use ext_php_rs::types::{ZendObject, Zval};

use super::object::string_bytes;
use super::{attempt_drop, ffi, text};

/// An exception taken from the engine; released when dropped.
pub struct Exception(*mut zend_object);

impl Exception {
    /// Takes the current exception.
    #[must_use]
    pub fn take() -> Option<Self> {
        // SAFETY: hands over one reference, or null.
        let object = unsafe { ffi::altair_take_exception() };
        (!object.is_null()).then(|| Self(object))
    }

    /// Returns whether it is PHP's internal exception for `exit`.
    #[must_use]
    pub fn is_exit(&self) -> bool {
        // SAFETY: the object is alive.
        unsafe { ffi::altair_is_unwind_exit(self.0) }
    }

    /// Throws it again.
    pub fn throw(self) {
        // SAFETY: the engine takes ownership of the reference.
        unsafe { ffi::altair_throw(self.0) };
        std::mem::forget(self);
    }

    /// The exception as an object.
    #[must_use]
    pub fn object(&self) -> &ZendObject {
        // SAFETY: we hold a reference.
        unsafe { &*self.0 }
    }
}

impl Drop for Exception {
    fn drop(&mut self) {
        let object = self.0;
        // A trace holds the arguments of its frames, whose destructors run code.
        attempt_drop(|| {
            let mut zval = Zval::new();
            // SAFETY: `set_object` adds a reference, which `zval` releases together with ours.
            unsafe {
                zval.set_object(&mut *object);
                (*object).gc.refcount -= 1;
            }
        });
    }
}

/// The parts of an exception that are shown. Runs no code.
#[must_use]
pub fn view(exception: &ZendObject) -> ExceptionView {
    let mut previous = Vec::new();
    let mut next = property(exception, "previous").and_then(Zval::object);
    while let Some(object) = next
        && previous.len() < MAX_PREVIOUS_CHAIN
    {
        previous.push(summary(object));
        next = property(object, "previous").and_then(Zval::object);
    }
    let code = match property(exception, "code") {
        Some(code) if code.is_long() => Code::Int(code.long().unwrap_or_default()),
        Some(code) => Code::Text(lossy(code)),
        None => Code::Int(0),
    };
    ExceptionView {
        head: summary(exception),
        code,
        frames: frames(exception),
        previous,
    }
}

fn summary(exception: &ZendObject) -> Previous {
    let string = |name| property(exception, name).map(lossy).unwrap_or_default();
    Previous {
        class: class_name(exception),
        message: string("message"),
        file: string("file"),
        line: property(exception, "line")
            .and_then(Zval::long)
            .unwrap_or_default(),
    }
}

/// The name of an object's class. For an anonymous class, the part before the NUL and the location
/// that PHP adds.
#[must_use]
pub fn class_name(object: &ZendObject) -> String {
    // SAFETY: the class of a live object and its name.
    readable(unsafe { text((*object.ce).name) })
}

/// A class name up to a NUL.
#[must_use]
pub fn readable(class: String) -> String {
    match class.split_once('\0') {
        Some((name, _)) => name.to_owned(),
        None => class,
    }
}

/// The exception that this one was thrown because of.
#[must_use]
pub fn previous(exception: &ZendObject) -> Option<&ZendObject> {
    property(exception, "previous").and_then(Zval::object)
}

/// The message of an exception.
#[must_use]
pub fn message(exception: &ZendObject) -> String {
    property(exception, "message")
        .map(lossy)
        .unwrap_or_default()
}

/// The file of our own PHP code, as child.c names it.
const OWN_CODE: &str = "(altair)";

fn frames(exception: &ZendObject) -> Vec<Frame> {
    let Some(trace) = property(exception, "trace").and_then(Zval::array) else {
        return Vec::new();
    };
    trace
        .values()
        .take(MAX_TRACE_FRAMES + 1)
        .filter_map(Zval::array)
        .filter_map(|frame| {
            let string = |name: &str| frame.get(name).map(lossy);
            let line = frame.get("line").and_then(Zval::long).unwrap_or_default();
            let function = format!(
                "{}{}{}",
                string("class").map(readable).unwrap_or_default(),
                string("type").unwrap_or_default(),
                string("function").unwrap_or_default()
            );
            let place = string("file").map(|file| (file, u32::try_from(line).unwrap_or_default()));
            let is_ours = place.as_ref().is_some_and(|(file, _)| file == OWN_CODE);
            // Calls by our code are shown as internal calls, and its closures are left out.
            (!is_ours || !function.starts_with('{')).then(|| Frame {
                function,
                place: place.filter(|_| !is_ours),
            })
        })
        .collect()
}

fn property<'a>(exception: &'a ZendObject, name: &str) -> Option<&'a Zval> {
    // SAFETY: a slot of the object lives as long as the object is borrowed.
    unsafe {
        let object = (&raw const *exception).cast_mut();
        ffi::altair_exception_property(object, name.as_ptr().cast(), name.len()).as_ref()
    }
}

fn lossy(value: &Zval) -> String {
    match value.long() {
        Some(n) => n.to_string(),
        None => String::from_utf8_lossy(string_bytes(value)).into_owned(),
    }
}
