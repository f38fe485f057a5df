//! A host with as few rights as in a container: it may neither copy descriptors nor read memory by
//! the calls for it, and has no rights over other users' processes. And one whose processes can have
//! no listener, since there is another one further out.
#![allow(unsafe_code, dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::{FromRawFd, OwnedFd};

use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

thread_local! {
    static LACKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread lacks the rights.
pub fn is_lacking() -> bool {
    LACKING.get()
}

/// Runs a test on a thread without these rights. Threads and processes that it starts have none
/// either.
pub fn lacking(test: fn()) {
    let thread = std::thread::spawn(move || {
        let inspect = caps::Capability::CAP_SYS_PTRACE;
        for set in [caps::CapSet::Effective, caps::CapSet::Permitted] {
            caps::drop(None, set, inspect).unwrap();
        }
        if caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SETPCAP).unwrap() {
            caps::drop(None, caps::CapSet::Bounding, inspect).unwrap();
        }
        refuse(
            &[libc::SYS_pidfd_getfd, libc::SYS_process_vm_readv],
            libc::EPERM,
        );
        LACKING.set(true);
        test();
    });
    join(thread);
}

/// Runs a test on a thread behind a filter that has a listener, and so do the processes that it
/// starts.
pub fn behind_a_listener(test: fn()) {
    join(std::thread::spawn(move || {
        let _outer = outer_listener();
        LACKING.set(true);
        test();
    }));
}

/// The same where no thread can have a file descriptor table of its own, as before kernel 5.9.
pub fn without_own_tables(test: fn()) {
    join(std::thread::spawn(move || {
        refuse(&[libc::SYS_close_range], libc::ENOSYS);
        let _outer = outer_listener();
        LACKING.set(true);
        test();
    }));
}

/// Lets these calls of the calling thread fail from now on.
fn refuse(calls: &[i64], errno: i32) {
    let calls = calls.iter().map(|call| (*call, Vec::new()));
    let filter = SeccompFilter::new(
        BTreeMap::from_iter(calls),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    apply_filter(&BpfProgram::try_from(filter.unwrap()).unwrap()).unwrap();
}

/// The listener of a filter on the calling thread that asks about a call which nobody makes.
fn outer_listener() -> OwnedFd {
    let instruction = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let mut program = [
        // The number of the call is the first word (linux/seccomp.h).
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            1,
            libc::SYS_vhangup as u32,
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_USER_NOTIF),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    nix::sys::prctl::set_no_new_privs().unwrap();
    // SAFETY: the program outlives the call, which makes a descriptor for us.
    unsafe {
        let listener = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        );
        assert!(listener >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(listener as i32)
    }
}

fn join(thread: std::thread::JoinHandle<()>) {
    if let Err(failed) = thread.join() {
        std::panic::resume_unwind(failed);
    }
}

/// Makes each of these tests twice more: without the rights, and where there can be no listener.
#[macro_export]
macro_rules! also_where_rights_are_lacking {
    ($($test:ident),* $(,)?) => {
        mod where_rights_are_lacking {
            $(#[test]
            fn $test() {
                $crate::common::lacking::lacking(super::$test);
            })*
        }
        mod behind_another_listener {
            $(#[test]
            fn $test() {
                $crate::common::lacking::behind_a_listener(super::$test);
            })*
        }
    };
}
