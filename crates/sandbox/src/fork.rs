//! The process side of a template: it installs its first filter, gets ready, and waits to fork. A
//! fork does the setup that the host of a cold process would do, and continues on its own.
#![allow(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::{self, c_int, c_long};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::socket::{MsgFlags, recvmsg};
use nix::unistd::{Pid, getppid, pipe2};
use serde::{Deserialize, Serialize};

use crate::child::descriptors;
use crate::error::{Failure, Step};
use crate::final_guards::{FinalGuards, Taken};
use crate::huge_pages::{self, Pending};
use crate::seccomp::{self, Answerer, Closing};
use crate::template::{ALERT, ANSWER_BYTES, ASK, PASS_BYTES};
use crate::view::{self, Renewal, Renewed};
use crate::{
    Limits, Recorder, channel, landlock, limits, privileges, process, raw_descriptors,
    system_calls, temp_directories,
};

/// What each fork of a template has of its own, so that no fork sees what another writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnFiles {
    /// In the template's private root: the mounts of the project and of the directory for temporary
    /// files.
    Mounts(Renewal),
    /// Where nothing can be mounted: the directory for temporary files
    /// ([`TEMP_PATH`](crate::TEMP_PATH)). Landlock keeps the fork from all others.
    TempDirectory,
}

impl OwnFiles {
    /// Gives up the template's own mounts, if it has any.
    fn settle(&self) -> io::Result<Prepared> {
        Ok(match self {
            Self::Mounts(renewal) => Prepared::Mounts(Box::new(renewal.settle()?)),
            Self::TempDirectory => Prepared::TempDirectory,
        })
    }
}

/// [`OwnFiles`], ready to be made.
enum Prepared {
    Mounts(Box<Renewed>),
    TempDirectory,
}

impl Prepared {
    /// Where a fork has the pipe that tells it that its template has ended. It takes over no
    /// descriptor above it.
    fn life(&self) -> RawFd {
        match self {
            Self::Mounts(_) => process::CHANNEL + 1,
            Self::TempDirectory => temp_directories::DESCRIPTOR + 1,
        }
    }
}

/// A template's first filter, installed. It refuses what the final filter of the forks refuses,
/// except calls that forks need for their setup. Those it refuses to the template's own program.
#[derive(Debug)]
pub struct FirstGuard(());

impl FirstGuard {
    /// Installs the filter that the host sends over `channel` ([`Model`](crate::Model)) and hands
    /// its listener to the host, which must serve it. From then until it settles, the process may
    /// have at most `descriptors` open.
    ///
    /// # Errors
    /// If the kernel has no such filter, or an outer filter already has a listener.
    pub fn take(channel: BorrowedFd<'_>, descriptors: Option<u64>) -> io::Result<Self> {
        privileges::lay_down()?;
        let listener = seccomp::take_first(channel)?;
        channel::hand_over(channel, Some(Answerer::Listener(listener)))?;
        if let Some(descriptors) = descriptors {
            limits::limit_descriptors(descriptors, true)?;
        }
        Ok(Self(()))
    }

    /// Begins to record, if `dispatch` could not ([`Recorder::begin`], which the filter forbids from
    /// now on). Call it in any case, just before boot: the process then forgets what permits it a
    /// filter of its own. What it takes of guards later, it has during boot only.
    ///
    /// # Errors
    /// Both reasons, in words.
    pub fn record(&self, dispatch: io::Result<Recorder>) -> io::Result<Recorder> {
        let recorder = dispatch.or_else(|dispatch| {
            Recorder::begin_by_trap().map_err(|trap| {
                io::Error::other(format!(
                    "system call dispatch: {dispatch}; a filter that traps: {trap}"
                ))
            })
        });
        system_calls::set_pass(0);
        recorder
    }

    /// Waits for the host to report that boot is over
    /// ([`Template::settle`](crate::Template::settle)), acquires what the forks need for their
    /// setup, and gives up the mounts, if any, which each fork makes anew. After this, the template's
    /// program runs only in forks. `control` is the template's channel: it carries the requests for
    /// forks, and the outcome of this call.
    ///
    /// # Errors
    /// What the system reports. The template must then end.
    pub fn settle(self, own: &OwnFiles, control: BorrowedFd<'static>) -> io::Result<Forking> {
        let pass = receive_pass(control)?;
        let settled = Self::settle_with(pass, own, control);
        let told = match &settled {
            Ok(_) => 0_i32.to_ne_bytes(),
            Err(error) => refusal(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)),
        };
        raw_descriptors::send(control.as_raw_fd(), &told);
        settled
    }

    fn settle_with(pass: u64, own: &OwnFiles, control: BorrowedFd<'static>) -> io::Result<Forking> {
        system_calls::set_pass(pass);
        let _ = limits::room_for_descriptors();
        privileges::take_up().map_err(|failure| io::Error::from(failure.errno))?;
        let own = own.settle()?;
        let closing = Closing::new(pass)?;
        let life = pipe2(OFlag::O_CLOEXEC)?;
        // Signals sent to the template must not become pending for its forks.
        let mut mask = SigSet::empty();
        nix::sys::signal::pthread_sigmask(
            SigmaskHow::SIG_SETMASK,
            Some(&SigSet::all()),
            Some(&mut mask),
        )?;
        Ok(Forking {
            control,
            own,
            closing,
            life,
            mask,
            thread_id: thread_id_address(),
        })
    }
}

/// Waits for the packet that holds the pass.
fn receive_pass(control: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes = [0; PASS_BYTES];
    loop {
        let mut fds = [PollFd::new(control, PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        match raw_descriptors::receive(control.as_raw_fd(), &mut bytes) {
            Ok(PASS_BYTES) => return Ok(u64::from_ne_bytes(bytes)),
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Ok(_) => return Err(Errno::EBADMSG.into()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The address where the C library keeps the id of its first thread (prctl(2),
/// `PR_GET_TID_ADDRESS`). A fork has another id, which the kernel writes there. Null if the kernel
/// does not tell. Then the library's copy is wrong: `raise` sends no signal, and the process ends
/// in another way.
fn thread_id_address() -> usize {
    let mut address: usize = 0;
    // SAFETY: the kernel writes a pointer.
    let got = unsafe { libc::prctl(libc::PR_GET_TID_ADDRESS, &raw mut address) };
    if got == 0 { address } else { 0 }
}

/// A template that waits to fork.
pub struct Forking {
    control: BorrowedFd<'static>,
    own: Prepared,
    closing: Closing,
    /// A pipe whose writing end nobody else has: the other end tells of the template's end.
    life: (OwnedFd, OwnedFd),
    /// The signals that its program had blocked.
    mask: SigSet,
    thread_id: usize,
}

/// Why [`Forking::next`] returned.
pub enum Forked {
    /// This is the fork.
    Fork(Box<Fork>),
    /// This is the template, and it must end: no request came in time, or the host is gone.
    Over,
}

/// The fork of a template, before its guards.
pub struct Fork {
    own: Prepared,
    life: OwnedFd,
    closing: Closing,
    mask: SigSet,
    keeper: Pid,
}

impl Forking {
    /// Waits at most `idle` for a request and forks. Returns in the fork, with descriptors 0 to 3
    /// in place: `/dev/null`, standard output, standard error and its channel.
    pub fn next(self, idle: Duration) -> Forked {
        let keeper = getppid();
        let mut huge = Pending::default();
        // The first fork is the one waited for longest, so it gets no delay.
        let mut has_forked = false;
        let mut asked_at = Instant::now();
        loop {
            let left = idle.saturating_sub(asked_at.elapsed());
            let has_work = has_forked && !huge.is_empty();
            let asked = match self.wait(if has_work { RESTING.min(left) } else { left }) {
                Asked::Fork(asked) => asked,
                Asked::Huge(pending) => {
                    huge = pending;
                    continue;
                }
                Asked::Nothing if has_work && asked_at.elapsed() < idle => {
                    huge.step();
                    continue;
                }
                Asked::Nothing | Asked::Over => return Forked::Over,
            };
            asked_at = Instant::now();
            // Not after the fork: while that lives, the template would get copies of what they
            // share.
            if has_forked && !huge.is_slow() {
                huge.step();
            }
            has_forked = true;
            match clone(self.thread_id) {
                Ok(Cloned::Child) => {
                    let life = self.own.life();
                    arrange(asked, (&self.life.0, life));
                    // Already closed; their numbers may be in use again.
                    std::mem::forget(self.life);
                    return Forked::Fork(Box::new(Fork {
                        own: self.own,
                        life: system_calls::own_descriptor(life),
                        closing: self.closing,
                        mask: self.mask,
                        keeper,
                    }));
                }
                Ok(Cloned::Parent { pid, pidfd }) => {
                    let told = pid.to_ne_bytes();
                    if let Err(errno) =
                        raw_descriptors::send_with(self.control.as_raw_fd(), &told, &[pidfd])
                    {
                        // No process could hold it, and it must not wait for orders forever.
                        let _ = system_calls::kill(pid, libc::SIGKILL);
                        raw_descriptors::send(self.control.as_raw_fd(), &refusal(errno));
                    }
                    raw_descriptors::close(pidfd);
                }
                Err(errno) => raw_descriptors::send(self.control.as_raw_fd(), &refusal(errno)),
            }
        }
    }

    /// Waits at most `idle` for the next request.
    fn wait(&self, idle: Duration) -> Asked {
        let timeout = PollTimeout::try_from(idle).unwrap_or(PollTimeout::MAX);
        loop {
            let mut fds = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) => return Asked::Nothing,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return Asked::Over,
            }
            let mut bytes = [0; huge_pages::PACKET_BYTES];
            let mut space = nix::cmsg_space!([RawFd; 3]);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
            let message = match recvmsg::<()>(
                self.control.as_raw_fd(),
                &mut parts,
                Some(&mut space),
                flags,
            ) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => continue,
                Err(_) => return Asked::Over,
            };
            let fds = descriptors(message.cmsgs().into_iter().flatten());
            let count = message.bytes;
            match <[OwnedFd; 3]>::try_from(fds) {
                _ if count == 0 => return Asked::Over, // the host's end is closed
                Ok(fds) => return Asked::Fork(fds),
                Err(_) if count == ASK.len() => {
                    raw_descriptors::send(self.control.as_raw_fd(), &refusal(Errno::EMFILE));
                }
                Err(_) => return Asked::Huge(Pending::of(bytes.get(..count).unwrap_or_default())),
            }
        }
    }
}

/// How long a template must be idle before it works for itself. Most forks have ended by then.
const RESTING: Duration = Duration::from_millis(50);

/// A request to a template.
enum Asked {
    /// A fork, with these descriptors.
    Fork([OwnedFd; 3]),
    /// To use huge pages at these addresses.
    Huge(Pending),
    /// No request in time.
    Nothing,
    /// No further request will come.
    Over,
}

/// The answer that reports an error. An error without a number becomes `EIO`, as 0 means success.
fn refusal(errno: Errno) -> [u8; ANSWER_BYTES] {
    let errno = match errno {
        Errno::UnknownErrno => Errno::EIO,
        known => known,
    };
    (-(errno as i32)).to_ne_bytes()
}

enum Cloned {
    Child,
    Parent { pid: i32, pidfd: RawFd },
}

/// Forks. The C library's `fork` would make a child of the template, and the filter could not
/// tell it from one that boot makes.
fn clone(thread_id: usize) -> nix::Result<Cloned> {
    let mut pidfd: c_int = -1;
    let thread_id = thread_id.cast_signed() as c_long;
    let (fourth, fifth) = if cfg!(target_arch = "x86_64") {
        (thread_id, 0)
    } else {
        (0, thread_id)
    };
    // SAFETY: the child has a copy of all memory, the stack included; `pidfd` outlives the call;
    // the kernel writes the child's id where the C library keeps it, or nowhere for a null. There
    // is one thread, so no lock is held by another.
    let pid = unsafe {
        system_calls::with_pass(
            libc::SYS_clone,
            [
                c_long::from(seccomp::FORK),
                0,
                (&raw mut pidfd) as c_long,
                fourth,
                fifth,
            ],
        )
    }?;
    Ok(match i32::try_from(pid) {
        Ok(0) | Err(_) => Cloned::Child,
        Ok(pid) => Cloned::Parent { pid, pidfd },
    })
}

/// Puts the descriptors of a fork in place, and closes all above the last one: where it has the pipe
/// that tells of its template's end.
fn arrange([channel, stdout, stderr]: [OwnedFd; 3], (of_template, life): (&OwnedFd, RawFd)) {
    let put = || -> nix::Result<()> {
        // Opened anew, not the template's: forks must not share one open file's flags.
        let null = raw_descriptors::open_for_reading(c"/dev/null")?;
        let lowest = process::LOWEST_SOURCE;
        let sources = [
            raw_descriptors::lift(null, lowest)?,
            raw_descriptors::lift(stdout.as_raw_fd(), lowest)?,
            raw_descriptors::lift(stderr.as_raw_fd(), lowest)?,
            raw_descriptors::lift(channel.as_raw_fd(), lowest)?,
        ];
        let of_template = raw_descriptors::lift(of_template.as_raw_fd(), lowest)?;
        for (target, source) in (0..).zip(sources) {
            raw_descriptors::put(source, target, target == process::CHANNEL)?;
        }
        raw_descriptors::put(of_template, life, true)?;
        raw_descriptors::close_from(life + 1)
    };
    let done = put();
    // Already closed; their numbers may be in use again.
    std::mem::forget((channel, stdout, stderr));
    if done.is_err() {
        system_calls::exit_now(BROKEN);
    }
}

/// The exit status of a fork whose setup failed too early to report why.
const BROKEN: c_int = 127;

impl Fork {
    /// Gives the fork its own view, ties its life to the keeper alone, and installs the guards, for
    /// good. Needs no orders, so that it can be done before they come. Names no file below the
    /// project: what an overlay was asked before a file is replaced, it answers afterwards, too.
    /// That a step has failed is told once there are orders ([`Confined::limit`]).
    #[must_use]
    pub fn confine(self, guards: &FinalGuards) -> Confined {
        let outcome = self.try_confine(guards).map_err(words);
        // Useless now, but still a secret.
        system_calls::set_pass(0);
        Confined {
            outcome,
            life: self.life,
        }
    }

    fn try_confine(&self, guards: &FinalGuards) -> Result<Behind, Failure> {
        // SAFETY: no pointer is passed.
        unsafe { system_calls::with_pass(libc::SYS_setsid, [0; 5]) }
            .map_err(|e| Step::Session.failed(e))?;
        process::die_with(self.keeper)?;
        let layer = match &self.own {
            Prepared::Mounts(renewed) => view::renew(renewed)?,
            Prepared::TempDirectory => {
                temp_directories::make_own_directory()?;
                None
            }
        };
        privileges::drop_last()?;
        self.mask
            .thread_set_mask()
            .map_err(|e| Step::Signals.failed(e))?;
        Ok(Behind {
            taken: Taken {
                landlock: guards.landlock.as_ref().map(landlock::take),
                seccomp: guards.seccomp.as_ref().map(|_| self.closing.take()),
                limits: None,
            },
            layer: layer.map(system_calls::own_descriptor),
        })
    }
}

/// What a fork has that is behind its guards.
pub struct Behind {
    /// The state of the guards.
    pub taken: Taken,
    /// The directory of its layer, if it has one. It goes to the host with the first packet.
    pub layer: Option<OwnedFd>,
}

/// The fork of a template that has taken its guards, or could not.
pub struct Confined {
    /// An error: the step that has failed, in words for the user.
    outcome: Result<Behind, String>,
    life: OwnedFd,
}

impl Confined {
    /// Returns whether there is no time for anything else before its orders: the first of them is there,
    /// or an alert.
    #[must_use]
    pub fn is_called(&self) -> bool {
        raw_descriptors::has_packet(process::CHANNEL)
    }

    /// Waits for the first of the orders. Returns `false` if none comes because the template has
    /// ended: it has been idle for too long, or memory is short. A host that sends them now gets an
    /// error, so that it knows that they were not carried out.
    ///
    /// Once it is alerted ([`Child::alert`](crate::Child::alert)), it looks for them for a moment without sleeping.
    pub fn wait(&self) -> bool {
        let watch = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        loop {
            let mut fds = [watch(process::CHANNEL), watch(self.life.as_raw_fd())];
            raw_descriptors::poll(&mut fds, -1);
            let [channel, life] = fds.map(|fd| fd.revents != 0);
            if channel {
                if !take_alert(process::CHANNEL) {
                    return true;
                }
                look_for(process::CHANNEL);
            } else if life {
                // What came before that can still be received.
                raw_descriptors::stop_receiving(process::CHANNEL);
                while take_alert(process::CHANNEL) {}
                return raw_descriptors::has_packet(process::CHANNEL);
            }
        }
    }

    /// Sets the limits, for good, once it has its orders.
    ///
    /// # Errors
    /// The step of this or of [`Fork::confine`] that has failed, in words for the user. The fork must
    /// then end.
    pub fn limit(self, wanted: &Limits) -> Result<Behind, String> {
        let behind = self.outcome?;
        limits::PreparedLimits::new(wanted)
            .map_err(|e| Step::CoreLimit.failed(e))
            .and_then(|limits| limits::apply(&limits))
            .map_err(words)?;
        Ok(behind)
    }
}

/// Waits for a packet that is about to come, for a moment and without sleeping.
pub fn look_for_packet(channel: BorrowedFd<'_>) {
    look_for(channel.as_raw_fd());
}

fn look_for(channel: RawFd) {
    let until = Instant::now() + ALERTED;
    while !raw_descriptors::has_packet(channel) && Instant::now() < until {
        // Whoever else wants the processor has it first.
        std::thread::yield_now();
    }
}

/// How long a fork that is alerted looks for its orders without sleeping. A host needs less from the
/// request to the orders, and so does a pool, which looks at its host meanwhile.
const ALERTED: Duration = Duration::from_micros(200);

/// Takes the next packet if it is an alert, and returns whether it was.
fn take_alert(channel: RawFd) -> bool {
    raw_descriptors::next_length(channel) == ALERT.len()
        && raw_descriptors::receive(channel, &mut []).is_ok()
}

fn words(failure: Failure) -> String {
    format!("{}: {}", failure.step, failure.errno.desc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel_pair;

    #[test]
    fn alerts_are_taken_and_orders_stay() -> io::Result<()> {
        let (host, fork) = channel_pair()?;
        let (host, fork) = (host.as_fd(), fork.as_raw_fd());
        assert!(!take_alert(fork));
        raw_descriptors::send(host.as_raw_fd(), ALERT);
        raw_descriptors::send(host.as_raw_fd(), ALERT);
        raw_descriptors::send(host.as_raw_fd(), b"orders");
        assert!(take_alert(fork) && take_alert(fork));
        assert!(!take_alert(fork) && raw_descriptors::has_packet(fork));
        let mut orders = [0; 6];
        assert_eq!(raw_descriptors::receive(fork, &mut orders), Ok(6));
        assert_eq!(&orders, b"orders");
        Ok(())
    }

    #[test]
    fn the_end_of_a_channel_is_no_alert() -> io::Result<()> {
        let (host, fork) = channel_pair()?;
        drop(host);
        assert!(!take_alert(fork.as_raw_fd()) && !raw_descriptors::has_packet(fork.as_raw_fd()));
        Ok(())
    }
}
