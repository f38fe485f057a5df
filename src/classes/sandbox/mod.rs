//! The classes of `Altair\Sandbox`: any command under a policy, and an isolated PHP.

mod arrays;
mod can_execute_command;
mod drivers;
mod exec_result;
mod execution;
mod execution_policy;
mod factory;
mod layers;
mod runtime;
mod sandbox_driver;
mod timeout_reason;
mod values;

use altair_command::CommandError;
use ext_php_rs::exception::PhpException;

use crate::zend::class::{invalid_argument_exception, runtime_exception};

/// Registers the classes, each after those that its methods name.
pub fn register() {
    sandbox_driver::register();
    timeout_reason::register();
    execution_policy::register();
    exec_result::register();
    can_execute_command::register();
    values::register();
    drivers::register();
    factory::register();
    runtime::register();
}

/// Throws the error of a command that was not run.
fn throw(error: &CommandError) {
    let class = match error {
        CommandError::Invalid(_) => invalid_argument_exception(),
        CommandError::Interrupted if crate::zend::host::has_exception() => return,
        CommandError::Start(_)
        | CommandError::Forbidden(_)
        | CommandError::Interrupted
        | CommandError::Apply(_) => runtime_exception(),
    };
    // A message cannot hold a NUL byte, and may show what a caller gave.
    let message = error.to_string().replace('\0', "\\0");
    PhpException::new(message, 0, class).throw();
}
