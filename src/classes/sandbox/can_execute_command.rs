//! `Altair\Sandbox\Contracts\CanExecuteCommand`.

use ext_php_rs::zend::ClassEntry;

use super::{exec_result, execution_policy};
use crate::zend::class::{Class, Param, Slot, Type};

/// The interface.
pub const NAME: &str = "Altair\\Sandbox\\Contracts\\CanExecuteCommand";

static INTERFACE: Slot = Slot::new();

/// The interface, for those that implement it.
pub fn interface() -> &'static ClassEntry {
    INTERFACE.get()
}

/// Registers the interface.
pub fn register() {
    let params = vec![
        Param::required("argv", Type::ARRAY),
        Param::optional("stdin", Type::STRING.or_null(), "null"),
        Param::optional("onOutput", Type::CALLABLE.or_null(), "null"),
    ];
    Class::interface(NAME)
        .abstract_method("policy", vec![], Type::class(execution_policy::NAME))
        .abstract_method("execute", params, Type::class(exec_result::NAME))
        .register(&INTERFACE);
}
