//! The keeper of a command as a program of its own ([`init.c`](init.c)), in place of a copy of the
//! host that would take longer to make than the command to run.
//!
//! Until it executes that program, the keeper shares the host's memory instead of copying it, and so
//! does the process until it executes its own. Meanwhile the calling thread of the host waits, as
//! with vfork(2): first suspended by the kernel, then in [`Init::wait_until_alone`].
//!
//! Unlike a copy of the host, a program is a child as any other once it is executed (execve(2)): its
//! end raises `SIGCHLD`, and `waitpid(-1)` sees it.

use std::ffi::CStr;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, setsockopt, socketpair};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::child::{START_PATIENCE, STOP_CHECK_MS, answer_maps};
use crate::launch::{PreparedLaunch, Role};
use crate::spawn::lift;
use crate::system_calls::{self, Stack};
use crate::view::{IdMaps, MAP_PATIENCE_MS, MAP_REQUEST_BYTES, map_ids};
use crate::{limits, raw_descriptors, thread};

/// The program.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/keeper_init"));
const NAME: &CStr = c"altair-keeper";

// Descriptors that the program is executed with, besides the lifeline. They must not collide with
// those that the process puts in place (`process.rs`).
pub(super) const HOST: RawFd = 7;
pub(super) const START: RawFd = 8;
pub(super) const GATE: RawFd = 9;

/// The id of the process in the pid namespace, where only the keeper was before.
pub(super) const PROCESS: libc::c_int = 2;

/// What such a keeper needs, made by the host. Everything is closed on `exec`.
pub(crate) struct Init {
    program: OwnedFd,
    /// Over it the keeper asks for its id maps; a thread answers.
    maps: Option<OwnedFd>,
    /// The stacks of the keeper and of the process.
    stacks: [Stack; 2],
}

/// The same as the keeper uses it.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub(super) program: RawFd,
    pub(super) maps: Option<RawFd>,
    /// The stack of the process.
    pub(super) stack: &'a Stack,
}

impl Init {
    /// Everything for the keeper of such a launch. `None` if its keeper has to be a copy of the host.
    ///
    /// # Errors
    /// If there are no more descriptors, threads or memory.
    pub(crate) fn new(
        prepared: &PreparedLaunch,
        maps: Option<&IdMaps>,
    ) -> io::Result<Option<Self>> {
        let in_user_namespace = prepared
            .view
            .as_ref()
            .is_some_and(|view| view.user_namespace.is_some());
        let is_possible = prepared.role == Role::Command
            && prepared.spaces.is_some()
            // Only who has power over the host has it over a process in a user namespace of the
            // host's (`cap_ptrace_access_check` in security/commoncap.c), whatever its user is.
            && in_user_namespace
            // Else the keeper would have to open up the host's memory to get its id maps.
            && system_calls::is_dumpable()
            && limits::has_core_limit()
            && is_fit();
        if !is_possible {
            return Ok(None);
        }
        Ok(Some(Self {
            program: memory_file()?,
            maps: maps.map(answer_aside).transpose()?,
            stacks: [Stack::new()?, Stack::new()?],
        }))
    }

    pub(crate) fn ends(&self) -> Ends<'_> {
        let [_, stack] = &self.stacks;
        Ends {
            program: self.program.as_raw_fd(),
            maps: self.maps.as_ref().map(AsRawFd::as_raw_fd),
            stack,
        }
    }

    /// The stack of the keeper.
    pub(crate) fn stack(&self) -> &Stack {
        let [stack, _] = &self.stacks;
        stack
    }

    /// Waits until neither keeper nor process shares the host's memory any more: each has become its
    /// program, or has ended. A process that takes too long is ended, with its keeper.
    pub(crate) fn wait_until_alone(self, keeper: Option<BorrowedFd<'_>>) {
        let began = Instant::now();
        for stack in &self.stacks {
            while !stack.is_left_within(STOP_CHECK_MS.into()) {
                let Some(keeper) = keeper else { continue };
                if began.elapsed() >= START_PATIENCE {
                    system_calls::signal_pidfd(keeper, libc::SIGKILL);
                } else if system_calls::is_stopped(keeper) {
                    // A process of the same user can stop it.
                    system_calls::signal_pidfd(keeper, libc::SIGCONT);
                }
            }
        }
        // A process as another user has made the kernel forbid inspection of the host (prctl(2),
        // PR_SET_DUMPABLE), which it permitted before.
        if !system_calls::is_dumpable() {
            let _ = nix::sys::prctl::set_dumpable(true);
        }
    }
}

fn memory_file() -> io::Result<OwnedFd> {
    let mut file = std::fs::File::from(system_calls::memory_file(NAME)?);
    file.write_all(PROGRAM)?;
    Ok(lift(&file.into())?)
}

/// Starts a thread that maps the keeper's ids when it asks for it, because the thread that makes the
/// keeper is suspended. Returns the keeper's end.
fn answer_aside(maps: &IdMaps) -> io::Result<OwnedFd> {
    let (own, keepers) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    let keepers = lift(&keepers)?;
    // A fork of the host may hold a copy of the keeper's end.
    setsockopt(
        &own,
        ReceiveTimeout,
        &TimeVal::milliseconds(MAP_PATIENCE_MS.into()),
    )?;
    let maps = maps.clone();
    thread::start("altair-maps", move || {
        let mut process = [0; MAP_REQUEST_BYTES];
        // No bytes: all of the keeper's ends are closed.
        if recv(own.as_raw_fd(), &mut process, MsgFlags::empty()) == Ok(MAP_REQUEST_BYTES) {
            answer_maps(&own, map_ids(i32::from_ne_bytes(process), &maps));
        }
    })?;
    Ok(keepers)
}

/// Whether this machine is fit for it. Found out once.
fn is_fit() -> bool {
    // Not a lock: in a fork of the host, a thread that does not exist there would hold it.
    const UNKNOWN: u8 = 0;
    const FIT: u8 = 1;
    const UNFIT: u8 = 2;
    static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);
    match FOUND.load(Ordering::Relaxed) {
        FIT => return true,
        UNFIT => return false,
        _ => {}
    }
    let found = match dumps_one_process() {
        true => try_it(),
        false => Ok(false),
    };
    // A host without descriptors may have some later.
    let Ok(is_fit) = found else { return false };
    FOUND.store(if is_fit { FIT } else { UNFIT }, Ordering::Relaxed);
    is_fit
}

/// Whether a core dump concerns one process only, and its limit holds. Before kernel 5.16 the kernel
/// ends all processes that share its memory (`zap_threads` in fs/coredump.c). A dump server gets the
/// memory whatever the limit is (core(5), `core_pattern` with `@`, since kernel 6.16).
fn dumps_one_process() -> bool {
    let number = |part: Option<&str>| -> Option<u32> {
        let digits = part?.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = release.split('.');
    let version = (number(parts.next()), number(parts.next()));
    let pattern = std::fs::read("/proc/sys/kernel/core_pattern");
    version >= (Some(5), Some(16)) && pattern.is_ok_and(|pattern| !pattern.starts_with(b"@"))
}

/// Executes the program without a lifeline, on which it ends at once: a system can forbid to execute
/// files in memory (sysctl `vm.memfd_noexec`).
#[allow(unsafe_code)]
fn try_it() -> io::Result<bool> {
    const NOT_EXECUTED: libc::c_int = 127;
    let file = memory_file()?;
    let number = file.as_raw_fd();
    let stack = Stack::new()?;
    let is_refused = AtomicBool::new(false);
    // The host's signal handlers must not run in the child, where they would find its state.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // SAFETY: the caller is suspended until the child has become the program or ended.
    let made = unsafe {
        system_calls::clone_sharing(&stack, libc::CLONE_VFORK, || {
            raw_descriptors::close(super::LIFELINE);
            execute(number);
            is_refused.store(true, Ordering::Relaxed);
            system_calls::exit_now(NOT_EXECUTED)
        })
    };
    // Does not fail for a mask that was in force before.
    let _ = mask.thread_set_mask();
    let (pid, _) = made?;
    // Its status is of no use: a host that ignores SIGCHLD gets none.
    let _ = system_calls::wait_child(pid);
    Ok(!is_refused.load(Ordering::Relaxed))
}

/// Becomes the program. Returns only on failure.
pub(super) fn execute(program: RawFd) -> Errno {
    system_calls::exec_file(program, NAME)
}
