#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;
use crate::seccomp::call::{Answer, When};

#[test]
fn no_call_has_two_lines() {
    let mut seen = BTreeSet::new();
    for call in all() {
        assert!(seen.insert(call.number), "{} has two lines", call.name());
        assert!(
            (0..1024).contains(&call.number),
            "{} is {}",
            call.name(),
            call.number
        );
    }
}

#[test]
fn every_line_has_a_reason() {
    for call in all() {
        assert!(call.why.len() > 5, "{}: {}", call.name(), call.why);
        assert!(!call.name().starts_with("SYS_") && !call.name().is_empty());
    }
}

#[test]
fn what_is_dangerous_is_permitted_under_no_condition() {
    const NEVER: &[&str] = &[
        "execve",
        "execveat",
        "fork",
        "vfork",
        "clone3",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "process_madvise",
        "process_mrelease",
        "pidfd_open",
        "pidfd_getfd",
        "pidfd_send_signal",
        "kcmp",
        "bind",
        "listen",
        "accept",
        "accept4",
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "open_tree",
        "open_tree_attr",
        "move_mount",
        "mount_setattr",
        "fsopen",
        "fsconfig",
        "fsmount",
        "fspick",
        "unshare",
        "setns",
        "bpf",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "perf_event_open",
        "add_key",
        "request_key",
        "keyctl",
        "userfaultfd",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "kexec_file_load",
        "reboot",
        "swapon",
        "swapoff",
        "acct",
        "quotactl",
        "quotactl_fd",
        "settimeofday",
        "clock_settime",
        "adjtimex",
        "clock_adjtime",
        "sethostname",
        "setdomainname",
        "iopl",
        "ioperm",
        "modify_ldt",
        "name_to_handle_at",
        "open_by_handle_at",
        "fanotify_init",
        "fanotify_mark",
        "inotify_init",
        "inotify_init1",
        "inotify_add_watch",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "splice",
        "tee",
        "vmsplice",
        "memfd_create",
        "memfd_secret",
        "shmget",
        "shmat",
        "semget",
        "msgget",
        "mq_open",
        "setuid",
        "setgid",
        "setreuid",
        "setregid",
        "setresuid",
        "setresgid",
        "setfsuid",
        "setfsgid",
        "setgroups",
        "capset",
        "setsid",
        "setpgid",
        "setpriority",
        "sched_setaffinity",
        "sched_setscheduler",
        "sched_setparam",
        "sched_setattr",
        "ioprio_set",
        "seccomp",
        "landlock_create_ruleset",
        "landlock_restrict_self",
        "openat2",
        "syslog",
        "mlockall",
        "move_pages",
        "migrate_pages",
        "mbind",
        "set_mempolicy",
        "get_robust_list",
        "io_setup",
        "io_submit",
        "sync",
        "syncfs",
        "remap_file_pages",
    ];
    for call in all() {
        if NEVER.contains(&call.name()) {
            assert!(
                matches!(call.answer, Answer::Refuse(_)),
                "{} is permitted",
                call.name()
            );
        }
    }
    let known: BTreeSet<_> = all().map(Call::name).collect();
    for name in NEVER {
        let only_x86 = [
            "fork",
            "vfork",
            "iopl",
            "ioperm",
            "modify_ldt",
            "link",
            "symlink",
            "inotify_init",
        ];
        assert!(
            known.contains(name) || cfg!(not(target_arch = "x86_64")) && only_x86.contains(name),
            "{name} has no line: a mistake in this list?"
        );
    }
}

#[test]
fn what_reaches_others_by_an_argument_is_permitted_under_a_condition_only() {
    const CONDITION: &[&str] = &[
        "clone",
        "socket",
        "connect",
        "socketpair",
        "sendto",
        "sendmsg",
        "sendmmsg",
        "setsockopt",
        "getsockopt",
        "prctl",
        "ioctl",
        "fcntl",
        "kill",
        "tkill",
        "tgkill",
        "rt_sigqueueinfo",
        "rt_tgsigqueueinfo",
        "prlimit64",
        "mmap",
        "madvise",
        "futex",
        "close_range",
        "fadvise64",
        "preadv2",
        "pwritev2",
        "mknodat",
        "openat",
        "personality",
        "sched_getaffinity",
        "getpgid",
        "getsid",
        "getpriority",
    ];
    for name in CONDITION {
        let call = all().find(|call| call.name() == *name).unwrap();
        assert!(
            matches!(call.answer, Answer::AllowIf(_, _)),
            "{name} has no condition"
        );
    }
}

#[test]
fn what_changes_metadata_depends_on_the_policy() {
    for call in files::METADATA {
        assert!(
            matches!(
                call.answer,
                Answer::AllowIf(When::Metadata | When::MetadataAnd(_) | When::Attributes, _)
                    | Answer::Refuse(_)
            ),
            "{}",
            call.name()
        );
    }
}
