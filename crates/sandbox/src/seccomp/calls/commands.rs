//! What a command may do that an evaluation may not: start programs and processes, signal them, use
//! its terminal, listen in its own network. These lines take the place of those for evaluations.

use nix::libc::*;

use super::requests;
use crate::seccomp::bind::AS_LONG_AS_INTERNET;
use crate::seccomp::call::Answer::{Allow, AllowIf, Refuse};
use crate::seccomp::call::Kind::{Bind, Listen, Process, Signal};
use crate::seccomp::call::Refuse::{AsAbsent, AsUnknown, Quietly, Told};
use crate::seccomp::call::When::{
    Args, Binding, BySignals, Counted, Ipc, Metadata, Network, NetworkOr, Options, Requests,
    Signals, UncountedMemory, UncountedMemoryOr,
};
use crate::seccomp::call::{Call, Rules, at_least, at_most, calls, is, is_not, without};

/// Processes and threads without a namespace of their own, which would give them privileges in it.
const CLONE: Rules = &[&[without(
    0,
    (CLONE_NEWNS
        | CLONE_NEWCGROUP
        | CLONE_NEWUTS
        | CLONE_NEWIPC
        | CLONE_NEWUSER
        | CLONE_NEWPID
        | CLONE_NEWNET) as u32,
)]];

/// `prctl`: what programs set for themselves and their children. Not who may inspect the process
/// (`PR_SET_PTRACER`), nor its memory's layout (`PR_SET_MM`).
const PRCTL: Rules = &[
    &[is(0, PR_SET_NAME as u32)],
    &[is(0, PR_GET_NAME as u32)],
    &[is(0, PR_GET_DUMPABLE as u32)],
    &[is(0, PR_SET_DUMPABLE as u32)],
    &[is(0, PR_GET_PDEATHSIG as u32)],
    &[is(0, PR_SET_PDEATHSIG as u32)],
    &[is(0, PR_GET_CHILD_SUBREAPER as u32)],
    &[is(0, PR_SET_CHILD_SUBREAPER as u32)],
    &[is(0, PR_GET_SECCOMP as u32)],
    &[is(0, PR_SET_SECCOMP as u32)],
    &[is(0, PR_GET_NO_NEW_PRIVS as u32)],
    &[is(0, PR_SET_NO_NEW_PRIVS as u32)],
    &[is(0, PR_GET_TIMERSLACK as u32)],
    &[is(0, PR_SET_TIMERSLACK as u32)],
    &[is(0, PR_GET_THP_DISABLE as u32)],
    &[is(0, PR_SET_THP_DISABLE as u32)],
    &[is(0, PR_GET_KEEPCAPS as u32)],
    &[is(0, PR_GET_SECUREBITS as u32)],
    &[is(0, PR_CAPBSET_READ as u32)],
    &[is(0, PR_CAP_AMBIENT as u32)],
    // PR_SET_VMA (linux/prctl.h), "VMA" in ASCII letters: the name of a mapping.
    &[is(0, 0x5356_4d41)],
];

/// Shared anonymous memory is not counted by the limit for data; as for evaluations.
const MMAP: Rules = super::memory::MMAP;

/// Its own priority can only get worse.
#[allow(clippy::unnecessary_cast)] // with glibc; with musl it is signed
const PRIORITY: Rules = &[&[is(0, PRIO_PROCESS as u32), is(1, 0)]];

/// Filters without a listener: once the host's is gone, which is so while the keeper ends everything
/// after it, a listener of the command's own would permit the calls that the host's decides about.
const SECCOMP: Rules = &[&[without(1, SECCOMP_FILTER_FLAG_NEW_LISTENER as u32)]];

/// `fcntl`: not `F_SETLEASE`, `F_NOTIFY` and `F_SETDELEG`, which watch and hold up others' use of a
/// file that may only be read; and not `F_SET_RW_HINT`, which changes where data of such a file go.
const FCNTL: Rules = &[
    &[at_most(1, F_SETLEASE as u32 - 1)],
    &[is(1, F_GETLEASE as u32)],
    // F_DUPFD_QUERY 1027 to F_GET_RW_HINT 1035.
    &[at_least(1, F_NOTIFY as u32 + 1), at_most(1, 1035)],
];
/// The same without those that have signals sent to any process: `F_SETOWN` 8, `F_SETSIG` 10,
/// `F_SETOWN_EX` 15 and `O_ASYNC`.
const FCNTL_WITHOUT_SIGNALS: Rules = &[
    &[at_most(1, F_GETFL as u32)],
    &[is(1, F_SETFL as u32), without(2, O_ASYNC as u32)],
    &[at_least(1, F_GETLK as u32), at_most(1, F_SETLKW as u32)],
    &[is(1, F_GETOWN as u32)],
    &[at_least(1, 16), at_most(1, F_SETLEASE as u32 - 1)],
    &[is(1, F_GETLEASE as u32)],
    &[at_least(1, F_NOTIFY as u32 + 1), at_most(1, 1035)],
];

/// Options of sockets in the network of the host: not those by which the kernel gives a Unix socket a name
/// when it sends (`unix_autobind` in net/unix/af_unix.c), `SO_PASSCRED` and `SO_PASSPIDFD` 76.
const SHARED_OPTIONS: Rules = &[
    &[is_not(1, SOL_SOCKET as u32)],
    &[is_not(2, SO_PASSCRED as u32), is_not(2, 76)],
];

/// On every architecture.
pub(super) const CALLS: &[Call] = calls! {
    SYS_clone: AllowIf(Counted(CLONE), Told(Process)), "processes and threads, in the same namespaces";
    SYS_execve: Allow, "programs are started";
    SYS_execveat: Allow, "programs are started";
    SYS_setpgid: Allow, "shells: jobs";
    SYS_setsid: Allow, "programs that detach themselves; they end with the command all the same";
    SYS_getpgid: Allow, "shells: jobs";
    SYS_getsid: Allow, "shells: jobs";
    SYS_getpriority: Allow, "nice";
    SYS_sched_getaffinity: Allow, "threads by their ids (pthread_getattr_np() of glibc); only facts";
    SYS_sched_getparam: Allow, "as sched_getaffinity";
    SYS_sched_getscheduler: Allow, "as sched_getaffinity";
    SYS_sched_setaffinity: AllowIf(Ipc, Quietly), "taskset, runtimes; in namespaces of its own only its threads are there";
    SYS_setpriority: AllowIf(Args(PRIORITY), Quietly), "nice";
    SYS_setuid: Allow, "programs that make sure of their user; without privileges there is no other";
    SYS_setgid: Allow, "as setuid";
    SYS_setreuid: Allow, "as setuid";
    SYS_setregid: Allow, "as setuid";
    SYS_setresuid: Allow, "as setuid";
    SYS_setresgid: Allow, "as setuid";
    SYS_setfsuid: Allow, "as setuid";
    SYS_setfsgid: Allow, "as setuid";
    SYS_setgroups: Allow, "as setuid: the kernel refuses it";
    SYS_capset: Allow, "programs that drop what they do not have";
    SYS_prctl: AllowIf(Args(PRCTL), Quietly), "names, death signals, subreapers, a filter of its own";
    SYS_seccomp: AllowIf(Args(SECCOMP), Quietly), "programs that confine themselves further; the strictest filter wins";
    SYS_landlock_create_ruleset: Allow, "as seccomp";
    SYS_landlock_add_rule: Allow, "as seccomp";
    SYS_landlock_restrict_self: Allow, "as seccomp";
    SYS_kill: AllowIf(Signals, Told(Signal(0, 1))), "shells, supervisors; only the command's own processes are there";
    SYS_tkill: AllowIf(Signals, Told(Signal(0, 1))), "as kill";
    SYS_tgkill: AllowIf(Signals, Told(Signal(0, 2))), "abort(), raise(), threads";
    SYS_rt_sigqueueinfo: AllowIf(Signals, Told(Signal(0, 1))), "as kill";
    SYS_rt_tgsigqueueinfo: AllowIf(Signals, Told(Signal(0, 2))), "as kill";
    SYS_pidfd_open: AllowIf(Signals, AsAbsent), "waiting for a process; only the command's own are there";
    SYS_pidfd_send_signal: AllowIf(Signals, AsAbsent), "as kill";
    SYS_ioctl: AllowIf(Requests { always: requests::OF_COMMANDS, signals: requests::WITH_SIGNALS, network: requests::WITH_NETWORK }, AsUnknown), "terminals, pipes, sockets, facts about files";
    SYS_fcntl: AllowIf(BySignals { with: FCNTL, without: FCNTL_WITHOUT_SIGNALS }, Quietly), "locks, owners of descriptors, sizes of pipes; signals reach only the command";
    SYS_close_range: Allow, "programs that tidy up";
    SYS_linkat: Allow, "ln, cp, package managers: in what the command may write";
    SYS_symlinkat: Allow, "as linkat";
    SYS_fadvise64: Allow, "cp, tar";
    SYS_inotify_init1: AllowIf(Metadata, Quietly), "watchers; a private root shows only what may be read";
    SYS_inotify_add_watch: AllowIf(Metadata, Quietly), "as inotify_init1";
    SYS_inotify_rm_watch: AllowIf(Metadata, Quietly), "as inotify_init1";
    SYS_splice: Refuse(AsAbsent), "moves pages between descriptors: a large attack surface; programs copy instead";
    SYS_tee: Refuse(AsAbsent), "as splice";
    SYS_vmsplice: Refuse(AsAbsent), "as splice";
    SYS_io_uring_setup: Refuse(AsAbsent), "operations that no filter sees; libraries probe for it";
    SYS_mmap: AllowIf(UncountedMemoryOr(MMAP), Quietly), "memory and files";
    SYS_memfd_create: AllowIf(UncountedMemory, AsAbsent), "memory that the limit does not count; programs take a file instead";
    SYS_shmget: AllowIf(UncountedMemory, Quietly), "in the command's own IPC namespace";
    SYS_shmat: AllowIf(UncountedMemory, Quietly), "as shmget";
    SYS_shmctl: AllowIf(UncountedMemory, Quietly), "as shmget";
    SYS_shmdt: AllowIf(UncountedMemory, Quietly), "as shmget";
    SYS_semget: AllowIf(Ipc, Quietly), "in the command's own IPC namespace";
    SYS_semop: AllowIf(Ipc, Quietly), "as semget";
    SYS_semtimedop: AllowIf(Ipc, Quietly), "as semget";
    SYS_semctl: AllowIf(Ipc, Quietly), "as semget";
    SYS_msgget: AllowIf(Ipc, Quietly), "as semget";
    SYS_msgsnd: AllowIf(Ipc, Quietly), "as semget";
    SYS_msgrcv: AllowIf(Ipc, Quietly), "as semget";
    SYS_msgctl: AllowIf(Ipc, Quietly), "as semget";
    SYS_bind: AllowIf(Binding(AS_LONG_AS_INTERNET), Told(Bind)), "servers for tests, in the command's own network or an open one";
    SYS_listen: AllowIf(Network, Told(Listen)), "as bind";
    SYS_accept: AllowIf(Network, Told(Listen)), "as bind";
    SYS_accept4: AllowIf(Network, Told(Listen)), "as bind";
    SYS_setsockopt: AllowIf(Options { shared: SHARED_OPTIONS, closed: super::network::SET_OPTIONS }, Quietly), "servers and clients";
    SYS_getsockopt: AllowIf(NetworkOr(super::network::GET_OPTIONS), Quietly), "servers and clients";
};

/// The calls of x86-64 that newer architectures never had.
#[cfg(target_arch = "x86_64")]
pub(super) const LEGACY: &[Call] = calls! {
    SYS_arch_prctl: Allow, "the loader: thread-local storage";
    SYS_fork: AllowIf(Counted(&[&[]]), Told(Process)), "as clone";
    SYS_vfork: AllowIf(Counted(&[&[]]), Told(Process)), "as clone";
    SYS_link: Allow, "as linkat";
    SYS_symlink: Allow, "as linkat";
    SYS_inotify_init: AllowIf(Metadata, Quietly), "as inotify_init1";
};
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const LEGACY: &[Call] = &[];
