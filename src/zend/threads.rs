//! Whether the process has one thread only: one that was started before its guards would stay free
//! of them.

use nix::errno::Errno;
use nix::libc;

/// Whether there is a second thread. Where that cannot be found out, there is one.
#[must_use]
pub fn is_there_a_second() -> bool {
    // Does nothing in a process of one thread, and fails with EINVAL in any other (unshare(2)).
    // There is no /proc in a private root to count them in.
    // SAFETY: takes no pointer, and changes nothing where it succeeds.
    match Errno::result(unsafe { libc::unshare(libc::CLONE_THREAD) }) {
        Ok(_) => false,
        Err(Errno::EINVAL) => true,
        // A container's filter may refuse the call altogether; there, /proc is what it is outside.
        Err(_) => count() != Some(1),
    }
}

fn count() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}
