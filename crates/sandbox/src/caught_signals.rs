//! Signals to the host, for a while.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::libc::{self, c_int};

/// The signals that came, a bit for each by its number.
static CAME: AtomicU64 = AtomicU64::new(0);

/// Signals that are caught until this is dropped, instead of what the host does with them. What came is
/// known to the process as a whole: there must be only one at a time, or one within another.
pub struct CaughtSignals {
    before: Vec<(c_int, libc::sigaction)>,
}

extern "C" fn note(signal: c_int) {
    CAME.fetch_or(bit(signal), Ordering::Relaxed);
}

fn bit(signal: c_int) -> u64 {
    1_u64.checked_shl(signal.unsigned_abs()).unwrap_or(0)
}

impl CaughtSignals {
    /// Catches signals, by number.
    ///
    /// # Errors
    /// What sigaction(2) reports: a signal that cannot be caught.
    pub fn catch(signals: &[c_int]) -> io::Result<Self> {
        let mut caught = Self { before: Vec::new() };
        for signal in signals {
            // SAFETY: all zeros is a valid sigaction: no flags, so a call that waits is interrupted.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = note as extern "C" fn(c_int) as usize;
            // SAFETY: as above; both structs outlive the call. The handler only changes an atomic.
            let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: see above.
            let set = unsafe { libc::sigaction(*signal, &raw const action, &raw mut before) };
            Errno::result(set)?;
            caught.before.push((*signal, before));
        }
        Ok(caught)
    }

    /// Takes a signal that came.
    #[must_use]
    pub fn take(signals: &[c_int]) -> Option<c_int> {
        let came = |signal: &&c_int| {
            CAME.fetch_and(!bit(**signal), Ordering::Relaxed) & bit(**signal) != 0
        };
        signals.iter().find(came).copied()
    }
}

impl Drop for CaughtSignals {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the action that was in force before.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}
