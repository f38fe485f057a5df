//! Makes a fork of a template look as if it had just started and booted itself.
//!
//! Values that the application's boot computed and kept (an id, a time, a copy of `$_SERVER`, a
//! seed from the clock) are the same in each run of a template, since we cannot recognise them.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Bailout, attempt, ffi};

/// Why a fork's state could not be renewed. Nothing may run in it.
#[derive(Debug)]
pub enum NotFresh {
    /// It cannot enter the project's root. Relative paths would refer to the template's files.
    Directory(io::Error),
    /// The engine bailed out or threw, for example without memory or random numbers.
    Bailout,
}

/// From now on, notes whether boot itself seeds `mt_rand()`, GMP, or an engine of ext/random: then
/// that sequence is the same in each run, cold or warm. Called once, in a template, before boot.
pub fn watch_seeds() {
    // SAFETY: called before any code runs, in the only thread; it changes only handlers. It
    // allocates but cannot bail out, since there is no memory limit yet.
    unsafe { ffi::altair_watch_seeds() };
}

/// Clears state that each fork sets up again: the seeds of `mt_rand()`, `lcg_value()` and SQLite,
/// the file caches. Called once, in a template after boot and before its first fork: in a fork,
/// each run would have to copy the pages with this state.
pub fn settle() {
    // SAFETY: the engine's and a library's own state, in the only thread; no code runs.
    unsafe { ffi::altair_settle() };
}

/// Begins a cold or warm run after boot: changes the current directory to `root`, whatever boot
/// did, and resets the peak of memory. `root` is absolute, and already mounted for the run.
///
/// # Errors
///
/// [`NotFresh::Directory`].
pub fn enter(root: &Path) -> Result<(), NotFresh> {
    let path = CString::new(root.as_os_str().as_bytes())
        .map_err(|_| NotFresh::Directory(io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: the path is a string that outlives the call, and no code runs.
    if unsafe { ffi::altair_enter(path.as_ptr()) } {
        Ok(())
    } else {
        Err(NotFresh::Directory(io::Error::last_os_error()))
    }
}

/// Renews the state that would reveal the fork to a snippet and that [`settle`] has not cleared:
/// the request's time, the seeds of GMP and of engines of ext/random that boot did not choose
/// itself, the time limit that boot has set. Called once, in a fork of a template, before the
/// snippet.
///
/// # Errors
///
/// [`NotFresh::Bailout`].
pub fn freshen() -> Result<(), NotFresh> {
    // SAFETY: runs the engine's code inside `attempt`, with nothing that has a destructor.
    match attempt(|| unsafe { ffi::altair_freshen() }) {
        Ok(true) => Ok(()),
        Ok(false) | Err(Bailout) => Err(NotFresh::Bailout),
    }
}
