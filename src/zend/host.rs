//! The host's calls of the engine: callables, pending interrupts, ending a call.

use std::ffi::{CStr, OsStr};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use ext_php_rs::exception::PhpException;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::{ExecutorGlobals, ce, run_handler};

use super::{Bailout, attempt, ffi, take_bailout};

/// Why the host's own code wants a blocking call to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// An exception is pending.
    Throw,
    /// The engine bailed out; the bailout continues after cleanup.
    Bailout,
}

/// Handles pending interrupts of the virtual machine: signal handlers, `max_execution_time`.
///
/// # Errors
///
/// Why the call must end.
pub fn interrupts() -> Result<(), Wants> {
    // SAFETY: runs PHP code inside `attempt`.
    match attempt(|| unsafe { ffi::altair_interrupts() }) {
        Ok(_) if has_exception() => Err(Wants::Throw),
        Ok(_) => Ok(()),
        Err(Bailout) => Err(Wants::Bailout),
    }
}

/// Whether PHP's own `proc_open()` can be called, and is not disabled.
#[must_use]
pub fn starts_programs() -> bool {
    // SAFETY: looks a function up in a table of this thread's.
    unsafe { ffi::altair_starts_programs() }
}

/// Calls a callable with two strings.
///
/// # Errors
///
/// Why the call must end.
pub fn call(callable: &Zval, first: &[u8], second: &[u8]) -> Result<(), Wants> {
    let strings = (super::json::string(first), super::json::string(second));
    let (Ok(first), Ok(second)) = strings else {
        return Err(Wants::Bailout);
    };
    let mut arguments = [first, second];
    let mut result = ManuallyDrop::new(Zval::new());
    let (callable, from, to) = (
        (&raw const *callable).cast_mut(),
        arguments.as_mut_ptr(),
        &raw mut *result,
    );
    // SAFETY: this frame holds the callable and the arguments; the result is dropped inside.
    let called = attempt(|| unsafe {
        ffi::altair_call(callable, 2, from, to);
        ManuallyDrop::drop(&mut result);
    });
    match called {
        Ok(()) if has_exception() => Err(Wants::Throw),
        Ok(()) => Ok(()),
        Err(Bailout) => Err(Wants::Bailout),
    }
}

/// Returns whether an exception is pending.
#[must_use]
pub fn has_exception() -> bool {
    ExecutorGlobals::has_exception()
}

/// Runs the body of a method. A panic becomes an `Error`. If `body` returns [`Bailout`], the
/// engine's bailout continues after Rust's cleanup.
pub fn method(body: impl FnOnce() -> Result<(), Bailout>) {
    run_handler(std::panic::AssertUnwindSafe(|| {
        send_on(body());
    }));
}

/// Continues the engine's bailout, if there was one. Must be the last call in a method, when no
/// Rust destructor is left to run.
pub fn send_on(ended: Result<(), Bailout>) {
    if take_bailout() || ended == Err(Bailout) {
        // SAFETY: the method's wrapper catches the bailout and continues it.
        unsafe { ext_php_rs::zend::bailout() };
    }
}

/// Throws a `TypeError`.
pub fn throw_type_error_message(message: &str) {
    PhpException::new(message.to_owned(), 0, ce::type_error()).throw();
}

/// Throws a `ValueError`.
pub fn throw_value_error(message: &str) {
    PhpException::new(message.to_owned(), 0, ce::value_error()).throw();
}

/// Whether this process is a command line of PHP's.
#[must_use]
pub fn is_command_line() -> bool {
    let sapi = ext_php_rs::zend::SapiModule::get();
    // SAFETY: the SAPI's name is a constant.
    unsafe { CStr::from_ptr(sapi.name) }.to_bytes() == b"cli"
}

/// The PHP binary of this process, if it is the command line SAPI.
#[must_use]
pub fn running_binary() -> Option<PathBuf> {
    static RUNNING: OnceLock<Option<PathBuf>> = OnceLock::new();
    let read = || std::fs::read_link("/proc/self/exe").ok();
    is_command_line()
        .then(|| RUNNING.get_or_init(read).clone())
        .flatten()
}

/// The file that this extension was loaded from.
#[must_use]
pub fn own_file() -> Option<PathBuf> {
    // SAFETY: asks the loader about one of our addresses; the returned name lives as long as the
    // module.
    unsafe {
        let mut info: nix::libc::Dl_info = std::mem::zeroed();
        if nix::libc::dladdr((own_file as *const ()).cast(), &raw mut info) == 0
            || info.dli_fname.is_null()
        {
            return None;
        }
        let name = OsStr::from_bytes(CStr::from_ptr(info.dli_fname).to_bytes());
        PathBuf::from(name).canonicalize().ok()
    }
}
