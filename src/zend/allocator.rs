//! Rust's memory in the extension: the system's, and a last word where there is none left.
//!
//! Without it, a Rust allocation that fails under the hard cap aborts the child, and the host sees a
//! signal where memory ran out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// The system's allocator.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

static EXHAUSTED: OnceLock<fn()> = OnceLock::new();

/// Has `hook` called where memory cannot be had. It ends the process; where it returns, the
/// allocation has failed as it does anywhere. It is called again where it needs memory itself, and
/// there is still none.
///
/// Only a child asks for this: in a host, a failed allocation stays what it is without us.
pub fn on_exhausted(hook: fn()) {
    let _ = EXHAUSTED.set(hook);
}

fn checked(memory: *mut u8) -> *mut u8 {
    if memory.is_null()
        && let Some(hook) = EXHAUSTED.get()
    {
        hook();
    }
    memory
}

// SAFETY: every call is the system allocator's own.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        checked(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) };
    }
}
