//! Switches dispatch on and off.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use nix::libc::{SA_NODEFER, SA_SIGINFO, SIG_BLOCK, SIG_UNBLOCK, SIGSYS, c_int};

use super::kernel::{self, Action};
use super::{handler, signals};

/// The selector byte that the kernel reads at each call: `ALLOW` or `BLOCK`.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
/// `SYSCALL_DISPATCH_FILTER_ALLOW` and `_BLOCK` (linux/prctl.h).
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

/// `SA_RESTORER` (asm/signal.h): the handler returns to the action's `restorer`.
const SA_RESTORER: u64 = 0x0400_0000;

/// Keeps dispatch on for the calling thread until it is dropped.
#[derive(Debug)]
pub(super) struct Dispatch {
    before: Action,
    was_blocked: bool,
    /// Dispatch is a per-thread setting.
    of_thread: PhantomData<*const ()>,
}

impl Dispatch {
    /// Directs each call of the calling thread to the handler. The log must be open.
    ///
    /// # Errors
    /// `EINVAL` before kernel 5.11; `EPERM` if a filter forbids it.
    pub(super) fn begin() -> io::Result<Self> {
        let action = Action {
            handler: handler::on_call as *const () as usize,
            // `SA_NODEFER`: another signal's handler may interrupt this one and make calls. No
            // `SA_ONSTACK`: alternate stacks may be too small.
            flags: (SA_SIGINFO | SA_NODEFER) as u64 | SA_RESTORER,
            restorer: kernel::signal_return(),
            mask: 0,
        };
        let mask = kernel::mask(SIG_UNBLOCK, signals::BIT).map_err(error)?;
        // SAFETY: the handler is async-signal-safe, as its module documents.
        let before = unsafe { kernel::act_on(SIGSYS, Some(&action)) }.map_err(error)?;
        unblock_in_handlers();
        let dispatch = Self {
            before,
            was_blocked: mask & signals::BIT != 0,
            of_thread: PhantomData,
        };
        // SAFETY: the selector is a static; the handler is installed.
        unsafe { kernel::dispatch(true, SELECTOR.as_ptr()) }.map_err(error)?;
        SELECTOR.store(BLOCK, SeqCst);
        Ok(dispatch)
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        SELECTOR.store(ALLOW, SeqCst);
        // A filter may forbid the following calls. What remains then is a byte that the kernel
        // reads at each call, and a handler that does nothing.
        // SAFETY: switching it off does not need the selector; the action is the previous one.
        unsafe {
            let _ = kernel::dispatch(false, SELECTOR.as_ptr());
            let _ = kernel::act_on(SIGSYS, Some(&self.before));
        }
        if self.was_blocked {
            let _ = kernel::mask(SIG_BLOCK, signals::BIT);
        }
    }
}

/// Removes `SIGSYS` from the masks of the handlers that already exist; later ones are changed when
/// they are installed.
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
fn error(errno: c_int) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
