//! One file per PHP class: convert, delegate to the engine crate, convert back.

mod answer;
mod command_line;
mod encoders;
mod eval_request;
mod eval_result;
mod evaluations;
mod evaluator;
pub mod exceptions;
mod human_output;
mod run_threads;
mod sandbox;
mod security_profile;
mod subprocess;
mod support;

use ext_php_rs::builders::ModuleBuilder;

/// Registers the classes, each after its parents.
pub fn register() {
    exceptions::register();
    eval_request::register();
    eval_result::register();
    evaluator::register();
    security_profile::register();
    subprocess::register();
    encoders::register();
    support::register();
    human_output::register();
    answer::register();
    command_line::register();
    sandbox::register();
}

/// Adds the only class with Rust state.
pub fn add_stateful(module: ModuleBuilder) -> ModuleBuilder {
    module.class::<evaluations::Evaluations>()
}
