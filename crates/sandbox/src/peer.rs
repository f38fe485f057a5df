//! Who has sent a packet over a Unix socket, by the kernel's word.
#![allow(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockFlag, accept4, recvmsg, setsockopt, sockopt,
};

use crate::system_calls;

/// `SO_PASSPIDFD` and `SCM_PIDFD` (include/uapi/asm-generic/socket.h, include/linux/socket.h): a
/// pidfd of the sender with each packet, since Linux 6.5.
const SO_PASSPIDFD: libc::c_int = 76;
const SCM_PIDFD: libc::c_int = 4;
/// A pidfd of the process that listened at the other end (include/uapi/asm-generic/socket.h), since
/// Linux 6.5.
const SO_PEERPIDFD: libc::c_int = 77;

/// The process that has sent a packet.
#[derive(Debug)]
pub struct Sender {
    /// Its id; 0 if it has none in this pid namespace.
    pub pid: i32,
    /// The process itself.
    pub pidfd: OwnedFd,
}

/// Has the kernel tell with each packet who has sent it. A packet that is already there is told of,
/// too, only from now on.
///
/// # Errors
/// What setsockopt(2) reports.
pub fn tell_senders(socket: BorrowedFd<'_>) -> io::Result<()> {
    setsockopt(&socket, sockopt::PassCred, &true)?;
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an integer, which outlives the call. An older kernel refuses it.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSPIDFD,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        );
    }
    Ok(())
}

/// Receives a packet and its sender. No bytes: the other end is closed. A packet that does not fit
/// is an error, and descriptors that come with it are closed.
///
/// # Errors
/// What recvmsg(2) reports; `EMSGSIZE`; `ESRCH` if the kernel does not tell who has sent it. The sender
/// may have ended, and its id be another's: [`Sender::has_ended`].
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<Sender>)> {
    let mut space = nix::cmsg_space!(libc::ucred, [libc::c_int; 4]);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            received => break received?,
        }
    };
    let (mut credentials, mut pidfd, mut tells_pidfds) = (None, None, false);
    // Descriptors that nobody asked for are closed when they are dropped.
    let mut unwanted: Vec<OwnedFd> = Vec::new();
    for told in message.cmsgs()? {
        match told {
            ControlMessageOwned::ScmCredentials(told) => credentials = Some(told),
            ControlMessageOwned::ScmRights(fds) => {
                unwanted.extend(fds.into_iter().map(system_calls::own_descriptor));
            }
            ControlMessageOwned::Unknown(told)
                if told.cmsg_header.cmsg_level == libc::SOL_SOCKET
                    && told.cmsg_header.cmsg_type == SCM_PIDFD =>
            {
                tells_pidfds = true;
                let bytes = told.data_bytes.get(..4).and_then(|b| b.try_into().ok());
                let fd = bytes.map(libc::c_int::from_ne_bytes).filter(|fd| *fd >= 0);
                pidfd = fd.map(system_calls::own_descriptor);
            }
            _ => {}
        }
    }
    if message.bytes == 0 {
        return Ok((0, None));
    }
    if message.flags.contains(MsgFlags::MSG_TRUNC) {
        return Err(Errno::EMSGSIZE.into());
    }
    let credentials = credentials.ok_or(Errno::ESRCH)?;
    let pidfd = match pidfd {
        Some(pidfd) => pidfd,
        // An error in its place: the process is gone, and another one may have its id.
        None if tells_pidfds => return Err(Errno::ESRCH.into()),
        None => open(credentials.pid())?,
    };
    Ok((
        message.bytes,
        Some(Sender {
            pid: credentials.pid(),
            pidfd,
        }),
    ))
}

/// Accepts a connection; it closes on `exec`.
///
/// # Errors
/// What accept4(2) reports.
pub fn accept(listener: BorrowedFd<'_>) -> nix::Result<OwnedFd> {
    let socket = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
    Ok(system_calls::own_descriptor(socket))
}

/// The process that listens at the other end of a connection: the one that began to, which lives.
///
/// # Errors
/// What the kernel reports; `ESRCH` if it has ended.
pub fn listener_of(socket: BorrowedFd<'_>) -> io::Result<Sender> {
    let pid = pid_of_other_end(socket)?;
    let pidfd = match pidfd_of_other_end(socket) {
        // Before Linux 6.5 only its id is known, which may be another's by now.
        Err(Errno::ENOPROTOOPT) => open(pid)?,
        pidfd => pidfd?,
    };
    let listener = Sender { pid, pidfd };
    match listener.has_ended()? {
        false => Ok(listener),
        true => Err(Errno::ESRCH.into()),
    }
}

/// A pidfd of the process that listened at the other end of a connection.
fn pidfd_of_other_end(socket: BorrowedFd<'_>) -> nix::Result<OwnedFd> {
    let mut pidfd: libc::c_int = -1;
    let mut length = size_of_val(&pidfd) as libc::socklen_t;
    // SAFETY: the option's value is an integer of that length; both outlive the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &raw mut length,
        )
    };
    Errno::result(done)?;
    Ok(system_calls::own_descriptor(pidfd))
}

/// The id of the process that listened at the other end of a connection, or, at that one's end, that
/// connected; 0 if it has none in this pid namespace.
///
/// # Errors
/// What getsockopt(2) reports.
pub fn pid_of_other_end(socket: BorrowedFd<'_>) -> io::Result<i32> {
    Ok(nix::sys::socket::getsockopt(&socket, sockopt::PeerCredentials)?.pid())
}

/// A pidfd of a process, by its id (pidfd_open(2)).
fn open(pid: i32) -> io::Result<OwnedFd> {
    if pid <= 0 {
        return Err(Errno::ESRCH.into());
    }
    // SAFETY: no pointer is passed.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let fd = libc::c_int::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `PID_FS_MAGIC` (include/uapi/linux/magic.h).
const PID_FS: libc::c_long = 0x5049_4446;

impl Sender {
    /// A number that no other process has or will have until the machine starts again: the inode of
    /// its pidfd, where pidfds have a file system of their own (since Linux 6.9) with numbers of 64
    /// bits. `None` elsewhere.
    #[must_use]
    pub fn identity(&self) -> Option<u64> {
        let mut found = MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: the buffer is a `statfs`, writable for the call.
        let done = unsafe { libc::fstatfs(self.pidfd.as_raw_fd(), found.as_mut_ptr()) };
        // SAFETY: zeroed before the call, which is a valid value of these plain numbers.
        let kind = unsafe { found.assume_init() }.f_type;
        let inode = nix::sys::stat::fstat(&self.pidfd).ok()?.st_ino;
        let is_unique = cfg!(target_pointer_width = "64") && done == 0 && kind == PID_FS;
        is_unique.then_some(inode)
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn has_ended(&self) -> io::Result<bool> {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        let mut fds = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        Ok(poll(&mut fds, PollTimeout::ZERO)? > 0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::channel_pair;

    #[test]
    fn the_sender_of_a_packet_is_known() {
        let (ours, theirs) = channel_pair().unwrap();
        tell_senders(ours.as_fd()).unwrap();
        crate::raw_descriptors::send(theirs.as_raw_fd(), b"hello");
        let mut buffer = [0; 16];
        let (count, sender) = receive(ours.as_fd(), &mut buffer).unwrap();
        let sender = sender.unwrap();
        assert_eq!(&buffer[..count], b"hello");
        assert_eq!(sender.pid, std::process::id().cast_signed());
        assert!(!sender.has_ended().unwrap());

        crate::raw_descriptors::send(theirs.as_raw_fd(), &[0; 17]);
        let too_long = receive(ours.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(too_long.raw_os_error(), Some(libc::EMSGSIZE));
        drop(theirs);
        assert!(matches!(receive(ours.as_fd(), &mut buffer), Ok((0, None))));
    }
}
