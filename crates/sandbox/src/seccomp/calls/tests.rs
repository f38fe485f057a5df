#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;
use crate::seccomp::call::{Answer, When};
use crate::seccomp::never::{NEVER, ROOT_ONLY_CALLS};

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

fn never() -> impl Iterator<Item = &'static str> {
    ROOT_ONLY_CALLS.iter().chain(NEVER).copied()
}

#[test]
fn what_is_dangerous_is_permitted_under_no_condition() {
    for call in all() {
        if never().any(|name| name == call.name()) {
            assert!(
                matches!(call.answer, Answer::Refuse(_)),
                "{} is permitted",
                call.name()
            );
        }
    }
    let known: BTreeSet<_> = all().map(Call::name).collect();
    for name in never() {
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
            known.contains(&name) || cfg!(not(target_arch = "x86_64")) && only_x86.contains(&name),
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

/// Permitted calls that name no path. Those that name one belong in the recorder's table
/// (`record/calls.rs`): otherwise a template would not notice that its files have changed.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const WITHOUT_PATH: &[&str] = &[
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
    "pwritev2", "lseek", "close", "close_range", "dup", "dup3", "fcntl", "flock", "ioctl",
    "fstat", "fstatfs", "getcwd", "fchdir", "getdents64", "ftruncate", "fallocate", "fsync",
    "fdatasync", "sync_file_range", "fadvise64", "readahead", "umask", "fgetxattr", "flistxattr",
    "sendfile", "copy_file_range", "pipe2", "ppoll", "pselect6", "epoll_create1", "epoll_ctl",
    "epoll_pwait", "epoll_pwait2", "eventfd2", "fchmod", "fchown", "fsetxattr", "fremovexattr",
    "getdents", "dup2", "pipe", "poll", "select", "epoll_create", "epoll_wait", "eventfd", "brk",
    "mmap", "munmap", "mremap", "mprotect", "madvise", "msync", "mlock", "munlock", "membarrier",
    "socket", "socketpair", "connect", "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg",
    "recvmmsg", "shutdown", "getsockname", "getpeername", "setsockopt", "getsockopt", "clone",
    "exit", "exit_group", "wait4", "waitid", "set_tid_address", "set_robust_list", "rseq",
    "futex", "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "getpid",
    "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid",
    "getgroups", "getpgid", "getsid", "getpriority", "getrusage", "prlimit64", "getrlimit",
    "setrlimit", "capget", "prctl", "personality", "getpgrp", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait", "sigaltstack",
    "restart_syscall", "signalfd4", "kill", "tkill", "tgkill", "rt_sigqueueinfo",
    "rt_tgsigqueueinfo", "getitimer", "setitimer", "timer_create", "timer_settime",
    "timer_gettime", "timer_getoverrun", "timer_delete", "timerfd_create", "timerfd_settime",
    "timerfd_gettime", "alarm", "pause", "signalfd", "clock_gettime", "clock_getres",
    "clock_nanosleep", "nanosleep", "gettimeofday", "times", "getrandom", "uname", "sysinfo",
    "getcpu", "time",
];

#[cfg(target_arch = "x86_64")]
#[test]
fn what_may_be_made_and_names_a_path_the_recorder_knows() {
    let unknown: Vec<_> = all()
        .filter(|call| !matches!(call.answer, Answer::Refuse(_)))
        .filter(|call| !crate::record::knows(call.number))
        .map(Call::name)
        .filter(|name| !WITHOUT_PATH.contains(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
