//! Switches dispatch on and off.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use super::sigsys::{Handled, error};
use super::{handler, kernel};

/// The selector byte that the kernel reads at each call: `ALLOW` or `BLOCK`.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
/// `SYSCALL_DISPATCH_FILTER_ALLOW` and `_BLOCK` (linux/prctl.h).
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

/// Keeps dispatch on for the calling thread until it is dropped.
#[derive(Debug)]
pub(super) struct Dispatch {
    /// Dropped when dispatch is off.
    _handled: Handled,
    /// Dispatch is a per-thread setting.
    of_thread: PhantomData<*const ()>,
}

impl Dispatch {
    /// Directs each call of the calling thread to the handler. The log must be open.
    ///
    /// # Errors
    /// `EINVAL` before kernel 5.11 and without dispatch on this architecture; `EPERM` if a filter
    /// forbids it.
    pub(super) fn begin() -> io::Result<Self> {
        let handled = Handled::begin(handler::on_call)?;
        // SAFETY: the selector is a static; the handler is installed.
        unsafe { kernel::dispatch(true, SELECTOR.as_ptr()) }.map_err(error)?;
        SELECTOR.store(BLOCK, SeqCst);
        Ok(Self {
            _handled: handled,
            of_thread: PhantomData,
        })
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        SELECTOR.store(ALLOW, SeqCst);
        // A filter may forbid the call. What remains then is a byte that the kernel reads at each
        // call.
        // SAFETY: switching it off does not need the selector.
        let _ = unsafe { kernel::dispatch(false, SELECTOR.as_ptr()) };
    }
}
