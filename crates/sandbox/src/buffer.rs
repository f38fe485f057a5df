//! Read buffers that a thread keeps for its next run: allocating 128 KiB anew for each run would
//! take longer than the reads themselves.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// The number of buffers that a thread keeps: as many as a run uses.
const KEPT: usize = 2;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of zeros, or of what was last read into it.
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// Makes a buffer of `length` bytes.
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
        // Fails if the thread is ending.
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
