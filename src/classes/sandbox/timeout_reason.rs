//! `Altair\Sandbox\Enums\TimeoutReason`.

use altair_command::TimeoutReason;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ClassEntry;

use crate::zend::Bailout;
use crate::zend::class::{Slot, register_enum};
use crate::zend::object::enum_case;

/// The enum.
pub const NAME: &str = "Altair\\Sandbox\\Enums\\TimeoutReason";

static ENUM: Slot = Slot::new();

/// Registers the enum.
pub fn register() {
    let cases = [TimeoutReason::Wall, TimeoutReason::Idle].map(|reason| {
        let name = reason.name();
        (name.to_ascii_uppercase(), name.to_owned())
    });
    register_enum(NAME, cases, &ENUM);
}

/// The enum's class.
pub fn class() -> &'static ClassEntry {
    ENUM.get()
}

/// The case for a reason; null for none.
pub fn write(reason: Option<TimeoutReason>) -> Result<Zval, Bailout> {
    match reason {
        Some(TimeoutReason::Wall) => enum_case(&ENUM, c"WALL"),
        Some(TimeoutReason::Idle) => enum_case(&ENUM, c"IDLE"),
        None => Ok(Zval::null()),
    }
}
