//! The namespaces of the process that builds a private root, and their id maps.
//!
//! As in [`crate::system_calls`], everything that the process calls is async-signal-safe.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::{fs, io};

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::prctl;

use super::plan::{IdMaps, Made, PreparedView, UserNamespace};
use crate::Spaces;
use crate::error::{Failure, Step};
use crate::raw_descriptors;

/// Moves the calling process into its own namespaces.
pub(crate) fn enter_namespaces(prepared: &PreparedView, lifeline: RawFd) -> Result<(), Failure> {
    let map = |e| Step::IdMaps.failed(e);
    let unshare = |flags| {
        // SAFETY: no pointer is passed.
        let made = Errno::result(unsafe { libc::unshare(flags) });
        made.map(drop).map_err(|e| Step::Namespace.failed(e))
    };
    let Some(namespace) = &prepared.user_namespace else {
        return unshare(libc::CLONE_NEWNS);
    };
    match namespace.made {
        Made::WithKeeper => return unshare(libc::CLONE_NEWNS),
        Made::ByProcessMappedByHost => {
            unshare(libc::CLONE_NEWNS | libc::CLONE_NEWUSER)?;
            return ask_for_maps(lifeline).map_err(map);
        }
        Made::ByProcess => {}
    }
    // After an earlier change of user, root owns the process's files in /proc.
    prctl::set_dumpable(true).map_err(map)?;
    unshare(libc::CLONE_NEWNS | libc::CLONE_NEWUSER)?;
    // Without this, an unprivileged process may not map its group (user_namespaces(7)).
    write_file(c"/proc/self/setgroups", b"deny").map_err(map)?;
    write_file(c"/proc/self/uid_map", namespace.maps.uid.to_bytes()).map_err(map)?;
    write_file(c"/proc/self/gid_map", namespace.maps.gid.to_bytes()).map_err(map)
}

/// Size in bytes of the packet by which a process asks its host to map its ids; it contains the
/// process's id. The answer is an errno, or 0.
pub(crate) const MAP_REQUEST_BYTES: usize = 4;

/// How long to wait for the answer, in milliseconds.
pub(crate) const MAP_PATIENCE_MS: c_int = 5_000;

/// Asks the host to map the ids of the calling process, and waits for the answer.
pub(crate) fn ask_for_maps(lifeline: RawFd) -> nix::Result<()> {
    ask_for_maps_of(nix::unistd::getpid(), lifeline)
}

/// The same by the id that the host knows, where the process is in another pid namespace.
pub(crate) fn ask_for_maps_of(process: nix::unistd::Pid, lifeline: RawFd) -> nix::Result<()> {
    let own: [u8; MAP_REQUEST_BYTES] = process.as_raw().to_ne_bytes();
    raw_descriptors::send(lifeline, &own);
    let mut fds = [libc::pollfd {
        fd: lifeline,
        events: libc::POLLIN,
        revents: 0,
    }];
    raw_descriptors::poll(&mut fds, MAP_PATIENCE_MS);
    let mut answer = [0; 4];
    match raw_descriptors::receive(lifeline, &mut answer)? {
        4 => match i32::from_ne_bytes(answer) {
            0 => Ok(()),
            errno => Err(Errno::from_raw(errno)),
        },
        _ => Err(Errno::EPIPE),
    }
}

/// In the host: maps the ids of a process that has asked for it.
pub(crate) fn map_ids(pid: i32, maps: &IdMaps) -> io::Result<()> {
    let proc = std::path::PathBuf::from(format!("/proc/{pid}"));
    if fs::write(proc.join("gid_map"), maps.gid.to_bytes()).is_err() {
        // Without this, an unprivileged host may not map its group (user_namespaces(7)).
        fs::write(proc.join("setgroups"), b"deny")?;
        fs::write(proc.join("gid_map"), maps.gid.to_bytes())?;
    }
    fs::write(proc.join("uid_map"), maps.uid.to_bytes())
}

/// The flags of clone(2) that give a new process its own namespaces.
pub(crate) fn clone_flags(spaces: Spaces, user: Option<&UserNamespace>) -> c_int {
    let network = if spaces.network {
        libc::CLONE_NEWNET
    } else {
        0
    };
    let user = match user {
        Some(_) => libc::CLONE_NEWUSER,
        None => 0,
    };
    libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | network | user
}

/// Turns on the loopback interface of the calling process's own network namespace. Programs that
/// talk to themselves do without it if that fails.
pub(crate) fn bring_up_loopback() {
    // SAFETY: no pointer is passed.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return;
    }
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the struct outlives the call, which reads it (netdevice(7)).
    unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) };
    raw_descriptors::close(socket);
}

fn write_file(path: &CStr, content: &[u8]) -> nix::Result<()> {
    // SAFETY: a C string that outlives the call.
    let fd: c_int =
        Errno::result(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) })?;
    // SAFETY: pointer and length are of one slice.
    let written = Errno::result(unsafe { libc::write(fd, content.as_ptr().cast(), content.len()) });
    raw_descriptors::close(fd);
    written.map(drop)
}
