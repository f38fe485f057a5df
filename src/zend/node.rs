//! PHP's values, in the form that the encoder expects.

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::mem::ManuallyDrop;

use altair_engine::encode::{Key, MAX_ENTRIES, Node, ObjectShape, Shape, Step, Thrown, UserCode};
use ext_php_rs::ffi::{zend_object, zval};
use ext_php_rs::types::{ZendHashTable, ZendObject, Zval};

use super::exception::{Exception, class_name, message};
use super::ffi::{self, Kind, RawPlace};
use super::host::{self, Wants};
use super::object::string_bytes;
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

/// The outcome of application code that has returned `value`.
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
    fn shape(&self) -> Shape<'_, Self> {
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
            // SAFETY: only reads the array.
            let is_list = unsafe { ffi::altair_array_is_list((&raw const *array).cast_mut()) };
            let entries = entries(array, MAX_ENTRIES);
            Shape::Array {
                is_list,
                count: array.len(),
                entries: Box::new(entries.into_iter()),
            }
        } else if let Some(object) = value.object() {
            object_shape(object)
        } else if value.is_resource() {
            Shape::Resource(resource_kind(value).unwrap_or_else(|| "closed".to_owned()))
        } else {
            Shape::Null
        }
    }

    fn backing(&self) -> Option<Self> {
        // SAFETY: called for enum cases only; the value belongs to the case, which we hold.
        unsafe { ffi::altair_enum_backing(self.object()?).as_ref() }.map(Self::new)
    }

    fn properties(&self) -> UserCode<Vec<(Key, Self)>> {
        const DEBUG_INFO: &str = "__debuginfo";
        let Some(object) = self.object() else {
            return UserCode::Gave(Vec::new());
        };
        // SAFETY: the object is held by `self`.
        let has =
            unsafe { ffi::altair_has_method(object, DEBUG_INFO.as_ptr().cast(), DEBUG_INFO.len()) };
        if !has {
            let mut found = Vec::new();
            // SAFETY: as above; `found` outlives the call.
            unsafe {
                ffi::altair_public_properties(
                    object,
                    MAX_ENTRIES + 1,
                    collect,
                    (&raw mut found).cast(),
                )
            };
            return UserCode::Gave(found);
        }
        let mut info = ManuallyDrop::new(Zval::new());
        let target = &raw mut *info;
        // SAFETY: as above; the engine writes the result.
        let called = user_code(|| unsafe {
            ffi::altair_call_method(object, DEBUG_INFO.as_ptr().cast(), DEBUG_INFO.len(), target)
        });
        let info = Self::holding(ManuallyDrop::into_inner(info));
        match called {
            UserCode::Gave(_) => UserCode::Gave(match info.shape() {
                Shape::Array { entries, .. } => entries.collect(),
                _ => Vec::new(),
            }),
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
        let key = match key.is_null() {
            true => Key::Int(index),
            false => Key::Bytes(std::slice::from_raw_parts(key.cast::<u8>(), len).to_vec()),
        };
        found.push((key, ZvalNode::new(&*value)));
    }
}

fn object_shape(object: &ZendObject) -> Shape<'static, ZvalNode> {
    let pointer = (&raw const *object).cast_mut();
    let mut shape = ObjectShape {
        class: class_name(object),
        id: object.get_id(),
        ..Default::default()
    };
    // SAFETY: the object is borrowed; these only read.
    match unsafe { ffi::altair_object_kind(pointer) } {
        Kind::Plain => {}
        Kind::Traversable => {
            return Shape::Iterable {
                class: shape.class,
                id: shape.id,
            };
        }
        Kind::Enum => {
            // SAFETY: an enum case has its name in its first slot.
            shape.case = unsafe { ffi::altair_enum_case(pointer).as_ref() }
                .map(|case| String::from_utf8_lossy(string_bytes(case)).into_owned());
        }
        Kind::Date => shape.display = date(pointer),
        Kind::Closure => {
            let mut place = RawPlace {
                file: std::ptr::null(),
                line: 0,
            };
            // SAFETY: a closure's function lives as long as the closure.
            shape.display = Some(unsafe {
                if ffi::altair_closure_place(pointer, &raw mut place) {
                    format!("{}:{}", text(place.file), place.line)
                } else {
                    format!("{}()", text(ffi::altair_closure_name(pointer)))
                }
            });
        }
    }
    Shape::Object(shape)
}

/// The date as RFC 3339; `None` if it was never constructed.
fn date(object: *mut zend_object) -> Option<String> {
    let mut shown = ManuallyDrop::new(Zval::new());
    let target = &raw mut *shown;
    // SAFETY: the object is borrowed by the caller; the built-in method runs no user code.
    let formatted = user_code(|| unsafe { ffi::altair_format_date(object, target) });
    let shown = ManuallyDrop::into_inner(shown);
    matches!(formatted, UserCode::Gave(()))
        .then(|| String::from_utf8_lossy(string_bytes(&shown)).into_owned())
}
