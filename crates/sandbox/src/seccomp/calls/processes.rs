//! Processes and threads: a process may make threads, but no processes, and may query or reach only
//! itself.

use nix::libc::*;

use crate::seccomp::call::Answer::{Allow, AllowIf, Refuse};
use crate::seccomp::call::Kind::{Execute, Inspect, Kernel, Process};
use crate::seccomp::call::Refuse::{AsAbsent, Quietly, Told};
use crate::seccomp::call::When::{Args, Counted, OwnOrZero, OwnOrZeroAnd};
use crate::seccomp::call::{Call, Rules, at_least, at_most, bits, calls, is, null};
use crate::syscall_numbers::{SYS_futex_requeue, SYS_futex_wait, SYS_futex_wake};

/// The flags that both C libraries pass to make a thread (glibc `create_thread`, musl
/// `pthread_create`).
const THREAD: u32 =
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM) as u32;
/// Additional permitted flags: where ids are stored, and musl's `CLONE_DETACHED`, a no-op.
const BESIDES: u32 = (CLONE_SETTLS
    | CLONE_PARENT_SETTID
    | CLONE_CHILD_SETTID
    | CLONE_CHILD_CLEARTID
    | CLONE_DETACHED) as u32;
/// Permits none of the other flags: namespaces, `CLONE_VFORK`, `CLONE_PTRACE` and so on.
const CLONE: Rules = &[&[bits(0, !BESIDES, THREAD)]];

/// `PR_SET_VMA` (linux/prctl.h), "VMA" in ASCII letters: the name of a mapping.
const PR_SET_VMA: u32 = 0x5356_4d41;

/// `prctl`: other options change the process's credentials, who may inspect it or what happens to
/// its children.
const PRCTL: Rules = &[
    &[is(0, PR_SET_NAME as u32)],
    &[is(0, PR_GET_NAME as u32)],
    &[is(0, PR_GET_DUMPABLE as u32)],
    // Only to 0.
    &[is(0, PR_SET_DUMPABLE as u32), is(1, 0)],
    &[is(0, PR_GET_PDEATHSIG as u32)],
    &[is(0, PR_GET_SECCOMP as u32)],
    &[is(0, PR_GET_NO_NEW_PRIVS as u32)],
    &[is(0, PR_SET_NO_NEW_PRIVS as u32)],
    &[is(0, PR_GET_TIMERSLACK as u32)],
    &[is(0, PR_SET_TIMERSLACK as u32)],
    &[is(0, PR_GET_THP_DISABLE as u32)],
    &[is(0, PR_CAPBSET_READ as u32)],
    &[is(0, PR_SET_VMA)],
];

/// `FUTEX_PRIVATE_FLAG` (futex(2)): the futex is not shared with other processes.
const PRIVATE: u32 = FUTEX_PRIVATE_FLAG as u32;
/// Ignores the clock flag of `FUTEX_WAIT` and `FUTEX_WAIT_BITSET`.
const NO_CLOCK: u32 = !(FUTEX_CLOCK_REALTIME as u32);

/// `futex`: all operations within the process; in memory shared with others, only waiting and
/// waking. `FUTEX_REQUEUE` could move other processes' waiters to a futex that is never woken, and
/// the kernel requires no write access for that.
const FUTEX: Rules = &[
    &[bits(1, PRIVATE, PRIVATE)],
    &[bits(1, NO_CLOCK, FUTEX_WAIT as u32)],
    &[is(1, FUTEX_WAKE as u32)],
    &[bits(1, NO_CLOCK, FUTEX_WAIT_BITSET as u32)],
    &[is(1, FUTEX_WAKE_BITSET as u32)],
];

/// All limits except that for core files, which is 1: with 0, the kernel would pipe the memory of a
/// crashing process to the machine's core dump handler, if there is one.
#[allow(clippy::unnecessary_cast)] // with glibc; with musl it is signed
const CORE: u32 = RLIMIT_CORE as u32;
const SETRLIMIT: Rules = &[&[at_most(0, CORE - 1)], &[at_least(0, CORE + 1)]];
/// The same, and querying that limit.
const PRLIMIT: Rules = &[
    &[at_most(1, CORE - 1)],
    &[at_least(1, CORE + 1)],
    &[is(1, CORE), null(2)],
];

/// On every architecture.
pub(super) const CALLS: &[Call] = calls! {
    SYS_clone: AllowIf(Counted(CLONE), Told(Process)), "threads up to a limit; no processes";
    SYS_clone3: Refuse(AsAbsent), "its flags are in memory, which a filter cannot read; C libraries fall back to clone";
    SYS_execve: Refuse(Told(Execute(0))), "no program is started";
    SYS_execveat: Refuse(Told(Execute(1))), "no program is started";
    SYS_exit: Allow, "the end of a thread";
    SYS_exit_group: Allow, "the end of the process";
    SYS_wait4: Allow, "pcntl_waitpid(): there is nothing to wait for";
    SYS_waitid: Allow, "pcntl_waitid(): there is nothing to wait for";
    SYS_set_tid_address: Allow, "threads";
    SYS_set_robust_list: Allow, "threads";
    SYS_rseq: Allow, "threads: without it, glibc ends the process";
    SYS_futex: AllowIf(Args(FUTEX), Quietly), "threads";
    SYS_futex_waitv: Refuse(AsAbsent), "a newer form that libraries probe for";
    SYS_futex_wake: Refuse(AsAbsent), "a newer form that libraries probe for";
    SYS_futex_wait: Refuse(AsAbsent), "a newer form that libraries probe for";
    SYS_futex_requeue: Refuse(AsAbsent), "a newer form that libraries probe for";
    SYS_sched_yield: Allow, "threads";
    SYS_sched_getaffinity: AllowIf(OwnOrZero(0), Quietly), "how many processors there are";
    SYS_sched_getparam: AllowIf(OwnOrZero(0), Quietly), "threads";
    SYS_sched_getscheduler: AllowIf(OwnOrZero(0), Quietly), "threads";
    SYS_getpid: Allow, "getmypid()";
    SYS_getppid: Allow, "posix_getppid()";
    SYS_gettid: Allow, "threads";
    SYS_getuid: Allow, "posix_getuid()";
    SYS_geteuid: Allow, "posix_geteuid()";
    SYS_getgid: Allow, "posix_getgid()";
    SYS_getegid: Allow, "posix_getegid()";
    SYS_getresuid: Allow, "C libraries";
    SYS_getresgid: Allow, "C libraries";
    SYS_getgroups: Allow, "posix_getgroups()";
    SYS_getpgid: AllowIf(OwnOrZero(0), Quietly), "posix_getpgid() of itself";
    SYS_getsid: AllowIf(OwnOrZero(0), Quietly), "posix_getsid() of itself";
    SYS_getpriority: AllowIf(OwnOrZero(1), Quietly), "pcntl_getpriority() of itself";
    SYS_getrusage: Allow, "getrusage()";
    SYS_prlimit64: AllowIf(OwnOrZeroAnd(0, PRLIMIT), Quietly), "posix_getrlimit() of itself; limits can only be lowered";
    SYS_getrlimit: Allow, "older C libraries";
    SYS_setrlimit: AllowIf(Args(SETRLIMIT), Quietly), "older C libraries; limits can only be lowered";
    SYS_capget: Allow, "C libraries: what the process may do";
    SYS_prctl: AllowIf(Args(PRCTL), Quietly), "names of threads and mappings";
    SYS_personality: AllowIf(Args(&[&[is(0, u32::MAX)]]), Told(Kernel)), "query only: older personalities map memory at address 0 and make all of it executable";
    SYS_setpgid: Refuse(Quietly), "the process stays in its own group";
    SYS_setsid: Refuse(Quietly), "the process stays in its own session";
    SYS_setpriority: Refuse(Quietly), "affects the processor time of others";
    SYS_sched_setparam: Refuse(Quietly), "affects the processor time of others";
    SYS_sched_setscheduler: Refuse(Quietly), "affects the processor time of others";
    SYS_sched_setattr: Refuse(Quietly), "affects the processor time of others";
    SYS_sched_setaffinity: Refuse(Quietly), "affects the processor time of others";
    SYS_ioprio_set: Refuse(Quietly), "affects the disk access of others";
    SYS_setuid: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_setgid: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_setreuid: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_setregid: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_setresuid: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_setresgid: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_setfsuid: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_setfsgid: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_setgroups: Refuse(Told(Kernel)), "the process keeps its user and groups";
    SYS_capset: Refuse(Told(Kernel)), "there are no privileges to acquire";
    SYS_ptrace: Refuse(Told(Inspect)), "reaches into other processes";
    SYS_process_vm_readv: Refuse(Told(Inspect)), "reads the memory of other processes";
    SYS_process_vm_writev: Refuse(Told(Inspect)), "writes the memory of other processes";
    SYS_process_madvise: Refuse(Told(Inspect)), "reaches into other processes";
    SYS_process_mrelease: Refuse(Told(Inspect)), "reaches into other processes";
    SYS_pidfd_open: Refuse(AsAbsent), "C libraries probe for it; a handle to another process";
    SYS_pidfd_getfd: Refuse(Told(Inspect)), "takes descriptors of other processes";
    SYS_kcmp: Refuse(Told(Inspect)), "compares other processes";
    SYS_get_robust_list: Refuse(Quietly), "reveals addresses in other processes";
};

/// The calls of x86-64 that newer architectures never had.
#[cfg(target_arch = "x86_64")]
pub(super) const LEGACY: &[Call] = calls! {
    SYS_fork: Refuse(Told(Process)), "no process is made";
    SYS_vfork: Refuse(Told(Process)), "no process is made";
    SYS_getpgrp: Allow, "posix_getpgrp()";
    SYS_modify_ldt: Refuse(Quietly), "memory segments of 16-bit programs";
    SYS_uselib: Refuse(Quietly), "loads libraries of an old format";
};
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const LEGACY: &[Call] = &[];
