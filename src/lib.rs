//! The PHP extension `altair_eval`: what PHP sees of Altair Eval, and what runs inside the child.

#![allow(missing_docs)] // not a Rust library; `#[php_module]` exports without comments

mod child;
mod classes;
mod settings;
mod started_with;
mod zend;

use ext_php_rs::builders::ModuleBuilder;
use ext_php_rs::php_module;

extern "C" fn startup(_type: i32, module: i32) -> i32 {
    settings::register(module);
    started_with::remember();
    classes::register();
    child::install();
    zend::closure::startup();
    0
}

extern "C" fn request_start(_type: i32, _module: i32) -> i32 {
    started_with::remember();
    0
}

extern "C" fn request_end(_type: i32, _module: i32) -> i32 {
    zend::closure::forget();
    0
}

/// The module.
#[php_module]
#[php(startup = startup)]
#[allow(unsafe_code)] // the macro's export
pub fn get_module(module: ModuleBuilder) -> ModuleBuilder {
    let module = module.name("altair_eval");
    let module = module.request_startup_function(request_start);
    classes::add_stateful(module.request_shutdown_function(request_end))
}
