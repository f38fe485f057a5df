//! A user namespace in which every id of the host's is itself, for the template of a privileged
//! host: what may mount there has no right outside of it.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::Signal;

use crate::sys::{self, Cloned};

/// Makes one, and gives a descriptor of it. It is gone when nobody is in it, or has one.
///
/// # Errors
/// Where the kernel gives none, or the host may not map all of its ids.
pub(crate) fn with_all_ids() -> io::Result<OwnedFd> {
    // Ids can only be mapped from outside (user_namespaces(7)), so a process is put into it.
    // SAFETY: the child makes system calls and does not return.
    let (pid, pidfd) = match unsafe { sys::clone_unnoticed(libc::CLONE_NEWUSER) }? {
        Cloned::Child => wait_for_the_end(),
        Cloned::Parent(pid, pidfd) => (pid, pidfd),
    };
    let made = map_all(pid);
    sys::signal_pidfd(pidfd.as_fd(), libc::SIGKILL);
    let _ = sys::wait_pidfd(pidfd.as_fd());
    made
}

fn wait_for_the_end() -> ! {
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    loop {
        // SAFETY: no pointer is passed.
        unsafe { libc::pause() };
    }
}

fn map_all(pid: libc::pid_t) -> io::Result<OwnedFd> {
    for map in ["uid_map", "gid_map"] {
        let own = fs::read_to_string(format!("/proc/self/{map}"))?;
        fs::write(format!("/proc/{pid}/{map}"), as_themselves(&own))?;
    }
    File::open(format!("/proc/{pid}/ns/user")).map(OwnedFd::from)
}

/// The ids that a map has inside, each as itself.
fn as_themselves(map: &str) -> String {
    map.lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (inside, _, count) = (fields.next()?, fields.next()?, fields.next()?);
            Some(format!("{inside} {inside} {count}\n"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::as_themselves;

    #[test]
    fn each_id_is_itself() {
        let map = "         0     100000      65536\n     70000          5          1\n";
        assert_eq!(as_themselves(map), "0 0 65536\n70000 70000 1\n");
    }
}
