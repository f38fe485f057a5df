//! A safe interface to the engine's C API, which is used only here.
//!
//! Rules of this module: a call that can bail out (runs PHP code, allocates from PHP's heap) is
//! made inside [`attempt`], and its closure owns nothing with a destructor, since a bailout is a
//! `longjmp` that skips destructors.

#![allow(unsafe_code)]

pub mod allocator;
pub mod by_value;
pub mod child;
pub mod class;
pub mod closure;
pub mod composer;
pub mod database;
pub mod exception;
pub mod ffi;
pub mod fork_state;
pub mod frames;
pub mod host;
pub mod json;
pub mod line;
pub mod node;
pub mod object;
pub mod params;
pub mod process;
pub mod queries;
pub mod refusals;
pub mod runtime;
pub mod snippet;
pub mod startup;
pub mod streams;
pub mod tables;

use std::cell::Cell;
use std::panic::AssertUnwindSafe;

use ext_php_rs::ffi::zend_string;
use ext_php_rs::zend::{CatchError, try_catch};

/// The engine bailed out: a fatal error, `exit` outside of code, a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bailout;

/// Runs `call` and catches a bailout.
///
/// # Panics
///
/// If `call` panics; the panic does not unwind through the engine's frames.
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

/// Runs a destructor, which cannot return a bailout: [`take_bailout`] does.
pub fn attempt_drop(call: impl FnOnce()) {
    if attempt(call).is_err() {
        BAILED.set(true);
    }
}

/// Returns whether the engine has bailed out in a destructor. No more code may run after that.
#[must_use]
pub fn has_bailed() -> bool {
    BAILED.get()
}

/// The same, and resets it.
pub fn take_bailout() -> bool {
    BAILED.take()
}

/// The bytes of a string of the engine; empty for null.
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

/// A string of the engine as text, with invalid UTF-8 replaced.
///
/// # Safety
///
/// As for [`bytes`].
#[must_use]
pub unsafe fn text(string: *const zend_string) -> String {
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { bytes(string) }).into_owned()
}
