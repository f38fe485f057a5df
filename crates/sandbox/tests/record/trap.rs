//! What only the recording by a trap could leave behind or get wrong.

use std::fs;
use std::path::Path;
use std::ptr::null_mut;

use altair_sandbox::Recorder;
use libc::*;

use crate::signals::blocked;
use crate::support::*;

/// A field of `/proc/<pid>/status` of the calling thread.
fn status(name: &str) -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.split(':').next() == Some(name));
    line.unwrap_or_else(|| panic!("no {name}"))
        .split_whitespace()
        .last()
        .unwrap()
        .to_owned()
}

#[test]
fn neither_the_process_nor_its_forks_keep_the_filter_or_the_thread() {
    alone_by(By::Trap, |root| {
        let seen = || {
            [
                "Pid",
                "Threads",
                "Seccomp",
                "NoNewPrivs",
                "SigBlk",
                "SigCgt",
            ]
            .map(status)
        };
        let before = seen();
        for _ in 0..100 {
            let mut during = Default::default();
            let record = record(|| {
                during = ["Threads", "Seccomp"].map(status);
                assert_ne!(unsafe { gettid() }, unsafe { getpid() });
                drop(fs::metadata(root));
            });
            assert_eq!(during, ["2", "2"]);
            assert!(look_at(&record, root).is_some());
            assert_eq!(unsafe { gettid() }, unsafe { getpid() });
            // At once: Landlock and templates need a process with one thread.
            assert_eq!(unsafe { unshare(CLONE_THREAD) }, 0);
        }
        assert_eq!(seen(), before);
        let pid = unsafe { fork() };
        if pid == 0 {
            unsafe { _exit((status("Seccomp") != "0").into()) };
        }
        let mut ended = 0;
        assert_eq!(unsafe { waitpid(pid, &raw mut ended, 0) }, pid);
        assert_eq!(ended, 0);
    });
}

#[test]
fn what_a_function_must_preserve_goes_on_with_the_process() {
    alone_by(By::Trap, |_| unsafe {
        let memory = Box::leak(vec![0_u8; 64 << 10].into_boxed_slice());
        let stack = stack_t {
            ss_sp: memory.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: memory.len(),
        };
        let now = || {
            let mut now: stack_t = std::mem::zeroed();
            assert_eq!(sigaltstack(std::ptr::null(), &raw mut now), 0);
            now.ss_sp
        };
        assert_eq!(sigaltstack(&raw const stack, null_mut()), 0);
        let mut one: sigset_t = std::mem::zeroed();
        sigaddset(&raw mut one, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &raw const one, null_mut());
        unsafe extern "C" {
            fn fesetround(mode: c_int) -> c_int;
            fn fegetround() -> c_int;
        }
        // FE_UPWARD.
        let upward = if cfg!(target_arch = "x86_64") {
            0x800
        } else {
            0x40_0000
        };
        let local = std::thread::current().id();
        let recorder = Recorder::begin_by_trap().unwrap();
        assert!(now() == stack.ss_sp && blocked(SIGUSR1) && !blocked(SIGUSR2));
        assert_eq!(std::thread::current().id(), local);
        pthread_sigmask(SIG_UNBLOCK, &raw const one, null_mut());
        sigaddset(&raw mut one, SIGUSR2);
        sigdelset(&raw mut one, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &raw const one, null_mut());
        assert_eq!(fesetround(upward), 0);
        drop(recorder);
        assert!(now() == stack.ss_sp && !blocked(SIGUSR1) && blocked(SIGUSR2));
        assert_eq!(fegetround(), upward);
    });
}

#[test]
fn nothing_installs_a_filter_meanwhile() {
    alone_by(By::Trap, |_| {
        let _recorder = begin().unwrap();
        // A valid call would find a null pointer.
        assert_eq!(sys!(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NO), -1);
        assert_eq!(errno(), EPERM);
    });
}

#[test]
fn it_does_not_begin_where_no_thread_may_be_made() {
    use seccompiler::{SeccompAction, SeccompFilter};
    alone_by(By::Trap, |root| {
        let rules = [(SYS_clone, vec![])].into_iter().collect();
        let refuse = SeccompAction::Errno(EAGAIN as u32);
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch);
        let program: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        for _ in 0..2 {
            let error = Recorder::begin_by_trap().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(EAGAIN));
        }
        assert!(!blocked(SIGUSR1) && fs::metadata(root).is_ok());
    });
}

#[test]
fn a_trap_of_another_filter_refuses_its_call() {
    use seccompiler::{SeccompAction, SeccompFilter};
    alone_by(By::Trap, |root| {
        let rules = [(SYS_getppid, vec![]), (SYS_mkdirat, vec![])];
        let rules = rules.into_iter().collect();
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trap, arch);
        let program: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        let made = root.join("made");
        let record = record(|| {
            assert_eq!(sys!(SYS_getppid), -1);
            assert_eq!(errno(), ENOSYS);
            assert_eq!(sys!(SYS_mkdirat, AT_FDCWD, c(&made).as_ptr(), 0o700), -1);
            assert_eq!(errno(), ENOSYS);
        });
        assert!(!Path::new(&made).exists());
        assert_eq!(record.written, Vec::<Vec<u8>>::new());
    });
}

#[test]
fn a_thread_that_ends_itself_ends_the_process() {
    alone_by(By::Trap, |_| {
        let pid = unsafe { fork() };
        if pid == 0 {
            let _recorder = begin().unwrap();
            sys!(SYS_exit, 3);
        }
        let mut ended = 0;
        assert_eq!(unsafe { waitpid(pid, &raw mut ended, 0) }, pid);
        assert!(WIFEXITED(ended) && WEXITSTATUS(ended) == 127, "{ended:#x}");
    });
}
