//! Which version of a guard the kernel has.

use super::machine::Machine;
use crate::guards::Guard;

/// The version of what the kernel has for a guard, where there are versions.
pub(super) fn of(guard: Guard, machine: &Machine) -> Option<String> {
    match guard {
        Guard::Landlock => altair_sandbox::landlock_version()
            .ok()
            .map(|abi| format!("ABI {abi}")),
        // Without it a refused call is refused all the same, but not reported.
        Guard::Seccomp => machine.filter_actions.as_deref().map(|actions| {
            let tells = actions.split_whitespace().any(|word| word == "user_notif");
            if tells {
                "filters with notification"
            } else {
                "filters without notification"
            }
            .to_owned()
        }),
        _ => None,
    }
}
