//! seccomp alone, against memory that no limit counts: it can be had without it and not with it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::attack::Guarded::Not;
use common::attack::{SECCOMP, attack, c, call, say};
use libc::{ENOSYS, EPERM};

attacks![map_memory];

fn map_memory(_: &str) {
    let map = |flags: i32, protection: i32| {
        let flags = (flags | libc::MAP_ANONYMOUS) as u64;
        call(
            libc::SYS_mmap,
            &[0, 4096, protection as u64, flags, u64::MAX, 0],
        )
    };
    let write = libc::PROT_READ | libc::PROT_WRITE;
    say("private", map(libc::MAP_PRIVATE, write));
    say(
        "executable",
        map(libc::MAP_PRIVATE, write | libc::PROT_EXEC),
    );
    say("shared", map(libc::MAP_SHARED, write));
    say("stack", map(libc::MAP_PRIVATE | libc::MAP_GROWSDOWN, write));
    let name = c("x");
    say(
        "memfd",
        call(libc::SYS_memfd_create, &[name.as_ptr() as u64, 0]),
    );
    let segment = call(libc::SYS_shmget, &[0, 4096, 0o600]);
    say("shmget", segment);
    if let Ok(segment) = u64::try_from(segment) {
        // It would outlive all tests.
        call(libc::SYS_shmctl, &[segment, libc::IPC_RMID as u64, 0]);
    }
}

#[test]
fn memory_that_no_limit_counts_is_not_to_be_had() {
    let attacked = attack("map_memory", SECCOMP, "");
    assert_eq!(attacked.errno("private"), 0);
    assert_eq!(attacked.errno("executable"), 0);
    for refused in ["shared", "stack", "shmget"] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert_eq!(attacked.errno("memfd"), ENOSYS);
    let attacked = attack("map_memory", Not, "");
    for there in ["shared", "stack", "memfd"] {
        assert_eq!(attacked.errno(there), 0, "{there}");
    }
}
