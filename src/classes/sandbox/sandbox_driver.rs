//! `Altair\Sandbox\Enums\SandboxDriver`.

use altair_command::Driver;
use ext_php_rs::types::ZendObject;

use crate::zend::class::{Slot, register_enum};
use crate::zend::object::enum_value;

/// The enum.
pub const NAME: &str = "Altair\\Sandbox\\Enums\\SandboxDriver";

static ENUM: Slot = Slot::new();

/// Registers the enum. A case has its driver's name, with a capital.
pub fn register() {
    let cases = Driver::ALL.map(|driver| {
        let name = driver.name();
        let (first, rest) = name.split_at(1);
        (first.to_ascii_uppercase() + rest, name.to_owned())
    });
    register_enum(NAME, cases, &ENUM);
}

/// The driver that a case is; `None` if the object is no case of this enum.
pub fn read(case: &ZendObject) -> Option<Driver> {
    let is_case = std::ptr::eq(case.ce, ENUM.get());
    let name = is_case.then(|| std::str::from_utf8(enum_value(case)).ok())??;
    name.parse().ok()
}
