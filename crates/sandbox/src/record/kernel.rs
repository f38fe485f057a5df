//! System calls that the recorder itself makes, from the one range of code ([`super::machine`]) that
//! is exempt. No call here touches `errno`, allocates or takes a lock.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::ptr;

use nix::libc::{
    self, EINVAL, SYS_fstat, SYS_newfstatat, SYS_rt_sigaction, SYS_rt_sigprocmask, c_int, c_long,
};

use super::context::Stack;
use super::sight::nanoseconds;

unsafe extern "C" {
    static altair_record_start: u8;
    static altair_record_end: u8;
    static altair_record_call_made: u8;
    static altair_record_return_made: u8;
    fn altair_record_call(
        number: usize,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
    ) -> isize;
    fn altair_record_return();
}

/// Start and length of the exempt range.
pub(super) fn range() -> (usize, usize) {
    let start = &raw const altair_record_start as usize;
    let end = &raw const altair_record_end as usize;
    (start, end - start)
}

/// The addresses after the two system call instructions of the range.
pub(super) fn made() -> [usize; 2] {
    let call = &raw const altair_record_call_made;
    let signal_return = &raw const altair_record_return_made;
    [call as usize, signal_return as usize]
}

/// The address that a signal handler must return to.
#[inline]
pub(super) fn signal_return() -> usize {
    altair_record_return as *const () as usize
}

/// A system call: its number and arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub number: usize,
    pub args: [usize; 6],
}

impl Call {
    /// Makes the call. Returns the kernel's raw answer: a negative error number, or the result.
    ///
    /// # Safety
    /// That of the respective system call.
    #[inline]
    pub(super) unsafe fn make(self) -> isize {
        let [a, b, c, d, e, f] = self.args;
        // SAFETY: the stub makes the call that the caller vouches for.
        unsafe { altair_record_call(self.number, a, b, c, d, e, f) }
    }
}

/// Makes a call with the given arguments; the others are 0.
///
/// # Safety
/// That of the respective system call; it must write only to memory meant for it.
#[inline]
pub(crate) unsafe fn call<const N: usize>(number: c_long, given: [usize; N]) -> isize {
    let mut args = [0; 6];
    for (arg, given) in args.iter_mut().zip(given) {
        *arg = given;
    }
    let number = number as usize;
    // SAFETY: ensured by the caller.
    unsafe { Call { number, args }.make() }
}

/// Splits a raw answer into result and error (`MAX_ERRNO` is 4095).
#[inline]
pub(crate) fn result(answer: isize) -> Result<isize, c_int> {
    match answer {
        -4095..=-1 => Err(answer.unsigned_abs() as c_int),
        _ => Ok(answer),
    }
}

/// newfstatat(2) with a path pointer of the process, which may be invalid (`EFAULT`).
#[inline]
pub(super) fn stat_at(directory: c_int, path: usize, flags: c_int) -> Result<libc::stat, c_int> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    let args = [
        directory as usize,
        path,
        stat.as_mut_ptr() as usize,
        flags as usize,
    ];
    // SAFETY: the kernel checks the path and writes the structure, which on both architectures has
    // the kernel's own layout.
    result(unsafe { call(SYS_newfstatat, args) })?;
    // SAFETY: on success the kernel has filled it in.
    Ok(unsafe { stat.assume_init() })
}

/// fstat(2).
#[inline]
pub(super) fn stat_of(descriptor: c_int) -> Result<libc::stat, c_int> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    let args = [descriptor as usize, stat.as_mut_ptr() as usize];
    // SAFETY: the kernel writes the structure, which on both architectures has the kernel's own
    // layout.
    result(unsafe { call(SYS_fstat, args) })?;
    // SAFETY: on success the kernel has filled it in.
    Ok(unsafe { stat.assume_init() })
}

/// The current time in nanoseconds since 1970. The C library asks the vDSO; if that makes a system
/// call, the call is dispatched like any other.
#[inline]
pub(super) fn now() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    nanoseconds(time.tv_sec, time.tv_nsec)
}

/// Reads a value of 8 to 4096 bytes at an address of the process; `None` if it is unreadable.
#[inline]
pub(super) fn read<T: Copy>(address: usize) -> Option<T> {
    const { assert!(size_of::<T>() >= WORD && size_of::<T>() <= 4096) };
    let last = address.checked_add(size_of::<T>() - WORD)?;
    // A value no longer than a page lies in two pages at most.
    if !is_readable(address) || !is_readable(last) {
        return None;
    }
    // SAFETY: both ends are readable, and there is no other thread that could unmap the memory. The
    // process controls the content, but all callers read integers.
    Some(unsafe { ptr::read_unaligned(address as *const T) })
}

/// Bytes probed at once.
const WORD: usize = 8;

/// Whether the 8 bytes at an address are readable.
///
/// rt_sigprocmask(2) first copies the set, then fails with `EINVAL` for an invalid `how`
/// (kernel/signal.c); it changes nothing.
fn is_readable(address: usize) -> bool {
    if address == 0 {
        return false;
    }
    let args = [usize::MAX, address, 0, WORD];
    // SAFETY: the kernel reads the memory, or returns `EFAULT`.
    result(unsafe { call(SYS_rt_sigprocmask, args) }) == Err(EINVAL)
}

/// The kernel's `struct sigaction` (the same on both architectures).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Action {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: u64,
}

/// Queries or changes the action of a signal, and returns the previous one.
///
/// # Errors
/// Those of rt_sigaction(2).
///
/// # Safety
/// The handler, if there is one, must be sound at any instruction of the process.
pub(crate) unsafe fn act_on(signal: c_int, action: Option<&Action>) -> Result<Action, c_int> {
    let mut before = Action::default();
    let new = action.map_or(0, |action| ptr::from_ref(action) as usize);
    let args = [signal as usize, new, &raw mut before as usize, WORD];
    // SAFETY: both structures outlive the call; the caller vouches for the handler.
    result(unsafe { call(SYS_rt_sigaction, args) })?;
    Ok(before)
}

/// Changes the signal mask, and returns the previous one.
///
/// # Errors
/// Those of rt_sigprocmask(2).
pub(super) fn mask(how: c_int, set: u64) -> Result<u64, c_int> {
    let mut before = 0_u64;
    let args = [
        how as usize,
        &raw const set as usize,
        &raw mut before as usize,
        WORD,
    ];
    // SAFETY: both sets outlive the call.
    result(unsafe { call(SYS_rt_sigprocmask, args) })?;
    Ok(before)
}

/// sigaltstack(2): queries or changes the alternate stack, and returns the previous one.
///
/// # Errors
/// Those of the call.
pub(super) fn alternate_stack(stack: Option<&Stack>) -> Result<Stack, c_int> {
    let mut before = Stack::default();
    let new = stack.map_or(0, |stack| ptr::from_ref(stack) as usize);
    let args = [new, &raw mut before as usize];
    // SAFETY: both structures outlive the call; callers pass only stacks that the process had.
    result(unsafe { call(libc::SYS_sigaltstack, args) })?;
    Ok(before)
}

/// The id of the calling thread, as the kernel knows it.
pub(super) fn thread_id() -> c_int {
    // SAFETY: no pointer is passed.
    let id = unsafe { call(libc::SYS_gettid, []) };
    id as c_int
}

/// Whether a thread of this process still exists, by its processor time (clock_gettime(2)). That
/// needs no `/proc`, and no listener is asked.
pub(super) fn has_thread(id: c_int) -> bool {
    /// `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` (linux/posix-timers.h).
    const OF_THREAD: c_int = 4 | 2;
    let mut time = [0_u64; 2];
    let args = [((!id << 3) | OF_THREAD) as usize, (&raw mut time) as usize];
    // SAFETY: the kernel writes the time, which outlives the call.
    result(unsafe { call(libc::SYS_clock_gettime, args) }).is_ok()
}

/// sched_yield(2).
pub(super) fn give_way() {
    // SAFETY: no pointer is passed.
    unsafe { call(libc::SYS_sched_yield, []) };
}

/// prctl(2) with `PR_SET_SYSCALL_USER_DISPATCH`.
///
/// # Errors
/// `EINVAL` before kernel 5.11, `EPERM` from a filter.
///
/// # Safety
/// The selector must stay valid until dispatch is off, and `SIGSYS` must have its handler before
/// the selector is set to block.
pub(super) unsafe fn dispatch(on: bool, selector: *const u8) -> Result<(), c_int> {
    let args = match (on, range()) {
        (true, (start, length)) => [PR_SET_DISPATCH, 1, start, length, selector as usize],
        (false, _) => [PR_SET_DISPATCH, 0, 0, 0, 0],
    };
    // SAFETY: ensured by the caller; the kernel only reads the selector.
    result(unsafe { call(libc::SYS_prctl, args) }).map(drop)
}

/// `PR_SET_SYSCALL_USER_DISPATCH` (linux/prctl.h).
pub(super) const PR_SET_DISPATCH: usize = 59;

/// The bytes of a string that the kernel has read, without the terminating zero; `None` if it is
/// longer than `PATH_MAX` allows.
///
/// # Safety
/// The kernel must have read it as a path during the same handler invocation.
#[inline]
pub(crate) unsafe fn path_at<'a>(address: usize) -> Option<&'a [u8]> {
    // SAFETY: it is readable up to its zero, or for `PATH_MAX` bytes.
    let length = unsafe { libc::strnlen(address as *const _, libc::PATH_MAX as usize) };
    if length == libc::PATH_MAX as usize {
        return None;
    }
    // SAFETY: as above; it is used before the process continues.
    Some(unsafe { core::slice::from_raw_parts(address as *const u8, length) })
}
