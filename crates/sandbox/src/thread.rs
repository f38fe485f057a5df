//! Threads in a host that is somebody else's program.

use std::io;
use std::thread::JoinHandle;

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};

/// Starts a thread on which none of the host's signal handlers runs: they are its own program's, and
/// a thread inherits the mask that it is started under.
///
/// # Errors
///
/// Where there can be no further thread.
pub fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let mut before = SigSet::empty();
    pthread_sigmask(
        SigmaskHow::SIG_SETMASK,
        Some(&SigSet::all()),
        Some(&mut before),
    )?;
    let thread = std::thread::Builder::new().name(name.into()).spawn(body);
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    thread
}
