//! Calls that no policy permits: the table has a line for each that refuses it.

/// Those that the kernel itself permits only to root: lifting a guard gives them to no other user.
#[rustfmt::skip]
pub const ROOT_ONLY_CALLS: &[&str] = &[
    "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
    "mount_setattr", "fsopen", "fsconfig", "fsmount", "fspick", "setns", "init_module",
    "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon",
    "swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "adjtimex",
    "clock_adjtime", "sethostname", "setdomainname", "iopl", "ioperm", "open_by_handle_at",
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid",
    "setgroups", "capset",
];

/// The others.
#[cfg(test)]
#[rustfmt::skip]
pub(super) const NEVER: &[&str] = &[
    "execve", "execveat", "fork", "vfork", "clone3", "ptrace", "process_vm_readv",
    "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_open", "pidfd_getfd",
    "pidfd_send_signal", "kcmp", "bind", "listen", "accept", "accept4", "unshare", "bpf",
    "io_uring_setup", "io_uring_enter", "io_uring_register", "perf_event_open", "add_key",
    "request_key", "keyctl", "userfaultfd", "modify_ldt", "name_to_handle_at", "fanotify_init",
    "fanotify_mark", "inotify_init", "inotify_init1", "inotify_add_watch", "link", "linkat",
    "symlink", "symlinkat", "splice", "tee", "vmsplice", "memfd_create", "memfd_secret", "shmget",
    "shmat", "semget", "msgget", "mq_open", "setsid", "setpgid", "setpriority",
    "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "ioprio_set",
    "seccomp", "landlock_create_ruleset", "landlock_restrict_self", "openat2", "syslog",
    "mlockall", "move_pages", "migrate_pages", "mbind", "set_mempolicy", "get_robust_list",
    "io_setup", "io_submit", "sync", "syncfs", "remap_file_pages",
];
