//! Dispatch on and off.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use nix::libc::{SA_NODEFER, SA_SIGINFO, SIG_BLOCK, SIG_UNBLOCK, SIGSYS, c_int};

use super::kernel::{self, Action};
use super::{handler, signals};

/// What the kernel looks at in each call: `ALLOW` or `BLOCK`.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
/// `SYSCALL_DISPATCH_FILTER_ALLOW` and `_BLOCK` (linux/prctl.h).
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

/// `SA_RESTORER` (asm/signal.h): the handler returns to where the action says.
const SA_RESTORER: u64 = 0x0400_0000;

/// Dispatch that is on for the calling thread, until this is dropped.
#[derive(Debug)]
pub(super) struct Dispatch {
    before: Action,
    was_blocked: bool,
    /// The kernel keeps it for one thread.
    of_thread: PhantomData<*const ()>,
}

impl Dispatch {
    /// Has each call of the calling thread answered by the handler. The log has to be open.
    ///
    /// # Errors
    /// `EINVAL` before kernel 5.11; `EPERM`: a filter forbids it.
    pub(super) fn begin() -> io::Result<Self> {
        let action = Action {
            handler: handler::on_call as *const () as usize,
            // Not held back while it runs: a handler of another signal may interrupt it, and makes
            // calls. On the stack that is in use: those of handlers have no room to choose.
            flags: (SA_SIGINFO | SA_NODEFER) as u64 | SA_RESTORER,
            restorer: kernel::signal_return(),
            mask: 0,
        };
        let mask = kernel::mask(SIG_UNBLOCK, signals::BIT).map_err(error)?;
        // SAFETY: the handler is async-signal-safe, by what its module says.
        let before = unsafe { kernel::act_on(SIGSYS, Some(&action)) }.map_err(error)?;
        unblock_in_handlers();
        let dispatch = Self {
            before,
            was_blocked: mask & signals::BIT != 0,
            of_thread: PhantomData,
        };
        // SAFETY: the selector is a static; the handler is there.
        unsafe { kernel::dispatch(true, SELECTOR.as_ptr()) }.map_err(error)?;
        SELECTOR.store(BLOCK, SeqCst);
        Ok(dispatch)
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        SELECTOR.store(ALLOW, SeqCst);
        // A filter may forbid what follows. What is left then is a byte that the kernel reads at
        // each call, and a handler that does nothing.
        // SAFETY: the selector is not needed to switch it off; the action is what it was.
        unsafe {
            let _ = kernel::dispatch(false, SELECTOR.as_ptr());
            let _ = kernel::act_on(SIGSYS, Some(&self.before));
        }
        if self.was_blocked {
            let _ = kernel::mask(SIG_BLOCK, signals::BIT);
        }
    }
}

/// Takes `SIGSYS` out of what is held back while a handler runs, for those that are there already:
/// what comes later is changed as it comes.
fn unblock_in_handlers() {
    /// `_NSIG` (asm/signal.h).
    const SIGNALS: c_int = 64;
    for signal in (1..=SIGNALS).filter(|signal| *signal != SIGSYS) {
        // SAFETY: the handler is the one that is there already.
        unsafe {
            if let Ok(action) = kernel::act_on(signal, None)
                && action.mask & signals::BIT != 0
            {
                let mask = action.mask & !signals::BIT;
                // SIGKILL and SIGSTOP have no handler, so that nothing else can be refused.
                let _ = kernel::act_on(signal, Some(&Action { mask, ..action }));
            }
        }
    }
}

/// The error of a call.
fn error(errno: c_int) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
