//! The process itself: inherited descriptors, signals, its end.

use std::ffi::c_void;
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

/// What a signal has interrupted.
#[derive(Clone, Copy)]
pub struct Interrupted {
    /// What was in the register in which the engine keeps the current instruction; 0 for none.
    in_register: usize,
}

impl Interrupted {
    /// Nothing was.
    pub const NOT: Self = Self { in_register: 0 };

    /// What was in the register in which the engine, built by GCC, keeps the current instruction
    /// (`ZEND_VM_IP_GLOBAL_REG` in `Zend/zend_execute.c`). In native code, or in an engine without
    /// such a register, it can be anything.
    #[must_use]
    pub fn in_register(self) -> *const c_void {
        std::ptr::without_provenance(self.in_register)
    }

    /// Reads the registers.
    ///
    /// # Safety
    ///
    /// `context` is what the kernel has handed to a handler.
    unsafe fn of(context: *const libc::c_void) -> Self {
        // SAFETY: the caller's promise.
        let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
        #[cfg(target_arch = "x86_64")]
        let in_register = registers.gregs[libc::REG_R15 as usize].cast_unsigned() as usize;
        #[cfg(target_arch = "aarch64")]
        let in_register = registers.regs[28] as usize;
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let in_register = {
            let _ = registers;
            0
        };
        Self { in_register }
    }
}

static HANDLER: OnceLock<fn(Interrupted)> = OnceLock::new();

/// The process that may send the signal besides the parent.
static SENDER: AtomicI32 = AtomicI32::new(0);

/// Passes on what the parent or the host sends, and nothing that the process sends itself.
extern "C" fn on_delivery(_signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's, for the time of the call; a signal of kill(2) has a sender.
    let sender = unsafe { (*info).si_pid() };
    let is_host = sender == SENDER.load(Ordering::Relaxed);
    if (is_host || sender == nix::unistd::getppid().as_raw())
        && let Some(handler) = HANDLER.get()
    {
        // SAFETY: this is a handler of the kernel's.
        handler(unsafe { Interrupted::of(context) });
    }
}

/// Calls `handler` on a stack of its own, with all other signals blocked, when the parent or `host`
/// sends `signal`. Called once in a process.
///
/// `handler` has to be async-signal-safe.
pub fn on_signal_of(host: i32, signal: i32, handler: fn(Interrupted)) {
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
