//! The only place that touches the engine's C API: a safe face over it.
//!
//! Rules of this module: a call that can bail out (run PHP code, allocate from PHP's heap) is made
//! inside [`attempt`], and the closure that makes it owns nothing that needs a destructor, because
//! a bailout is a `longjmp` that skips it.

#![allow(unsafe_code)]

pub mod allocator;
pub mod child;
pub mod class;
pub mod composer;
pub mod database;
pub mod exception;
pub mod ffi;
pub mod fork_state;
pub mod frames;
pub mod host;
pub mod json;
pub mod node;
pub mod object;
pub mod params;
pub mod process;
pub mod queries;
pub mod refusals;
pub mod snippet;
pub mod startup;

use std::cell::Cell;
use std::panic::AssertUnwindSafe;

use ext_php_rs::ffi::zend_string;
use ext_php_rs::zend::{CatchError, try_catch};

/// The engine bailed out: a fatal error, `exit` outside of code, a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bailout;

/// Runs `call` so that a bailout ends here.
///
/// # Panics
///
/// When `call` does; the engine's own frames are left alone.
pub fn attempt<R>(call: impl FnOnce() -> R) -> Result<R, Bailout> {
    match try_catch(AssertUnwindSafe(call)) {
        Ok(value) => Ok(value),
        Err(CatchError::Panic(message)) => panic!("{message}"),
        Err(_) => Err(Bailout),
    }
}

thread_local! {
    static BAILED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a destructor, which cannot say that the engine bailed out in it: [`take_bailout`] does.
pub fn attempt_drop(call: impl FnOnce()) {
    if attempt(call).is_err() {
        BAILED.set(true);
    }
}

/// Whether the engine has bailed out in a destructor, after which no more code is to be run.
#[must_use]
pub fn has_bailed() -> bool {
    BAILED.get()
}

/// The same, once.
pub fn take_bailout() -> bool {
    BAILED.take()
}

/// The bytes of a string of the engine; empty for none.
///
/// # Safety
///
/// `text` is null or points to a string that outlives the result.
#[must_use]
pub unsafe fn bytes<'a>(text: *const zend_string) -> &'a [u8] {
    // SAFETY: the caller's promise; `val` is the first of `len` bytes that follow the header.
    unsafe {
        match text.as_ref() {
            Some(header) => std::slice::from_raw_parts((&raw const (*text).val).cast(), header.len),
            None => &[],
        }
    }
}

/// A string of the engine as text, what is not UTF-8 replaced.
///
/// # Safety
///
/// As for [`bytes`].
#[must_use]
pub unsafe fn text(string: *const zend_string) -> String {
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { bytes(string) }).into_owned()
}
