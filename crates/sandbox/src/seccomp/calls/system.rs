//! Time, randomness and facts about the machine; and calls that indicate an attack on the machine.

use nix::libc::*;

use crate::seccomp::call::Answer::{Allow, Refuse};
use crate::seccomp::call::Call;
use crate::seccomp::call::Kind::Kernel;
use crate::seccomp::call::Refuse::{AsAbsent, Quietly, Told, ToldAsAbsent};
use crate::seccomp::call::calls;
use crate::syscall_numbers::{
    SYS_listmount, SYS_lsm_get_self_attr, SYS_lsm_list_modules, SYS_lsm_set_self_attr,
    SYS_open_tree_attr, SYS_statmount,
};

/// On every architecture.
pub(super) const CALLS: &[Call] = calls! {
    SYS_clock_gettime: Allow, "microtime(), hrtime()";
    SYS_clock_getres: Allow, "C libraries";
    SYS_clock_nanosleep: Allow, "usleep()";
    SYS_nanosleep: Allow, "usleep() of older C libraries";
    SYS_gettimeofday: Allow, "microtime() of older C libraries";
    SYS_times: Allow, "posix_times()";
    SYS_getrandom: Allow, "random_bytes()";
    SYS_uname: Allow, "php_uname(), gethostname()";
    SYS_sysinfo: Allow, "C libraries: how much memory there is";
    SYS_getcpu: Allow, "C libraries with threads";
    SYS_statmount: Refuse(AsAbsent), "the run must not learn the mounts";
    SYS_listmount: Refuse(AsAbsent), "the run must not learn the mounts";
    SYS_lsm_get_self_attr: Refuse(AsAbsent), "C libraries probe for it";
    SYS_lsm_set_self_attr: Refuse(AsAbsent), "the run must not change its guards";
    SYS_lsm_list_modules: Refuse(AsAbsent), "C libraries probe for it";
    SYS_seccomp: Refuse(Quietly), "the run must not change its guards";
    SYS_landlock_create_ruleset: Refuse(AsAbsent), "the run must not change its guards";
    SYS_landlock_add_rule: Refuse(AsAbsent), "the run must not change its guards";
    SYS_landlock_restrict_self: Refuse(AsAbsent), "the run must not change its guards";
    SYS_semget: Refuse(Quietly), "shared with every process of the user, and outlives the run";
    SYS_semop: Refuse(Quietly), "as semget";
    SYS_semtimedop: Refuse(Quietly), "as semget";
    SYS_semctl: Refuse(Quietly), "as semget";
    SYS_msgget: Refuse(Quietly), "shared with every process of the user, and outlives the run";
    SYS_msgsnd: Refuse(Quietly), "as msgget";
    SYS_msgrcv: Refuse(Quietly), "as msgget";
    SYS_msgctl: Refuse(Quietly), "as msgget";
    SYS_mq_open: Refuse(Quietly), "shared with every process, and outlives the run";
    SYS_mq_unlink: Refuse(Quietly), "as mq_open";
    SYS_syslog: Refuse(Quietly), "the kernel's own messages";
    SYS_vhangup: Refuse(Quietly), "hangs up a terminal";
};

/// Calls that indicate an attack on the machine: privileged, or a large part of the kernel.
pub(super) const ATTEMPTS: &[Call] = calls! {
    SYS_mount: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_umount2: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_pivot_root: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_chroot: Refuse(Told(Kernel)), "another root";
    SYS_open_tree: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_open_tree_attr: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_move_mount: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_mount_setattr: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_fsopen: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_fsconfig: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_fsmount: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_fspick: Refuse(Told(Kernel)), "changes what is mounted";
    SYS_unshare: Refuse(Told(Kernel)), "a namespace gives privileges within it";
    SYS_setns: Refuse(Told(Kernel)), "enters a namespace";
    SYS_bpf: Refuse(Told(Kernel)), "programs in the kernel";
    SYS_io_uring_setup: Refuse(ToldAsAbsent(Kernel)), "operations that no filter sees; libraries probe for it";
    SYS_io_uring_enter: Refuse(AsAbsent), "needs io_uring_setup";
    SYS_io_uring_register: Refuse(AsAbsent), "needs io_uring_setup";
    SYS_perf_event_open: Refuse(Told(Kernel)), "watches other processes and the kernel";
    SYS_add_key: Refuse(Told(Kernel)), "keys of the user, shared with all of the user's processes";
    SYS_request_key: Refuse(Told(Kernel)), "as add_key";
    SYS_keyctl: Refuse(Told(Kernel)), "as add_key";
    SYS_init_module: Refuse(Told(Kernel)), "code in the kernel";
    SYS_finit_module: Refuse(Told(Kernel)), "code in the kernel";
    SYS_delete_module: Refuse(Told(Kernel)), "code in the kernel";
    SYS_kexec_load: Refuse(Told(Kernel)), "another kernel";
    SYS_kexec_file_load: Refuse(Told(Kernel)), "another kernel";
    SYS_reboot: Refuse(Told(Kernel)), "the end of the machine";
    SYS_swapon: Refuse(Told(Kernel)), "the machine's memory";
    SYS_swapoff: Refuse(Told(Kernel)), "the machine's memory";
    SYS_acct: Refuse(Told(Kernel)), "the machine's accounting";
    SYS_quotactl: Refuse(Told(Kernel)), "the machine's quotas";
    SYS_quotactl_fd: Refuse(Told(Kernel)), "the machine's quotas";
    SYS_settimeofday: Refuse(Told(Kernel)), "the machine's clock";
    SYS_clock_settime: Refuse(Told(Kernel)), "the machine's clock";
    SYS_adjtimex: Refuse(Told(Kernel)), "the machine's clock";
    SYS_clock_adjtime: Refuse(Told(Kernel)), "the machine's clock";
    SYS_sethostname: Refuse(Told(Kernel)), "the machine's name";
    SYS_setdomainname: Refuse(Told(Kernel)), "the machine's name";
};

/// The calls of x86-64 that newer architectures never had.
#[cfg(target_arch = "x86_64")]
pub(super) const LEGACY: &[Call] = calls! {
    SYS_time: Allow, "time() of older C libraries";
    SYS_iopl: Refuse(Told(Kernel)), "the machine's devices";
    SYS_ioperm: Refuse(Told(Kernel)), "the machine's devices";
    SYS_ustat: Refuse(Quietly), "facts about file systems, by device";
    SYS_sysfs: Refuse(Quietly), "facts about the kernel";
};
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const LEGACY: &[Call] = &[];
