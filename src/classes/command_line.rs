//! `Altair\Eval\Support\CommandLine`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use altair_cli::Host;
use altair_engine::EvalError;
use altair_engine::programs::Unconfined;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;

use super::eval_request::int;
use super::exceptions::{throw, throw_runtime};
use crate::settings;
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::host;
use crate::zend::object::string_bytes;
use crate::zend::params::{Arg, parse};

static CLASS: Slot = Slot::new();

/// Registers the class.
pub fn register() {
    let params = vec![Param::required("arguments", Type::ARRAY)];
    Class::new("Altair\\Eval\\Support\\CommandLine")
        .static_method("run", run, params, Type::INT)
        .register(&CLASS);
}

extern "C" fn run(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut arguments = None;
        if !parse(ex, 1, &mut [Arg::Array(&mut arguments)]) {
            return Ok(());
        }
        if crate::child::is_child() {
            let message =
                "A snippet cannot run the command line: it already runs inside an evaluation.";
            throw(&EvalError::Launch(message.into()));
            return Ok(());
        }
        if let Err(forbidden) = settings::programs().permit(Unconfined::CommandLine) {
            throw_runtime(&forbidden);
            return Ok(());
        }
        let Some(arguments) = arguments.and_then(strings) else {
            host::throw_type_error_message(
                "Altair\\Eval\\Support\\CommandLine::run(): Argument #1 ($arguments) must be a list of strings",
            );
            return Ok(());
        };
        let host = Host {
            php: host::running_binary(),
            extension: host::own_file(),
            unsafe_runs: settings::unsafe_runs(),
            is_program: false,
            serve: None,
        };
        let code = altair_cli::run(std::iter::once("altair".into()).chain(arguments), &host);
        *returned = int(code);
        Ok(())
    });
}

/// The items of an array; `None` if one is not a string.
fn strings(array: &Zval) -> Option<Vec<OsString>> {
    let string = |value: &Zval| {
        let value = value.dereference();
        value
            .is_string()
            .then(|| OsStr::from_bytes(string_bytes(value)).to_owned())
    };
    array.array()?.values().map(string).collect()
}
