//! The system calls that put the filter on the calling process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use seccompiler::{BpfProgramRef, apply_filter_all_threads, sock_filter};

use crate::system_calls;

/// Puts a filter on all threads, and gives the listener's end of it.
///
/// # Errors
/// What seccomp(2) says: `EBUSY` where there is a listener further out already, `EINVAL` before
/// kernel 5.7.
pub(super) fn with_listener(program: BpfProgramRef<'_>) -> nix::Result<OwnedFd> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?;
    let program = libc::sock_fprog {
        len,
        // The crate's instruction is the kernel's, field by field (linux/filter.h).
        filter: program.as_ptr().cast_mut().cast(),
    };
    // With a listener, a thread that cannot follow is to be an error, not a number that could be
    // the listener's (TSYNC_ESRCH).
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
        | libc::SECCOMP_FILTER_FLAG_TSYNC
        | libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    // SAFETY: `program` and what it points to outlive the call, which only reads them.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    let listener = RawFd::try_from(Errno::result(listener)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor for us, close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// A program as the bytes that [`from_host`] reads.
pub(super) fn to_bytes(program: BpfProgramRef<'_>) -> Vec<u8> {
    program
        .iter()
        .flat_map(|instruction| {
            let [a, b] = instruction.code.to_ne_bytes();
            let [c, d, e, f] = instruction.k.to_ne_bytes();
            [a, b, instruction.jt, instruction.jf, c, d, e, f]
        })
        .collect()
}

/// Puts the filter on all threads that the host sends as one packet over `channel`, and gives the
/// listener's end of it.
///
/// The program has the pass in it, which is to be nowhere in this process afterwards: it is received
/// into memory that is then unmapped, and lies in no other.
///
/// # Errors
/// What the system says, as for [`with_listener`]; `EBADMSG` for a packet that is no program.
pub(super) fn from_host(channel: BorrowedFd<'_>) -> nix::Result<OwnedFd> {
    // SAFETY: a new mapping of our own.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PROGRAM_BYTES_MAX,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    let listener = receive_program(channel, memory).and_then(|count| {
        // SAFETY: the mapping is aligned for it and has as many instructions, of which each bit
        // pattern is one; nobody writes to them while the slice lives.
        let program = unsafe { std::slice::from_raw_parts(memory.cast(), count) };
        with_listener(program)
    });
    // SAFETY: the mapping from above, which nobody uses any more.
    unsafe { libc::munmap(memory, PROGRAM_BYTES_MAX) };
    listener
}

/// Bytes of the longest program that the kernel takes (`BPF_MAXINSNS` of linux/bpf_common.h, 8 each).
const PROGRAM_BYTES_MAX: usize = 4096 * size_of::<sock_filter>();

/// Receives a packet of instructions; how many there are.
fn receive_program(channel: BorrowedFd<'_>, memory: *mut libc::c_void) -> nix::Result<usize> {
    loop {
        // SAFETY: the mapping has as many bytes.
        let received = unsafe {
            libc::recv(
                channel.as_raw_fd(),
                memory,
                PROGRAM_BYTES_MAX,
                libc::MSG_TRUNC,
            )
        };
        match Errno::result(received).map(isize::unsigned_abs) {
            Ok(bytes)
                if bytes > 0
                    && bytes <= PROGRAM_BYTES_MAX
                    && bytes.is_multiple_of(size_of::<sock_filter>()) =>
            {
                return Ok(bytes / size_of::<sock_filter>());
            }
            Ok(_) => return Err(Errno::EBADMSG),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Puts a filter on the calling thread, which is the only one, in addition to a template's.
///
/// # Errors
/// What seccomp(2) says.
pub(super) fn in_addition(program: BpfProgramRef<'_>) -> nix::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?;
    let program = libc::sock_fprog {
        len,
        // As above.
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: `program` and what it points to outlive the call, which only reads them.
    unsafe {
        system_calls::with_pass(
            libc::SYS_seccomp,
            [
                libc::SECCOMP_SET_MODE_FILTER.into(),
                0,
                (&raw const program) as libc::c_long,
                0,
                0,
            ],
        )
    }
    .map(drop)
}

/// Puts a filter on all threads.
///
/// # Errors
/// What seccomp(2) says.
pub(super) fn alone(program: BpfProgramRef<'_>) -> io::Result<()> {
    apply_filter_all_threads(program).map_err(|error| match error {
        seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => error,
        other => io::Error::other(other),
    })
}

/// Whether the calling process has one thread only: another one that runs already would stay free
/// of Landlock. Where that cannot be found out, it has others.
#[must_use]
pub fn has_one_thread() -> bool {
    // `CLONE_THREAD` asks for what a process with one thread has already, and is `EINVAL` for any
    // other (unshare(2)). It needs no `/proc`, which is not there in a private root.
    // SAFETY: no pointer is passed, and nothing changes.
    match Errno::result(unsafe { libc::unshare(libc::CLONE_THREAD) }) {
        Ok(_) => true,
        Err(Errno::EINVAL) => false,
        // A filter further out refuses the call altogether; there, /proc is what it is outside.
        Err(_) => std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1),
    }
}
