//! Buffers for reading, kept by their thread for its next run: to have the system make the same
//! 128 KiB anew for each would take longer than to read what there is to read.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Buffers that a thread keeps: as many as a run has.
const KEPT: usize = 2;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of zeros, or of what was last read into it.
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// One of `length` bytes.
    pub(crate) fn new(length: usize) -> Self {
        let spare = SPARE.with_borrow_mut(|spare| {
            let at = spare.iter().position(|buffer| buffer.len() == length)?;
            Some(spare.swap_remove(at))
        });
        Self(spare.unwrap_or_else(|| vec![0; length]))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        // Not where the thread is ending.
        let _ = SPARE.try_with(|spare| {
            if let Ok(mut spare) = spare.try_borrow_mut()
                && spare.len() < KEPT
                && !buffer.is_empty()
            {
                spare.push(buffer);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
