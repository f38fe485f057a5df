//! The process itself: inherited descriptors, signals, its end.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc;
use nix::sys::signal::SigSet;

/// Bytes of the handler's alternate stack, since the interrupted stack may be exhausted.
const HANDLER_STACK_BYTES: usize = 128 * 1024;

/// Takes ownership of a descriptor that the parent has passed to this process.
#[must_use]
pub fn take_descriptor(descriptor: RawFd) -> OwnedFd {
    // SAFETY: called once, before any other code could have made a descriptor of that number its
    // own.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

static HANDLER: OnceLock<fn()> = OnceLock::new();

/// The process that may send the signal besides the parent.
static SENDER: AtomicI32 = AtomicI32::new(0);

/// Accepts the signal from the parent or the host only, not from this process itself.
extern "C" fn on_delivery(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel's data, valid for the time of the call; a signal of kill(2) has a sender.
    let sender = unsafe { (*info).si_pid() };
    let is_host = sender == SENDER.load(Ordering::Relaxed);
    if (is_host || sender == nix::unistd::getppid().as_raw())
        && let Some(handler) = HANDLER.get()
    {
        handler();
    }
}

/// Calls `handler` on a stack of its own, with all other signals blocked, when the parent or `host`
/// sends `signal`. Called once in a process.
///
/// `handler` must be async-signal-safe.
pub fn on_signal_of(host: i32, signal: i32, handler: fn()) {
    SENDER.store(host, Ordering::Relaxed);
    let _ = HANDLER.set(handler);
    let stack = Box::leak(vec![0_u8; HANDLER_STACK_BYTES].into_boxed_slice());
    // SAFETY: the stack lives as long as the process; all zeros is an action without a handler,
    // and the rest of it is filled in.
    unsafe {
        let alternate = libc::stack_t {
            ss_sp: stack.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: HANDLER_STACK_BYTES,
        };
        libc::sigaltstack(&raw const alternate, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_delivery as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_SIGINFO | libc::SA_RESTART;
        action.sa_mask = *SigSet::all().as_ref();
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// Ends the process at once: no destructor, no exit handler, no module shutdown.
pub fn leave(status: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(status) }
}
