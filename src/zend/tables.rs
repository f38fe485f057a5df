//! The names in the engine's tables, and what undefined things were looked for in. For hints: nothing
//! here runs code, loads a class or allocates from PHP's heap.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use ext_php_rs::ffi::{zend_array, zend_string, zval};
use ext_php_rs::types::ZendObject;
use ext_php_rs::zend::ClassEntry;

use super::ffi::{self, NameHook};
use super::{attempt, bytes, text};

/// The longest signature, in bytes.
const SIGNATURE_MAX: usize = 160;

/// Calls `each` for the names that `walk` walks over.
fn names(walk: impl FnOnce(NameHook, *mut c_void), each: &mut dyn FnMut(&[u8], *const c_void)) {
    extern "C" fn named(
        context: *mut c_void,
        name: *const c_char,
        len: usize,
        item: *const c_void,
    ) {
        // SAFETY: `context` is what was given below; the name is the engine's, for the time of the call.
        unsafe {
            let each = &mut *context.cast::<&mut dyn FnMut(&[u8], *const c_void)>();
            each(std::slice::from_raw_parts(name.cast::<u8>(), len), item);
        }
    }
    let mut each = each;
    walk(named, (&raw mut each).cast());
}

/// Every function.
pub fn functions(mut each: impl FnMut(&[u8])) {
    // SAFETY: calls back before it returns, and changes nothing.
    let walk = |hook, context| unsafe { ffi::altair_each_function(hook, context) };
    names(walk, &mut |name, _| each(name));
}

/// Every class that is there.
pub fn classes(mut each: impl FnMut(&[u8])) {
    // SAFETY: as above.
    let walk = |hook, context| unsafe { ffi::altair_each_class(hook, context) };
    names(walk, &mut |name, _| each(name));
}

/// Every constant of no class.
pub fn constants(mut each: impl FnMut(&[u8])) {
    // SAFETY: as above.
    let walk = |hook, context| unsafe { ffi::altair_each_constant(hook, context) };
    names(walk, &mut |name, _| each(name));
}

/// Every variable of the snippets so far, with its value.
pub fn own_variables(mut each: impl FnMut(&[u8], Value)) {
    // SAFETY: as above.
    let walk = |hook, context| unsafe { ffi::altair_each_own_variable(hook, context) };
    names(walk, &mut |name, value| {
        if let Some(value) = Value::of(value.cast()) {
            each(name, value);
        }
    });
}

/// A class that is there. Classes live as long as the process.
#[derive(Clone, Copy)]
pub struct Class(*const ClassEntry);

impl Class {
    /// The class of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let lower = name.strip_prefix('\\').unwrap_or(name).to_ascii_lowercase();
        // SAFETY: looks it up.
        Self::of(unsafe { ffi::altair_find_class(lower.as_ptr().cast(), lower.len()) })
    }

    fn of(class: *const ClassEntry) -> Option<Self> {
        (!class.is_null()).then_some(Self(class))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        // SAFETY: the class is alive, and its name with it.
        unsafe { text(ffi::altair_class_name(self.0)) }
    }

    /// Its public methods that are not magic.
    pub fn methods(self, mut each: impl FnMut(&[u8], Method)) {
        // SAFETY: as for `functions`; the class is alive.
        let walk = |hook, context| unsafe { ffi::altair_each_method(self.0, hook, context) };
        names(walk, &mut |name, method| each(name, Method(method)));
    }

    /// Its public constants and cases.
    pub fn constants(self, mut each: impl FnMut(&[u8])) {
        // SAFETY: as above.
        let walk =
            |hook, context| unsafe { ffi::altair_each_class_constant(self.0, hook, context) };
        names(walk, &mut |name, _| each(name));
    }

    /// The properties that it declares and that code of `scope` can use.
    pub fn properties(self, scope: Option<Self>, is_static: bool, mut each: impl FnMut(&[u8])) {
        let scope = scope.map_or(std::ptr::null(), |class| class.0);
        // SAFETY: as above.
        let walk = |hook, context| unsafe {
            ffi::altair_each_property(self.0, scope, is_static, hook, context);
        };
        names(walk, &mut |name, _| each(name));
    }

    /// A static property.
    #[must_use]
    pub fn static_property(class: &str, name: &str) -> Option<Value> {
        let class = class.to_ascii_lowercase();
        let (of, len) = (class.as_ptr().cast(), class.len());
        // SAFETY: looks it up.
        Value::of(unsafe { ffi::altair_static_property(of, len, name.as_ptr().cast(), name.len()) })
    }
}

/// Whether an object is one of a class, or of one below it.
#[must_use]
pub fn is_instance(object: &ZendObject, of: Class) -> bool {
    // SAFETY: both are alive.
    unsafe { ffi::altair_is_instance(object, of.0) }
}

/// A method of a class.
#[derive(Clone, Copy)]
pub struct Method(*const c_void);

impl Method {
    /// `find(int $id, ?User $for = null)`, without the namespace of its own class; `find(...)` where that
    /// is too long.
    #[must_use]
    pub fn signature(self) -> String {
        let mut buffer = [0_u8; SIGNATURE_MAX];
        // SAFETY: a function of a class; there is room for as many bytes as are said.
        let len =
            unsafe { ffi::altair_signature(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        let whole = String::from_utf8_lossy(&buffer[..len]);
        match whole.split_once('(') {
            // Not a part of them: it could end inside of a default, which can be a secret.
            Some((name, _)) if len == SIGNATURE_MAX => format!("{name}(...)"),
            _ => whole.into_owned(),
        }
    }
}

/// A value that something else holds, while nothing runs that could change it.
#[derive(Clone, Copy)]
pub struct Value(*const zval);

impl Value {
    fn of(value: *const zval) -> Option<Self> {
        (!value.is_null()).then_some(Self(value))
    }

    /// The container.
    #[must_use]
    pub fn container() -> Option<Self> {
        // SAFETY: it is there for the rest of the process.
        Self::of(unsafe { ffi::altair_container() })
    }

    /// The class of an object.
    #[must_use]
    pub fn class(self) -> Option<Class> {
        // SAFETY: the value is held.
        Class::of(unsafe { ffi::altair_class_of(self.0) })
    }

    /// What an object has in a property that this class has declared. Nothing is initialised by it.
    #[must_use]
    pub fn property(self, class: &str, name: &str) -> Option<Self> {
        let class = class.to_ascii_lowercase();
        let (of, len) = (class.as_ptr().cast(), class.len());
        let (name, name_len) = (name.as_ptr().cast(), name.len());
        // SAFETY: the value is held.
        Self::of(unsafe { ffi::altair_declared_property(self.0, of, len, name, name_len) })
    }

    /// The bytes of a string; none where it is no string.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the value is held.
        unsafe { bytes(ffi::altair_string_of(self.0)) }
    }

    /// The number of items of an array.
    #[must_use]
    pub fn count(self) -> Option<usize> {
        // SAFETY: the value is held.
        unsafe { Some(ffi::altair_array_of(self.0).as_ref()?.nNumOfElements as usize) }
    }

    /// Whether it is an array with the keys 0, 1, 2 and so on.
    #[must_use]
    pub fn is_list(self) -> bool {
        // SAFETY: as above.
        unsafe {
            let array = ffi::altair_array_of(self.0);
            !array.is_null() && ffi::altair_array_is_list(array)
        }
    }

    /// The first `max` items of an array.
    pub fn items(self, max: usize, mut each: impl FnMut(Option<&[u8]>, Self)) {
        // SAFETY: as above.
        unsafe { entries(ffi::altair_array_of(self.0), max, &mut each) };
    }

    /// The names in the table of an object's own properties, as far as anybody can use them.
    pub fn own_properties(self, max: usize, mut each: impl FnMut(&[u8])) {
        // SAFETY: as above.
        let table = unsafe { ffi::altair_own_properties(self.0) };
        // SAFETY: as above.
        unsafe {
            entries(table, max, &mut |name, _| match name {
                // That of a private or protected one begins with a NUL.
                Some(name) if name.first().is_some_and(|byte| *byte != 0) => each(name),
                _ => {}
            });
        }
    }
}

/// # Safety
///
/// `array` is null or held.
unsafe fn entries(array: *mut zend_array, max: usize, each: &mut dyn FnMut(Option<&[u8]>, Value)) {
    extern "C" fn entry(
        context: *mut c_void,
        key: *const c_char,
        len: usize,
        _index: i64,
        value: *mut zval,
    ) {
        // SAFETY: `context` is what was given below; key and value belong to the array.
        unsafe {
            let each = &mut *context.cast::<&mut dyn FnMut(Option<&[u8]>, Value)>();
            let key = (!key.is_null()).then(|| std::slice::from_raw_parts(key.cast::<u8>(), len));
            each(key, Value(value));
        }
    }
    let mut each = each;
    if !array.is_null() {
        // SAFETY: the caller's promise; calls back before it returns.
        unsafe { ffi::altair_entries(array, max, entry, (&raw mut each).cast()) };
    }
}

/// A warning of something undefined, while it is raised.
pub struct Warned<'a> {
    /// What PHP says.
    pub message: &'a str,
    /// Whether the snippet's own code has raised it.
    pub is_of_snippet: bool,
    /// What was read from, if that is known.
    pub operand: Option<Value>,
    frame: *const c_void,
}

impl Warned<'_> {
    /// The variables of the code that runs.
    pub fn variables(&self, mut each: impl FnMut(&[u8])) {
        // SAFETY: the frame is running.
        let walk =
            |hook, context| unsafe { ffi::altair_each_variable_of(self.frame, hook, context) };
        names(walk, &mut |name, _| each(name));
    }

    /// The class of the code that runs.
    #[must_use]
    pub fn scope(&self) -> Option<Class> {
        // SAFETY: the frame is running.
        Class::of(unsafe { ffi::altair_scope_of(self.frame) })
    }
}

static WARNED: OnceLock<fn(&Warned<'_>)> = OnceLock::new();

extern "C" fn warned(
    message: *const zend_string,
    is_of_snippet: bool,
    frame: *const c_void,
    operand: *const zval,
) {
    // SAFETY: the engine's, for the time of the call.
    let message = unsafe { String::from_utf8_lossy(bytes(message)) };
    if let Some(hook) = WARNED.get() {
        hook(&Warned {
            message: &message,
            is_of_snippet,
            operand: Value::of(operand),
            frame,
        });
    }
}

/// Has `hook` called for warnings of what is undefined, before a handler of the application's gets them.
/// Not for silenced ones, nor for many of one run.
pub fn on_warning(hook: fn(&Warned<'_>)) {
    if WARNED.set(hook).is_ok() {
        // SAFETY: registers a function, once.
        unsafe { ffi::altair_on_warning(warned) };
    }
}

/// Whether `open_basedir`, which may be the only guard that there is, lets code read a path.
#[must_use]
pub fn may_read(path: &CStr) -> bool {
    // SAFETY: a text with a NUL; the closure owns nothing.
    attempt(|| unsafe { ffi::altair_may_read(path.as_ptr()) }).unwrap_or(false)
}

/// How many bytes into the snippet its first parse error is.
#[must_use]
pub fn parse_error_offset() -> Option<usize> {
    // SAFETY: reads a number.
    usize::try_from(unsafe { ffi::altair_parse_error_offset() }).ok()
}
