//! The system calls that install the filter on the calling process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use seccompiler::{BpfProgramRef, apply_filter_all_threads, sock_filter};

use crate::system_calls;

/// Installs a filter on all threads, and returns its listener.
///
/// # Errors
/// Those of seccomp(2): `EBUSY` if an outer filter already has a listener, `EINVAL` before kernel
/// 5.7.
pub(super) fn with_listener(program: BpfProgramRef<'_>) -> nix::Result<OwnedFd> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?;
    let program = libc::sock_fprog {
        len,
        // The crate's instruction has the kernel's layout (linux/filter.h).
        filter: program.as_ptr().cast_mut().cast(),
    };
    // TSYNC_ESRCH: if a thread cannot be synchronized, the call fails with ESRCH. Without the flag
    // it would return a thread id, which could be mistaken for the listener.
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
    // SAFETY: the kernel has just made this descriptor for us, with close-on-exec.
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

/// Installs on all threads the filter that the host sends as one packet over `channel`, sets the
/// recorder's pass, which is at its end, and returns the listener.
///
/// The program contains the passes, which must not remain in this process: it is only received into
/// memory that is then unmapped.
///
/// # Errors
/// Those of mmap(2) and recv(2), and as for [`with_listener`]; `EBADMSG` for a packet that is not a
/// program.
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
        let count = count.checked_sub(1).ok_or(Errno::EBADMSG)?;
        // SAFETY: the mapping is aligned and holds `count` instructions, for which any bit pattern
        // is valid, and a number of their size; nothing writes to them while the slice lives.
        let (program, pass) = unsafe {
            let program = std::slice::from_raw_parts(memory.cast(), count);
            (program, memory.cast::<u64>().add(count).read())
        };
        let listener = with_listener(program)?;
        system_calls::set_pass(pass);
        Ok(listener)
    });
    // SAFETY: the mapping from above, which is no longer used.
    unsafe { libc::munmap(memory, PROGRAM_BYTES_MAX) };
    listener
}

/// Size of the longest program that the kernel accepts (`BPF_MAXINSNS` of linux/bpf_common.h, 8
/// bytes each).
const PROGRAM_BYTES_MAX: usize = 4096 * size_of::<sock_filter>();

const _: () = assert!(size_of::<sock_filter>() == size_of::<u64>());

/// Receives a packet of instructions and a pass of the same size, and returns their number.
fn receive_program(channel: BorrowedFd<'_>, memory: *mut libc::c_void) -> nix::Result<usize> {
    loop {
        // SAFETY: the mapping has `PROGRAM_BYTES_MAX` bytes.
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

/// Installs a filter on the calling thread, in addition to a template's.
///
/// # Errors
/// Those of seccomp(2).
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

/// Installs a filter on all threads.
///
/// # Errors
/// Those of seccomp(2).
pub(super) fn alone(program: BpfProgramRef<'_>) -> io::Result<()> {
    apply_filter_all_threads(program).map_err(|error| match error {
        seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => error,
        other => io::Error::other(other),
    })
}

/// Whether the calling process has only one thread: Landlock would not restrict other running
/// threads. Returns `false` if this cannot be determined.
#[must_use]
pub fn has_one_thread() -> bool {
    // `CLONE_THREAD` has no effect in a process with one thread, and fails with `EINVAL` in any
    // other (unshare(2)). It needs no `/proc`, which a private root does not have.
    // SAFETY: no pointer is passed, and nothing changes.
    match Errno::result(unsafe { libc::unshare(libc::CLONE_THREAD) }) {
        Ok(_) => true,
        Err(Errno::EINVAL) => false,
        // An outer filter refuses the call; there, the outer /proc is available.
        Err(_) => std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1),
    }
}
