//! Lets another thread of the kernel continue the calling one for a while.
//!
//! A seccomp filter is never removed, but it belongs to a thread. So the recorder makes one that
//! takes over everything that a program can see of the calling thread (stack, thread-local memory,
//! signal mask), and only that one gets the recorder's filter. The first thread waits meanwhile. In
//! the end it continues where the other one has stopped, and neither it nor its forks have the
//! filter.
//!
//! To the C library it is one thread all the time. What differs in between is the thread's id
//! (gettid(2)), and that the kernel has two threads. Settings that the kernel keeps for each thread
//! are those of the first thread again afterwards: nice value, processors, name, credentials,
//! filters, Landlock. A template's filter refuses to change most of these anyway.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;

use nix::libc::{
    CLONE_CHILD_CLEARTID, CLONE_FILES, CLONE_FS, CLONE_PARENT_SETTID, CLONE_SIGHAND, CLONE_SYSVSEM,
    CLONE_THREAD, CLONE_VM, ENOTSUP, SIG_SETMASK, c_int,
};

use super::kernel;
use super::machine::Held;
use super::sigsys::error;

/// The flags with which the C library makes threads, without that for thread-local memory. The first
/// thread learns when the other has ended.
const THREAD: usize = (CLONE_VM
    | CLONE_FS
    | CLONE_FILES
    | CLONE_SIGHAND
    | CLONE_THREAD
    | CLONE_SYSVSEM
    | CLONE_PARENT_SETTID
    | CLONE_CHILD_CLEARTID) as usize;

/// The exit status of a process whose other thread has ended by itself: native code made it.
pub(super) const BROKEN: c_int = 127;

/// How often to look whether the other thread is gone. That takes some microseconds.
const LOOKS_MAX: usize = 1_000_000;

/// All signals.
const ALL: u64 = u64::MAX;

unsafe extern "C" {
    fn altair_record_part(flags: usize, held: *mut Held) -> isize;
    fn altair_record_join(held: *mut Held);
    fn altair_record_shadow() -> usize;
}

/// Keeps the first thread waiting until it is dropped.
#[derive(Debug)]
pub(super) struct Handover {
    /// From [`Box::into_raw`]: the waiting thread reads it.
    held: *mut Held,
    of_thread: PhantomData<*const ()>,
}

impl Handover {
    /// Returns in the new thread.
    ///
    /// # Errors
    /// Those of clone(2); `ENOTSUP` with a shadow stack, of which each thread has its own.
    pub(super) fn begin() -> io::Result<Self> {
        // SAFETY: it reads a register.
        if unsafe { altair_record_shadow() } != 0 {
            return Err(error(ENOTSUP));
        }
        // A new thread has none (clone(2), `CLONE_VM`).
        let stack = kernel::alternate_stack(None).map_err(error)?;
        // The waiting thread must run no handler: the stack is not its own.
        let before = kernel::mask(SIG_SETMASK, ALL).map_err(error)?;
        let held = Box::into_raw(Box::new(Held::default()));
        // SAFETY: to this program it is a function that returns once, in the new thread. The old
        // one uses no memory but `held`, which outlives its wait.
        let parted = unsafe { altair_record_part(THREAD, held) };
        if parted == 0 {
            // Fails only for a stack that is in use, which is kept then.
            let _ = kernel::alternate_stack(Some(&stack));
        }
        let _ = kernel::mask(SIG_SETMASK, before);
        if parted != 0 {
            // SAFETY: there is no thread that waits.
            drop(unsafe { Box::from_raw(held) });
            return Err(error(c_int::try_from(-parted).unwrap_or(0)));
        }
        Ok(Self {
            held,
            of_thread: PhantomData,
        })
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let other = kernel::thread_id();
        let stack = kernel::alternate_stack(None);
        let before = kernel::mask(SIG_SETMASK, ALL);
        // SAFETY: to this program it is a function that returns once, in the first thread, with the
        // same stack and registers.
        unsafe { altair_record_join(self.held) };
        if let Ok(stack) = stack {
            let _ = kernel::alternate_stack(Some(&stack));
        }
        // Only then has the process one thread.
        let mut looks = 0..LOOKS_MAX;
        while looks.next().is_some() && kernel::has_thread(other) {
            kernel::give_way();
        }
        if let Ok(before) = before {
            let _ = kernel::mask(SIG_SETMASK, before);
        }
        // SAFETY: no thread waits any more.
        drop(unsafe { Box::from_raw(self.held) });
    }
}
