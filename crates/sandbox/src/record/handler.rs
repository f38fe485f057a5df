//! Handles each intercepted call. The handler runs between any two instructions of the
//! process and must be reentrant: no allocation, no lock, no `errno`, no panic.
#![allow(unsafe_code)]
// The kernel's names, in patterns.
#![allow(non_upper_case_globals)]

use nix::libc::*;

use super::concern::{Concern, concern};
use super::context::{Info, SECCOMP, USER_DISPATCH};
use super::kernel::{self, Call, PR_SET_DISPATCH};
use super::log;
use super::machine::{ARCHITECTURE, Context};
use super::sight::{Entry, SeenFile, Sight};
use super::trap::MARK;
use super::{Unseen, paths, signals};

/// The bit in a call's number that marks the x32 ABI (asm/unistd.h).
const X32: usize = 0x4000_0000;

/// The handler of `SIGSYS`.
pub(super) extern "C" fn on_call(_signal: c_int, info: *const Info, context: *mut Context) {
    // SAFETY: the kernel passes valid pointers to this handler.
    let (info, context) = unsafe { (&*info, &mut *context) };
    match info.code {
        USER_DISPATCH => {}
        SECCOMP if info.errno == i32::from(MARK) => {}
        // An outer filter, which wants the call not to be made.
        SECCOMP => return context.answer(failed(ENOSYS)),
        _ => return,
    }
    let call = context.call();
    if info.architecture != ARCHITECTURE || call.number & X32 != 0 {
        // Other ABIs use other call numbers.
        log::note(Unseen::TooMuch);
        return context.answer(failed(ENOSYS));
    }
    if call.number as c_long == SYS_rt_sigreturn {
        return signals::end_of_handler(context);
    }
    let answer = answer(call, context);
    context.answer(answer);
}

/// Answers a call.
#[inline]
fn answer(call: Call, context: &mut Context) -> isize {
    let [first, second, third, _, fifth, _] = call.args;
    let Some(concern) = concern(call.number as c_long) else {
        return match call.number as c_long {
            // Only dispatch intercepts it. By rt_sigreturn, a handler restores the alternate stack.
            SYS_sigaltstack => signals::stack(call, context),
            _ => make(call),
        };
    };
    match concern {
        Concern::Paths(lines) => paths::answer(call, lines),
        Concern::Masks => signals::mask(call, context),
        Concern::Acts => signals::action(call),
        Concern::Waits(mask) => signals::wait(call, mask),
        Concern::EndsHandler => make(call),
        Concern::Sets if first == PR_SET_DISPATCH => failed(EINVAL),
        Concern::Sets => make(call),
        Concern::Executes => {
            knock(call);
            refuse_process(0)
        }
        Concern::Clones | Concern::Forks => {
            let flags = if call.number as c_long == SYS_clone {
                first
            } else {
                0
            };
            if flags & CLONE_THREAD as usize == 0 {
                knock(call);
            }
            refuse_process(flags)
        }
        Concern::ClonesAsTold => {
            // The flags are the first word of the structure.
            if let Some(flags) = kernel::read::<u64>(first) {
                refuse_process(flags as usize);
            }
            // C libraries then fall back to clone(2).
            failed(ENOSYS)
        }
        Concern::Connects => addressed(call, true),
        Concern::Sends => addressed(call, fifth != 0),
        Concern::SendsMessage => addressed(call, has_address(second)),
        Concern::SendsMessages => addressed(call, any_has_address(second, third)),
        Concern::Lists => {
            let answer = make(call);
            if answer >= 0 {
                by_descriptor(Sight::Listing, first);
            }
            answer
        }
        Concern::Enters => {
            let answer = make(call);
            if answer == 0 {
                by_descriptor(Sight::EnteredByDescriptor, first);
            }
            answer
        }
        Concern::Unshares => opaque(call, first & CLONE_NEWNS as usize != 0),
        Concern::Opaque => opaque(call, true),
    }
}

/// Makes a call as the process made it.
#[inline]
pub(super) fn make(call: Call) -> isize {
    // SAFETY: it is the process's own call, with its own arguments, at the same point.
    unsafe { call.make() }
}

/// The raw answer for an error.
#[inline]
fn failed(errno: c_int) -> isize {
    -(errno as isize)
}

/// Makes a call, and notes if it sends to or connects to an address.
fn addressed(call: Call, is: bool) -> isize {
    if is {
        log::note(Unseen::Connection);
    }
    make(call)
}

/// Makes a call, and if it succeeds, notes that no path describes its effect.
#[inline]
fn opaque(call: Call, is: bool) -> isize {
    let answer = make(call);
    if is && answer >= 0 {
        log::note(Unseen::TooMuch);
    }
    answer
}

/// Makes a call with arguments that the kernel rejects, so that a filter still sees the attempt.
fn knock(call: Call) {
    let mut call = call;
    match call.number as c_long {
        // The program's path stays; the pointer to its arguments is invalid.
        SYS_execve => call.args[1] = 1,
        SYS_execveat => call.args[2] = 1,
        // `CLONE_SIGHAND` requires `CLONE_VM` (clone(2), EINVAL).
        _ => {
            call.number = SYS_clone as usize;
            call.args = [CLONE_SIGHAND as usize, 0, 0, 0, 0, 0];
        }
    }
    make(call);
}

/// Refuses a new thread with `EAGAIN`, as if there were too many, and a new process with `EPERM`,
/// as a filter would.
fn refuse_process(flags: usize) -> isize {
    if flags & CLONE_THREAD as usize != 0 {
        log::note(Unseen::Thread);
        failed(EAGAIN)
    } else {
        log::note(Unseen::Process);
        failed(EPERM)
    }
}

/// Whether a message of sendmsg(2) has an address (its first word).
fn has_address(message: usize) -> bool {
    kernel::read::<usize>(message).is_some_and(|address| address != 0)
}

/// Whether one of the messages of sendmmsg(2) has an address. The kernel takes at most 1024.
fn any_has_address(messages: usize, count: usize) -> bool {
    (0..count.min(1024)).any(|at| has_address(messages.wrapping_add(at * size_of::<mmsghdr>())))
}

/// Logs what was done to the directory of a descriptor.
fn by_descriptor(sight: Sight, descriptor: usize) {
    let Ok(stat) = kernel::stat_of(descriptor as c_int) else {
        return log::note(Unseen::TooMuch);
    };
    let entry = Entry {
        at_ns: kernel::now(),
        found: None,
        directory: Some(SeenFile::new(&stat).id),
        sight,
        stays_at_links: false,
        done: true,
    };
    log::append(entry, &[]);
}
