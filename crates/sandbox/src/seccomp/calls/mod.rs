//! The table of system calls, by purpose. Each line has its reason.

mod files;
mod memory;
mod network;
mod processes;
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

#[cfg(test)]
mod tests;
