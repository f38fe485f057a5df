//! From a launch to a running process: the clone, and what the new process does before it executes
//! its program.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::libc::{CLONE_PIDFD, CLONE_VFORK};
use nix::sys::signal::SigSet;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, chdir, pipe2};

use crate::child::{Child, Kept, Streams, Wired};
use crate::error::{Failure, Step};
use crate::keeper::Init;
use crate::launch::{self, Launch, PreparedLaunch, Role, Stdio};
use crate::process::{self, Descriptors, LOWEST_SOURCE};
use crate::system_calls::Cloned;
use crate::{
    Project, SpawnError, guard_state, keeper, limits, privileges, raw_descriptors, system_calls,
    view,
};

impl Launch {
    /// Starts the process and returns when its program runs.
    ///
    /// # Errors
    /// [`SpawnError`] says which step failed on what, and why. Nothing of the process is left
    /// then.
    pub fn spawn(self) -> Result<Child, SpawnError> {
        let prepared = PreparedLaunch::new(&self)?;
        let ends = Ends::new(self.channel.as_ref(), &self.stdio)
            .map_err(|source| host_error("its descriptors cannot be made", source))?;
        let started = Instant::now();
        let maps = prepared
            .view
            .as_ref()
            .and_then(|view| view.user_namespace.as_ref())
            .filter(|namespace| namespace.is_mapped_by_host())
            .map(|namespace| namespace.maps.clone());
        let init = Init::new(&prepared, maps.as_ref())
            .map_err(|source| host_error("the keeper cannot be prepared", source))?;
        // The keeper that becomes a program has its maps before this thread goes on.
        let is_program = init.is_some();
        let maps = maps.filter(|_| !is_program);
        let (keeper, pidfd) = clone_keeper(&prepared, &ends, init).map_err(|errno| {
            match prepared.spaces {
                None => host_error("no process can be made", errno.into()),
                // The kernel may refuse only the namespaces.
                Some(_) => {
                    let failure = Step::Namespace.failed(errno);
                    explain(failure, self.program.clone(), self.cwd.clone())
                }
            }
        })?;
        // Closes the descriptors that only the process may hold, so that the host sees its end.
        let Launch {
            program,
            cwd,
            policy,
            channel,
            stdio,
            role,
            ..
        } = self;
        let wired = Wired {
            keeper,
            pidfd,
            lifeline: ends.lifeline,
            streams: ends.streams,
            has_own_pids: prepared.spaces.is_some(),
            is_program,
        };
        drop(ends.theirs);
        drop(channel);
        drop(stdio);
        let (layers, renewal) = match prepared.view {
            Some(view) => (view.layers, Some(view.renewal)),
            None => (None, None),
        };
        let guards = guard_state::states(&policy);
        let sealed = policy.view.and_then(|view| {
            let Project { root, sealed, .. } = view.project;
            Some(root.path().join(sealed?))
        });
        let kept = Kept {
            run_as: privileges::other_user(&policy.privileges),
            connections: policy.connections,
            file_locks: policy.limits.file_locks,
            processes: policy
                .before_exec
                .and_then(|guards| guards.seccomp?.command?.processes),
        };
        let mut child = Child::new(wired, started, guards, layers, renewal, role, kept);
        match child.await_start(maps.as_ref()) {
            Some(Ok(_)) => {
                child.note_listener();
                Ok(child)
            }
            Some(Err(failure)) => Err(match (failure.step, sealed) {
                (Step::Seal, Some(path)) => SpawnError::Sealed {
                    path,
                    source: failure.errno.into(),
                },
                _ => explain(failure, program, cwd),
            }),
            None => Err(SpawnError::KeeperLost { program }),
        }
    }
}

/// What a new process does between the clone and its program. The order of the guards follows from
/// what each of them needs.
///
/// Async-signal-safe: the host may have had other threads, whose locks stay held forever here.
fn confine(
    prepared: &PreparedLaunch,
    descriptors: &Descriptors,
    keeper: Pid,
) -> Result<(), Failure> {
    process::isolate(descriptors, prepared.made)?;
    // As the host's user, who may raise a limit of 0.
    limits::no_core(descriptors.gate.is_some()).map_err(|e| Step::CoreLimit.failed(e))?;
    if prepared.role == Role::Template {
        process::be_expendable();
    }
    // Mounting needs the capabilities that a later step drops.
    if let Some(view) = &prepared.view {
        let made = view.user_namespace.as_ref().map(|own| own.made);
        if let Some(made) = made {
            privileges::before_user_namespace(&prepared.privileges, made)?;
        }
        view::enter_namespaces(view, process::LIFELINE)?;
        if let Some(made) = made {
            privileges::in_user_namespace(&prepared.privileges, made)?;
        }
        // From here on its user can stop the process.
        process::die_with(keeper)?;
        view::apply(view, process::LIFELINE, descriptors.has_input)?;
    }
    // After the last descriptor is sent and the host's memory was last read.
    limits::apply(&prepared.limits)?;
    privileges::apply(&prepared.privileges)?;
    // After the change of user, which clears it.
    process::die_with(keeper)?;
    // As the process's own user, who needs permission for it.
    chdir(prepared.cwd.as_c_str()).map_err(|e| Step::WorkingDirectory.failed(e))?;
    if descriptors.gate.is_none() {
        system_calls::unblock_signals().map_err(|e| Step::Signals.failed(e))?;
    }
    // Landlock, which forbids mounts, and seccomp, which forbids most of the above. A program that
    // takes them itself has to be executed first ([`FinalGuards`](crate::FinalGuards)).
    match &prepared.before_exec {
        Some(guards) => guards.take(process::LIFELINE),
        None => Ok(()),
    }
}

/// Runs in the new process: takes its guards, then executes the program. Returns the failed step.
pub(crate) fn become_program(
    prepared: &PreparedLaunch,
    descriptors: &Descriptors,
    keeper: Pid,
) -> Failure {
    if let Err(failure) = confine(prepared, descriptors, keeper) {
        return failure;
    }
    if descriptors.gate.is_some() {
        if !raw_descriptors::awaits_byte(process::GATE) {
            // The keeper has ended; the kernel ends this process, too.
            return Step::ParentWatch.failed(Errno::ESRCH);
        }
        // As late as possible: a signal that ends it finds the host's memory until it has its own.
        if let Err(errno) = system_calls::unblock_signals() {
            return Step::Signals.failed(errno);
        }
    }
    let (program, argv, envp) = prepared.exec();
    // SAFETY: both lists were made with a null pointer at the end, of strings that `prepared`
    // owns.
    Step::Exec.failed(unsafe { system_calls::exec(program, argv, envp) })
}

/// Both ends of all descriptors between host, keeper and process.
struct Ends {
    lifeline: OwnedFd,
    streams: Streams,
    has_terminal: bool,
    theirs: Theirs,
}

/// The ends that the keeper and the process take over.
struct Theirs {
    null: OwnedFd,
    /// `None`: standard input is empty.
    input: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
    channel: Option<OwnedFd>,
    lifeline: OwnedFd,
    /// Becomes readable when the host has ended, whichever thread made it and whoever else holds
    /// the lifeline. `None` if unavailable (an old container profile).
    host: Option<OwnedFd>,
}

impl Ends {
    fn new(channel: Option<&OwnedFd>, stdio: &Stdio) -> io::Result<Self> {
        let (lifeline, their_lifeline) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )?;
        let (streams, [input, stdout, stderr]) = match stdio {
            Stdio::Captured { input } => {
                let (stdout, their_stdout) = pipe2(OFlag::O_CLOEXEC)?;
                let (stderr, their_stderr) = pipe2(OFlag::O_CLOEXEC)?;
                // As good as none, and the process's own cannot be changed.
                let input = input.as_ref().filter(|input| !is_null(input));
                let input = input.map(lift).transpose()?;
                let theirs = [
                    input,
                    Some(lift(&their_stdout)?),
                    Some(lift(&their_stderr)?),
                ];
                let stderr = Some(stderr);
                (Streams { stdout, stderr }, theirs)
            }
            Stdio::Terminal(terminal) => {
                let copy = || lift(&terminal.process).map(Some);
                let streams = Streams {
                    stdout: terminal.host.try_clone()?,
                    stderr: None,
                };
                (streams, [copy()?, copy()?, copy()?])
            }
        };
        let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
            return Err(Errno::EBADF.into());
        };
        let null = open(
            "/dev/null",
            OFlag::O_RDONLY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        let channel = channel
            .map(|channel| {
                let copy = lift(channel)?;
                // The flag belongs to the open socket. The process must get one that blocks.
                fcntl(&copy, FcntlArg::F_SETFL(OFlag::empty()))?;
                Ok::<_, Errno>(copy)
            })
            .transpose()?;
        Ok(Self {
            lifeline,
            has_terminal: matches!(stdio, Stdio::Terminal(_)),
            streams,
            theirs: Theirs {
                null: lift(&null)?,
                input,
                stdout,
                stderr,
                channel,
                lifeline: lift(&their_lifeline)?,
                host: match system_calls::pidfd_of_self() {
                    Ok(host) => Some(lift(&host)?),
                    Err(_) => None,
                },
            },
        })
    }
}

/// Whether a descriptor is of the null device (null(4)).
fn is_null(fd: &OwnedFd) -> bool {
    use nix::sys::stat::{SFlag, fstat, makedev};
    fstat(fd).is_ok_and(|stat| {
        stat.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFCHR.bits()
            && stat.st_rdev == makedev(1, 3)
    })
}

/// Duplicates a descriptor above the numbers where the process's own are put in place.
pub(crate) fn lift(fd: &OwnedFd) -> nix::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    let copy = fcntl(fd.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(LOWEST_SOURCE))?;
    // SAFETY: just made, and not owned elsewhere.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Makes the keeper, which makes the process.
fn clone_keeper(
    prepared: &PreparedLaunch,
    ends: &Ends,
    init: Option<Init>,
) -> nix::Result<(i32, OwnedFd)> {
    let theirs = &ends.theirs;
    let plan = keeper::Plan {
        prepared,
        descriptors: Descriptors {
            null: theirs.null.as_raw_fd(),
            input: theirs.input.as_ref().unwrap_or(&theirs.null).as_raw_fd(),
            has_input: theirs.input.is_some(),
            has_terminal: ends.has_terminal,
            stdout: theirs.stdout.as_raw_fd(),
            stderr: theirs.stderr.as_raw_fd(),
            channel: theirs.channel.as_ref().map(AsRawFd::as_raw_fd),
            lifeline: theirs.lifeline.as_raw_fd(),
            gate: None,
        },
        lifeline: theirs.lifeline.as_raw_fd(),
        host: theirs.host.as_ref().map(AsRawFd::as_raw_fd),
        init: init.as_ref().map(Init::ends),
    };
    let flags = prepared.spaces.map_or(0, |spaces| {
        let view = prepared.view.as_ref();
        view::clone_flags(spaces, view.and_then(|view| view.user_namespace.as_ref()))
    });
    // The host's signal handlers must not run in the child, where they would find its state.
    let mask = SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_SETMASK)?;
    let cloned = match &init {
        Some(init) => {
            let flags = flags | CLONE_PIDFD | CLONE_VFORK;
            // SAFETY: this thread is suspended until the keeper is a program, and then waits below
            // for the process, which shares this memory, too. All of `plan` lives until then.
            // `keep` makes only async-signal-safe calls.
            unsafe { system_calls::clone_sharing(init.stack(), flags, || keeper::keep(&plan)) }
                .and_then(|(pid, pidfd)| Ok((pid, pidfd.ok_or(Errno::EBADF)?)))
        }
        // SAFETY: the child goes into `keep`, which makes only async-signal-safe calls and does not
        // return.
        None => match unsafe { system_calls::clone_unnoticed(flags) } {
            Ok(Cloned::Child) => keeper::keep(&plan),
            Ok(Cloned::Parent(pid, pidfd)) => Ok((pid, pidfd)),
            Err(errno) => Err(errno),
        },
    };
    if let Some(init) = init {
        init.wait_until_alone(cloned.as_ref().ok().map(|(_, pidfd)| pidfd.as_fd()));
    }
    // Does not fail for a mask that was in force before.
    let _ = mask.thread_set_mask();
    cloned
}

fn host_error(what: &'static str, source: io::Error) -> SpawnError {
    SpawnError::Host { what, source }
}

/// Turns a failed step into an error for the user.
fn explain(failure: Failure, program: std::path::PathBuf, cwd: std::path::PathBuf) -> SpawnError {
    let source = io::Error::from(failure.errno);
    match (failure.step, failure.errno) {
        (Step::WorkingDirectory, _) => SpawnError::WorkingDirectory { cwd, source },
        (Step::Exec, Errno::ENOENT) if launch::is_there(&program) => {
            SpawnError::InterpreterMissing { program }
        }
        (Step::Exec, Errno::ENOENT | Errno::ENOTDIR) => SpawnError::ProgramMissing { program },
        (Step::Exec, Errno::EACCES | Errno::EPERM) => SpawnError::NotExecutable { program, source },
        (Step::Exec, Errno::ENOEXEC) => SpawnError::NotAProgram { program },
        (Step::Project | Step::ProjectLayer, Errno::ESTALE) => SpawnError::Replaced,
        (step, _) => SpawnError::Step {
            program,
            step,
            source,
        },
    }
}
