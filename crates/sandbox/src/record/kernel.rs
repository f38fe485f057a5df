//! System calls that pass while dispatch is on: made from the one range of code that the kernel
//! lets through. No call here touches `errno`, allocates or takes a lock.
#![allow(unsafe_code)]

use core::arch::global_asm;
use core::mem::MaybeUninit;
use core::ptr;

use nix::libc::{
    self, EINVAL, SYS_fstat, SYS_newfstatat, SYS_rt_sigaction, SYS_rt_sigprocmask, c_int, c_long,
};

use super::sight::nanoseconds;

// What counts is where a call returns to: the last instruction of the range must not be a call
// (kernel/entry/syscall_user_dispatch.c).
global_asm!(
    ".pushsection .text.altair_record,\"ax\",@progbits",
    ".globl altair_record_start, altair_record_call, altair_record_return, altair_record_end",
    ".hidden altair_record_start",
    ".hidden altair_record_call",
    ".hidden altair_record_return",
    ".hidden altair_record_end",
    "altair_record_start:",
    // The C calling convention to the kernel's: the number, then up to six arguments.
    ".type altair_record_call, @function",
    "altair_record_call:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "ret",
    ".size altair_record_call, . - altair_record_call",
    // What a signal handler returns to: rt_sigreturn(2), which finds its frame at the stack
    // pointer.
    ".type altair_record_return, @function",
    "altair_record_return:",
    "mov eax, {sigreturn}",
    "syscall",
    "ud2",
    ".size altair_record_return, . - altair_record_return",
    "altair_record_end:",
    ".popsection",
    sigreturn = const libc::SYS_rt_sigreturn,
);

unsafe extern "C" {
    static altair_record_start: u8;
    static altair_record_end: u8;
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

/// Start and length of the range that is let through.
pub(super) fn range() -> (usize, usize) {
    let start = &raw const altair_record_start as usize;
    let end = &raw const altair_record_end as usize;
    (start, end - start)
}

/// The address that a signal handler is to return to.
#[inline]
pub(super) fn signal_return() -> usize {
    altair_record_return as *const () as usize
}

/// A system call: its number, its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub number: usize,
    pub args: [usize; 6],
}

impl Call {
    /// Makes the call. The kernel's own answer: a negative error number, or the result.
    ///
    /// # Safety
    /// As for the call that it is.
    #[inline]
    pub(super) unsafe fn make(self) -> isize {
        let [a, b, c, d, e, f] = self.args;
        // SAFETY: the stub makes the call that the caller vouches for.
        unsafe { altair_record_call(self.number, a, b, c, d, e, f) }
    }
}

/// Makes a call that does not write where it should not.
///
/// # Safety
/// As for the call that it is.
#[inline]
unsafe fn call<const N: usize>(number: c_long, given: [usize; N]) -> isize {
    let mut args = [0; 6];
    for (arg, given) in args.iter_mut().zip(given) {
        *arg = given;
    }
    let number = number as usize;
    // SAFETY: the caller's.
    unsafe { Call { number, args }.make() }
}

/// The error of an answer, if it is one (`MAX_ERRNO` is 4095).
#[inline]
fn result(answer: isize) -> Result<isize, c_int> {
    match answer {
        -4095..=-1 => Err(answer.unsigned_abs() as c_int),
        _ => Ok(answer),
    }
}

/// newfstatat(2) of a path of the process, good or not: a bad one is `EFAULT`.
#[inline]
pub(super) fn stat_at(directory: c_int, path: usize, flags: c_int) -> Result<libc::stat, c_int> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    let args = [
        directory as usize,
        path,
        stat.as_mut_ptr() as usize,
        flags as usize,
    ];
    // SAFETY: the kernel checks the path and writes the structure, which is its own on x86-64.
    result(unsafe { call(SYS_newfstatat, args) })?;
    // SAFETY: on success the kernel has filled it in.
    Ok(unsafe { stat.assume_init() })
}

/// fstat(2).
#[inline]
pub(super) fn stat_of(descriptor: c_int) -> Result<libc::stat, c_int> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    let args = [descriptor as usize, stat.as_mut_ptr() as usize];
    // SAFETY: the kernel writes the structure, which is its own on x86-64.
    result(unsafe { call(SYS_fstat, args) })?;
    // SAFETY: on success the kernel has filled it in.
    Ok(unsafe { stat.assume_init() })
}

/// Now, in nanoseconds since 1970. The C library asks the vDSO; should that make a call, the call
/// is dispatched as any other.
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

/// A value at an address of the process, if there is memory. Of values of 8 to 4096 bytes.
#[inline]
pub(super) fn read<T: Copy>(address: usize) -> Option<T> {
    const { assert!(size_of::<T>() >= WORD && size_of::<T>() <= 4096) };
    let last = address.checked_add(size_of::<T>() - WORD)?;
    // A value no longer than a page lies in two pages at most.
    if !is_readable(address) || !is_readable(last) {
        return None;
    }
    // SAFETY: both ends of it can be read, and no other thread could take the memory away. What it
    // holds is the process's: all callers ask for integers.
    Some(unsafe { ptr::read_unaligned(address as *const T) })
}

/// Bytes that are asked for at once.
const WORD: usize = 8;

/// Whether the 8 bytes there can be read.
///
/// rt_sigprocmask(2) copies the set first and then says `EINVAL` to a `how` that there is not
/// (kernel/signal.c); it changes nothing.
fn is_readable(address: usize) -> bool {
    if address == 0 {
        return false;
    }
    let args = [usize::MAX, address, 0, WORD];
    // SAFETY: the kernel reads the memory, or says that it cannot.
    result(unsafe { call(SYS_rt_sigprocmask, args) }) == Err(EINVAL)
}

/// The kernel's `struct sigaction` (x86-64).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Action {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: u64,
}

/// Asks for or changes what is done at a signal, and gives what was done before.
///
/// # Errors
/// What rt_sigaction(2) says.
///
/// # Safety
/// The handler, if there is one, has to be sound at any instruction of the process.
pub(super) unsafe fn act_on(signal: c_int, action: Option<&Action>) -> Result<Action, c_int> {
    let mut before = Action::default();
    let new = action.map_or(0, |action| ptr::from_ref(action) as usize);
    let args = [signal as usize, new, &raw mut before as usize, WORD];
    // SAFETY: both structures outlive the call; the handler is the caller's.
    result(unsafe { call(SYS_rt_sigaction, args) })?;
    Ok(before)
}

/// Changes the mask of signals, and gives the one before.
///
/// # Errors
/// What rt_sigprocmask(2) says.
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

/// prctl(2) with `PR_SET_SYSCALL_USER_DISPATCH`.
///
/// # Errors
/// `EINVAL` before kernel 5.11, `EPERM` from a filter.
///
/// # Safety
/// The selector has to stay where it is until dispatch is off, and `SIGSYS` needs its handler
/// before the selector says to block.
pub(super) unsafe fn dispatch(on: bool, selector: *const u8) -> Result<(), c_int> {
    let args = match (on, range()) {
        (true, (start, length)) => [PR_SET_DISPATCH, 1, start, length, selector as usize],
        (false, _) => [PR_SET_DISPATCH, 0, 0, 0, 0],
    };
    // SAFETY: the caller's; the kernel only reads the selector.
    result(unsafe { call(libc::SYS_prctl, args) }).map(drop)
}

/// `PR_SET_SYSCALL_USER_DISPATCH` (linux/prctl.h).
pub(super) const PR_SET_DISPATCH: usize = 59;

/// The bytes of a string that the kernel has read, without its zero; `None` where it is longer
/// than a path may be.
///
/// # Safety
/// The kernel has read it as a path in this very handler.
#[inline]
pub(super) unsafe fn path_at<'a>(address: usize) -> Option<&'a [u8]> {
    // SAFETY: it can be read up to its zero, or for as long as a path may be.
    let length = unsafe { libc::strnlen(address as *const _, libc::PATH_MAX as usize) };
    if length == libc::PATH_MAX as usize {
        return None;
    }
    // SAFETY: as above; it is used before the process goes on.
    Some(unsafe { core::slice::from_raw_parts(address as *const u8, length) })
}
