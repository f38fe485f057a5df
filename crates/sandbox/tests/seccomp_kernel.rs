//! seccomp alone, against other entries into the kernel and unneeded calls: each attack succeeds
//! without it and fails with it.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

#[cfg(target_arch = "x86_64")]
use altair_sandbox::Status;
use common::attack::Guarded::Not;
use common::attack::{SECCOMP, attack, call, say};
use libc::{ENOSYS, EPERM};

attacks![enter_as_32_bit, enter_as_x32, knock];

fn enter_as_32_bit(_: &str) {
    #[cfg(target_arch = "x86_64")]
    {
        let result: i32;
        // SAFETY: getpid (20) as called by a 32-bit program; it takes no arguments.
        unsafe { std::arch::asm!("int 0x80", inlateout("eax") 20 => result) };
        println!("entered {}", result == std::process::id() as i32);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_32_bit_entry_is_closed() {
    let attacked = attack("enter_as_32_bit", SECCOMP, "");
    assert_eq!(attacked.ended.status, Status::Signalled(libc::SIGSYS));
    assert_eq!(attacked.output(), "");
    // If the kernel has this entry.
    let attacked = attack("enter_as_32_bit", Not, "");
    assert!(
        attacked.output() == "entered true\n"
            || attacked.ended.status == Status::Signalled(libc::SIGSEGV)
    );
}

fn enter_as_x32(_: &str) {
    const X32: i64 = 0x4000_0000;
    say("getpid", call(X32 | libc::SYS_getpid, &[]));
    say("execve", call(X32 | 520, &[]));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_x32_entry_is_closed() {
    let attacked = attack("enter_as_x32", SECCOMP, "");
    assert_eq!(attacked.errno("getpid"), EPERM);
    assert_eq!(attacked.errno("execve"), EPERM);
    assert_ne!(attack("enter_as_x32", Not, "").errno("getpid"), EPERM);
}

/// Makes calls with harmless arguments: if permitted, each fails for another reason.
const KNOCKS: &[(&str, i64, [u64; 4])] = &[
    ("ptrace", libc::SYS_ptrace, [u64::MAX, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [0, 0, 0, 0]),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, [u64::MAX, 0, 0, 0]),
    ("setns", libc::SYS_setns, [u64::MAX, 0, 0, 0]),
    ("unshare", libc::SYS_unshare, [0, 0, 0, 0]),
    ("mount", libc::SYS_mount, [8, 8, 8, 0]),
    ("bpf", libc::SYS_bpf, [u64::MAX, 8, 8, 0]),
    ("perf", libc::SYS_perf_event_open, [8, 0, 0, 0]),
    ("keyctl", libc::SYS_keyctl, [u64::MAX, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [8, 8, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [u64::MAX, 0, 0, 0]),
    ("fanotify", libc::SYS_fanotify_mark, [u64::MAX, 0, 0, 0]),
    ("inotify", libc::SYS_inotify_init1, [0, 0, 0, 0]),
    ("personality", libc::SYS_personality, [0, 0, 0, 0]),
    ("kcmp", libc::SYS_kcmp, [0, 0, 99, 0]),
    ("seccomp", libc::SYS_seccomp, [99, 0, 0, 0]),
    ("semget", libc::SYS_semget, [0, 0, 0, 0]),
    ("splice", libc::SYS_splice, [u64::MAX, 0, u64::MAX, 0]),
    ("setpriority", libc::SYS_setpriority, [99, 0, 0, 0]),
    (
        "sched_setaffinity",
        libc::SYS_sched_setaffinity,
        [0, 0, 0, 0],
    ),
    ("setsid", libc::SYS_setpgid, [0, u64::MAX, 0, 0]),
    ("setuid", libc::SYS_setuid, [u64::MAX, 0, 0, 0]),
    ("sysv_message", libc::SYS_msgget, [1, 0, 0, 0]),
    ("dumpable", libc::SYS_prctl, [4, 1, 0, 0]),
    ("subreaper", libc::SYS_prctl, [36, 0, 0, 0]),
    ("death_signal", libc::SYS_prctl, [1, 99, 0, 0]),
    ("owner", libc::SYS_fcntl, [u64::MAX, 8, 1, 0]),
    ("terminal_keys", libc::SYS_ioctl, [u64::MAX, 0x5412, 0, 0]),
];

fn knock(_: &str) {
    for (name, number, args) in KNOCKS {
        say(name, call(*number, args));
    }
    for (name, number) in [
        ("io_uring", libc::SYS_io_uring_setup),
        ("landlock", libc::SYS_landlock_create_ruleset),
        ("openat2", libc::SYS_openat2),
        ("pidfd_open", libc::SYS_pidfd_open),
    ] {
        say(name, call(number, &[]));
    }
}

#[test]
fn the_rest_of_the_kernel_is_closed() {
    let attacked = attack("knock", SECCOMP, "");
    let free = attack("knock", Not, "");
    for (name, _, _) in KNOCKS {
        assert_eq!(attacked.errno(name), EPERM, "{name}");
        assert_ne!(free.errno(name), EPERM, "{name}");
    }
    for probed in ["io_uring", "landlock", "openat2", "pidfd_open"] {
        assert_eq!(attacked.errno(probed), ENOSYS, "{probed}");
        assert_ne!(free.errno(probed), ENOSYS, "{probed}");
    }
}
