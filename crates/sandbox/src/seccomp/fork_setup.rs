//! What the fork of a template needs to set itself up, and nobody else: a few calls that the table
//! refuses are let through for who knows the pass.
//!
//! The pass is a random number of the host's. While the template boots it is in the filter, which is
//! the kernel's, and nowhere in the template: native code in boot can look wherever it wants. The host
//! shows it when boot is over. It travels in the sixth argument, which none of these calls has. A fork
//! that is set up closes them for good with a second, small filter ([`closing`]), so that knowing the
//! pass is worth nothing any more.
//!
//! To fork is none of them: for each fork the host is asked, which knows whether it wants one
//! ([`Forks`](super::listener::Forks)).

use std::collections::BTreeMap;

use nix::errno::Errno;
use nix::libc::*;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

use super::call::{Arg, is, without};
use super::filter;

/// The argument that holds the pass.
const PASS: u8 = 5;

/// What a template clones its forks with: they are its parent's children, so that they live on
/// without it, and the C library finds its thread id where it looks for it.
pub(crate) const FORK: u32 =
    (CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID) as u32;

/// Flags of mount(2): new mounts and copies of old ones, and nothing that changes an old one.
const MOUNT: u32 = (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY | MS_BIND | MS_REC) as u32;

/// The calls, and what has to hold for their arguments.
const CALLS: &[(c_long, &[Arg])] = &[
    (SYS_setsid, &[]),
    (SYS_prctl, &[is(0, PR_SET_PDEATHSIG as u32)]),
    (SYS_unshare, &[is(0, CLONE_NEWNS as u32)]),
    (SYS_mount, &[without(3, !MOUNT)]),
    (SYS_umount2, &[is(1, MNT_DETACH as u32)]),
    (SYS_capset, &[]),
    (SYS_seccomp, &[is(0, SECCOMP_SET_MODE_FILTER)]),
    // A template asks it of its own memory ([`huge`](crate::huge_pages)).
    (SYS_mincore, &[]),
];

/// Calls that are let through without a pass until the fork is set up: they can only take from who
/// makes them.
const FREE: &[c_long] = &[
    SYS_landlock_create_ruleset,
    SYS_landlock_add_rule,
    SYS_landlock_restrict_self,
];

/// Whether a call is let through for everybody until the fork is set up.
pub(super) fn is_free(number: c_long) -> bool {
    FREE.contains(&number)
}

/// The rules by which who knows the pass may make a call.
pub(super) fn rules(number: c_long, pass: u64) -> Result<Vec<SeccompRule>, BackendError> {
    CALLS
        .iter()
        .filter(|(call, _)| *call == number)
        .map(|(_, args)| {
            let mut conditions = filter::conditions(args)?;
            conditions.push(knows(pass)?);
            SeccompRule::new(conditions)
        })
        .collect()
}

/// The filter that ends the set-up: whoever knows the pass is refused, and who does not is left to
/// the first filter.
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
