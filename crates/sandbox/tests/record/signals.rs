//! Signals and dispatch must not disturb each other.

use std::ffi::{c_int, c_long};
use std::fs;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use altair_sandbox::{Record, Way};
use libc::*;

use crate::support::*;

/// All signals except the one that ends a hanging test.
pub fn full() -> sigset_t {
    unsafe {
        let mut set = std::mem::zeroed();
        sigfillset(&raw mut set);
        sigdelset(&raw mut set, SIGALRM);
        set
    }
}

pub fn blocked(signal: c_int) -> bool {
    unsafe {
        let mut set = std::mem::zeroed();
        pthread_sigmask(SIG_BLOCK, null(), &raw mut set);
        sigismember(&raw const set, signal) == 1
    }
}

/// How often `on_signal` ran, and the path that it looks at.
pub static RAN: AtomicUsize = AtomicUsize::new(0);
pub const LOOKED_AT: Text = c"/altair/seen/by/a/handler".as_ptr();

pub extern "C" fn on_signal(_: c_int) {
    // As every handler has to: who it interrupts may be about to look at it.
    let interrupted = errno();
    assert!(blocked(SIGUSR2));
    sys!(SYS_access, LOOKED_AT, F_OK);
    RAN.fetch_add(1, Ordering::Relaxed);
    nix::errno::Errno::set_raw(interrupted);
}

/// Installs `on_signal` for `signal`, with all others blocked.
pub fn handle(signal: c_int, flags: c_int) {
    unsafe {
        let mut action: sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_mask = full();
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &raw const action, null_mut()), 0);
    }
}

pub fn was_handled(record: &Record) -> bool {
    look_at(record, Path::new("/altair/seen/by/a/handler")).is_some()
}

#[test]
fn a_process_that_blocks_all_signals_goes_on() {
    alone(|root| {
        handle(SIGUSR1, 0);
        let record = record(|| unsafe {
            pthread_sigmask(SIG_SETMASK, &full(), null_mut());
            assert!(fs::symlink_metadata(root).is_ok());
            assert!(blocked(SIGUSR1) && blocked(SIGUSR2) && !blocked(SIGSYS));
            raise(SIGUSR1);
            assert_eq!(RAN.load(Ordering::Relaxed), 0);
            pthread_sigmask(SIG_UNBLOCK, &full(), null_mut());
            assert_eq!(RAN.load(Ordering::Relaxed), 1);
            assert!(!blocked(SIGUSR1) && !blocked(SIGUSR2));
            let mut one: sigset_t = std::mem::zeroed();
            sigaddset(&raw mut one, SIGUSR2);
            pthread_sigmask(SIG_BLOCK, &raw const one, null_mut());
            assert!(blocked(SIGUSR2) && !blocked(SIGUSR1));
            // The kernel must refuse bad addresses itself.
            assert_eq!(sys!(SYS_rt_sigprocmask, SIG_BLOCK, 8, NO, 8_usize), -1);
            assert_eq!(errno(), EFAULT);
        });
        assert_eq!(look(&record, root).way, Way::Passed);
        assert!(was_handled(&record));
    });
}

#[test]
fn a_handler_that_blocks_all_signals_goes_on() {
    alone(|root| {
        unsafe { pthread_sigmask(SIG_BLOCK, &full(), null_mut()) };
        assert!(blocked(SIGSYS));
        for during in [false, true] {
            RAN.store(0, Ordering::Relaxed);
            handle(SIGUSR1, 0);
            let record = record(|| unsafe {
                pthread_sigmask(SIG_UNBLOCK, &full(), null_mut());
                if during {
                    handle(SIGUSR1, 0);
                }
                for _ in 0..3 {
                    raise(SIGUSR1);
                }
                assert!(!blocked(SIGUSR1) && !blocked(SIGUSR2));
                assert!(fs::symlink_metadata(root).is_ok());
            });
            assert_eq!(RAN.load(Ordering::Relaxed), 3);
            assert!(was_handled(&record) && look_at(&record, root).is_some());
        }
    });
}

#[test]
fn a_signal_may_come_at_any_moment() {
    alone(|root| {
        fs::write(root.join("file"), "content").unwrap();
        handle(SIGPROF, SA_RESTART);
        let every = |microseconds| {
            let time = timeval {
                tv_sec: 0,
                tv_usec: microseconds,
            };
            let timer = itimerval {
                it_interval: time,
                it_value: time,
            };
            assert_eq!(
                unsafe { setitimer(ITIMER_PROF, &raw const timer, null_mut()) },
                0
            );
        };
        let record = record(|| {
            every(100);
            while RAN.load(Ordering::Relaxed) < 50 {
                assert_eq!(fs::read(root.join("file")).unwrap(), b"content");
                assert_eq!(fs::read_dir(root).unwrap().count(), 1);
            }
            every(0);
        });
        assert!(was_handled(&record));
        assert_eq!(looked(&record).len(), 3);
        assert!(record.written.is_empty() && record.unseen.is_empty());
    });
}

#[test]
fn a_handler_may_have_a_stack_of_its_own() {
    alone(|_| {
        let memory = Box::leak(vec![0_u8; 64 << 10].into_boxed_slice());
        let stack = stack_t {
            ss_sp: memory.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: memory.len(),
        };
        let now = || unsafe {
            let mut now: stack_t = std::mem::zeroed();
            assert_eq!(sigaltstack(null(), &raw mut now), 0);
            (now.ss_sp, now.ss_size, now.ss_flags)
        };
        let record = record(|| unsafe {
            assert_eq!(sigaltstack(&raw const stack, null_mut()), 0);
            handle(SIGUSR1, SA_ONSTACK);
            assert_eq!(now(), (stack.ss_sp, stack.ss_size, 0));
            raise(SIGUSR1);
            assert_eq!(now(), (stack.ss_sp, stack.ss_size, 0));
            assert_eq!(sys!(SYS_sigaltstack, 8, NO), -1);
            assert_eq!(errno(), EFAULT);
        });
        assert!(was_handled(&record));
        assert!(memory.iter().any(|byte| *byte != 0));
        assert_eq!(now(), (stack.ss_sp, stack.ss_size, 0));
    });
}

#[test]
fn a_call_that_waits_with_a_mask_goes_on() {
    alone(|_| unsafe {
        handle(SIGUSR1, 0);
        let mut but_one = full();
        sigdelset(&raw mut but_one, SIGUSR1);
        let mask = &raw const but_one;
        let held = [mask as usize, 8];
        let queue = epoll_create1(0);
        let waits: [(&str, &dyn Fn() -> c_long); 5] = [
            ("rt_sigsuspend", &|| sys!(SYS_rt_sigsuspend, mask, 8_usize)),
            ("ppoll", &|| sys!(SYS_ppoll, NO, NO, NO, mask, 8_usize)),
            ("epoll_pwait", &|| {
                sys!(SYS_epoll_pwait, queue, room(), 1, -1, mask, 8_usize)
            }),
            ("epoll_pwait2", &|| {
                sys!(SYS_epoll_pwait2, queue, room(), 1, NO, mask, 8_usize)
            }),
            ("pselect6", &|| {
                sys!(SYS_pselect6, 0, NO, NO, NO, NO, &raw const held)
            }),
        ];
        for (call, wait) in waits {
            RAN.store(0, Ordering::Relaxed);
            let record = record(|| {
                pthread_sigmask(SIG_BLOCK, &full(), null_mut());
                raise(SIGUSR1);
                assert_eq!(wait(), -1, "{call}");
                assert_eq!((errno(), RAN.load(Ordering::Relaxed)), (EINTR, 1), "{call}");
                assert!(blocked(SIGUSR1), "{call}");
            });
            assert!(was_handled(&record), "{call}");
        }
    });
}
