//! Calls that only the fork of a template needs, to set itself up: the table refuses them, but the
//! filter permits them to a caller that knows the pass.
//!
//! The pass is a random number chosen by the host. While the template boots, the pass is only in
//! the kernel's copy of the filter and not in the template's memory, which native code in boot can
//! read. The host sends it after boot. It is passed as the sixth argument, which none of these
//! calls has. After set-up, a fork installs a second, small filter ([`closing`]) that forbids these
//! calls for good, so that the pass becomes useless.
//!
//! A second pass is for the recorder of boot, for the one filter that it may need
//! ([`crate::FirstGuard::record`]). The template gets it with its filter and forgets it before boot.
//!
//! Forking itself is not among them: the filter asks the host about each fork, and the host knows
//! whether it wants one ([`Forks`](super::listener::Forks)).

use std::collections::BTreeMap;

use nix::errno::Errno;
use nix::libc::*;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

use super::call::{Arg, is, without};
use super::filter;

/// The passes of a template's filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passes {
    /// For the set-up of a fork.
    pub(crate) set_up: u64,
    /// For the recorder of boot.
    pub(crate) recording: u64,
}

/// The argument that holds the pass.
const PASS: u8 = 5;

/// The flags with which a template clones its forks: they become children of its parent, so that
/// they outlive it, and the thread id is stored where the C library expects it.
pub(crate) const FORK: u32 =
    (CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID) as u32;

/// Permitted flags of mount(2): new mounts and bind mounts, but no changes of existing ones.
const MOUNT: u32 = (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY | MS_BIND | MS_REC) as u32;

/// The calls, and the conditions for their arguments.
const CALLS: &[(c_long, &[Arg])] = &[
    (SYS_setsid, &[]),
    (SYS_prctl, &[is(0, PR_SET_PDEATHSIG as u32)]),
    (SYS_unshare, &[is(0, CLONE_NEWNS as u32)]),
    (SYS_mount, &[without(3, !MOUNT)]),
    (SYS_umount2, &[is(1, MNT_DETACH as u32)]),
    (SYS_capset, &[]),
    (SYS_seccomp, &[is(0, SECCOMP_SET_MODE_FILTER)]),
    // A template queries its own memory ([`huge`](crate::huge_pages)).
    (SYS_mincore, &[]),
];

/// What the recorder's pass permits: a filter for the calling thread.
const RECORDER: (c_long, &[Arg]) = (SYS_seccomp, &[is(0, SECCOMP_SET_MODE_FILTER), is(1, 0)]);

/// Calls that are permitted without a pass until the fork is set up: they can only restrict their
/// caller.
const FREE: &[c_long] = &[
    SYS_landlock_create_ruleset,
    SYS_landlock_add_rule,
    SYS_landlock_restrict_self,
];

/// Whether a call is permitted without a pass until the fork is set up.
pub(super) fn is_free(number: c_long) -> bool {
    FREE.contains(&number)
}

/// The rules that permit a call to a caller that knows its pass.
pub(super) fn rules(number: c_long, passes: Passes) -> Result<Vec<SeccompRule>, BackendError> {
    let set_up = CALLS.iter().map(|call| (call, passes.set_up));
    set_up
        .chain([(&RECORDER, passes.recording)])
        .filter(|((call, _), _)| *call == number)
        .map(|((_, args), pass)| {
            let mut conditions = filter::conditions(args)?;
            conditions.push(knows(pass)?);
            SeccompRule::new(conditions)
        })
        .collect()
}

/// The filter that ends the set-up: it refuses calls with the pass; all others are left to the
/// first filter.
pub(super) fn closing(pass: u64) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let mut lines = BTreeMap::new();
    for (number, _) in CALLS {
        lines.insert(*number, vec![SeccompRule::new(vec![knows(pass)?])?]);
    }
    for number in FREE {
        lines.insert(*number, Vec::new());
    }
    let refused = SeccompAction::Errno(Errno::EPERM as u32);
    SeccompFilter::new(lines, SeccompAction::Allow, refused, arch)?.try_into()
}

fn knows(pass: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(PASS, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, pass)
}
