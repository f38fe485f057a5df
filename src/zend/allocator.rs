//! Rust's allocator in the extension: the system's, with a hook for exhausted memory.
//!
//! Without it, a Rust allocation that fails under the hard cap would abort the child, and the host
//! would see a signal instead of exhausted memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// The system's allocator.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

static EXHAUSTED: OnceLock<fn()> = OnceLock::new();

/// Calls `hook` when an allocation fails. The hook ends the process; if it returns, the allocation
/// fails as usual. It is called again if an allocation of its own fails.
///
/// Only a child uses this: in a host, a failed allocation behaves as without this extension.
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
