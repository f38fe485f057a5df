//! `Altair\Eval\Exception`.

use altair_engine::EvalError;
use ext_php_rs::exception::PhpException;
use ext_php_rs::zend::{ClassEntry, ce};

use crate::zend::class::{Class, Slot, invalid_argument_exception, runtime_exception};

static EVAL_EXCEPTION: Slot = Slot::new();
static INVALID_REQUEST: Slot = Slot::new();
static LAUNCH: Slot = Slot::new();

const INTERFACE: &str = "Altair\\Eval\\Exception\\EvalException";

/// Registers the interface and the two classes.
pub fn register() {
    Class::interface_of(INTERFACE, (ce::throwable, "Throwable")).register(&EVAL_EXCEPTION);
    let interface = (eval_exception as fn() -> &'static ClassEntry, INTERFACE);
    Class::extending(
        "Altair\\Eval\\Exception\\InvalidRequestException",
        (invalid_argument_exception, "InvalidArgumentException"),
        interface,
    )
    .register(&INVALID_REQUEST);
    Class::extending(
        "Altair\\Eval\\Exception\\LaunchException",
        (runtime_exception, "RuntimeException"),
        interface,
    )
    .register(&LAUNCH);
}

fn eval_exception() -> &'static ClassEntry {
    EVAL_EXCEPTION.get()
}

/// Throws the error of an evaluation that could not be run.
pub fn throw(error: &EvalError) {
    let class = match error {
        EvalError::InvalidRequest(_) => &INVALID_REQUEST,
        // The interruption has already thrown its own exception.
        EvalError::Interrupted if crate::zend::host::has_exception() => return,
        EvalError::Launch(_) | EvalError::Forbidden(_) | EvalError::Interrupted => &LAUNCH,
    };
    PhpException::new(error.to_string(), 0, class.get()).throw();
}

/// Throws a `RuntimeException`.
pub fn throw_runtime(error: &dyn std::fmt::Display) {
    PhpException::new(error.to_string(), 0, runtime_exception()).throw();
}

/// Throws a plain `Error`, like the engine for wrong use of a class.
pub fn throw_error(message: &str) {
    PhpException::new(message.to_owned(), 0, ce::error()).throw();
}
