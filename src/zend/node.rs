//! PHP's values, in the form that the encoder expects.

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;

use altair_engine::encode::{
    BuiltIn, ClosureView, Key, Laziness, Node, ObjectKind, ObjectShape, Property, Shape, Step,
    Thrown, UserCode, Visibility,
};
use ext_php_rs::ffi::{zend_object, zend_string, zval};
use ext_php_rs::types::{ZendHashTable, ZendObject, Zval};

use super::exception::{Exception, class_name, message, readable};
use super::ffi::{self, Kind, RawPlace};
use super::host::{self, Wants};
use super::object::{share, string_bytes};
use super::{Bailout, attempt, attempt_drop, has_bailed, text};

/// A reference to a value.
pub struct ZvalNode {
    /// `drop` releases it inside [`attempt`], since a destructor runs code.
    value: ManuallyDrop<Zval>,
    /// The iterator, once `step` has begun.
    iterator: Cell<*mut c_void>,
}

impl ZvalNode {
    /// Holds a value.
    #[must_use]
    pub fn new(value: &Zval) -> Self {
        Self::holding(value.dereference().shallow_clone())
    }

    fn holding(value: Zval) -> Self {
        Self {
            value: ManuallyDrop::new(value),
            iterator: Cell::new(std::ptr::null_mut()),
        }
    }

    /// The value itself.
    #[must_use]
    pub fn value(&self) -> &Zval {
        &self.value
    }

    /// One step of an iteration for the host, which receives the iterator's exceptions.
    ///
    /// # Errors
    ///
    /// Why the call must end.
    pub fn step_of_host(&self, first: bool) -> Result<Step<Self>, Wants> {
        match self.advance(first) {
            Ok(_) if host::has_exception() => Err(Wants::Throw),
            Ok(step) => Ok(step),
            Err(Bailout) => Err(Wants::Bailout),
        }
    }

    /// Starts or continues an iteration; an exception stays pending.
    fn advance(&self, first: bool) -> Result<Step<Self>, Bailout> {
        if has_bailed() {
            return Err(Bailout);
        }
        let Some(object) = self.object() else {
            return Ok(Step::Done);
        };
        let mut key = ManuallyDrop::new(Zval::new());
        let mut value = ManuallyDrop::new(Zval::new());
        let (to_key, to_value) = (&raw mut *key, &raw mut *value);
        // SAFETY: the object is held by `self`, the iterator by the object until it is freed; the
        // engine writes the results.
        let stepped = attempt(|| unsafe {
            if first && self.iterator.get().is_null() {
                self.iterator.set(ffi::altair_iterator(object));
            }
            match self.iterator.get() {
                iterator if iterator.is_null() => 0,
                iterator => ffi::altair_iterator_step(iterator, first, to_key, to_value),
            }
        });
        let key = Self::holding(ManuallyDrop::into_inner(key));
        let value = Self::holding(ManuallyDrop::into_inner(value));
        Ok(if stepped? == 1 {
            Step::Item(key, value)
        } else {
            Step::Done
        })
    }

    fn object(&self) -> Option<*mut zend_object> {
        self.value
            .object()
            .map(|object| (&raw const *object).cast_mut())
    }
}

impl Drop for ZvalNode {
    fn drop(&mut self) {
        let iterator = self.iterator.get();
        // SAFETY: dropped once; nothing reads the value afterwards. A bailout or an exception of
        // a destructor was handled before or will be found by the caller's own check.
        attempt_drop(|| unsafe {
            if !iterator.is_null() {
                ffi::altair_iterator_free(iterator);
            }
            ManuallyDrop::drop(&mut self.value);
        });
    }
}

/// Runs code of the application and returns its outcome.
fn user_code<T>(call: impl FnOnce() -> T) -> UserCode<T> {
    if has_bailed() {
        return UserCode::Ended;
    }
    match attempt(call) {
        Ok(value) => judge(value),
        Err(Bailout) => UserCode::Ended,
    }
}

/// Requires a file of the application's in the global scope: what it returns.
#[must_use]
pub fn require(path: &[u8]) -> UserCode<ZvalNode> {
    let mut value = ManuallyDrop::new(Zval::new());
    let target = &raw mut *value;
    // SAFETY: the path is copied; the engine writes the result.
    let required =
        user_code(|| unsafe { ffi::altair_require(path.as_ptr().cast(), path.len(), target) });
    let value = ZvalNode::holding(ManuallyDrop::into_inner(value));
    match required {
        UserCode::Gave(()) => UserCode::Gave(value),
        UserCode::Threw(thrown) => UserCode::Threw(thrown),
        UserCode::Ended => UserCode::Ended,
    }
}

/// Calls a callable with one argument; `None` for what cannot be called.
#[must_use]
pub fn call(callable: &ZvalNode, argument: &ZvalNode) -> UserCode<Option<ZvalNode>> {
    let mut value = ManuallyDrop::new(Zval::new());
    let target = &raw mut *value;
    let callable = (&raw const *callable.value()).cast_mut();
    let argument = (&raw const *argument.value()).cast_mut();
    // SAFETY: both are held by the caller, and the engine copies the argument; it writes the result.
    let called = user_code(|| unsafe { ffi::altair_call(callable, 1, argument, target) });
    let value = ZvalNode::holding(ManuallyDrop::into_inner(value));
    match called {
        UserCode::Gave(called) => UserCode::Gave(called.then_some(value)),
        UserCode::Threw(thrown) => UserCode::Threw(thrown),
        UserCode::Ended => UserCode::Ended,
    }
}

/// What became of code of the application that has come back with `value`.
fn judge<T>(value: T) -> UserCode<T> {
    match Exception::take() {
        None => UserCode::Gave(value),
        Some(exception) if exception.is_exit() => {
            exception.throw(); // the caller decides the outcome
            UserCode::Ended
        }
        Some(exception) => UserCode::Threw(Thrown {
            class: class_name(exception.object()),
            message: message(exception.object()),
        }),
    }
}

impl Node for ZvalNode {
    fn shape(&self) -> Shape<'_> {
        let value: &Zval = &self.value;
        if value.is_null() {
            Shape::Null
        } else if let Some(b) = value.bool() {
            Shape::Bool(b)
        } else if let Some(n) = value.long() {
            Shape::Int(n)
        } else if let Some(f) = value.double() {
            Shape::Float(f)
        } else if value.is_string() {
            Shape::Bytes(Cow::Borrowed(string_bytes(value)))
        } else if let Some(array) = value.array() {
            Shape::Array {
                // SAFETY: only reads the array.
                is_list: unsafe { ffi::altair_array_is_list((&raw const *array).cast_mut()) },
                count: array.len(),
            }
        } else if let Some(object) = value.object() {
            Shape::Object(object_shape(object))
        } else if value.is_resource() {
            Shape::Resource(resource_kind(value).unwrap_or_else(|| "closed".to_owned()))
        } else {
            Shape::Null
        }
    }

    fn entries(&self, max: usize) -> Vec<(Key, Self)> {
        self.value
            .array()
            .map_or_else(Vec::new, |array| entries(array, max))
    }

    fn slots(&self, max: usize) -> (Vec<Property<Self>>, usize) {
        let mut found = Vec::new();
        let Some(object) = self.object() else {
            return (found, 0);
        };
        let (mut count, to) = (0, (&raw mut found).cast());
        // SAFETY: the object is held by `self`; `found` outlives the call, which can bail out where a
        // built-in class makes its properties up.
        attempt_drop(|| count = unsafe { ffi::altair_slots(object, max, collect_slot, to) });
        (found, count)
    }

    fn class_key(&self) -> usize {
        // SAFETY: the object is held by `self`.
        self.object()
            .map_or(0, |object| unsafe { (*object).ce.addr() })
    }

    fn is_a(&self, class: &str) -> bool {
        // SAFETY: the object is held by `self`; only its class is read.
        self.object().is_some_and(|object| unsafe {
            ffi::altair_is_a(object, class.as_ptr().cast(), class.len())
        })
    }

    fn has_user_method(&self, name: &str) -> bool {
        // SAFETY: as above.
        self.object().is_some_and(|object| unsafe {
            ffi::altair_has_user_method(object, name.as_ptr().cast(), name.len())
        })
    }

    fn declares(&self, name: &str) -> bool {
        // SAFETY: as above.
        self.object().is_some_and(|object| unsafe {
            ffi::altair_declares(object, name.as_ptr().cast(), name.len())
        })
    }

    fn property(&self, class: &str, name: &str) -> Option<Self> {
        let object = self.object()?;
        // SAFETY: as above; a slot's value lives as long as the object.
        unsafe {
            ffi::altair_slot(
                object,
                class.as_ptr().cast(),
                class.len(),
                name.as_ptr().cast(),
                name.len(),
            )
            .as_ref()
        }
        .map(Self::new)
    }

    fn built_in(&self, method: BuiltIn) -> Option<Self> {
        let object = self.object()?;
        let (class, name, argument) = match method {
            BuiltIn::ArrayObjectCopy => (c"ArrayObject", c"getarraycopy", None),
            BuiltIn::ArrayIteratorCopy => (c"ArrayIterator", c"getarraycopy", None),
            BuiltIn::ObjectStorageInfo => (c"SplObjectStorage", c"__debuginfo", None),
            BuiltIn::LinkedListInfo => (c"SplDoublyLinkedList", c"__debuginfo", None),
            BuiltIn::ZoneName => (c"DateTimeZone", c"getname", None),
            BuiltIn::Interval => (c"DateInterval", c"format", Some(c"%R %y %m %d %h %i %s %f")),
            BuiltIn::DateZone if self.is_a("DateTime") => (c"DateTime", c"format", Some(c"e")),
            BuiltIn::DateZone => (c"DateTimeImmutable", c"format", Some(c"e")),
            BuiltIn::Date | BuiltIn::Xml => {
                let write = match method {
                    BuiltIn::Date => ffi::altair_format_date,
                    _ => ffi::altair_xml,
                };
                return made(|to| {
                    // SAFETY: the object is held by `self`; the built-in methods run no user code.
                    unsafe { write(object, to) };
                    true
                });
            }
        };
        let argument = argument.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: as above.
        made(|to| unsafe {
            ffi::altair_call_built_in(object, class.as_ptr(), name.as_ptr(), argument, to)
        })
    }

    fn laziness(&self) -> Laziness<Self> {
        let Some(object) = self.object() else {
            return Laziness::Complete;
        };
        let mut instance = std::ptr::null_mut();
        let (mut kind, to) = (1, &raw mut instance);
        // SAFETY: the object is held by `self`. The instance of a proxy can have been made lazy again:
        // then asking for it runs its initialiser.
        attempt_drop(|| kind = unsafe { ffi::altair_laziness(object, to) });
        match judge(kind) {
            UserCode::Gave(0) => Laziness::Complete,
            UserCode::Gave(2) if !instance.is_null() => {
                // SAFETY: the proxy holds its instance.
                Laziness::Proxy(Self::holding(share(unsafe { &*instance })))
            }
            _ => Laziness::Waiting,
        }
    }

    fn closure(&self) -> ClosureView {
        let Some(object) = self.object() else {
            return ClosureView::default();
        };
        let mut place = RawPlace {
            file: std::ptr::null(),
            line: 0,
        };
        // SAFETY: a closure's function lives as long as the closure.
        let display = unsafe {
            if ffi::altair_closure_place(object, &raw mut place) {
                format!("{}:{}", text(place.file), place.line)
            } else {
                format!("{}()", text(ffi::altair_closure_name(object)))
            }
        };
        let mut parameters: Vec<String> = Vec::new();
        let to = (&raw mut parameters).cast();
        // A bailout, for lack of memory, leaves what is there already.
        // SAFETY: as above; `parameters` outlives the call.
        attempt_drop(|| unsafe { ffi::altair_closure_parameters(object, collect_text, to) });
        ClosureView {
            display,
            parameters,
        }
    }

    fn closure_variable(&self, name: &str) -> Option<Self> {
        let object = self.object()?;
        if self.class_key() == 0 || !self.is_a("Closure") {
            return None;
        }
        // SAFETY: the closure is held by `self`, and holds the variable.
        unsafe { ffi::altair_closure_variable(object, name.as_ptr().cast(), name.len()).as_ref() }
            .map(Self::new)
    }

    fn stream_length(&self) -> Option<i64> {
        if !self.value.is_resource() {
            return None;
        }
        // SAFETY: a resource, which is only asked what it is and for its length.
        let length = unsafe { ffi::altair_stream_length((&raw const *self.value).cast_mut()) };
        (length >= 0).then_some(length)
    }

    fn case(&self) -> Option<String> {
        // SAFETY: asked of enum cases only, which have their names in their first slots.
        unsafe { ffi::altair_enum_case(self.object()?).as_ref() }
            .map(|case| String::from_utf8_lossy(string_bytes(case)).into_owned())
    }

    fn backing(&self) -> Option<Self> {
        // SAFETY: called for enum cases only; the value belongs to the case, which we hold.
        unsafe { ffi::altair_enum_backing(self.object()?).as_ref() }.map(Self::new)
    }

    fn debug_info(&self) -> UserCode<Option<Vec<(Key, Self)>>> {
        const DEBUG_INFO: &str = "__debuginfo";
        let Some(object) = self.object() else {
            return UserCode::Gave(None);
        };
        // SAFETY: the object is held by `self`.
        let has =
            unsafe { ffi::altair_has_method(object, DEBUG_INFO.as_ptr().cast(), DEBUG_INFO.len()) };
        if !has {
            return UserCode::Gave(None);
        }
        let mut info = ManuallyDrop::new(Zval::new());
        let target = &raw mut *info;
        // SAFETY: as above; the engine writes the result.
        let called = user_code(|| unsafe {
            ffi::altair_call_method(object, DEBUG_INFO.as_ptr().cast(), DEBUG_INFO.len(), target)
        });
        let info = Self::holding(ManuallyDrop::into_inner(info));
        match called {
            UserCode::Gave(_) => UserCode::Gave(Some(info.entries(usize::MAX))),
            UserCode::Threw(thrown) => UserCode::Threw(thrown),
            UserCode::Ended => UserCode::Ended,
        }
    }

    fn size_hint(&self) -> UserCode<Option<i64>> {
        let Some(object) = self.object() else {
            return UserCode::Gave(None);
        };
        // SAFETY: the object is held by `self`.
        if !unsafe { ffi::altair_is_countable(object) } {
            return UserCode::Gave(None);
        }
        let mut count = ManuallyDrop::new(Zval::new());
        let target = &raw mut *count;
        // SAFETY: as above; the engine writes the result.
        let called =
            user_code(|| unsafe { ffi::altair_call_method(object, c"count".as_ptr(), 5, target) });
        let count = Self::holding(ManuallyDrop::into_inner(count));
        match called {
            UserCode::Gave(_) => UserCode::Gave(count.value.long()),
            UserCode::Threw(thrown) => UserCode::Threw(thrown),
            UserCode::Ended => UserCode::Ended,
        }
    }

    fn step(&self, first: bool) -> UserCode<Step<Self>> {
        let Ok(step) = self.advance(first) else {
            return UserCode::Ended;
        };
        judge(step)
    }

    fn copy(&self) -> UserCode<Self> {
        let Some(object) = self.object() else {
            return UserCode::Gave(Self::new(&self.value));
        };
        let mut copy = ManuallyDrop::new(Zval::new());
        let target = &raw mut *copy;
        // SAFETY: the object is held by `self`; the engine writes the result.
        let cloned = user_code(|| unsafe { ffi::altair_clone(object, target) });
        let copy = Self::holding(ManuallyDrop::into_inner(copy));
        match cloned {
            UserCode::Gave(_) => UserCode::Gave(copy),
            UserCode::Threw(thrown) => UserCode::Threw(thrown),
            UserCode::Ended => UserCode::Ended,
        }
    }
}

/// What a built-in method writes, unless it throws or has nothing to write.
fn made(call: impl FnOnce(*mut Zval) -> bool) -> Option<ZvalNode> {
    let mut value = ManuallyDrop::new(Zval::new());
    let target = &raw mut *value;
    let mut called = false;
    if !has_bailed() {
        // What follows a bailout ends the encoding.
        attempt_drop(|| called = call(target));
    }
    let value = ZvalNode::holding(ManuallyDrop::into_inner(value));
    matches!(judge(called), UserCode::Gave(true)).then_some(value)
}

fn resource_kind(resource: &Zval) -> Option<String> {
    // SAFETY: a resource; the result is null or a string of the engine.
    let kind = unsafe { ffi::altair_resource_kind((&raw const *resource).cast_mut()) };
    if kind.is_null() {
        return None;
    }
    // SAFETY: as above.
    let kind = unsafe { CStr::from_ptr(kind) };
    Some(kind.to_string_lossy().into_owned())
}

/// The first entries of an array, with keys of any bytes.
#[must_use]
pub fn entries(array: &ZendHashTable, max: usize) -> Vec<(Key, ZvalNode)> {
    let mut found = Vec::new();
    // SAFETY: only reads the array; `found` outlives the call.
    unsafe {
        ffi::altair_entries(
            (&raw const *array).cast_mut(),
            max,
            collect,
            (&raw mut found).cast(),
        );
    }
    found
}

extern "C" fn collect(
    context: *mut c_void,
    key: *const c_char,
    len: usize,
    index: i64,
    value: *mut zval,
) {
    // SAFETY: `context` is the vector of the caller, key and value belong to the array or object.
    unsafe {
        let found = &mut *context.cast::<Vec<(Key, ZvalNode)>>();
        found.push((key_of(key, len, index), ZvalNode::new(&*value)));
    }
}

/// A key of the engine's: null is an integer.
///
/// # Safety
///
/// `key` is null or has `len` bytes.
unsafe fn key_of(key: *const c_char, len: usize, index: i64) -> Key {
    match key.is_null() {
        true => Key::Int(index),
        // SAFETY: the caller's promise.
        false => Key::Bytes(unsafe { std::slice::from_raw_parts(key.cast::<u8>(), len) }.to_vec()),
    }
}

extern "C" fn collect_slot(
    context: *mut c_void,
    visibility: c_int,
    hidden_in: *const zend_string,
    name: *const c_char,
    len: usize,
    index: i64,
    value: *mut zval,
) {
    // SAFETY: `context` is the vector of the caller; the rest belongs to the object or its class.
    unsafe {
        let found = &mut *context.cast::<Vec<Property<ZvalNode>>>();
        found.push(Property {
            visibility: match visibility {
                0 => Visibility::Public,
                1 => Visibility::Protected,
                _ => Visibility::Private,
            },
            hidden_in: (!hidden_in.is_null()).then(|| readable(text(hidden_in))),
            name: key_of(name, len, index),
            value: value.as_ref().map(ZvalNode::new),
        });
    }
}

extern "C" fn collect_text(context: *mut c_void, text: *const c_char, len: usize) {
    // SAFETY: `context` is the vector of the caller, the text is alive for the time of the call.
    unsafe {
        let found = &mut *context.cast::<Vec<String>>();
        let text = std::slice::from_raw_parts(text.cast::<u8>(), len);
        found.push(String::from_utf8_lossy(text).into_owned());
    }
}

fn object_shape(object: &ZendObject) -> ObjectShape {
    let pointer = (&raw const *object).cast_mut();
    ObjectShape {
        class: class_name(object),
        id: object.get_id(),
        // SAFETY: the object is borrowed; its class is read.
        kind: match unsafe { ffi::altair_object_kind(pointer) } {
            Kind::Plain => ObjectKind::Plain,
            Kind::Enum => ObjectKind::Enum,
            Kind::Closure => ObjectKind::Closure,
            Kind::Traversable => ObjectKind::Traversable,
        },
    }
}
