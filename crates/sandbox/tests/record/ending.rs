//! Bad addresses, full logs, and the end of a recording.

use std::ffi::c_int;
use std::fs;
use std::process::Command;
use std::ptr::{null, null_mut};

use altair_sandbox::{Look, Record, Unseen};
use libc::*;

use crate::signals::handle;
use crate::support::*;

#[test]
fn bad_addresses_are_the_kernels_to_refuse() {
    alone(|_| {
        let record = record(|| {
            for address in [0, 8, usize::MAX - 3, 1 << 63] {
                let refused = [
                    sys!(SYS_open, address, O_RDONLY),
                    sys!(SYS_open, address, O_WRONLY | O_CREAT, 0o600),
                    sys!(SYS_openat2, AT_FDCWD, c"/".as_ptr(), address, 24_usize),
                    sys!(SYS_newfstatat, AT_FDCWD, address, room(), 0),
                    sys!(SYS_rename, address, address),
                    sys!(SYS_readlink, address, room(), 10_usize),
                    sys!(SYS_ppoll, NO, NO, NO, address.max(1), 8_usize),
                    sys!(SYS_rt_sigaction, SIGUSR1, address.max(1), NO, 8_usize),
                ];
                assert_eq!((refused, errno()), ([-1; 8], EFAULT), "{address:#x}");
            }
            assert_eq!(sys!(SYS_clone3, 8, 64_usize), -1);
            assert_eq!(sys!(SYS_openat, 1000, c"file".as_ptr(), O_RDONLY), -1);
            assert_eq!(sys!(SYS_open, c"".as_ptr(), O_RDONLY), -1);
            assert_eq!(
                sys!(SYS_newfstatat, 0, c"".as_ptr(), room(), AT_EMPTY_PATH),
                0
            );
            assert!(fs::metadata("/".repeat(PATH_MAX as usize)).is_err());
        });
        assert_eq!(looked(&record), ["/"]);
        assert_eq!(record.unseen, []);
    });
}

#[test]
fn a_full_log_is_noted_and_the_process_goes_on() {
    alone(|root| {
        let record = record(|| {
            let long = "x".repeat(PATH_MAX as usize - 8);
            // 32 MiB at 4 KiB each.
            for at in 0..8500 {
                assert!(fs::metadata(format!("/{at:04}{long}")).is_err());
            }
            fs::write(root.join("file"), "content").unwrap();
            assert_eq!(fs::read(root.join("file")).unwrap(), b"content");
        });
        assert_eq!(record.unseen, [Unseen::TooMuch]);
        assert!(
            (7000..8500).contains(&record.looks.len()),
            "{}",
            record.looks.len()
        );
    });
}

/// Anonymous mappings as large as the log.
fn large_mappings() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let size = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let of = |text| usize::from_str_radix(text, 16).ok();
        Some(of(end)? - of(start)?)
    };
    maps.lines()
        .filter(|line| size(line) >= Some(32 << 20))
        .count()
}

fn action_of(signal: c_int) -> usize {
    unsafe {
        let mut action: sigaction = std::mem::zeroed();
        libc::sigaction(signal, null(), &raw mut action);
        action.sa_sigaction
    }
}

#[test]
fn nothing_is_left_when_it_has_ended() {
    alone(|root| {
        handle(SIGSYS, 0);
        let (mappings, action) = (large_mappings(), action_of(SIGSYS));
        for drop_it in [false, true, false] {
            let recorder = begin().unwrap();
            assert_eq!(begin().unwrap_err().raw_os_error(), Some(EBUSY));
            unsafe {
                let none: sigaction = std::mem::zeroed();
                assert_eq!(libc::sigaction(SIGSYS, &raw const none, null_mut()), 0);
            }
            assert!(fs::symlink_metadata(root).is_ok());
            if drop_it {
                drop(recorder);
            } else {
                assert_eq!(looked(&recorder.end()), [root.to_str().unwrap()]);
            }
            assert_eq!((large_mappings(), action_of(SIGSYS)), (mappings, action));
            assert!(Command::new("/bin/true").status().unwrap().success());
            assert!(std::thread::spawn(|| true).join().unwrap());
        }
    });
}

#[test]
fn a_fork_after_it_does_not_record_and_can_itself() {
    alone(|root| {
        let outer = record(|| drop(fs::metadata(root)));
        assert_eq!(outer.looks.len(), 1);
        let pid = unsafe { fork() };
        if pid == 0 {
            let inner = record(|| drop(fs::metadata(root)));
            let again = unsafe { fork() };
            let mut status = 0;
            if again > 0 {
                unsafe { waitpid(again, &raw mut status, 0) };
            }
            unsafe { _exit(status + c_int::from(inner.looks != outer_like(&inner, &outer))) };
        }
        let mut status = 0;
        assert_eq!(unsafe { waitpid(pid, &raw mut status, 0) }, pid);
        assert_eq!(status, 0);
    });
}

/// The looks of `outer` at the times of `inner`.
fn outer_like(inner: &Record, outer: &Record) -> Vec<Look> {
    let times = inner.looks.iter().map(|look| look.at_ns);
    let looks = outer.looks.iter().cloned().zip(times);
    looks.map(|(look, at_ns)| Look { at_ns, ..look }).collect()
}

#[test]
fn it_ends_behind_a_filter_that_forbids_what_it_would_use() {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch};
    // By a trap, no filter can be installed meanwhile.
    alone_by(By::Dispatch, |root| {
        let recorder = begin().unwrap();
        let refused = [SYS_prctl, SYS_rt_sigaction, SYS_rt_sigprocmask];
        let rules = refused.into_iter().map(|number| (number, vec![])).collect();
        let refuse = SeccompAction::Errno(EPERM as u32);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, TargetArch::x86_64);
        let program: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        assert!(fs::symlink_metadata(root).is_ok());
        let record = recorder.end();
        assert!(look_at(&record, root).is_some());
        let mappings = large_mappings();
        let pid = unsafe { fork() };
        if pid == 0 {
            unsafe { _exit(fs::metadata(root).is_err().into()) };
        }
        let mut status = 0;
        assert_eq!(unsafe { waitpid(pid, &raw mut status, 0) }, pid);
        assert_eq!((status, mappings), (0, large_mappings()));
    });
}
