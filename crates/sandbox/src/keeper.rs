//! The keeper: a small process between the host and the process that it started. It ends
//! everything below it when the process ends, when the host requests it, or when the host is gone.
//!
//! The keeper of a template is also the parent of the template's forks. It reports to the host how
//! each of them ended, and outlives the template as long as forks remain.
//!
//! With namespaces of its own ([`Spaces`](crate::Spaces)) it is the first process of its pid
//! namespace: when it ends, the kernel ends everything in it.
//!
//! It is a clone of a host that may have had other threads, so nothing here allocates, takes a lock or
//! panics. Usually it has a copy of the host's memory and never executes a program. That of a command
//! in namespaces of its own shares the host's memory while it makes the process, and then becomes a
//! small program that does the rest ([`Init`]).

mod init;

use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{getpid, setsid};

use crate::child::Status;
use crate::error::{Failure, REPORT_BYTES, Report, Step, decode, encode};
use crate::kill_descendants::{Reach, sweep};
use crate::launch::{PreparedLaunch, Role};
use crate::memory_pressure::{Pressure, is_memory_short};
use crate::process::{self, Descriptors, LOWEST_SOURCE, REPORT};
use crate::template::ForkEnded;
use crate::{Spaces, limits, privileges, raw_descriptors, spawn, system_calls, view};

pub(crate) use init::{Ends as InitEnds, Init};

/// What the keeper needs, all made by the host.
pub(crate) struct Plan<'a> {
    pub(crate) prepared: &'a PreparedLaunch,
    pub(crate) descriptors: Descriptors,
    /// To the host: one report on the start. From the host: a signal number to pass on. When it
    /// closes, the keeper ends everything.
    pub(crate) lifeline: RawFd,
    /// A pidfd of the host.
    pub(crate) host: Option<RawFd>,
    /// For a keeper that becomes a program.
    pub(crate) init: Option<InitEnds<'a>>,
}

// The keeper's own descriptors; 0 to 2 are /dev/null.
const LIFELINE: RawFd = 3;
const HOST: RawFd = 4;
/// Readable once the process has become its program, or failed to.
const START: RawFd = 5;

/// Exit code of a keeper or a process whose setup failed; the report says why.
const NOT_STARTED: c_int = 127;

/// The main function of the keeper.
pub(crate) fn keep(plan: &Plan<'_>) -> ! {
    let _stop_here = NoUnwinding;
    system_calls::default_signals();
    if raw_descriptors::put(plan.lifeline, LIFELINE, plan.init.is_none()).is_err() {
        system_calls::exit_now(NOT_STARTED);
    }
    let started = begin(plan).and_then(|()| match &plan.init {
        Some(init) => Err(become_init(plan, init)),
        None => set_up(plan),
    });
    match started {
        Ok(keeper) => keeper.run(),
        Err(failure) => {
            tell(Err(failure));
            sweep(None, Reach::Children);
            system_calls::exit_now(NOT_STARTED)
        }
    }
}

/// Ends the process instead of unwinding into frames that belong to the host.
struct NoUnwinding;

impl Drop for NoUnwinding {
    fn drop(&mut self) {
        system_calls::exit_now(NOT_STARTED);
    }
}

/// Starts its own session and gets its namespaces ready.
fn begin(plan: &Plan<'_>) -> Result<(), Failure> {
    let failed = |e| Step::Keeper.failed(e);
    // The host handles keys on its terminal and signals to its group.
    setsid().map_err(failed)?;
    prctl::set_name(c"altair-keeper").map_err(failed)?;
    prctl::set_child_subreaper(true).map_err(failed)?;
    // A process that can stop the keeper must not outlive the host that way. The signal comes
    // when the thread that made the keeper ends. It does not affect a running keeper.
    prctl::set_pdeathsig(Signal::SIGCONT).map_err(failed)?;
    match plan.prepared.spaces {
        Some(spaces) => enter(plan, spaces),
        None => Ok(()),
    }
}

/// Makes the process and executes the program that keeps it. Returns only on failure.
fn become_init(plan: &Plan<'_>, init: &InitEnds<'_>) -> Failure {
    match make_for_init(plan, init) {
        // The process may be using this thread's variables now, so a call must not fail here.
        Ok(()) => Step::Keeper.failed(init::execute(init.program)),
        Err(failure) => failure,
    }
}

/// Puts the program's descriptors in place, and makes the process.
#[allow(unsafe_code)]
fn make_for_init(plan: &Plan<'_>, init: &InitEnds<'_>) -> Result<(), Failure> {
    let failed = |e| Step::Keeper.failed(e);
    let put =
        |from, to, close_on_exec| raw_descriptors::put(from, to, close_on_exec).map_err(failed);
    // Made here, so that no fork of the host holds an end of them.
    let (start, report) = raw_descriptors::pipe_at(LOWEST_SOURCE).map_err(failed)?;
    let (gate, program) = raw_descriptors::pipe_at(LOWEST_SOURCE).map_err(failed)?;
    put(report, REPORT, true)?;
    for standard in 0..=2 {
        put(plan.descriptors.null, standard, false)?;
    }
    match plan.host {
        Some(host) => put(host, init::HOST, false)?,
        None => raw_descriptors::close(init::HOST),
    }
    put(start, init::START, false)?;
    put(program, init::GATE, false)?;
    // What the host had at the numbers between.
    raw_descriptors::close(process::LIFELINE);
    raw_descriptors::close(process::GATE);
    privileges::keep_kill().map_err(failed)?;
    let own = getpid();
    // SAFETY: the host waits until the process has its own memory, and keeps everything until then;
    // the process copies what it needs of this one.
    let (process, _) = unsafe {
        system_calls::clone_sharing(init.stack, libc::SIGCHLD, move || {
            become_process(plan, own, Some(gate))
        })
    }
    .map_err(|e| Step::Clone.failed(e))?;
    match process {
        init::PROCESS => Ok(()),
        _ => Err(Step::Clone.failed(Errno::EEXIST)),
    }
}

/// Makes the process and releases everything that belongs to the host.
fn set_up(plan: &Plan<'_>) -> Result<Keeper, Failure> {
    let failed = |e| Step::Keeper.failed(e);
    let (start, report) = raw_descriptors::pipe_at(LOWEST_SOURCE).map_err(failed)?;
    raw_descriptors::put(report, REPORT, true).map_err(failed)?;

    let own = getpid();
    let process = system_calls::clone_plain(|| become_process(plan, own, None))
        .map_err(|e| Step::Clone.failed(e))?;

    let_go(plan, start).map_err(failed)?;
    let signals = raw_descriptors::signal_queue().map_err(failed)?;
    Ok(Keeper {
        process,
        status: None,
        signals,
        host: plan.host.map(|_| HOST),
        starting: true,
        ending: false,
        template: (plan.prepared.role == Role::Template).then(|| Pressure::watch(START + 1)),
        is_command: plan.prepared.role == Role::Command,
        has_own_pids: plan.prepared.spaces.is_some(),
    })
}

/// Gets the namespaces that the keeper was made in ready for the process.
fn enter(plan: &Plan<'_>, spaces: Spaces) -> Result<(), Failure> {
    match &plan.init {
        // Whether it can be inspected is the host's setting here; the program changes its own.
        Some(init) => init.maps.map_or(Ok(()), |socket| {
            // As the host knows it: its /proc is still in place.
            view::ask_for_maps_of(crate::procfs::own_id()?, socket)
        }),
        None => get_maps(plan),
    }
    .map_err(|e| Step::IdMaps.failed(e))?;
    if spaces.network {
        view::bring_up_loopback();
    }
    Ok(())
}

/// Gets the id maps of a keeper with a copy of the host's memory.
fn get_maps(plan: &Plan<'_>) -> nix::Result<()> {
    let view = plan.prepared.view.as_ref();
    if view.is_some_and(|view| view.user_namespace.is_some()) {
        // A host that has changed its user could not write the maps.
        prctl::set_dumpable(true)?;
        view::ask_for_maps(LIFELINE)?;
    }
    // The process sees this one.
    prctl::set_dumpable(false)
}

/// What the process does.
fn become_process(plan: &Plan<'_>, keeper: nix::unistd::Pid, gate: Option<RawFd>) -> ! {
    let descriptors = Descriptors {
        gate,
        ..plan.descriptors
    };
    let failure = spawn::become_program(plan.prepared, &descriptors, keeper);
    raw_descriptors::write(REPORT, &encode(Err(failure)));
    system_calls::exit_now(NOT_STARTED)
}

/// Keeps no descriptor, no working directory and no readable memory of the host.
fn let_go(plan: &Plan<'_>, start: RawFd) -> nix::Result<()> {
    for standard in 0..=2 {
        raw_descriptors::put(plan.descriptors.null, standard, true)?;
    }
    match plan.host {
        Some(host) => raw_descriptors::put(host, HOST, true)?,
        None => raw_descriptors::close(HOST),
    }
    raw_descriptors::put(start, START, true)?;
    raw_descriptors::close_from(START + 1)?;
    // The process may run as the same user and must not read the host's memory in the keeper.
    prctl::set_dumpable(false)?;
    // So that the host's directory can be unmounted. Failure is harmless.
    let _ = nix::unistd::chdir(c"/");
    Ok(())
}

/// Reports to the host how the start went. A host that does not listen has ended or is ending.
fn tell(report: Report) {
    raw_descriptors::send(LIFELINE, &encode(report));
}

struct Keeper {
    process: c_int,
    /// The raw wait status of the process, once it has ended.
    status: Option<c_int>,
    /// Where signals to the keeper are read; all are blocked.
    signals: RawFd,
    host: Option<RawFd>,
    /// The process has not yet become its program.
    starting: bool,
    /// Everything must end.
    ending: bool,
    /// The process is a template.
    template: Option<Pressure>,
    /// The process is a command: signals go to its whole group.
    is_command: bool,
    /// The keeper is the first process of a pid namespace.
    has_own_pids: bool,
}

impl Keeper {
    fn run(mut self) -> ! {
        while !self.is_over() && !self.ending {
            self.round();
        }
        if self.starting {
            self.report_start();
        }
        let reach = match self.has_own_pids {
            true => Reach::Namespace,
            false => Reach::Children,
        };
        let swept = sweep(Some((self.process, self.signals)), reach);
        let status = self.status.or(swept);
        if self.is_command
            && let Some(status) = status
            && !system_calls::has_children()
        {
            raw_descriptors::send(LIFELINE, &Verdict(status).encode());
        }
        match self.has_own_pids {
            // It cannot end by a signal of its own. The kernel ends what is left in the namespace.
            true => system_calls::exit_now(0),
            false => mirror(status),
        }
    }

    fn is_over(&self) -> bool {
        // The forks of a template that has ended still have to end.
        self.status.is_some() && (self.template.is_none() || !system_calls::has_children())
    }

    fn round(&mut self) {
        let watch = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let pressure = self.template.as_ref().and_then(Pressure::descriptor);
        // poll(2) ignores negative descriptors.
        let mut fds = [
            watch(self.signals),
            watch(LIFELINE),
            watch(self.host.unwrap_or(-1)),
            watch(if self.starting { START } else { -1 }),
            libc::pollfd {
                fd: pressure.unwrap_or(-1),
                events: libc::POLLPRI,
                revents: 0,
            },
        ];
        raw_descriptors::poll(&mut fds, -1);
        let [signals, lifeline, host, start, pressure] = fds.map(|fd| fd.revents != 0);
        if pressure {
            self.look_at_memory(fds[4].revents & libc::POLLERR != 0);
        }
        if start {
            self.report_start();
        }
        if signals {
            self.take_signals();
        }
        if lifeline {
            self.obey();
        }
        if host {
            self.ending = true;
        }
    }

    /// Handles the notification that processes wait for memory, or the end of it.
    fn look_at_memory(&mut self, is_over: bool) {
        if is_memory_short() {
            self.give_memory_back();
        } else if is_over && let Some(pressure) = &mut self.template {
            pressure.end();
        }
    }

    /// Ends the template, but not its forks, which are runs. Other processes must not wait for memory
    /// because of a template. Once is enough.
    fn give_memory_back(&mut self) {
        if self.status.is_none() {
            let _ = system_calls::kill(self.process, libc::SIGKILL);
        }
        if let Some(pressure) = &mut self.template {
            pressure.end();
        }
    }

    /// The exec closes the other end of the pipe; end of file means success.
    fn report_start(&mut self) {
        let mut bytes = [0; REPORT_BYTES];
        let report = match raw_descriptors::read(START, &mut bytes) {
            Ok(REPORT_BYTES) => decode(bytes).unwrap_or(Ok(self.process)),
            Ok(_) => Ok(self.process),
            // The process was ended before the exec.
            Err(errno) => Err(Step::Exec.failed(errno)),
        };
        tell(report);
        raw_descriptors::close(START);
        self.starting = false;
    }

    fn take_signals(&mut self) {
        while let Some(signal) = raw_descriptors::next_signal(self.signals) {
            if signal == libc::SIGTERM {
                self.ending = true;
            }
        }
        // Orphans of the process become the keeper's children and are collected as they end.
        while let Ok(Some((pid, status))) = system_calls::reap_one() {
            if pid == self.process {
                self.status = Some(status);
            } else if self.template.is_some() {
                raw_descriptors::send(LIFELINE, &ForkEnded { pid, status }.encode());
            }
        }
    }

    /// Handles what the host sends over the lifeline.
    fn obey(&mut self) {
        let mut signal = [0u8; 1];
        match raw_descriptors::receive(LIFELINE, &mut signal) {
            Ok(1) => {
                let [signal] = signal;
                // Only the keeper collects the process, so until then its id is not reused.
                if self.status.is_none() {
                    let target = if self.is_command {
                        // A session leader, so it is the leader of its group.
                        -self.process
                    } else {
                        self.process
                    };
                    let _ = system_calls::kill(target, c_int::from(signal));
                }
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Ok(_) | Err(_) => self.ending = true,
        }
    }
}

/// How a command ended, once nothing of it is left. The host need not wait for the end of the keeper,
/// which takes longer than many commands: its memory is a copy of the host's.
pub(crate) struct Verdict(c_int);

impl Verdict {
    /// Bytes of the packet: a mark and the raw wait status.
    pub(crate) const BYTES: usize = 5;
    const MARK: u8 = b'V';

    fn encode(&self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.0.to_ne_bytes();
        [Self::MARK, a, b, c, d]
    }

    /// The status in a packet.
    pub(crate) fn decode(bytes: [u8; REPORT_BYTES]) -> Option<Status> {
        let [mark, a, b, c, d, ..] = bytes;
        let status = c_int::from_ne_bytes([a, b, c, d]);
        (mark == Self::MARK).then(|| Status::of_wait(status))
    }
}

/// Ends the keeper the way the process ended, so that the host sees it.
fn mirror(status: Option<c_int>) -> ! {
    let status = status.unwrap_or(libc::SIGKILL);
    if libc::WIFSIGNALED(status) {
        // Dying from the signal must not leave a core file with the host's memory.
        let _ = limits::no_core(false);
        let _ = system_calls::kill(getpid().as_raw(), libc::WTERMSIG(status));
        let _ = system_calls::unblock_signals();
    }
    system_calls::exit_now(libc::WEXITSTATUS(status))
}
