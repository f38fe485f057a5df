//! The engine's side of an isolated PHP: entering a closure, and the caller's output and memory.

use std::mem::ManuallyDrop;

use ext_php_rs::types::Zval;

use super::child::{Cut, run};
use super::exception::Exception;
use super::host::{Wants, has_exception};
use super::{Bailout, attempt, ffi};

/// Calls a closure with the values of an array and hands its value to `then`, before the value and
/// the arguments are destroyed.
///
/// # Errors
///
/// How the closure, `then` or a destructor was cut short.
pub fn enter<R>(closure: Zval, arguments: Zval, then: impl FnOnce(&Zval) -> R) -> Result<R, Cut> {
    let mut closure = ManuallyDrop::new(closure);
    let mut arguments = ManuallyDrop::new(arguments);
    let mut result = ManuallyDrop::new(Zval::new());
    let (callee, given, to) = (&raw mut *closure, &raw mut *arguments, &raw mut *result);
    // SAFETY: keeps numbers.
    unsafe { ffi::altair_mark_stack() };
    // SAFETY: this frame holds the three values.
    let called = run(|| unsafe { ffi::altair_enter_closure(callee, given, to) });
    let left = called.map(|()| then(&result));
    // After a bailout they are lost: frames that nobody unwinds may hold them.
    let released = match &left {
        Err(Cut::Bailout) => Ok(()),
        // SAFETY: each is dropped once.
        _ => run(|| unsafe {
            ManuallyDrop::drop(&mut result);
            ManuallyDrop::drop(&mut arguments);
            ManuallyDrop::drop(&mut closure);
        }),
    };
    let left = left.and_then(|value| released.map(|()| value));
    if matches!(left, Err(Cut::Bailout)) {
        // SAFETY: no code is running any more.
        unsafe { ffi::altair_unwind_stack() };
    }
    left
}

/// Prints PHP's message for an exception that nobody has caught.
///
/// # Errors
///
/// How that was cut short.
pub fn print_uncaught(thrown: &Exception) -> Result<(), Cut> {
    let object = (&raw const *thrown.object()).cast_mut();
    // SAFETY: the exception is alive.
    run(|| unsafe { ffi::altair_print_uncaught(object) })
}

/// Writes to the caller's output layer.
///
/// # Errors
///
/// Why the call that does so must end.
pub fn write(text: &[u8]) -> Result<(), Wants> {
    // SAFETY: the text is copied.
    match attempt(|| unsafe { ffi::altair_write(text.as_ptr().cast(), text.len()) }) {
        Ok(()) if has_exception() => Err(Wants::Throw),
        Ok(()) => Ok(()),
        Err(Bailout) => Err(Wants::Bailout),
    }
}

/// How many bytes the caller's memory limit leaves; `None` if it has no limit.
#[must_use]
pub fn memory_left() -> Option<u64> {
    let mut bytes = 0;
    // SAFETY: writes a number.
    unsafe { ffi::altair_may_use_memory(&raw mut bytes) }.then_some(bytes as u64)
}
