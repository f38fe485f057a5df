//! `Altair\\Sandbox\\Exception`, also known as `sandbox\\Exception`, and what is thrown by a runtime.

use altair_engine::EvalError;
use ext_php_rs::exception::PhpException;
use ext_php_rs::zend::{ClassEntry, ce};

use crate::classes::exceptions::{throw as throw_evaluation, throw_error};
use crate::zend::class::{Class, Slot};
use crate::zend::host;

const EXCEPTION: &str = "Altair\\Sandbox\\Exception";
const OTHER_EXCEPTION: &str = "sandbox\\Exception";

static FAILED: Slot = Slot::new();
static OTHER_FAILED: Slot = Slot::new();

/// Registers the classes.
pub(super) fn register() {
    Class::extending_class(EXCEPTION, (ce::error_exception, "ErrorException")).register(&FAILED);
    let failed = (failed as fn() -> &'static ClassEntry, EXCEPTION);
    Class::extending_class(OTHER_EXCEPTION, failed).register(&OTHER_FAILED);
}

fn failed() -> &'static ClassEntry {
    FAILED.get()
}

/// Throws the exception of a class: `sandbox unusable`, and so on.
pub(super) fn throw(is_other: bool, message: &str) {
    let class = match is_other {
        true => &OTHER_FAILED,
        false => &FAILED,
    };
    // A message cannot hold a NUL byte, and may show what the isolated PHP says.
    let message = message.replace('\0', "\\0");
    PhpException::new(message, 0, class.get()).throw();
}

/// Throws the `Error` of a closure or an argument that the rules forbid.
pub(super) fn throw_rule(message: &str) {
    throw_error(message);
}

/// Throws what became of a start.
pub(super) fn throw_start(is_other: bool, error: &EvalError) {
    match error {
        EvalError::Launch(why) => throw(is_other, &format!("sandbox unusable: {why}")),
        EvalError::InvalidRequest(_) | EvalError::Forbidden(_) => throw_evaluation(error),
        EvalError::Interrupted if host::has_exception() => {}
        EvalError::Interrupted => throw(is_other, "sandbox unusable: its start was interrupted"),
    }
}
