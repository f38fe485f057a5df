//! Descriptors by number, for the keeper and the process, where the numbers are constants.
//!
//! As in [`crate::system_calls`], everything is async-signal-safe.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::signal::SigSet;

/// Makes `target` a copy of `source`, with or without close-on-exec.
pub(crate) fn put(source: RawFd, target: RawFd, close_on_exec: bool) -> nix::Result<()> {
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    // SAFETY: no pointer is passed.
    Errno::result(unsafe { libc::dup3(source, target, flags) }).map(drop)
}

/// Closes `first` and every descriptor above it.
pub(crate) fn close_from(first: RawFd) -> nix::Result<()> {
    // SAFETY: no pointer is passed. The cloned child no longer uses the closed descriptors.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    match Errno::result(result) {
        Ok(_) => Ok(()),
        // Before kernel 5.9, or refused by a container profile that does not know the call.
        Err(Errno::ENOSYS | Errno::EPERM) => crate::procfs::close_from(first),
        Err(errno) => Err(errno),
    }
}

/// Has every descriptor of this process but standard input, output and error close on `exec`.
///
/// # Errors
/// If `/proc` does not list them.
pub fn close_all_on_exec() -> std::io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<RawFd>().ok());
        if let Some(fd) = number.filter(|fd| *fd > 2) {
            // SAFETY: no pointer is passed; one that was closed meanwhile is an error, which does
            // no harm.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

/// Begins a program that has a `main` of its own, in place of that of Rust's runtime, with what
/// that does: standard input, output and error are open, if only on `/dev/null`, so that no other
/// file gets their numbers; and `SIGPIPE` is ignored, so that a closed pipe is an error.
///
/// # Errors
/// If the system refuses one of these.
pub fn begin_program() -> std::io::Result<()> {
    for fd in 0..=2 {
        // SAFETY: no pointer is passed.
        let is_open = Errno::result(unsafe { libc::fcntl(fd, libc::F_GETFD) }).is_ok();
        // The lowest number that is free is this one.
        // SAFETY: a C string that outlives the call.
        if !is_open && unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) } != fd {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(crate::system_calls::ignore(
        nix::sys::signal::Signal::SIGPIPE,
    )?)
}

/// Maximum number of descriptors in one packet.
const DESCRIPTORS_MAX: usize = 3;

/// Sends a descriptor in a packet of one byte.
pub(crate) fn send_descriptor(socket: RawFd, fd: RawFd) -> nix::Result<()> {
    send_with(socket, &[0], &[fd])
}

/// Sends a packet with descriptors, at most [`DESCRIPTORS_MAX`].
pub(crate) fn send_with(socket: RawFd, packet: &[u8], fds: &[RawFd]) -> nix::Result<()> {
    /// Size of a control message with that many descriptors, with room to spare.
    const CONTROL_BYTES: usize = 64;
    /// Aligned for control messages.
    #[repr(align(16))]
    struct Control([u8; CONTROL_BYTES]);
    if fds.len() > DESCRIPTORS_MAX {
        return Err(Errno::EINVAL);
    }
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = libc::iovec {
        iov_base: packet.as_ptr().cast_mut().cast(),
        iov_len: packet.len(),
    };
    let length = size_of_val(fds) as libc::c_uint;
    // SAFETY: all zeros is a valid msghdr; the buffers outlive the call, have the given lengths and
    // are not written to by sending; the control message fits its buffer, which is aligned for it.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if !fds.is_empty() {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(length) as _;
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(length) as _;
            let data = libc::CMSG_DATA(head).cast::<RawFd>();
            for (index, fd) in fds.iter().enumerate() {
                data.add(index).write_unaligned(*fd);
            }
        }
        Errno::result(libc::sendmsg(
            socket,
            &raw const message,
            libc::MSG_NOSIGNAL,
        ))
        .map(drop)
    }
}

/// Opens a file for reading and writing, closed on `exec`, at or above `lowest`.
pub(crate) fn open_for_both(path: &CStr, lowest: RawFd) -> nix::Result<RawFd> {
    // SAFETY: a C string that outlives the call.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    lift(Errno::result(fd)?, lowest)
}

/// Opens a file for writing, closed on `exec`.
pub(crate) fn open_for_writing(path: &CStr) -> nix::Result<RawFd> {
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) })
}

/// Opens a file for reading, closed on `exec`.
pub(crate) fn open_for_reading(path: &CStr) -> nix::Result<RawFd> {
    // SAFETY: a C string that outlives the call.
    Errno::result(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })
}

/// Moves a descriptor to `lowest` or above, closed on `exec`.
pub(crate) fn lift(fd: RawFd, lowest: RawFd) -> nix::Result<RawFd> {
    // SAFETY: no pointer is passed.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest) };
    close(fd);
    Errno::result(copy)
}

/// Writes everything in one call; a short write is `EIO`.
pub(crate) fn write_all(fd: RawFd, bytes: &[u8]) -> nix::Result<()> {
    // SAFETY: pointer and length are of one slice.
    let count = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    match usize::try_from(Errno::result(count)?) {
        Ok(count) if count == bytes.len() => Ok(()),
        _ => Err(Errno::EIO),
    }
}

/// Closes one descriptor, open or not.
pub(crate) fn close(fd: RawFd) {
    // SAFETY: no pointer is passed.
    unsafe { libc::close(fd) };
}

/// A non-blocking pipe with close-on-exec, both ends (reading, writing) at or above `lowest`.
pub(crate) fn pipe_at(lowest: RawFd) -> nix::Result<(RawFd, RawFd)> {
    let mut ends = [-1; 2];
    // SAFETY: the array has room for the two descriptors.
    Errno::result(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
    let [reading, writing] = ends;
    Ok((lift(reading, lowest)?, lift(writing, lowest)?))
}

/// A signalfd for all signals to the calling process, which must block them.
pub(crate) fn signal_queue() -> nix::Result<RawFd> {
    let all = SigSet::all();
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the set outlives the call.
    Errno::result(unsafe { libc::signalfd(-1, all.as_ref(), flags) })
}

/// The next signal of a signalfd, if there is one.
pub(crate) fn next_signal(queue: RawFd) -> Option<c_int> {
    let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
    match read(queue, &mut bytes) {
        // The number is the first field.
        Ok(count) if count == bytes.len() => {
            let [a, b, c, d, ..] = bytes;
            c_int::try_from(u32::from_ne_bytes([a, b, c, d])).ok()
        }
        _ => None,
    }
}

/// Waits for one of `fds`, at most `timeout` milliseconds (-1: forever).
pub(crate) fn poll(fds: &mut [libc::pollfd], timeout: c_int) {
    // SAFETY: pointer and length are of one slice. A failure leaves `revents` at zero.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
}

/// Receives nothing more from a socket but what has come already; its peer can send no more.
pub(crate) fn stop_receiving(socket: RawFd) {
    // SAFETY: no pointer is passed. It fails only for what is no socket, or has no peer.
    unsafe { libc::shutdown(socket, libc::SHUT_RD) };
}

/// Whether a packet that is not empty waits at a socket.
pub(crate) fn has_packet(socket: RawFd) -> bool {
    next_length(socket) > 0
}

/// The length of the packet that waits at a socket; 0 if there is none.
pub(crate) fn next_length(socket: RawFd) -> usize {
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: nothing is written to a buffer of no length.
    let count = unsafe { libc::recv(socket, std::ptr::null_mut(), 0, flags) };
    usize::try_from(count).unwrap_or(0)
}

/// Waits for a byte on a pipe that does not block, and takes it. Returns whether it has come.
pub(crate) fn awaits_byte(pipe: RawFd) -> bool {
    let mut fds = [libc::pollfd {
        fd: pipe,
        events: libc::POLLIN,
        revents: 0,
    }];
    poll(&mut fds, -1);
    read(pipe, &mut [0]) == Ok(1)
}

/// Reads once.
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> nix::Result<usize> {
    // SAFETY: pointer and length are of one slice.
    let count = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    Errno::result(count).map(isize::unsigned_abs)
}

/// Writes once, and ignores errors.
pub(crate) fn write(fd: RawFd, bytes: &[u8]) {
    // SAFETY: pointer and length are of one slice.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

/// Receives one packet, if there is one.
pub(crate) fn receive(socket: RawFd, buffer: &mut [u8]) -> nix::Result<usize> {
    let into = buffer.as_mut_ptr().cast();
    // MSG_TRUNC: returns the packet's real length, even if it did not fit.
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: pointer and length are of one slice.
    let count = unsafe { libc::recv(socket, into, buffer.len(), flags) };
    Errno::result(count).map(isize::unsigned_abs)
}

/// Sends one packet without `SIGPIPE`, and ignores errors.
pub(crate) fn send(socket: RawFd, packet: &[u8]) {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: pointer and length are of one slice.
    unsafe { libc::send(socket, packet.as_ptr().cast(), packet.len(), flags) };
}
