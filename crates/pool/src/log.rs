//! What a pool writes to its log, if it has one: standard error, which is nowhere by default
//! (`ALTAIR_POOL_LOG` names a file).

use std::io::Write;

/// Writes a line with the time and the process's id.
pub(crate) fn write(text: &str) {
    let (now, pid) = (jiff::Timestamp::now(), std::process::id());
    // Only for people who look; a full disk is no reason to end.
    let _ = writeln!(std::io::stderr(), "{now:.3} pool {pid} {text}");
}
