//! How a host shows that it may look into the pool: it tells the name of a file that only those can
//! read who may.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// Before the random part of a name.
const START: &str = "altair-";
/// Where the kernel shows it (memfd_create(2)).
const SHOWN: &str = "/memfd:";
const SHOWN_END: &str = " (deleted)";

/// A descriptor whose name is random.
#[derive(Debug)]
pub(crate) struct Challenge {
    held: OwnedFd,
    name: String,
}

impl Challenge {
    /// # Errors
    /// If there is no descriptor left, or no random number.
    pub(crate) fn new() -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let name = random
            .iter()
            .fold(START.to_owned(), |name, byte| format!("{name}{byte:02x}"));
        let held = memfd_create(name.as_str(), MFdFlags::MFD_CLOEXEC)?;
        Ok(Self { held, name })
    }

    /// The number of the descriptor.
    pub(crate) fn descriptor(&self) -> i32 {
        self.held.as_raw_fd()
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }

    /// Whether this is the name.
    pub(crate) fn is_met_by(&self, proof: &str) -> bool {
        self.name == proof
    }
}

/// Reads the name of a process's descriptor, as only a process can that may look into it
/// (proc_pid_fd(5), `PTRACE_MODE_READ_FSCREDS`).
///
/// # Errors
/// `EACCES` if it may not.
pub(crate) fn look(pid: i32, descriptor: i32) -> io::Result<String> {
    let shown = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}"))?;
    let shown = shown.to_string_lossy();
    let name = shown
        .strip_prefix(SHOWN)
        .and_then(|rest| rest.strip_suffix(SHOWN_END));
    name.map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}
