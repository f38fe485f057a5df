//! Signals and timers, only for the process itself.

use nix::libc::*;

use crate::seccomp::call::Answer::{Allow, AllowIf, Refuse};
use crate::seccomp::call::Kind::{Inspect, Signal};
use crate::seccomp::call::Refuse::Told;
use crate::seccomp::call::When::Own;
use crate::seccomp::call::{Call, calls};

/// On every architecture.
pub(super) const CALLS: &[Call] = calls! {
    SYS_rt_sigaction: Allow, "pcntl_signal(), timeouts";
    SYS_rt_sigprocmask: Allow, "threads, pcntl_sigprocmask()";
    SYS_rt_sigreturn: Allow, "the end of every signal handler";
    SYS_rt_sigpending: Allow, "C libraries";
    SYS_rt_sigsuspend: Allow, "C libraries";
    SYS_rt_sigtimedwait: Allow, "pcntl_sigwaitinfo()";
    SYS_sigaltstack: Allow, "handlers with their own stack";
    SYS_restart_syscall: Allow, "made by the kernel after a signal";
    SYS_signalfd4: Allow, "event loops";
    SYS_kill: AllowIf(Own(0), Told(Signal(0, 1))), "posix_kill() of itself; 0 and -1 reach other processes, too";
    SYS_tkill: AllowIf(Own(0), Told(Signal(0, 1))), "musl's raise()";
    SYS_tgkill: AllowIf(Own(0), Told(Signal(0, 2))), "abort(), raise(), threads";
    SYS_rt_sigqueueinfo: AllowIf(Own(0), Told(Signal(0, 1))), "sigqueue() to itself";
    SYS_rt_tgsigqueueinfo: AllowIf(Own(0), Told(Signal(0, 2))), "pthread_sigqueue()";
    SYS_pidfd_send_signal: Refuse(Told(Inspect)), "a filter cannot tell which process a descriptor refers to";
    SYS_getitimer: Allow, "libraries that save a timer";
    SYS_setitimer: Allow, "set_time_limit()";
    SYS_timer_create: Allow, "set_time_limit() of a thread-safe PHP";
    SYS_timer_settime: Allow, "set_time_limit() of a thread-safe PHP";
    SYS_timer_gettime: Allow, "set_time_limit() of a thread-safe PHP";
    SYS_timer_getoverrun: Allow, "C libraries";
    SYS_timer_delete: Allow, "set_time_limit() of a thread-safe PHP";
    SYS_timerfd_create: Allow, "event loops";
    SYS_timerfd_settime: Allow, "event loops";
    SYS_timerfd_gettime: Allow, "event loops";
};

/// The calls of x86-64 that newer architectures never had.
#[cfg(target_arch = "x86_64")]
pub(super) const LEGACY: &[Call] = calls! {
    SYS_alarm: Allow, "pcntl_alarm()";
    SYS_pause: Allow, "C libraries' pause()";
    SYS_signalfd: Allow, "event loops";
};
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const LEGACY: &[Call] = &[];
