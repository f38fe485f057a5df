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
    /// The engine bailed out, as it does where no memory is left.
    Bailout,
}

/// Has it remembered whether boot chooses the seed of `mt_rand()`, or of an engine of ext/random,
/// itself: then that sequence is the same in each run, cold or warm. Called once, in a template,
/// before boot.
pub fn watch_seeds() {
    // SAFETY: called before any code runs, in the only thread; all that it changes are handlers.
    // It allocates, and cannot bail out: there is no memory limit yet that could be met.
    unsafe { ffi::altair_watch_seeds() };
}

/// Makes what a snippet could notice of the fork's past fresh: the request's time, random numbers,
/// the caches of files, the memory's peak, the time limit that boot has set, the current directory
/// (`root`, which has to be mounted as the run is to see it). Called once, in a fork of a template,
/// before the snippet.
///
/// # Errors
///
/// What is in the way. The fork is then not to be used.
pub fn freshen(root: &Path) -> Result<(), NotFresh> {
    let path = CString::new(root.as_os_str().as_bytes())
        .map_err(|_| NotFresh::Directory(io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: the path is a string that outlives the call.
    if !unsafe { ffi::altair_enter_directory(path.as_ptr()) } {
        return Err(NotFresh::Directory(io::Error::last_os_error()));
    }
    // SAFETY: runs the engine's code inside `attempt`, with nothing that has a destructor.
    attempt(|| unsafe { ffi::altair_freshen() }).map_err(|Bailout| NotFresh::Bailout)
}
