//! A fork of a template, made as if it had started and booted itself just now.
//!
//! What boot computed and kept (an id, a time, a copy of `$_SERVER`, a seed made of the clock) is the
//! application's own, and the same in each run of a template: nobody else can tell what it is.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Bailout, attempt, ffi};

/// Why a fork is not as fresh as it has to be. Nothing may run in it.
#[derive(Debug)]
pub enum NotFresh {
    /// It cannot go to the project's root: relative paths would mean files of the template's.
    Directory(io::Error),
    /// The engine bailed out or threw, as it does where no memory, or nothing random, is to be had.
    Bailout,
}

/// Has it remembered whether boot chooses the seed of `mt_rand()`, of GMP, or of an engine of
/// ext/random itself: then that sequence is the same in each run, cold or warm. Called once, in a template,
/// before boot.
pub fn watch_seeds() {
    // SAFETY: called before any code runs, in the only thread; all that it changes are handlers.
    // It allocates, and cannot bail out: there is no memory limit yet that could be met.
    unsafe { ffi::altair_watch_seeds() };
}

/// Empties what fills itself again in each fork: the seeds of `mt_rand()`, `lcg_value()` and SQLite,
/// the caches of files. Called in a template after boot, before its first fork, and once: in a fork it
/// would cost each run what it costs to copy the pages that all this is on.
pub fn settle() {
    // SAFETY: the engine's and a library's own state, in the only thread; no code runs.
    unsafe { ffi::altair_settle() };
}

/// Enters the run, in both starts, after boot: its current directory is `root`, wherever boot went,
/// and its peak of memory begins here. `root` is absolute, and mounted as the run is to see it.
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

/// Makes what a snippet could notice of the fork's past fresh, beyond what [`settle`] has done: the
/// request's time, the seeds of GMP and of engines of ext/random that boot did not choose itself, the
/// time limit that boot has set. Called once, in a fork of a template, before the snippet.
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
