//! The engine's side of a session: lines whose names and variables hold for the lines after them.

use std::ffi::{c_char, c_void};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use ext_php_rs::types::{ZendObject, Zval};

use super::child::{Cut, run};
use super::ffi;
use super::object::share;

static INTERRUPTED: OnceLock<fn()> = OnceLock::new();

extern "C" fn on_interrupt() {
    if let Some(interrupted) = INTERRUPTED.get() {
        interrupted();
    }
}

/// From now on, snippets are lines of a session. `interrupted` is called when [`end`] ends one,
/// while its code is still on the engine's stack. Called once.
pub fn begin(interrupted: fn()) {
    if INTERRUPTED.set(interrupted).is_ok() {
        // SAFETY: registers a function, once.
        unsafe {
            ffi::altair_watch_interrupts(on_interrupt);
            ffi::altair_keep_names();
        }
    }
}

/// What was refused to an earlier line is reported again.
pub fn forget_refusals() {
    // SAFETY: empties lists of the shim's own; no code runs.
    unsafe {
        ffi::altair_forget_refusals();
        ffi::altair_forget_sought();
    }
}

/// Has the line that runs end. Usable in a signal handler.
pub fn end() {
    // SAFETY: sets two flags.
    unsafe { ffi::altair_end_line() };
}

/// No line runs any more.
pub fn has_ended() {
    // SAFETY: resets a flag.
    unsafe { ffi::altair_line_has_ended() };
}

/// The line that was compiled last is about to run: what it says of names holds from now on.
pub fn keep_names() {
    // SAFETY: no compilation is under way.
    unsafe { ffi::altair_took_names() };
}

/// Runs `call`, and gives back the frames of what a fatal error has cut short.
///
/// # Errors
///
/// Those of `call`.
pub fn recovering<R>(call: impl FnOnce() -> Result<R, Cut>) -> Result<R, Cut> {
    // SAFETY: keeps numbers.
    unsafe { ffi::altair_mark_stack() };
    let left = call();
    if matches!(left, Err(Cut::Bailout)) {
        // SAFETY: no code is running any more.
        unsafe { ffi::altair_unwind_stack() };
    }
    left
}

/// Whether a text is a whole snippet. A text with an error that no more text would mend is one, too.
#[must_use]
pub fn is_whole(text: &[u8]) -> bool {
    // SAFETY: the text is copied; nothing of it runs.
    run(|| unsafe { ffi::altair_is_whole(text.as_ptr().cast(), text.len()) }).unwrap_or(true)
}

/// Sets a variable of the session.
///
/// # Errors
///
/// How the destructor of its earlier value was cut short.
pub fn set_variable(name: &str, value: &Zval) -> Result<(), Cut> {
    let mut value = ManuallyDrop::new(value.shallow_clone());
    // SAFETY: the name is copied, the reference taken over.
    run(|| unsafe {
        ffi::altair_set_variable(name.as_ptr().cast(), name.len(), &raw mut *value);
    })
}

/// Sets a variable of the session to an object.
///
/// # Errors
///
/// As for [`set_variable`].
pub fn set_object(name: &str, object: &ZendObject) -> Result<(), Cut> {
    set_variable(name, &share(object))
}

/// The files that code has included, from the one with this number on. Returns how many there are.
pub fn included(from: usize, mut each: impl FnMut(&[u8])) -> usize {
    extern "C" fn named(context: *mut c_void, name: *const c_char, len: usize, _: *const c_void) {
        // SAFETY: the closure below, and the engine's text, for the time of the call.
        unsafe {
            let each = &mut *context.cast::<&mut dyn FnMut(&[u8])>();
            each(std::slice::from_raw_parts(name.cast::<u8>(), len));
        }
    }
    let mut each: &mut dyn FnMut(&[u8]) = &mut each;
    // SAFETY: calls back before it returns, and changes nothing.
    unsafe { ffi::altair_each_included(from, named, (&raw mut each).cast()) }
}
