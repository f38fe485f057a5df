//! The calls that could block `SIGSYS` or remove its handler: the kernel kills a process that makes
//! an intercepted call while the signal is blocked.
#![allow(unsafe_code)]
// The kernel's names, in patterns.
#![allow(non_upper_case_globals)]

use nix::libc::{
    EINVAL, SIG_BLOCK, SIG_SETMASK, SIG_UNBLOCK, SIGSYS, SYS_epoll_pwait, SYS_epoll_pwait2,
    SYS_ppoll, SYS_pselect6, SYS_rt_sigsuspend, c_int, c_long,
};

use super::context::Stack;
use super::kernel::{self, Action, Call};
use super::machine::{Context, SYS_IO_PGETEVENTS};

/// The bit of `SIGSYS` in a mask.
pub(super) const BIT: u64 = 1 << (SIGSYS - 1);

/// rt_sigprocmask(2): changes the mask of the interrupted process, which is restored when the
/// handler returns.
pub(super) fn mask(mut call: Call, context: &mut Context) -> isize {
    let [how, set, ..] = call.args;
    let new = kernel::read::<u64>(set).map(|set| set & !BIT);
    if let Some(new) = &new {
        call.args[1] = core::ptr::from_ref(new) as usize;
    }
    // SAFETY: the process's own call, except for the set, which outlives the call.
    let answer = unsafe { call.make() };
    if let (0, Some(new)) = (answer, new) {
        context.mask = masked(how, context.mask, new);
    }
    answer
}

/// The mask after a change that the kernel accepted.
fn masked(how: usize, before: u64, set: u64) -> u64 {
    match how as c_int {
        SIG_BLOCK => before | set,
        SIG_UNBLOCK => before & !set,
        SIG_SETMASK => set,
        _ => before,
    }
}

/// rt_sigaction(2): no handler runs with `SIGSYS` blocked, and the handler of `SIGSYS` stays.
pub(super) fn action(mut call: Call) -> isize {
    let [signal, new, ..] = call.args;
    if signal as c_int == SIGSYS {
        call.args[1] = 0;
        // SAFETY: the process's own call, reduced to a query.
        return unsafe { call.make() };
    }
    let action = kernel::read::<Action>(new).map(|action| Action {
        mask: action.mask & !BIT,
        ..action
    });
    if let Some(action) = &action {
        call.args[1] = core::ptr::from_ref(action) as usize;
    }
    // SAFETY: the process's own call, except for the structure, which outlives the call.
    unsafe { call.make() }
}

/// sigaltstack(2): takes effect in the interrupted process, like the mask.
pub(super) fn stack(mut call: Call, context: &mut Context) -> isize {
    let new = kernel::read::<Stack>(call.args[0]);
    if let Some(new) = &new {
        call.args[0] = core::ptr::from_ref(new) as usize;
    }
    // SAFETY: the process's own call, except for the structure, which outlives the call.
    let answer = unsafe { call.make() };
    if let (0, Some(new)) = (answer, new) {
        context.stack = new;
    }
    answer
}

/// rt_sigreturn(2), at the end of the process's own handlers: it must be made with the process's
/// stack pointer, so the process continues at the rt_sigreturn of the exempt range.
pub(super) fn end_of_handler(context: &mut Context) {
    let mask_at = context.mask_to_restore();
    // A handler may have added the signal to the mask that is about to be restored.
    if let Some(mask) = kernel::read::<u64>(mask_at).filter(|mask| mask & BIT != 0) {
        // SAFETY: the kernel wrote the frame there, on a stack, and will read it next.
        unsafe { core::ptr::write_unaligned(mask_at as *mut u64, mask & !BIT) };
    }
    context.continue_at(kernel::signal_return());
}

/// Where a waiting call has its temporary signal mask.
#[derive(Clone, Copy, Debug)]
pub(super) enum WaitMask {
    /// This argument points to the mask.
    At(usize),
    /// This argument points to a pair whose first word points to the mask.
    Within(usize),
}

/// The calls that wait with a temporary signal mask.
#[inline]
pub(super) fn wait_mask(number: c_long) -> Option<WaitMask> {
    match number {
        SYS_rt_sigsuspend => Some(WaitMask::At(0)),
        SYS_ppoll => Some(WaitMask::At(3)),
        SYS_epoll_pwait | SYS_epoll_pwait2 => Some(WaitMask::At(4)),
        SYS_pselect6 | SYS_IO_PGETEVENTS => Some(WaitMask::Within(5)),
        _ => None,
    }
}

/// Makes a waiting call with `SIGSYS` removed from its mask.
pub(super) fn wait(mut call: Call, mask: WaitMask) -> isize {
    /// The address of a mask, and its size.
    type Held = [usize; 2];
    let (WaitMask::At(argument) | WaitMask::Within(argument)) = mask;
    let Some(given) = call.args.get_mut(argument) else {
        return -(EINVAL as isize);
    };
    let mut held: Held = match mask {
        WaitMask::At(_) => [*given, 0],
        WaitMask::Within(_) => kernel::read(*given).unwrap_or_default(),
    };
    let set = kernel::read::<u64>(held[0]).map(|set| set & !BIT);
    if let Some(set) = &set {
        held[0] = core::ptr::from_ref(set) as usize;
        *given = match mask {
            WaitMask::At(_) => held[0],
            WaitMask::Within(_) => held.as_ptr() as usize,
        };
    }
    // SAFETY: the process's own call, except for the mask, which outlives the call.
    unsafe { call.make() }
}
