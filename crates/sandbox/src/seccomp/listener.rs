//! The host's end: refuses and reports the calls that the filter asks about, permits threads up to
//! a limit, and has permitted connections made.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc::{self, seccomp_data, seccomp_notif, seccomp_notif_resp, seccomp_notif_sizes};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;

use super::bind;
use super::call::{Answer, Call, Kind, Refuse, When, holds};
use super::connect::{Connector, Decision};
use super::describe;
use super::fork_setup::FORK;
use super::opened;
use super::processes::Processes;
use super::threads::{self, Verdict};
use crate::Refusal;

/// Calls answered in one round, so that a flood of them starves neither the output nor the
/// deadline.
const CALLS_A_ROUND: usize = 16;

/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE` (linux/seccomp.h): the kernel makes the call. Only for calls
/// that are decided by their registers alone (seccomp_unotify(2)).
const CONTINUE: u32 = 1;

/// The answer to a call.
pub(super) enum Reply {
    /// It fails.
    Fail(Errno),
    /// The kernel makes it.
    Continue,
    /// The host has made it.
    Done,
    /// It returns this descriptor, which the host has installed in the caller.
    Descriptor(i32),
}

/// `struct seccomp_notif_addfd` (linux/seccomp.h).
#[repr(C)]
struct AddFd {
    id: u64,
    flags: u32,
    srcfd: u32,
    newfd: u32,
    newfd_flags: u32,
}

/// `SECCOMP_IOCTL_NOTIF_SET_FLAGS`: `SECCOMP_IOW(4, __u64)` (linux/seccomp.h).
const SET_FLAGS: libc::Ioctl = 0x4008_2104;

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` (linux/seccomp.h): a caller and who answers it wake one another on the
/// processor that the other one leaves, instead of one that must be told to wake (since kernel 6.6).
const SYNC_WAKE_UP: u64 = 1;

/// `SECCOMP_IOCTL_NOTIF_ADDFD`: `SECCOMP_IOW(3, struct seccomp_notif_addfd)`.
const ADD_FD: libc::Ioctl = 0x4018_2103;

/// `SECCOMP_ADDFD_FLAG_SEND`: the descriptor is the answer, too (since kernel 5.14).
const SEND: u32 = 2;

/// Answers calls, from any thread.
#[derive(Clone)]
pub(super) struct Answering {
    socket: Arc<OwnedFd>,
    /// The size of an answer in words of 8 bytes.
    words: usize,
}

impl Reply {
    /// The reply for the result of a connection.
    pub(super) fn of(end: nix::Result<()>) -> Self {
        end.map_or_else(Self::Fail, |()| Self::Done)
    }
}

impl Answering {
    pub(super) fn new(socket: OwnedFd, words: usize) -> Self {
        Self {
            socket: Arc::new(socket),
            words,
        }
    }

    /// What to make another one of in another file descriptor table, with [`Answering::words`].
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The size of an answer in words of 8 bytes.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Whether the caller is still waiting.
    pub(super) fn waits(&self, id: u64) -> bool {
        // SAFETY: the kernel reads the id, which outlives the call.
        let valid = unsafe {
            libc::ioctl(
                self.socket.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const id,
            )
        };
        valid == 0
    }

    /// Installs a [`dummy`] in the caller, and returns its number.
    fn give_dummy(&self, id: u64) -> nix::Result<i32> {
        self.add(id, 0, dummy()?.as_raw_fd(), 0)
    }

    /// Whether [`Answering::give`] is possible (since kernel 5.9).
    pub(super) fn gives(&self) -> bool {
        self.add(0, 0, -1, 0) == Err(Errno::EBADF)
    }

    /// Answers a call with a copy of a descriptor, and returns its number. If that fails, the call
    /// is still to be answered.
    pub(super) fn give(
        &self,
        id: u64,
        descriptor: BorrowedFd<'_>,
        close_on_exec: bool,
    ) -> nix::Result<i32> {
        match self.add(id, SEND, descriptor.as_raw_fd(), own_flags(close_on_exec)) {
            // Before kernel 5.14 there is no such flag.
            Err(Errno::EINVAL) => self.give_in_two_steps(id, descriptor, close_on_exec),
            given => given,
        }
    }

    /// The same in two steps. A caller that a signal interrupts between them keeps a copy that it
    /// does not know of, and makes its call again.
    fn give_in_two_steps(
        &self,
        id: u64,
        descriptor: BorrowedFd<'_>,
        close_on_exec: bool,
    ) -> nix::Result<i32> {
        let number = self.add(id, 0, descriptor.as_raw_fd(), own_flags(close_on_exec))?;
        let told = self.reply(id, Reply::Descriptor(number));
        told.then_some(number).ok_or(Errno::ENOENT)
    }

    /// Installs a descriptor in the caller, and returns its number.
    fn add(&self, id: u64, flags: u32, descriptor: RawFd, own_flags: i32) -> nix::Result<i32> {
        let wanted = AddFd {
            id,
            flags,
            srcfd: descriptor.cast_unsigned(),
            newfd: 0,
            newfd_flags: own_flags.cast_unsigned(),
        };
        // SAFETY: the kernel reads the struct, which outlives the call.
        Errno::result(unsafe { libc::ioctl(self.socket.as_raw_fd(), ADD_FD, &raw const wanted) })
    }

    /// Answers a call. Returns whether the caller was still waiting.
    pub(super) fn reply(&self, id: u64, reply: Reply) -> bool {
        let mut answer = vec![0_u64; self.words];
        let (val, error, flags) = match reply {
            Reply::Fail(errno) => (0, -(errno as i32), 0),
            Reply::Continue => (0, 0, CONTINUE),
            Reply::Done => (0, 0, 0),
            Reply::Descriptor(fd) => (fd.into(), 0, 0),
        };
        let said = seccomp_notif_resp {
            id,
            val,
            error,
            flags,
        };
        // SAFETY: the buffer is at least as long as the struct (`new`), and aligned for it.
        unsafe { answer.as_mut_ptr().cast::<seccomp_notif_resp>().write(said) };
        // SAFETY: the buffer has the size of this kernel's answer. For a caller that is gone, the
        // call fails.
        let sent = unsafe {
            libc::ioctl(
                self.socket.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                answer.as_mut_ptr(),
            )
        };
        sent == 0
    }
}

/// The flags of a descriptor that the host installs.
fn own_flags(close_on_exec: bool) -> i32 {
    if close_on_exec { libc::O_CLOEXEC } else { 0 }
}

/// A descriptor to nothing: the reading end of a pipe without a writer.
pub(super) fn dummy() -> nix::Result<OwnedFd> {
    Ok(nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?.0)
}

/// The host's end of a filter. Nothing here blocks.
pub(crate) struct Listener {
    answering: Answering,
    /// The buffer for calls, of the running kernel's size, in words of 8 bytes.
    call: Vec<u64>,
    /// For a template's filter: the forks that may be made. Such a filter also asks about calls
    /// with a process's own id.
    forks: Option<Arc<Forks>>,
    /// For a command's filter: its processes.
    processes: Option<Processes>,
    connector: Arc<Connector>,
}

impl Listener {
    /// Returns `None` if the kernel does not report its message sizes, or reports sizes smaller
    /// than any kernel's.
    pub(crate) fn new(socket: OwnedFd, connector: Connector) -> Option<Self> {
        let mut sizes = seccomp_notif_sizes {
            seccomp_notif: 0,
            seccomp_notif_resp: 0,
            seccomp_data: 0,
        };
        // SAFETY: the kernel fills in the struct, which outlives the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_GET_NOTIF_SIZES,
                0,
                &raw mut sizes,
            )
        };
        Errno::result(result).ok()?;
        let call = usize::from(sizes.seccomp_notif);
        let answer = usize::from(sizes.seccomp_notif_resp);
        let words = |bytes: usize| bytes.div_ceil(size_of::<u64>());
        let fits = call >= size_of::<seccomp_notif>() && answer >= size_of::<seccomp_notif_resp>();
        fits.then(|| Self {
            answering: Answering::new(socket, words(answer)),
            call: vec![0; words(call)],
            forks: None,
            processes: None,
            connector: Arc::new(connector),
        })
    }

    /// The same for the filter of a command. `keeper`: the parent of its orphans; `command`: the
    /// command itself, if it has no pid namespace of its own; `most`: the processes and threads that
    /// it may have, if the host counts them.
    pub(crate) fn of_command(
        socket: OwnedFd,
        connector: Connector,
        keeper: Option<i32>,
        command: Option<i32>,
        most: Option<usize>,
    ) -> Option<Self> {
        Some(Self {
            processes: Some(Processes::new(keeper?, command, most)),
            ..Self::new(socket, connector)?
        })
    }

    /// The same for the filter of a template.
    pub(crate) fn of_template(
        socket: OwnedFd,
        connector: Connector,
        template: Option<i32>,
    ) -> Option<Self> {
        // It waits for the host at each fork, and the host for it.
        // SAFETY: the flags are the argument itself. An older kernel refuses it, which costs only time.
        unsafe { libc::ioctl(socket.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
        let forks = Forks {
            template: Pid::from_raw(template?),
            wanted: AtomicBool::new(false),
        };
        Some(Self {
            forks: Some(Arc::new(forks)),
            ..Self::new(socket, connector)?
        })
    }

    /// What to poll for calls.
    pub(crate) fn interest(&self) -> (BorrowedFd<'_>, PollFlags) {
        (self.answering.socket.as_fd(), PollFlags::POLLIN)
    }

    /// Answers waiting calls, at most one round. Returns `false` if no process is left behind the
    /// filter.
    /// `refused` gets the id of the process with each refusal.
    pub(crate) fn serve(
        &mut self,
        ready: PollFlags,
        refused: &mut dyn FnMut(Pid, Refusal),
    ) -> bool {
        let mut ready = ready;
        for _ in 0..CALLS_A_ROUND {
            if !ready.contains(PollFlags::POLLIN) {
                break;
            }
            match self.receive() {
                Ok(call) => {
                    let (reply, refusal) = self.decide(&call);
                    // Before the reply: afterwards, the caller may end.
                    if let Some(refusal) = refusal {
                        refused(self.process(&call), refusal);
                    }
                    if let Some(reply) = reply {
                        self.answering.reply(call.id, reply);
                    }
                }
                // The caller has ended, or a signal has interrupted its call or this one.
                Err(Errno::ENOENT | Errno::EINTR) => {}
                Err(_) => return false,
            }
            ready = self.ready();
        }
        !ready.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL)
    }

    /// Tells of the connections that were refused after their calls were heard.
    pub(crate) fn tell_refused(&self, refused: &mut dyn FnMut(Pid, Refusal)) {
        for (process, refusal) in self.connector.take_refused() {
            refused(process, refusal);
        }
    }

    /// Tells what is left, and what failed although no guard refused it; once, when the process has ended.
    pub(crate) fn tell_rest(&self, refused: &mut dyn FnMut(Refusal)) {
        self.tell_refused(&mut |_, refusal| refused(refusal));
        self.connector.take_unmet().for_each(refused);
    }

    fn ready(&self) -> PollFlags {
        let mut fds = [PollFd::new(
            self.answering.socket.as_fd(),
            PollFlags::POLLIN,
        )];
        match poll(&mut fds, PollTimeout::ZERO) {
            Ok(_) => fds[0].revents().unwrap_or(PollFlags::empty()),
            Err(_) => PollFlags::empty(),
        }
    }

    /// Receives a call. Does not block after `POLLIN`: the kernel counts incoming calls, and
    /// returns `ENOENT` for those that are already gone.
    fn receive(&mut self) -> nix::Result<seccomp_notif> {
        // The kernel requires zeros.
        self.call.fill(0);
        // SAFETY: the buffer is as long as this kernel's message, and aligned for it.
        Errno::result(unsafe {
            libc::ioctl(
                self.answering.socket.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                self.call.as_mut_ptr(),
            )
        })?;
        // SAFETY: the buffer is at least as long as the struct (`new`), which is plain numbers.
        Ok(unsafe { self.call.as_ptr().cast::<seccomp_notif>().read() })
    }

    /// The process of the calling thread.
    fn process(&self, call: &seccomp_notif) -> Pid {
        let thread = Pid::from_raw(call.pid.cast_signed());
        match (&self.forks, &self.processes) {
            (None, None) => thread, // there is only one process
            _ => threads::process_of(thread).unwrap_or(thread),
        }
    }

    /// The reply to a call, and the refusal to report. Without a reply, a thread answers it.
    fn decide(&mut self, call: &seccomp_notif) -> (Option<Reply>, Option<Refusal>) {
        let Some(line) = describe::line(call.data.nr, self.processes.is_some()) else {
            return (Some(Reply::Fail(Errno::EPERM)), None);
        };
        if let Answer::AllowIf(When::Opening(opening, _), _) = line.answer {
            let (files, memory) = (self.connector.files(), self.connector.memory());
            let reply = opened::answer(files, opening, call, memory, &self.answering);
            return (reply, None);
        }
        if self.connector.makes(line, &call.data) {
            return match self.connector.make(call, &self.answering) {
                Decision::Made => (Some(Reply::Continue), None),
                Decision::Fails(errno) => (Some(Reply::Fail(errno)), None),
                Decision::Taken | Decision::Refused(_) => (None, None),
            };
        }
        if let Answer::AllowIf(When::Binding(_), _) = line.answer
            && self.connector.share_network()
        {
            return match bind::decide(call, self.connector.memory(), &self.answering) {
                Decision::Made => (Some(Reply::Continue), None),
                Decision::Fails(errno) => (Some(Reply::Fail(errno)), None),
                Decision::Taken => (None, None),
                Decision::Refused(refusal) => (
                    Some(Reply::Fail(Errno::EPERM)),
                    refusal.filter(|_| self.answering.waits(call.id)),
                ),
            };
        }
        let pid = Pid::from_raw(call.pid.cast_signed());
        if let Some(forks) = &self.forks
            && (forks.may(call) || is_about_itself(line, || self.process(call), &call.data))
        {
            return (Some(Reply::Continue), None);
        }
        let errno = line.refuse().map_or(Errno::EPERM, Refuse::errno);
        let verdict = match &mut self.processes {
            None => threads::verdict(line, pid, &call.data),
            Some(processes) => processes.verdict(line, &call.data),
        };
        match verdict {
            Verdict::Continue => return (Some(Reply::Continue), None),
            Verdict::TooMany => {
                let refusal = match &self.processes {
                    None => Refusal::Thread {
                        most: threads::THREADS_MAX,
                    },
                    Some(processes) => Refusal::TooManyProcesses {
                        most: processes.most(),
                    },
                };
                return (Some(Reply::Fail(threads::NO_ROOM)), Some(refusal));
            }
            Verdict::TooLate => return (Some(Reply::Fail(threads::NO_ROOM)), None),
            Verdict::NoThread => {}
        }
        if self.asks_for_v6(line, &call.data)
            && let Ok(descriptor) = self.answering.give_dummy(call.id)
        {
            return (Some(Reply::Descriptor(descriptor)), None);
        }
        let refusal = if line.refuse().and_then(Refuse::told) == Some(Kind::Connect) {
            match self.connector.decide(call, &self.answering) {
                Decision::Taken => return (None, None),
                Decision::Made => return (Some(Reply::Continue), None),
                Decision::Fails(errno) => return (Some(Reply::Fail(errno)), None),
                Decision::Refused(refusal) => refusal,
            }
        } else {
            describe::refusal(line, pid, &call.data, self.connector.memory())
        };
        // Memory that was read is reported only if the caller is still waiting: otherwise its id
        // may belong to another process by now.
        let refusal = refusal.filter(|_| self.answering.waits(call.id));
        (Some(Reply::Fail(errno)), refusal)
    }
}

impl Listener {
    /// Whether a caller that may connect by IPv6 probes for IPv6 support, without which it would
    /// not try. It may have no UDP socket, but any descriptor satisfies the probe.
    fn asks_for_v6(&self, line: &Call, data: &seccomp_data) -> bool {
        let [family, kind, protocol] = [0, 1, 2].map(|index| data.args[index] as i32);
        line.refuse().and_then(Refuse::told) == Some(Kind::Socket)
            && describe::asks_for_v6(family, kind, protocol)
            && self.connector.has_v6()
    }
}

/// The forks of a template: it may make one each time the host wants one. So code that boot has
/// left behind in the template cannot fork by itself.
pub(crate) struct Forks {
    template: Pid,
    /// Whether the host wants one now.
    wanted: AtomicBool,
}

impl Forks {
    /// Permits one fork.
    pub(crate) fn give_leave(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Consumes the permission for one fork. Returns whether there was one.
    pub(crate) fn take_leave(&self) -> bool {
        self.wanted.swap(false, Ordering::Relaxed)
    }

    /// Whether a call makes the fork that the host wants. The flags are in a register, which cannot
    /// change while the caller waits.
    fn may(&self, call: &seccomp_notif) -> bool {
        let [flags, ..] = call.data.args;
        i64::from(call.data.nr) == libc::SYS_clone
            && flags == u64::from(FORK)
            && Pid::from_raw(call.pid.cast_signed()) == self.template
            && self.take_leave()
    }
}

/// Whether a call is one that a process may make only about itself, and the caller does. The id is
/// in a register, which cannot change while the thread waits.
fn is_about_itself(line: &Call, own: impl FnOnce() -> Pid, data: &seccomp_data) -> bool {
    let Answer::AllowIf(when, _) = &line.answer else {
        return false;
    };
    let index = match when {
        When::Own(index) | When::OwnOrZero(index) => index,
        When::OwnOrZeroAnd(index, rules) if holds(rules, &data.args) => index,
        _ => return false,
    };
    let id = data.args.get(usize::from(*index)).copied().unwrap_or(0);
    // The lower half: ids are `int`s.
    i32::try_from(id & u64::from(u32::MAX)) == Ok(own().as_raw())
}

/// The listener of a template's filter, which all its forks share. Each thread that waits for a
/// fork serves it, and keeps refusals of other forks for the threads that wait for those.
pub(crate) struct Shared {
    /// A copy of the listener's descriptor, to poll.
    socket: OwnedFd,
    listener: Mutex<Listener>,
    heard: Mutex<HashMap<Pid, Vec<Refusal>>>,
    connector: Arc<Connector>,
    forks: Arc<Forks>,
}

/// Maximum number of refusals kept for one process.
const KEPT_MAX: usize = 64;

impl Shared {
    /// Returns `None` if the host has no descriptor left, or the listener is not a template's.
    pub(crate) fn new(listener: Listener) -> Option<Self> {
        Some(Self {
            forks: Arc::clone(listener.forks.as_ref()?),
            socket: listener.answering.socket.try_clone().ok()?,
            connector: Arc::clone(&listener.connector),
            listener: Mutex::new(listener),
            heard: Mutex::default(),
        })
    }

    /// What to poll for calls.
    pub(crate) fn interest(&self) -> (BorrowedFd<'_>, PollFlags) {
        (self.socket.as_fd(), PollFlags::POLLIN)
    }

    /// The forks of the template.
    pub(crate) fn forks(&self) -> &Forks {
        &self.forks
    }

    /// Answers waiting calls, unless another thread is doing so.
    pub(crate) fn serve(&self, ready: PollFlags) {
        let Ok(mut listener) = self.listener.try_lock() else {
            return;
        };
        // Another thread may have been faster.
        let ready = ready & listener.ready();
        listener.serve(ready, &mut |process, refusal| {
            self.keep(process, refusal);
        });
    }

    fn keep(&self, process: Pid, refusal: Refusal) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = heard.entry(process).or_default();
        if kept.len() < KEPT_MAX && !kept.contains(&refusal) {
            kept.push(refusal);
        }
    }

    /// The refusals of a process that has ended.
    pub(crate) fn take(&self, process: Pid) -> Vec<Refusal> {
        self.connector.forget(process);
        for (process, refusal) in self.connector.take_refused() {
            self.keep(process, refusal);
        }
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.remove(&process).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
