//! Which calls the handler does more with than make them. The filter of a trap is made from it.
// The kernel's names, in patterns.
#![allow(non_upper_case_globals)]

use nix::libc::*;

use super::calls::{FORKS, LISTS, OPAQUE, PathCall, paths_of};
use super::signals::{WaitMask, wait_mask};

/// What the handler has to do with a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Concern {
    /// It names paths.
    Paths(&'static [PathCall]),
    /// It lists the directory of a descriptor.
    Lists,
    /// It enters the directory of a descriptor.
    Enters,
    /// No path describes its effect.
    Opaque,
    /// It may give the process mounts of its own.
    Unshares,
    /// It executes a program.
    Executes,
    /// It makes a process or a thread, with flags in its first argument.
    Clones,
    /// The same, with flags in memory.
    ClonesAsTold,
    /// It makes a process, without flags.
    Forks,
    /// It connects to an address.
    Connects,
    /// It sends to an address, if it has one.
    Sends,
    /// It sends a message, which may have an address.
    SendsMessage,
    /// It sends messages, which may have addresses.
    SendsMessages,
    /// It changes the signal mask.
    Masks,
    /// It changes what a signal does.
    Acts,
    /// It waits with a temporary signal mask.
    Waits(WaitMask),
    /// It ends the handler of a signal.
    EndsHandler,
    /// It changes a setting of the process.
    Sets,
}

/// The concern about a call, if there is one.
#[inline]
pub(super) fn concern(number: c_long) -> Option<Concern> {
    Some(match number {
        SYS_rt_sigprocmask => Concern::Masks,
        SYS_rt_sigaction => Concern::Acts,
        SYS_rt_sigreturn => Concern::EndsHandler,
        SYS_prctl => Concern::Sets,
        SYS_execve | SYS_execveat => Concern::Executes,
        SYS_clone => Concern::Clones,
        SYS_clone3 => Concern::ClonesAsTold,
        SYS_connect => Concern::Connects,
        SYS_sendto => Concern::Sends,
        SYS_sendmsg => Concern::SendsMessage,
        SYS_sendmmsg => Concern::SendsMessages,
        SYS_fchdir => Concern::Enters,
        SYS_unshare => Concern::Unshares,
        number if LISTS.contains(&number) => Concern::Lists,
        number if FORKS.contains(&number) => Concern::Forks,
        number => match wait_mask(number) {
            Some(mask) => Concern::Waits(mask),
            None => match paths_of(number as usize) {
                [] if OPAQUE.contains(&number) => Concern::Opaque,
                [] => return None,
                lines => Concern::Paths(lines),
            },
        },
    })
}
