//! Which version of a guard the kernel has.

use super::machine::Machine;
use crate::guards::Guard;

/// The version of the kernel's support for a guard, if it has versions.
pub(super) fn of(guard: Guard, machine: &Machine) -> Option<String> {
    match guard {
        Guard::Landlock => altair_sandbox::landlock_version()
            .ok()
            .map(|abi| format!("ABI {abi}")),
        // Without notification, a refused call is still refused, but not reported.
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
