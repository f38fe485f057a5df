//! Safe wrappers of system calls that neither the standard library nor `nix` offers in the form
//! needed here.
//!
//! All are async-signal-safe: no allocation, no lock, no thread-wide bookkeeping of the C library.
//! That is why some bypass an existing wrapper of the C library.
#![allow(unsafe_code)]

use std::convert::Infallible;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use nix::errno::Errno;
use nix::libc::{self, c_int, c_long};
use nix::sys::signal::{SigSet, Signal};

use crate::Status;

/// Bytes of a huge page where pages have 4 KiB: on x86-64, the only architecture with templates.
pub(crate) const HUGE_BYTES: usize = 2 << 20;
const PAGE_BYTES: usize = 4096;
/// Pages in one.
pub(crate) const PAGES: usize = HUGE_BYTES / PAGE_BYTES;

/// Which side of a clone the caller is.
pub(crate) enum Cloned {
    /// The new process.
    Child,
    /// The caller, with a pidfd of the new process.
    Parent(c_int, OwnedFd),
}

/// Makes a process like `fork`, but one whose end raises no `SIGCHLD` and which `waitpid(-1)`
/// does not see (clone(2): an exit signal of 0 makes it a "clone" child, see `__WCLONE`).
///
/// # Safety
/// In the child only async-signal-safe functions may be called, and it must never return to the
/// caller's caller: the host's other threads are gone, and the locks that they held stay held.
pub(crate) unsafe fn clone_unnoticed(flags: c_int) -> nix::Result<Cloned> {
    let mut pidfd: c_int = -1;
    // The legacy call rather than clone3, which container profiles refuse. With CLONE_PIDFD the
    // third argument receives the descriptor, on x86-64 and aarch64 alike; the stack stays.
    // SAFETY: without CLONE_VM the child has a copy of all memory, the stack included; `pidfd`
    // outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            c_long::from(libc::CLONE_PIDFD | flags),
            0 as c_long,
            &raw mut pidfd,
            0 as c_long,
            0 as c_long,
        )
    };
    match Errno::result(result)? {
        0 => Ok(Cloned::Child),
        // SAFETY: the kernel has just made this descriptor for us, close-on-exec.
        pid => Ok(Cloned::Parent(c_int::try_from(pid).unwrap_or(0), unsafe {
            OwnedFd::from_raw_fd(pidfd)
        })),
    }
}

/// Memory for the stack of a process that shares its maker's memory. Its first word tells how long the
/// process does.
pub(crate) struct Stack(std::ptr::NonNull<libc::c_void>);

impl Stack {
    /// Taking all guards needs a few KiB.
    const BYTES: usize = 256 * 1024;

    pub(crate) fn new() -> nix::Result<Self> {
        // SAFETY: a new mapping of our own.
        let stack = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Self::BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
                -1,
                0,
            )
        };
        match std::ptr::NonNull::new(stack) {
            Some(memory) if stack != libc::MAP_FAILED => Ok(Self(memory)),
            _ => Err(Errno::last()),
        }
    }

    /// 1 while a process runs on it. The kernel sets it to 0 when the process gives up this memory, and
    /// wakes who waits (clone(2), `CLONE_CHILD_CLEARTID`).
    fn word(&self) -> &AtomicI32 {
        // SAFETY: the mapping's first bytes, which live as long as `self`, are 0 at first, and are
        // used in no other way: stacks grow downwards, and this one is much longer than needed.
        unsafe { self.0.cast::<AtomicI32>().as_ref() }
    }

    /// Waits until no process runs on it, at most for a number of milliseconds. Returns whether none
    /// does. It leaves the thread's variables alone, which the process may be using.
    pub(crate) fn is_left_within(&self, timeout_ms: i64) -> bool {
        let value = self.word().load(Ordering::Acquire);
        if value == 0 {
            return true;
        }
        let time = libc::timespec {
            tv_sec: timeout_ms / 1000,
            tv_nsec: timeout_ms % 1000 * 1_000_000,
        };
        let (word, time) = (self.word().as_ptr(), &raw const time);
        // SAFETY: word and time outlive the call, which returns at once if the word has changed.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, time) };
        self.word().load(Ordering::Acquire) == 0
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping from above; whoever drops it knows that no process runs on it.
        unsafe { libc::munmap(self.0.as_ptr(), Self::BYTES) };
    }
}

/// Makes a process that shares the caller's memory until it has become its program or ended
/// (`CLONE_VM`), and returns its id, and its pidfd if the flags have `CLONE_PIDFD`. `child` is what
/// the new process does; it cannot return.
///
/// Copying a large host's page tables, only to discard them, would cost more than all guards
/// together. `child` must not change anything that the caller depends on. The two also share the
/// calling thread's variables (`errno`), so the caller should do nothing until the child is done with
/// them; with `CLONE_VFORK`, the kernel suspends it.
///
/// # Safety
/// The stack and everything that `child` refers to must outlive the child's use of this memory. The
/// child may only call async-signal-safe functions.
pub(crate) unsafe fn clone_sharing<F: FnOnce() -> Infallible>(
    stack: &Stack,
    flags: c_int,
    child: F,
) -> nix::Result<(c_int, Option<OwnedFd>)> {
    extern "C" fn run<F: FnOnce() -> Infallible>(child: *mut libc::c_void) -> c_int {
        // SAFETY: written below, for this process alone.
        let child = Some(unsafe { child.cast::<F>().read() });
        child.map(|child| child()).map_or(0, |never| match never {})
    }
    let mut pidfd: c_int = -1;
    // The closure lies at the stack's top: the caller's frame may be gone before the child reads it.
    const { assert!(size_of::<F>() < Stack::BYTES / 2 && align_of::<F>() <= 16) };
    let room = size_of::<F>().next_multiple_of(16);
    // SAFETY: within the mapping, whose end is aligned to pages; stacks grow downwards from there.
    let result = unsafe {
        let top = stack.0.as_ptr().byte_add(Stack::BYTES - room);
        top.cast::<F>().write(child);
        stack.word().store(1, Ordering::Release);
        libc::clone(
            run::<F>,
            top,
            libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID | flags,
            top,
            &raw mut pidfd,
            std::ptr::null_mut::<libc::c_void>(),
            stack.word().as_ptr(),
        )
    };
    let pid = Errno::result(result).inspect_err(|_| stack.word().store(0, Ordering::Release))?;
    // SAFETY: the kernel has just made this descriptor for us, close-on-exec.
    let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
    Ok((pid, pidfd))
}

/// Makes an ordinary child of the calling process, which must have only one thread, and returns
/// its id once the child has become its program or ended.
pub(crate) fn clone_plain<F: FnOnce() -> Infallible>(child: F) -> nix::Result<c_int> {
    let stack = Stack::new()?;
    // SAFETY: with CLONE_VFORK, everything of the caller's outlives the child's use of it. With a
    // single thread, no other thread can hold a lock.
    unsafe { clone_sharing(&stack, libc::CLONE_VFORK | libc::SIGCHLD, child) }.map(|(pid, _)| pid)
}

/// Whether other processes of its user may inspect the calling process (prctl(2),
/// `PR_GET_DUMPABLE`).
pub(crate) fn is_dumpable() -> bool {
    // SAFETY: no pointer is passed.
    unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 }
}

/// A file in memory that can be executed, closed on `exec`.
pub(crate) fn memory_file(name: &std::ffi::CStr) -> nix::Result<OwnedFd> {
    let make = |flags| {
        // SAFETY: a C string that outlives the call.
        Errno::result(unsafe { libc::memfd_create(name.as_ptr(), flags) })
    };
    let fd = match make(libc::MFD_CLOEXEC | libc::MFD_EXEC) {
        // Before kernel 6.3 there is no such flag; all can be executed.
        Err(Errno::EINVAL) => make(libc::MFD_CLOEXEC),
        made => made,
    }?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Replaces the calling process by the program behind a descriptor, without arguments and
/// environment. Returns only on failure.
pub(crate) fn exec_file(file: RawFd, name: &std::ffi::CStr) -> Errno {
    let argv = [name.as_ptr(), std::ptr::null()];
    let envp: [*const libc::c_char; 1] = [std::ptr::null()];
    // SAFETY: both lists end with a null pointer; all strings outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            file,
            c"".as_ptr(),
            argv.as_ptr(),
            envp.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    Errno::last()
}

/// The pass through the filter of a template (`seccomp::fork_setup`): the recorder's until boot, that
/// of the forks' set-up after boot; 0 during boot and in other processes.
static PASS: AtomicU64 = AtomicU64::new(0);

/// Sets the pass that [`with_pass`] sends.
pub(crate) fn set_pass(pass: u64) {
    PASS.store(pass, Ordering::Relaxed);
}

/// Makes a system call with the pass as its sixth argument.
///
/// # Safety
/// The arguments must be valid for the call, and it must not use a sixth one.
pub(crate) unsafe fn with_pass(call: c_long, args: [c_long; 5]) -> nix::Result<c_long> {
    let [a, b, c, d, e] = args;
    let pass = PASS.load(Ordering::Relaxed).cast_signed();
    // SAFETY: as promised by the caller.
    Errno::result(unsafe { libc::syscall(call, a, b, c, d, e, pass) })
}

/// Fills a slice with random bytes from the kernel.
///
/// # Errors
/// What getrandom(2) reports; `EIO` if it gives fewer bytes.
pub(crate) fn random(bytes: &mut [u8]) -> nix::Result<()> {
    // SAFETY: pointer and length are of one slice.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match Errno::result(count)?.unsigned_abs() {
        count if count == bytes.len() => Ok(()),
        _ => Err(Errno::EIO),
    }
}

/// A pidfd of the calling process, by which others see it end.
pub(crate) fn pidfd_of_self() -> nix::Result<OwnedFd> {
    // SAFETY: no pointer is passed.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
    let fd = RawFd::try_from(Errno::result(fd)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor for us, close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Checks whether this process may copy another process's descriptors.
///
/// # Errors
/// The kernel's reason if it may not.
pub(crate) fn may_copy_descriptors(process: nix::unistd::Pid) -> nix::Result<()> {
    // The kernel checks the permission before the descriptor (pidfd_getfd(2)).
    match descriptor_of(process, -1) {
        Ok(_) | Err(Errno::EBADF) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Copies a descriptor of another process, which this one must be permitted to inspect.
pub(crate) fn descriptor_of(process: nix::unistd::Pid, fd: RawFd) -> nix::Result<OwnedFd> {
    let own = |fd: c_long| {
        let fd = RawFd::try_from(Errno::result(fd)?).map_err(|_| Errno::EBADF)?;
        Ok(own_descriptor(fd))
    };
    // SAFETY: no pointer is passed; the kernel makes each of the two for us, close-on-exec.
    let pidfd = own(unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) })?;
    // SAFETY: as above.
    own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })
}

/// Reads a numeric socket option.
pub(crate) fn socket_option(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
) -> nix::Result<c_int> {
    let mut value: c_int = 0;
    // The size of a number fits.
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: both outlive the call, and the length is the value's.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    Errno::result(result).map(|_| value)
}

/// Sends a signal to the process behind `pidfd`. It is no error if that has already ended.
pub(crate) fn signal_pidfd(pidfd: BorrowedFd<'_>, signal: c_int) {
    let _ = send(pidfd, signal);
}

/// Returns whether the process behind `pidfd` is there, if only to be collected.
pub(crate) fn is_there(pidfd: BorrowedFd<'_>) -> bool {
    send(pidfd, 0) != Err(Errno::ESRCH)
}

fn send(pidfd: BorrowedFd<'_>, signal: c_int) -> nix::Result<()> {
    // SAFETY: a null siginfo is allowed: as from kill(2).
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    Errno::result(sent).map(drop)
}

/// Waits for the end of the child behind `pidfd` and collects it. `None` if it was collected
/// elsewhere.
pub(crate) fn wait_pidfd(pidfd: BorrowedFd<'_>) -> Option<Status> {
    wait_for(libc::P_PIDFD, pidfd.as_raw_fd())
}

/// Whether a child, by its id, has ended and waits to be collected, or is none.
pub(crate) fn has_child_ended(pid: c_int) -> bool {
    let Ok(id) = libc::id_t::try_from(pid) else {
        return true;
    };
    // SAFETY: all zeros is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: `info` outlives the call. __WALL, as the child has no exit signal.
    let result = unsafe { libc::waitid(libc::P_PID, id, &raw mut info, how) };
    // SAFETY: waitid leaves zero there if no child has ended.
    result != 0 || unsafe { info.si_pid() } != 0
}

/// Waits for the end of a child by its id, and collects it.
pub(crate) fn wait_child(pid: c_int) -> Option<Status> {
    wait_for(libc::P_PID, pid)
}

fn wait_for(kind: libc::idtype_t, id: c_int) -> Option<Status> {
    // Neither a descriptor nor a process's id is ever negative.
    let id = libc::id_t::try_from(id).ok()?;
    loop {
        // SAFETY: all zeros is a valid siginfo_t.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` outlives the call. __WALL, as the child has no exit signal.
        let result = unsafe { libc::waitid(kind, id, &raw mut info, libc::WEXITED | libc::__WALL) };
        match Errno::result(result) {
            Ok(_) => {
                // SAFETY: waitid has filled in the fields for a child's end.
                let value = unsafe { info.si_status() };
                return Some(match info.si_code {
                    libc::CLD_EXITED => Status::Exited(value),
                    _ => Status::Signalled(value),
                });
            }
            Err(Errno::EINTR) => {}
            Err(_) => return None,
        }
    }
}

/// The ids of the process behind `pidfd` and of its parent. `None` if it is no pidfd or the process
/// has been collected.
pub(crate) fn process_of(pidfd: BorrowedFd<'_>) -> Option<(c_int, c_int)> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    let pid: c_int = pid.trim().parse().ok().filter(|pid| *pid > 0)?;
    Some((pid, crate::procfs::parent_of(pid)?))
}

/// The mount namespace of the process behind `pidfd`. `None` before kernel 6.11.
pub(crate) fn mount_namespace(pidfd: BorrowedFd<'_>) -> Option<OwnedFd> {
    /// `PIDFD_GET_MNT_NAMESPACE` (linux/pidfd.h).
    const GET_MNT_NAMESPACE: libc::Ioctl = 0xff03;
    // SAFETY: this call takes no argument but 0.
    let fd = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_MNT_NAMESPACE, 0) };
    // SAFETY: the kernel has just made this descriptor for us, close-on-exec.
    Errno::result(fd)
        .ok()
        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether the child behind `pidfd` is stopped by a signal.
pub(crate) fn is_stopped(pidfd: BorrowedFd<'_>) -> bool {
    let Ok(id) = libc::id_t::try_from(pidfd.as_raw_fd()) else {
        return false;
    };
    // SAFETY: all zeros is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // Bypasses the C library, which would touch the thread's variables
    // ([`Stack::is_left_within`]).
    // SAFETY: `info` outlives the call; there is nothing else to fill in.
    let result = unsafe {
        let (kind, usage) = (libc::P_PIDFD, std::ptr::null_mut::<libc::rusage>());
        libc::syscall(libc::SYS_waitid, kind, id, &raw mut info, options, usage)
    };
    // With nothing to report, the call leaves zeros.
    result == 0 && info.si_code == libc::CLD_STOPPED
}

/// Collects one child of the calling process that has ended, if any: its id and raw wait status.
/// `ECHILD` when there is no child at all.
pub(crate) fn reap_one() -> nix::Result<Option<(c_int, c_int)>> {
    let mut status: c_int = 0;
    // SAFETY: `status` outlives the call.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
    match Errno::result(pid)? {
        0 => Ok(None),
        pid => Ok(Some((pid, status))),
    }
}

/// Whether the calling process has children, including ended ones.
pub(crate) fn has_children() -> bool {
    // SAFETY: a null pointer is allowed; nothing is collected.
    let result = unsafe {
        libc::waitid(
            libc::P_ALL,
            0,
            std::ptr::null_mut(),
            libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL,
        )
    };
    Errno::result(result).is_ok()
}

/// Sends a signal by number (`nix`'s type has no real-time signals).
pub(crate) fn kill(pid: c_int, signal: c_int) -> nix::Result<()> {
    // SAFETY: no pointer is passed.
    Errno::result(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Ends the calling process at once: no destructor, no exit handler.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: takes no pointer and does not return.
    unsafe { libc::_exit(code) }
}

/// Sets every signal to its default action.
pub(crate) fn default_signals() {
    /// Bytes of the kernel's own set of signals.
    const SET_BYTES: usize = 8;
    // The kernel's struct of four words: handler, flags, restorer, mask. All zeros is the default
    // action. The C library's call refuses the two signals that it uses itself (32 and 33), which a
    // host may have inherited as ignored.
    let default = [0u64; 4];
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: `default` outlives the call. It fails for SIGKILL and SIGSTOP, which have no
        // other action.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null_mut::<u64>(),
                SET_BYTES,
            )
        };
    }
}

/// Makes a terminal the controlling one of the calling process, a session leader without one
/// (tty_ioctl(4), `TIOCSCTTY`).
pub(crate) fn control_terminal(terminal: RawFd) -> nix::Result<()> {
    // SAFETY: this call takes a number.
    Errno::result(unsafe { libc::ioctl(terminal, libc::TIOCSCTTY, 0) }).map(drop)
}

/// Whether a signal waits for the calling thread or its process.
pub(crate) fn is_pending(signal: Signal) -> bool {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call fills in the set, which is read only then.
    unsafe {
        libc::sigpending(set.as_mut_ptr()) == 0
            && libc::sigismember(set.as_ptr(), signal as c_int) == 1
    }
}

/// Takes a pending signal of the set, which must be blocked, without waiting.
pub(crate) fn take_pending(signals: &SigSet) {
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: set and time outlive the call; a null siginfo is allowed.
    unsafe { libc::sigtimedwait(signals.as_ref(), std::ptr::null_mut(), &raw const now) };
}

/// Ignores a signal. `exec` preserves this.
pub(crate) fn ignore(signal: Signal) -> nix::Result<()> {
    // SAFETY: an ignored signal runs no handler.
    unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigIgn) }.map(drop)
}

/// Unblocks all signals.
pub(crate) fn unblock_signals() -> nix::Result<()> {
    SigSet::empty().thread_set_mask()
}

/// Replaces the calling process by a program. Returns only on failure.
///
/// # Safety
/// `argv` and `envp` must each end with a null pointer and point to C strings.
pub(crate) unsafe fn exec(
    program: &std::ffi::CStr,
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
) -> Errno {
    // SAFETY: as promised by the caller; all of it was made before the clone.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    Errno::last()
}

/// Takes over a descriptor that the kernel has just made for this process.
pub(crate) fn own_descriptor(fd: RawFd) -> OwnedFd {
    // SAFETY: received in a control message, which makes a new descriptor each time.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Gives the owner of the file or directory behind a descriptor all rights to it.
///
/// # Errors
/// What the system reports.
pub(crate) fn open_up(file: BorrowedFd<'_>) -> nix::Result<()> {
    change_mode(file, libc::S_IRWXU)
}

/// Changes the mode of the file or directory behind a descriptor, which may be one of `O_PATH`.
///
/// # Errors
/// What the system reports.
pub(crate) fn change_mode(file: BorrowedFd<'_>, mode: libc::mode_t) -> nix::Result<()> {
    /// `fchmodat2` (asm-generic/unistd.h), since kernel 6.6.
    const SYS_FCHMODAT2: c_long = 452;
    // SAFETY: an empty C string.
    let changed = unsafe {
        libc::syscall(
            SYS_FCHMODAT2,
            file.as_raw_fd(),
            c"".as_ptr(),
            mode,
            libc::AT_EMPTY_PATH,
        )
    };
    match Errno::result(changed) {
        Ok(_) => Ok(()),
        // Through the descriptor's link in /proc, which leads to the file itself (proc(5)).
        Err(Errno::ENOSYS | Errno::EPERM | Errno::EINVAL) => nix::sys::stat::fchmodat(
            nix::fcntl::AT_FDCWD,
            crate::place::by_number(file).as_str(),
            nix::sys::stat::Mode::from_bits_truncate(mode),
            nix::sys::stat::FchmodatFlags::FollowSymlink,
        ),
        Err(errno) => Err(errno),
    }
}

/// Whether a file's extended attribute has this value.
pub(crate) fn attribute_is(file: BorrowedFd<'_>, name: &std::ffi::CStr, value: &[u8]) -> bool {
    let mut buffer = [0u8; 16];
    // SAFETY: the name is a C string, pointer and length are of one buffer.
    let length = unsafe {
        libc::fgetxattr(
            file.as_raw_fd(),
            name.as_ptr(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    };
    usize::try_from(length)
        .ok()
        .and_then(|length| buffer.get(..length))
        == Some(value)
}

/// Whether a packet with content waits to be read (unix(7), `SIOCINQ`).
pub(crate) fn has_bytes(socket: BorrowedFd<'_>) -> bool {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes a number.
    let told = unsafe { libc::ioctl(socket.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    told == 0 && bytes > 0
}

/// Whether the peer of a Unix socket has read all that was sent to it (unix(7), `SIOCOUTQ`).
pub(crate) fn has_all_read(socket: BorrowedFd<'_>) -> bool {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes a number.
    let told = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    told == 0 && bytes == 0
}

/// Whether the peer of a socket will send no more than it already has.
pub(crate) fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    let mut fds = [libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLRDHUP,
        revents: 0,
    }];
    crate::raw_descriptors::poll(&mut fds, 0);
    fds.iter()
        .any(|fd| fd.revents & (libc::POLLRDHUP | libc::POLLHUP) != 0)
}

/// How many pages of the huge page at `window` are in memory (mincore(2)); 0 if any of it is
/// unmapped.
pub(crate) fn resident_pages(window: usize) -> usize {
    let mut pages = [0u8; PAGES];
    let args = [
        window.cast_signed() as c_long,
        HUGE_BYTES as c_long,
        pages.as_mut_ptr() as c_long,
        0,
        0,
    ];
    // SAFETY: the kernel writes one byte per page, and fails if there is no mapping.
    if unsafe { with_pass(libc::SYS_mincore, args) }.is_err() {
        return 0;
    }
    pages.iter().filter(|page| **page & 1 == 1).count()
}

/// Moves what is mapped at `window` into a huge page (madvise(2), `MADV_COLLAPSE`).
pub(crate) fn collapse(window: usize) -> nix::Result<()> {
    // SAFETY: the contents of memory do not change, whatever the address.
    let done = unsafe { libc::madvise(window as *mut _, HUGE_BYTES, libc::MADV_COLLAPSE) };
    Errno::result(done).map(drop)
}
