//! The table of system calls, by purpose. Each line has its reason.

mod commands;
mod files;
mod memory;
mod network;
mod processes;
mod requests;
mod signals;
mod system;

use super::call::Call;

/// The whole table.
pub(super) fn all() -> impl Iterator<Item = &'static Call> {
    [
        files::CALLS,
        files::METADATA,
        files::LEGACY,
        memory::CALLS,
        network::CALLS,
        processes::CALLS,
        processes::LEGACY,
        signals::CALLS,
        signals::LEGACY,
        system::CALLS,
        system::ATTEMPTS,
        system::LEGACY,
    ]
    .into_iter()
    .flatten()
}

/// The table for commands: lines of their own take the place of others.
pub(super) fn of_commands() -> Vec<&'static Call> {
    let own = || commands::CALLS.iter().chain(commands::LEGACY);
    let others = all().filter(|call| !own().any(|own| own.number == call.number));
    own().chain(others).collect()
}

#[cfg(test)]
mod tests;
