//! A host with as few rights as in a container: it may neither copy descriptors nor read memory by
//! the calls for it, and has no rights over other users' processes.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::cell::Cell;
use std::collections::BTreeMap;

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
        let calls = [libc::SYS_pidfd_getfd, libc::SYS_process_vm_readv];
        let refused = calls.map(|call| (call, Vec::new()));
        let filter = SeccompFilter::new(
            BTreeMap::from(refused),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM as u32),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        apply_filter(&BpfProgram::try_from(filter.unwrap()).unwrap()).unwrap();
        LACKING.set(true);
        test();
    });
    if let Err(failed) = thread.join() {
        std::panic::resume_unwind(failed);
    }
}

/// Makes each of these tests once more, without the rights.
#[macro_export]
macro_rules! also_where_rights_are_lacking {
    ($($test:ident),* $(,)?) => {
        mod where_rights_are_lacking {
            $(#[test]
            fn $test() {
                $crate::common::lacking::lacking(super::$test);
            })*
        }
    };
}
