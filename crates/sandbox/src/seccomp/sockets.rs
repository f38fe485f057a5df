//! Sockets that the host makes in place of processes, where it may not copy theirs: it puts each
//! into the process and keeps a copy, which it connects later.
//!
//! A thread makes and keeps them, in a file descriptor table of its own ([`apart`]). It ends once it
//! holds none.
//!
//! A call of connect(2) means the copy whose inode the process's descriptor has. The process can
//! move its descriptors meanwhile: then another one of its own sockets is connected, which it may
//! have connected anyway.
//!
//! A copy is dropped once the process has no descriptor of the socket, so that the other end sees
//! it closed. It is kept while there is one: a process that does not want to wait calls connect(2)
//! again.
#![allow(unsafe_code)]

use std::fs::{read_dir, read_link};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{self, c_int, seccomp_notif};
use nix::sys::stat::fstat;
use nix::unistd::Pid;

use super::apart::Otherwise;
use super::attempts::{Attempts, Connecting, Way};
use super::listener::{Answering, Reply};
use super::{apart, lock, threads};
use crate::acting::{Acting, For};
use crate::{RunAs, other_user, system_calls};

/// Maximum number of copies for one process: more than PHP's clients open at once.
const COPIES_MAX: usize = 32;
/// The same for all processes behind a filter.
const COPIES_TOTAL_MAX: usize = 1024;

/// How often to look whether the processes still have the sockets.
const LOOK: Duration = Duration::from_millis(100);

/// Maximum number of a process's descriptors to look at: what a command may have.
const DESCRIPTORS_MAX: usize = 4096;

/// Whether the host may copy descriptors of processes that it starts as `user`, or as its own user.
/// Containers' filters refuse it, and over another user it takes a capability.
#[must_use]
pub fn may_copy_descriptors(user: Option<RunAs>) -> bool {
    // A filter is never lifted, so one look is enough.
    static PERMITTED: LazyLock<bool> =
        LazyLock::new(|| system_calls::may_copy_descriptors(Pid::this()).is_ok());
    let inspects = || {
        let inspect = caps::Capability::CAP_SYS_PTRACE;
        caps::has_cap(None, caps::CapSet::Effective, inspect).unwrap_or(false)
    };
    *PERMITTED && (other_user(user).is_none() || inspects())
}

/// A call of socket(2) with permitted arguments.
struct Wanted {
    call: u64,
    thread: Pid,
    process: Pid,
    family: c_int,
    kind: c_int,
    protocol: c_int,
}

/// Maximum number of tasks that wait for the thread: a process whose calls are interrupted makes
/// them again before they are answered.
const WORK_MAX: usize = 256;

/// What the thread has to do.
enum Work {
    Make(Wanted),
    Connect(Connecting),
    Forget(Pid),
}

/// The way to the thread, while there is one.
type Slot = Mutex<Option<SyncSender<Work>>>;

/// The sockets of the processes behind a filter.
pub(super) struct Sockets {
    /// The user that the processes run as, if different from the host's.
    run_as: Option<RunAs>,
    attempts: Attempts,
    thread: Arc<Slot>,
}

impl Sockets {
    pub(super) fn new(run_as: Option<RunAs>, attempts: Attempts) -> Self {
        Self {
            run_as,
            attempts,
            thread: Arc::default(),
        }
    }

    /// Has a socket made, which answers the call.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(super) fn make(&self, call: &seccomp_notif, answering: &Answering) -> nix::Result<()> {
        let thread = Pid::from_raw(call.pid.cast_signed());
        // Like the kernel, uses the lower halves.
        let [family, kind, protocol, ..] = call.data.args.map(|argument| argument as c_int);
        let wanted = Wanted {
            call: call.id,
            thread,
            process: threads::process_of(thread).unwrap_or(thread),
            family,
            kind,
            protocol,
        };
        self.give(Work::Make(wanted), answering)
    }

    /// Has a connection made on the host's copy of a socket, which answers the call.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(super) fn connect(&self, wanted: Connecting, answering: &Answering) -> nix::Result<()> {
        self.give(Work::Connect(wanted), answering)
    }

    /// Drops the copies of a process that has ended.
    pub(super) fn forget(&self, process: Pid) {
        if let Some(thread) = &*lock(&self.thread) {
            // If too much waits, the next look finds that the process has gone.
            let _ = thread.try_send(Work::Forget(process));
        }
    }

    /// Drops all copies.
    pub(super) fn end(&self) {
        *lock(&self.thread) = None;
    }

    fn give(&self, work: Work, answering: &Answering) -> nix::Result<()> {
        let mut thread = lock(&self.thread);
        let left = match &*thread {
            // The thread takes itself out before it ends.
            Some(thread) => return thread.try_send(work).map_err(|_| Errno::EAGAIN),
            None => work,
        };
        let started = self.start(answering)?;
        let given = started.try_send(left).map_err(|_| Errno::EAGAIN);
        *thread = Some(started);
        given
    }

    fn start(&self, answering: &Answering) -> nix::Result<SyncSender<Work>> {
        let (sender, work) = sync_channel(WORK_MAX);
        let (slot, attempts) = (Arc::clone(&self.thread), self.attempts.clone());
        let (run_as, words) = (self.run_as, answering.words());
        let kept = answering.socket();
        apart::start("altair-sockets", kept, Otherwise::Share, move |listener| {
            let maker = Maker {
                answering: Answering::new(listener, words),
                attempts,
                run_as,
                copies: Vec::new(),
                looked: Instant::now(),
            };
            maker.serve(&work, &slot);
        })
        .map_err(|_| Errno::EAGAIN)?;
        Ok(sender)
    }
}

/// The host's copy of a socket.
struct Copy {
    process: Pid,
    /// The thread that asked for it, and the number that it got there.
    thread: Pid,
    number: RawFd,
    inode: u64,
    /// Only in the thread's file descriptor table: never drop it elsewhere.
    socket: Arc<OwnedFd>,
}

/// What the thread has.
struct Maker {
    answering: Answering,
    attempts: Attempts,
    run_as: Option<RunAs>,
    copies: Vec<Copy>,
    looked: Instant,
}

impl Maker {
    /// The thread's main function.
    fn serve(mut self, work: &Receiver<Work>, slot: &Slot) {
        loop {
            match work.recv_timeout(LOOK) {
                Ok(work) => self.work(work),
                Err(RecvTimeoutError::Timeout) => {
                    self.drop_unused(|_| true);
                    if self.copies.is_empty() {
                        // Work is given under the same lock.
                        let mut own = lock(slot);
                        let Ok(work) = work.try_recv() else {
                            *own = None;
                            return;
                        };
                        drop(own);
                        self.work(work);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // The work of one process must not keep the sockets of another.
            if self.looked.elapsed() >= LOOK {
                self.drop_unused(|_| true);
            }
        }
    }

    fn work(&mut self, work: Work) {
        match work {
            Work::Make(wanted) => self.make(&wanted),
            Work::Connect(wanted) => self.connect(wanted),
            Work::Forget(process) => self.copies.retain(|copy| copy.process != process),
        }
    }

    fn make(&mut self, wanted: &Wanted) {
        if !self.answering.waits(wanted.call) {
            return;
        }
        self.drop_unused(|copy| copy.process == wanted.process);
        if let Err(errno) = self.made(wanted) {
            self.answering.reply(wanted.call, Reply::Fail(errno));
        }
    }

    fn made(&mut self, wanted: &Wanted) -> nix::Result<()> {
        let own = self.copies_of(wanted.process).count();
        if own >= COPIES_MAX || self.copies.len() >= COPIES_TOTAL_MAX {
            return Err(Errno::EMFILE);
        }
        let socket = {
            // A socket has the user who made it.
            let _as = Acting::begin(self.run_as, For::Files)?;
            socket(wanted.family, wanted.kind, wanted.protocol)?
        };
        let inode = fstat(&socket)?.st_ino;
        let closes = wanted.kind & libc::SOCK_CLOEXEC != 0;
        let number = self.answering.give(wanted.call, socket.as_fd(), closes)?;
        self.copies.push(Copy {
            process: wanted.process,
            thread: wanted.thread,
            number,
            inode,
            socket: Arc::new(socket),
        });
        Ok(())
    }

    fn connect(&mut self, wanted: Connecting) {
        self.drop_unused(|copy| copy.process == wanted.process());
        let call = wanted.call();
        match self.copy_for(&wanted) {
            Ok(way) => {
                let begun = self.attempts.begin(wanted, way, &self.answering);
                if let Err(errno) = begun {
                    self.answering.reply(call, Reply::Fail(errno));
                }
            }
            Err(errno) => {
                self.answering.reply(call, Reply::Fail(errno));
            }
        }
    }

    /// The copy that a connection is to be made on.
    fn copy_for(&self, wanted: &Connecting) -> nix::Result<Way> {
        let (thread, number) = wanted.descriptor();
        let inode = {
            let _as = Acting::begin(self.run_as, For::Files)?;
            inode_at(thread, number)?
        };
        let mut own = self.copies_of(wanted.process());
        let copy = own.find(|copy| copy.inode == inode).ok_or(Errno::EPERM)?;
        Ok(Way::Made {
            socket: Arc::clone(&copy.socket),
            inode,
        })
    }

    fn copies_of(&self, process: Pid) -> impl Iterator<Item = &Copy> {
        self.copies
            .iter()
            .filter(move |copy| copy.process == process)
    }

    /// Drops the copies among these whose process has no descriptor of the socket.
    fn drop_unused(&mut self, among: impl Fn(&Copy) -> bool) {
        self.looked = Instant::now();
        if !self.copies.iter().any(&among) {
            return;
        }
        let Ok(_as) = Acting::begin(self.run_as, For::Files) else {
            return;
        };
        self.copies.retain(|copy| !among(copy) || copy.is_held());
    }
}

impl Copy {
    /// Whether the process has a descriptor of the socket: as the thread that asked for it sees it,
    /// or the first thread if that one has ended.
    fn is_held(&self) -> bool {
        if inode_at(self.thread, self.number) == Ok(self.inode) {
            return true;
        }
        let ids = [self.thread, self.process];
        let ids = ids
            .iter()
            .take(1 + usize::from(self.thread != self.process));
        ids.copied().any(|id| has(id, self.inode))
    }
}

/// Whether a thread has a descriptor of a socket.
fn has(thread: Pid, inode: u64) -> bool {
    let entries = match read_dir(format!("/proc/{thread}/fd")) {
        Ok(entries) => entries,
        // The host's own lack says nothing about the process.
        Err(error) => {
            let lacks = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
            return error.raw_os_error().is_some_and(|it| lacks.contains(&it));
        }
    };
    let mut links = entries
        .take(DESCRIPTORS_MAX)
        .flatten()
        .filter_map(|entry| read_link(entry.path()).ok());
    links.any(|link| inode_of(&link) == Some(inode))
}

/// The inode of a socket among a thread's descriptors; otherwise the error of connect(2).
fn inode_at(thread: Pid, number: RawFd) -> nix::Result<u64> {
    let link = read_link(format!("/proc/{thread}/fd/{number}")).map_err(|error| {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOENT) | None => Errno::EBADF,
            Some(errno) => errno,
        }
    })?;
    inode_of(&link).ok_or(Errno::ENOTSOCK)
}

/// The inode number in a socket's link (proc_pid_fd(5)).
fn inode_of(link: &std::path::Path) -> Option<u64> {
    let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Makes a socket, closed on `exec`.
fn socket(family: c_int, kind: c_int, protocol: c_int) -> nix::Result<OwnedFd> {
    // SAFETY: no pointer is passed; the kernel makes the descriptor for us.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    Errno::result(fd).map(system_calls::own_descriptor)
}
