//! Intercepts calls with a seccomp filter (`SECCOMP_RET_TRAP`), where there is no dispatch.
//!
//! The filter is on a thread that exists only meanwhile ([`super::handover`]). It sends the calls
//! that the handler is concerned with ([`super::concern`]) to it, unless the handler makes them.

use std::io;

use super::concern::concern;
use super::handover::Handover;
use super::machine::ARCHITECTURE;
use super::sigsys::Handled;
use super::{handler, kernel};
use crate::seccomp::Trap as Filter;

/// The number that the filter returns with its answer, which tells it from other filters (the
/// kernel passes on that of the filter that was installed last).
pub(super) const MARK: u16 = 0x0a57;

/// Keeps the filter on the process's thread until it is dropped.
#[derive(Debug)]
pub(super) struct Trap {
    // In this order: the handler stays until no call can be intercepted.
    _handover: Handover,
    _handled: Handled,
}

impl Trap {
    /// Directs the calls of the calling thread, the process's only one, to the handler. The log
    /// must be open.
    ///
    /// # Errors
    /// As for [`Handover::begin`]; those of seccomp(2).
    pub(super) fn begin() -> io::Result<Self> {
        let filter = Filter {
            architecture: ARCHITECTURE,
            seen: |number| concern(number).is_some(),
            exempt: kernel::made(),
            mark: MARK,
        };
        let program = filter.compile();
        let handled = Handled::begin(handler::on_call)?;
        let handover = Handover::begin()?;
        // If it fails, dropping both restores everything.
        program.take()?;
        Ok(Self {
            _handover: handover,
            _handled: handled,
        })
    }
}
