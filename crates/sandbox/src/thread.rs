//! Threads in a host program that is not ours.
#![allow(unsafe_code)]

use std::io;
use std::thread::JoinHandle;

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};

/// Starts a thread that runs none of the host's signal handlers: they belong to the host program,
/// and a thread inherits the signal mask of its creator.
///
/// # Errors
///
/// If no further thread can be started.
pub fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let mut before = SigSet::empty();
    pthread_sigmask(
        SigmaskHow::SIG_SETMASK,
        Some(&SigSet::all()),
        Some(&mut before),
    )?;
    let thread = std::thread::Builder::new().name(name.into()).spawn(body);
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    thread
}

/// Has the calling thread preempt no other one when it wakes (sched(7), `SCHED_BATCH`): whoever wakes it then
/// need not interrupt another processor for it. Failure costs only time. A thread of another policy than the usual
/// one keeps it: its host has chosen it.
pub fn preempt_nobody() {
    // SAFETY: no pointer is passed.
    if unsafe { nix::libc::sched_getscheduler(0) } != nix::libc::SCHED_OTHER {
        return;
    }
    let parameters = nix::libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameters.
    unsafe { nix::libc::sched_setscheduler(0, nix::libc::SCHED_BATCH, &raw const parameters) };
}
