//! Guard: privileges.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, c_ulong};
use nix::sys::prctl;

use crate::GuardState;
use crate::error::{Failure, Step};
use crate::system_calls;
use crate::view::Made;

/// A user and a group to run as, by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// User id.
    pub uid: u32,
    /// Group id. Supplementary groups are dropped.
    pub gid: u32,
}

/// What a process keeps of its host's privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Privileges {
    /// All of them, and those that set-uid programs grant.
    Keep,
    /// None: all capabilities are dropped, also for executed programs, and no program grants new
    /// ones (`no_new_privs`).
    Drop {
        /// The user to become. `None` keeps the host's user; root stays user 0, but only has the
        /// rights of the owner of its files.
        run_as: Option<RunAs>,
    },
}

/// What to drop, determined in the host.
pub(crate) enum PrivilegeSteps {
    Keep,
    Drop {
        run_as: Option<RunAs>,
        /// Whether the process makes a user namespace. That can only map this one user, so the
        /// process becomes that user first.
        user_namespace: bool,
        /// Whether the bounding set and the secure bits may be changed. If not, they are not needed
        /// either: with `no_new_privs`, an executed program has at most the previous capabilities,
        /// which are none (capabilities(7)).
        setpcap: bool,
        /// Whether the process keeps, in its user namespace, the capabilities that the forks of its
        /// program need to mount.
        mounts: bool,
    },
}

impl PrivilegeSteps {
    pub(crate) fn new(privileges: &Privileges, user_namespace: bool, mounts: bool) -> Self {
        match privileges {
            Privileges::Keep => Self::Keep,
            Privileges::Drop { run_as } => Self::Drop {
                run_as: *run_as,
                user_namespace,
                // The creator of a user namespace has all capabilities in it.
                setpcap: user_namespace || has(caps::Capability::CAP_SETPCAP),
                mounts: mounts && user_namespace,
            },
        }
    }
}

fn has(capability: caps::Capability) -> bool {
    caps::has_cap(None, caps::CapSet::Effective, capability).unwrap_or(false)
}

/// Whether the host may mount without a user namespace.
pub(crate) fn may_mount() -> bool {
    has(caps::Capability::CAP_SYS_ADMIN)
}

/// The user and group that the process will have.
pub(crate) fn user(privileges: &Privileges) -> (u32, u32) {
    match privileges {
        Privileges::Drop {
            run_as: Some(run_as),
        } => (run_as.uid, run_as.gid),
        Privileges::Drop { run_as: None } | Privileges::Keep => (
            nix::unistd::geteuid().as_raw(),
            nix::unistd::getegid().as_raw(),
        ),
    }
}

/// The user that the process runs as, if different from the host's.
pub(crate) fn other_user(privileges: &Privileges) -> Option<RunAs> {
    let Privileges::Drop { run_as } = privileges else {
        return None;
    };
    let own = (
        nix::unistd::geteuid().as_raw(),
        nix::unistd::getegid().as_raw(),
    );
    run_as.filter(|run_as| (run_as.uid, run_as.gid) != own)
}

/// Becomes the process's own user before its user namespace is made, which can only map that one
/// user. If the host maps the ids ([`UserNamespace`](crate::view::UserNamespace)), it only drops
/// the groups.
pub(crate) fn before_user_namespace(prepared: &PrivilegeSteps, made: Made) -> Result<(), Failure> {
    match prepared {
        PrivilegeSteps::Drop {
            run_as: Some(run_as),
            user_namespace: true,
            ..
        } => match made {
            Made::ByProcess => become_user(*run_as),
            Made::ByProcessMappedByHost => give_up_groups(*run_as),
            // The process is in it already.
            Made::WithKeeper => Ok(()),
        },
        PrivilegeSteps::Drop { .. } | PrivilegeSteps::Keep => Ok(()),
    }
}

/// Becomes the process's own user in its user namespace, if that has not been done before. It keeps
/// all capabilities there.
pub(crate) fn in_user_namespace(prepared: &PrivilegeSteps, made: Made) -> Result<(), Failure> {
    match prepared {
        PrivilegeSteps::Drop {
            run_as: Some(run_as),
            user_namespace: true,
            ..
        } => match made {
            Made::ByProcess => Ok(()),
            Made::ByProcessMappedByHost => set_ids(*run_as),
            Made::WithKeeper => become_user(*run_as),
        },
        PrivilegeSteps::Drop { .. } | PrivilegeSteps::Keep => Ok(()),
    }
}

/// Drops the privileges of the calling process. Async-signal-safe: it only makes system calls.
pub(crate) fn apply(prepared: &PrivilegeSteps) -> Result<(), Failure> {
    let PrivilegeSteps::Drop {
        run_as,
        user_namespace,
        setpcap,
        mounts,
    } = prepared
    else {
        return Ok(());
    };
    let kept = if *mounts { MOUNTS } else { 0 };
    // First: new inheritable capabilities must be in the bounding set, which is emptied below.
    if *mounts {
        set_capabilities(ALL, kept).map_err(|e| Step::Capabilities.failed(e))?;
    }
    // First the steps that need CAP_SETPCAP, then those that need CAP_SETUID and CAP_SETGID, then
    // the rest.
    empty_ambient_set().map_err(|e| Step::AmbientSet.failed(e))?;
    if *mounts {
        raise_ambient(MOUNTS).map_err(|e| Step::AmbientSet.failed(e))?;
    }
    if *setpcap {
        lock_secure_bits().map_err(|e| Step::SecureBits.failed(e))?;
        empty_bounding_set().map_err(|e| Step::BoundingSet.failed(e))?;
    }
    if let Some(run_as) = run_as
        && !user_namespace
    {
        become_user(*run_as)?;
    }
    set_capabilities(kept, kept).map_err(|e| Step::Capabilities.failed(e))?;
    prctl::set_no_new_privs().map_err(|e| Step::NoNewPrivileges.failed(e))
}

/// The state of this guard once the process runs.
pub(crate) fn state(privileges: &Privileges) -> GuardState {
    match privileges {
        Privileges::Keep => GuardState::LeftOut {
            because: "the policy keeps the privileges of the host".into(),
        },
        Privileges::Drop { .. } => GuardState::InForce,
    }
}

fn prctl_call(option: c_int, a: c_ulong, b: c_ulong) -> nix::Result<c_int> {
    // SAFETY: none of the options used here takes a pointer.
    Errno::result(unsafe { libc::prctl(option, a, b, 0 as c_ulong, 0 as c_ulong) })
}

/// Makes user 0 unprivileged, now and after every `exec` (capabilities(7), "The securebits flags").
/// KEEP_CAPS is locked off.
fn lock_secure_bits() -> nix::Result<()> {
    const WANTED: c_int = libc::SECBIT_NOROOT
        | libc::SECBIT_NOROOT_LOCKED
        | libc::SECBIT_NO_SETUID_FIXUP
        | libc::SECBIT_NO_SETUID_FIXUP_LOCKED
        | libc::SECBIT_KEEP_CAPS_LOCKED
        | libc::SECBIT_NO_CAP_AMBIENT_RAISE
        | libc::SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    // Each flag's lock is the bit above it.
    const FLAGS: c_int = libc::SECBIT_NOROOT
        | libc::SECBIT_NO_SETUID_FIXUP
        | libc::SECBIT_KEEP_CAPS
        | libc::SECBIT_NO_CAP_AMBIENT_RAISE;
    let current = prctl_call(libc::PR_GET_SECUREBITS, 0, 0)?;
    // A flag that is locked off cannot be set; trying to would make the whole call fail.
    let locked_off = (current >> 1) & !current & FLAGS;
    let bits = current & !libc::SECBIT_KEEP_CAPS | (WANTED & !locked_off);
    prctl_call(
        libc::PR_SET_SECUREBITS,
        c_ulong::try_from(bits).unwrap_or(0),
        0,
    )
    .map(drop)
}

fn empty_bounding_set() -> nix::Result<()> {
    for capability in 0.. {
        match prctl_call(libc::PR_CAPBSET_READ, capability, 0) {
            Ok(0) => {}
            Ok(_) => {
                prctl_call(libc::PR_CAPBSET_DROP, capability, 0)?;
            }
            // The first number beyond this kernel's capabilities.
            Err(_) => break,
        }
    }
    Ok(())
}

fn empty_ambient_set() -> nix::Result<()> {
    let clear = c_ulong::try_from(libc::PR_CAP_AMBIENT_CLEAR_ALL).unwrap_or(0);
    match prctl_call(libc::PR_CAP_AMBIENT, clear, 0) {
        // Kernels before 4.3 have no ambient set.
        Ok(_) | Err(Errno::EINVAL) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Uses raw calls: the C library's wrappers would also signal the host's other threads, which do
/// not exist in this process.
fn become_user(run_as: RunAs) -> Result<(), Failure> {
    give_up_groups(run_as)?;
    set_ids(run_as)
}

fn give_up_groups(run_as: RunAs) -> Result<(), Failure> {
    // SAFETY: a null pointer is allowed for a list of no groups.
    let groups = unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) };
    match Errno::result(groups) {
        Ok(_) => {}
        // Needs CAP_SETGID, but there may be nothing to give up.
        Err(Errno::EPERM) if has_no_groups_but(run_as.gid) => {}
        Err(errno) => return Err(Step::Groups.failed(errno)),
    }
    Ok(())
}

fn set_ids(run_as: RunAs) -> Result<(), Failure> {
    let (uid, gid) = (c_long::from(run_as.uid), c_long::from(run_as.gid));
    // SAFETY: no pointer is passed.
    let result = unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) };
    Errno::result(result).map_err(|e| Step::Gid.failed(e))?;
    // SAFETY: no pointer is passed.
    let result = unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
    Errno::result(result).map_err(|e| Step::Uid.failed(e))?;
    // Until it executes its program it has the host's memory. The kernel forbids its new user to look into
    // it, unless the system says otherwise (sysctl `fs.suid_dumpable`).
    prctl::set_dumpable(false).map_err(|e| Step::Uid.failed(e))
}

/// Whether the calling thread has no supplementary group but, at most, this one, which a process has
/// anyway that gets it as its group. Root of a container often has such a list.
pub(crate) fn has_no_groups_but(gid: u32) -> bool {
    let mut groups: [libc::gid_t; GROUPS] = [0; GROUPS];
    // SAFETY: the kernel writes at most as many as the array holds; with more groups it fails.
    let count = unsafe { libc::getgroups(GROUPS as c_int, groups.as_mut_ptr()) };
    let known = usize::try_from(count).ok().and_then(|n| groups.get(..n));
    known.is_some_and(|known| known.iter().all(|group| *group == gid))
}

/// How many groups are looked at: the same one may be listed more than once.
const GROUPS: usize = 8;

/// Whether the host may run a process as another user. One that may not runs it as itself, and this
/// must not be more than an ordinary user: a root that can change or read the files of others could
/// be led to them by what it finds in a project.
///
/// True for every root that has one of these rights, so that a start without the others fails.
#[must_use]
pub fn may_become_another_user() -> bool {
    use caps::Capability::{
        CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_SETGID, CAP_SETUID,
        CAP_SYS_PTRACE,
    };
    let over_files = [
        CAP_CHOWN,
        CAP_DAC_OVERRIDE,
        CAP_DAC_READ_SEARCH,
        CAP_FOWNER,
        CAP_SYS_PTRACE,
    ];
    (has(CAP_SETUID) && has(CAP_SETGID)) || over_files.into_iter().any(has)
}

/// The capabilities that a template keeps so that its forks can mount: CAP_SYS_ADMIN, and those
/// that overlayfs later uses with its mounter's credentials (CAP_CHOWN, CAP_DAC_OVERRIDE,
/// CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_SETFCAP). The template's user namespace maps
/// only its own user, so they do not apply to files of others. Numbers of linux/capability.h.
const MOUNTS: u64 = 1 << 21 | 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 31;
/// What the creator of a user namespace has in it.
const ALL: u64 = u64::MAX;

/// Removes a template's kept capabilities from the effective set, so that its own program cannot
/// use them. They stay permitted for [`take_up`], which the template's filter refuses to that
/// program.
pub(crate) fn lay_down() -> nix::Result<()> {
    change_capabilities(MOUNTS, 0, 0)
}

/// Makes the template's kept capabilities effective.
pub(crate) fn take_up() -> Result<(), Failure> {
    change_capabilities(MOUNTS, MOUNTS, 0).map_err(|e| Step::Capabilities.failed(e))
}

/// Drops them for good.
pub(crate) fn drop_last() -> Result<(), Failure> {
    set_capabilities(0, 0).map_err(|e| Step::Capabilities.failed(e))
}

fn set_capabilities(permitted: u64, inheritable: u64) -> nix::Result<()> {
    change_capabilities(permitted, permitted, inheritable)
}

/// The effective, the permitted and the inheritable set, as two words of 32 bits each.
pub(crate) type CapabilitySets = [[u32; 3]; 2];

/// Whose sets capget(2) and capset(2) are about, in which layout.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// `_LINUX_CAPABILITY_VERSION_3`, since kernel 2.6.26: two words of 32 bits per set.
const OF_THIS_THREAD: CapabilityHeader = CapabilityHeader {
    version: 0x2008_0522,
    pid: 0,
};

/// The calling thread's sets (capget(2)).
pub(crate) fn capability_sets() -> nix::Result<CapabilitySets> {
    let mut sets = CapabilitySets::default();
    let header = OF_THIS_THREAD;
    // SAFETY: both outlive the call and have the layout of version 3.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) };
    Errno::result(got).map(|_| sets)
}

/// capset(2): reduces the permitted set to `permitted`, sets the effective set to the part of it
/// that is in `effective`, and the inheritable set to `inheritable`. The crate `caps` would
/// allocate.
fn change_capabilities(permitted: u64, effective: u64, inheritable: u64) -> nix::Result<()> {
    let mut sets = match permitted {
        0 => CapabilitySets::default(),
        _ => capability_sets()?,
    };
    for (word, [acting, own, inherited]) in sets.iter_mut().enumerate() {
        let part = |set: u64| u32::try_from(set >> (32 * word) & u64::from(u32::MAX)).unwrap_or(0);
        *own &= part(permitted);
        *acting = *own & part(effective);
        *inherited = part(inheritable);
    }
    let header = OF_THIS_THREAD;
    // SAFETY: both outlive the call and have the layout of version 3.
    unsafe {
        system_calls::with_pass(
            libc::SYS_capset,
            [
                (&raw const header) as c_long,
                sets.as_ptr() as c_long,
                0,
                0,
                0,
            ],
        )
    }
    .map(drop)
}

/// Keeps CAP_KILL over `exec`, for a keeper that is the first process of its user namespace: the
/// processes that it ends have another user. Numbers of linux/capability.h.
pub(crate) fn keep_kill() -> nix::Result<()> {
    const KILL: u64 = 1 << 5;
    set_capabilities(ALL, KILL)?;
    raise_ambient(KILL)
}

/// Raises capabilities, which must be inheritable, in the ambient set, which survives `exec`.
fn raise_ambient(set: u64) -> nix::Result<()> {
    let raise = c_ulong::try_from(libc::PR_CAP_AMBIENT_RAISE).unwrap_or(0);
    for capability in 0..u64::BITS {
        if set & (1 << capability) != 0 {
            prctl_call(libc::PR_CAP_AMBIENT, raise, capability.into())?;
        }
    }
    Ok(())
}
