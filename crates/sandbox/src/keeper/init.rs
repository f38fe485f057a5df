//! The keeper of a command as a program of its own ([`init.c`](init.c)), in place of a copy of the
//! host that would take longer to make than the command to run.
//!
//! Until it executes that program, the keeper shares the host's memory instead of copying it, and so
//! does the process until it executes its own. Meanwhile the calling thread of the host waits, as
//! with vfork(2): first suspended by the kernel, then in [`Init::wait_until_alone`].

use std::ffi::CStr;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, socketpair};
use nix::unistd::pipe2;

use crate::child::{START_PATIENCE, STOP_CHECK_MS, answer_maps};
use crate::launch::{PreparedLaunch, Role};
use crate::spawn::lift;
use crate::system_calls::{self, Stack};
use crate::view::{IdMaps, MAP_REQUEST_BYTES, map_ids};
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
    /// The pipe on which the process reports a failed step: its ends for reading and writing.
    report: (OwnedFd, OwnedFd),
    /// The pipe from the program to the process's gate.
    gate: (OwnedFd, OwnedFd),
    /// Over it the keeper asks for its id maps; a thread answers.
    maps: Option<OwnedFd>,
    /// The stack of the keeper and that of the process.
    stacks: (Stack, Stack),
}

/// The numbers of those descriptors, as the keeper uses them.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub(super) program: RawFd,
    pub(super) report: (RawFd, RawFd),
    pub(super) gate: RawFd,
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
            && can_be_executed();
        if !is_possible {
            return Ok(None);
        }
        Ok(Some(Self {
            program: memory_file()?,
            report: pipe(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?,
            gate: pipe(OFlag::O_CLOEXEC)?,
            maps: maps.map(answer_aside).transpose()?,
            stacks: (Stack::new()?, Stack::new()?),
        }))
    }

    pub(crate) fn ends(&self) -> Ends<'_> {
        Ends {
            program: self.program.as_raw_fd(),
            report: (self.report.0.as_raw_fd(), self.report.1.as_raw_fd()),
            gate: self.gate.1.as_raw_fd(),
            maps: self.maps.as_ref().map(AsRawFd::as_raw_fd),
            stack: &self.stacks.1,
        }
    }

    /// The stack of the keeper.
    pub(crate) fn stack(&self) -> &Stack {
        &self.stacks.0
    }

    /// The end of the gate that the process reads from.
    pub(crate) fn gate(&self) -> RawFd {
        self.gate.0.as_raw_fd()
    }

    /// Waits until neither keeper nor process shares the host's memory any more: each has become its
    /// program, or has ended. A process that takes too long is ended, with its keeper.
    pub(crate) fn wait_until_alone(self, keeper: Option<BorrowedFd<'_>>) {
        let (reading, writing) = self.report;
        // The keeper has been suspended no longer, so it is a program already, or has ended.
        drop(writing);
        let began = Instant::now();
        while !system_calls::wait_for_hangup(reading.as_fd(), STOP_CHECK_MS.into()) {
            if began.elapsed() >= START_PATIENCE
                && let Some(keeper) = keeper
            {
                system_calls::signal_pidfd(keeper, libc::SIGKILL);
            }
        }
        // A process as another user has made the kernel forbid inspection of the host (prctl(2),
        // PR_SET_DUMPABLE), which it permitted before.
        if !system_calls::is_dumpable() {
            let _ = nix::sys::prctl::set_dumpable(true);
        }
    }
}

/// Both ends of a pipe, where putting descriptors in place does not reach.
fn pipe(flags: OFlag) -> nix::Result<(OwnedFd, OwnedFd)> {
    let (reading, writing) = pipe2(flags)?;
    Ok((lift(&reading)?, lift(&writing)?))
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

/// Whether this machine executes the program, which is a file in memory: a system can forbid that
/// (sysctl `vm.memfd_noexec`). Tried once.
fn can_be_executed() -> bool {
    static TRIED: OnceLock<bool> = OnceLock::new();
    // Never blocks: in a fork of the host, a thread that does not exist there may be trying it.
    TRIED.get().copied().unwrap_or_else(|| {
        let is_executed = try_it().unwrap_or(false);
        let _ = TRIED.set(is_executed);
        is_executed
    })
}

/// Executes the program without a lifeline, on which it ends at once.
#[allow(unsafe_code)]
fn try_it() -> io::Result<bool> {
    const NOT_EXECUTED: libc::c_int = 127;
    let file = memory_file()?;
    let number = file.as_raw_fd();
    let stack = Stack::new()?;
    // SAFETY: the caller is suspended until the child has become the program or ended.
    let (pid, _) = unsafe {
        system_calls::clone_sharing(&stack, libc::CLONE_VFORK, || {
            raw_descriptors::close(super::LIFELINE);
            execute(number);
            system_calls::exit_now(NOT_EXECUTED)
        })
    }?;
    Ok(system_calls::wait_child(pid) == Some(crate::Status::Exited(0)))
}

/// Becomes the program. Returns only on failure.
pub(super) fn execute(program: RawFd) -> Errno {
    system_calls::exec_file(program, NAME)
}
