//! The handler of `SIGSYS` in its place: while a recording is on, or for good.
#![allow(unsafe_code)]

use std::io;

use nix::libc::{SA_NODEFER, SA_SIGINFO, SIG_BLOCK, SIG_UNBLOCK, SIGSYS, c_int};

use super::context::Info;
use super::kernel::{self, Action};
use super::machine::Context;
use super::signals;

/// `SA_RESTORER` (asm/signal.h): the handler returns to the action's `restorer`.
const SA_RESTORER: u64 = 0x0400_0000;

/// A handler of `SIGSYS`.
pub(crate) type Handler = extern "C" fn(c_int, *const Info, *mut Context);

/// Keeps the handler in place, and the signal unblocked, until it is dropped.
#[derive(Debug)]
pub(crate) struct Handled {
    before: Action,
    was_blocked: bool,
}

impl Handled {
    /// Puts it in place. It must be async-signal-safe.
    ///
    /// # Errors
    /// Those of rt_sigaction(2) and rt_sigprocmask(2), from a filter.
    pub(crate) fn begin(handler: Handler) -> io::Result<Self> {
        let action = Action {
            handler: handler as *const () as usize,
            // `SA_NODEFER`: another signal's handler may interrupt this one and make calls. No
            // `SA_ONSTACK`: alternate stacks may be too small.
            flags: (SA_SIGINFO | SA_NODEFER) as u64 | SA_RESTORER,
            restorer: kernel::signal_return(),
            mask: 0,
        };
        let mask = kernel::mask(SIG_UNBLOCK, signals::BIT).map_err(error)?;
        // SAFETY: the handler is async-signal-safe, as the modules of all of them document.
        let before = unsafe { kernel::act_on(SIGSYS, Some(&action)) }.map_err(error)?;
        unblock_in_handlers();
        Ok(Self {
            before,
            was_blocked: mask & signals::BIT != 0,
        })
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        // A filter may forbid both calls. What remains then is a handler that does nothing.
        // SAFETY: the action is the previous one.
        let _ = unsafe { kernel::act_on(SIGSYS, Some(&self.before)) };
        if self.was_blocked {
            let _ = kernel::mask(SIG_BLOCK, signals::BIT);
        }
    }
}

/// Removes `SIGSYS` from the masks of the handlers that already exist. A recording changes later ones
/// when they are installed. A handler that is there for good leaves them: one that blocks the signal
/// and makes a call that raises it ends the process.
fn unblock_in_handlers() {
    /// `_NSIG` (asm/signal.h).
    const SIGNALS: c_int = 64;
    for signal in (1..=SIGNALS).filter(|signal| *signal != SIGSYS) {
        // SAFETY: the handler stays the existing one.
        unsafe {
            if let Ok(action) = kernel::act_on(signal, None)
                && action.mask & signals::BIT != 0
            {
                let mask = action.mask & !signals::BIT;
                // SIGKILL and SIGSTOP have no handler; for other signals this cannot fail.
                let _ = kernel::act_on(signal, Some(&Action { mask, ..action }));
            }
        }
    }
}

/// The error of a call.
pub(super) fn error(errno: c_int) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
