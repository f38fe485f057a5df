//! The PHP extension `altair_eval`: what PHP sees of Altair Eval, and what runs inside the child.

#![allow(missing_docs)] // not a Rust library; `#[php_module]` exports without comments

mod child;
mod classes;
mod zend;

use ext_php_rs::builders::ModuleBuilder;
use ext_php_rs::flags::IniEntryPermission;
use ext_php_rs::php_module;
use ext_php_rs::zend::{IniEntryDef, IniEntryDefs};

/// The extension's ini settings.
static INI: IniEntryDefs<8> = IniEntryDefs::new([
    // Whether an `Evaluator` keeps booted templates, unless its constructor decides.
    IniEntryDef::new(c"altair_eval.warm", c"1", IniEntryPermission::All),
    // Seconds without a request after which a template ends.
    IniEntryDef::new(c"altair_eval.idle", c"300", IniEntryPermission::All),
    // Which pool is asked first: `auto`, `off`, or the path of the program that starts one.
    IniEntryDef::new(c"altair_eval.pool", c"auto", IniEntryPermission::All),
    // Guards that a run requires, by name, separated by commas.
    IniEntryDef::new(c"altair_eval.require", c"", IniEntryPermission::All),
    // Guards that are omitted, by name, separated by commas: to test one guard at a time.
    IniEntryDef::new(c"altair_eval.omit", c"", IniEntryPermission::System),
    // Whether runs may be unsafe.
    IniEntryDef::new(c"altair_eval.unsafe", c"1", IniEntryPermission::System),
    // Set by a host that starts this process as a child: the descriptor of the channel.
    IniEntryDef::new(child::CHANNEL_INI, c"", IniEntryPermission::System),
    IniEntryDef::end(),
]);

extern "C" fn startup(_type: i32, module: i32) -> i32 {
    IniEntryDef::register(INI.as_slice(), module);
    classes::register();
    child::install();
    zend::closure::startup();
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
    classes::add_stateful(module.request_shutdown_function(request_end))
}
