//! Acting as another user, for a host with more rights than the owner of a project: it must not do
//! for that owner what they could not do themselves.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::{self, c_long};

use crate::{Privileges, RunAs, privileges, thread};

/// The purpose for which a thread acts as another user.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// For access to files only. It keeps the capabilities that do not concern files.
    Files,
    /// Also for peers that ask for its credentials (`SO_PEERCRED`). It has no capabilities.
    Everything,
}

/// The calling thread acts as another user, without supplementary groups, until this is dropped.
/// The thread must then end, as its groups are not restored.
///
/// Its real and saved user ids stay the host's, so only a process that may signal or inspect the
/// host may do that to the thread. The kernel reacts to the change by forbidding inspection of the
/// whole host; dropping this allows it again (prctl(2), PR_SET_DUMPABLE).
pub(crate) struct Acting {
    before: c_long,
    /// The purpose, if the user is another one.
    other: Option<For>,
}

/// The result of PR_GET_DUMPABLE before the first [`Acting`]; -1 until then. Without a lock, as the
/// host may fork while another thread is here.
static DUMPABLE: AtomicI32 = AtomicI32::new(-1);

impl Acting {
    /// With `None`, acts as the host's own user, who may be root; [`For::Everything`] still drops
    /// all capabilities.
    pub(crate) fn begin(user: Option<RunAs>, what: For) -> nix::Result<Self> {
        let acting = Self {
            before: nix::unistd::geteuid().as_raw().into(),
            other: user.map(|_| what),
        };
        let Some(user) = user else {
            return match what {
                For::Files => Ok(acting),
                // Affects only the calling thread (capset(2)).
                For::Everything => match caps::clear(None, caps::CapSet::Effective) {
                    Ok(()) => Ok(acting),
                    Err(_) => Err(Errno::EPERM),
                },
            };
        };
        // SAFETY: no pointer is passed.
        let dumpable = unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) };
        let _ = DUMPABLE.compare_exchange(-1, dumpable, Ordering::Relaxed, Ordering::Relaxed);
        // The C library's own calls would change all threads.
        // SAFETY: no pointer is passed, except null for an empty list of groups.
        unsafe {
            match Errno::result(libc::syscall(libc::SYS_setgroups, 0, 0)) {
                Ok(_) => {}
                Err(Errno::EPERM) if privileges::has_no_groups_but(user.gid) => {}
                Err(errno) => return Err(errno),
            }
            match what {
                For::Everything => {
                    Errno::result(libc::syscall(libc::SYS_setresgid, -1, user.gid, -1))?;
                    Errno::result(libc::syscall(libc::SYS_setresuid, -1, user.uid, -1))?;
                }
                For::Files => {
                    // It would let links in /proc lead into other users' processes (proc(5)).
                    let looks_in = caps::Capability::CAP_SYS_PTRACE;
                    let _ = caps::drop(None, caps::CapSet::Effective, looks_in);
                    libc::syscall(libc::SYS_setfsgid, user.gid);
                    libc::syscall(libc::SYS_setfsuid, user.uid);
                    // They return the previous id, not whether it was changed (setfsuid(2)).
                    let gid = libc::syscall(libc::SYS_setfsgid, -1);
                    let uid = libc::syscall(libc::SYS_setfsuid, -1);
                    if (uid, gid) != (user.uid.into(), user.gid.into()) {
                        return Err(Errno::EPERM);
                    }
                }
            }
        }
        Ok(acting)
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        let Some(what) = self.other else { return };
        // SAFETY: no pointer is passed.
        unsafe {
            match what {
                For::Everything => libc::syscall(libc::SYS_setresuid, -1, self.before, -1),
                For::Files => libc::syscall(libc::SYS_setfsuid, self.before),
            }
        };
        if DUMPABLE.load(Ordering::Relaxed) == 1 {
            let _ = nix::sys::prctl::set_dumpable(true);
        }
    }
}

/// The user as which to access files for a process of `user`; `None` for the host's own.
#[must_use]
pub fn other_user(user: Option<RunAs>) -> Option<RunAs> {
    privileges::other_user(&Privileges::Drop { run_as: user })
}

/// The most threads per user that were given up and still hang in a file system. Beyond it, no
/// further one is started.
const LOST_MAX: usize = 8;
/// The number of these threads by user id. Some user ids share an entry.
static LOST: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

// The state of such a thread.
const AT_WORK: u8 = 0;
const DONE: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Works with files as another user, or as the host's own, on a separate thread, and waits at most
/// `patience` for the result. A file system that does not answer (a server that is gone, a program
/// in its place) cannot be interrupted: the thread is then left behind and ends when it answers.
///
/// # Errors
/// If the host may not act as that user or cannot start a thread; `TimedOut`.
pub fn with_files_of<T: Send + 'static>(
    user: Option<RunAs>,
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let whose = user.map_or(u32::MAX, |user| user.uid);
    let lost = &LOST[whose as usize % LOST.len()];
    if lost.load(Ordering::Relaxed) >= LOST_MAX {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let (sender, done) = sync_channel(1);
    let state = Arc::new(AtomicU8::new(AT_WORK));
    let own = Arc::clone(&state);
    let acting = other_user(user);
    let job = move || {
        let done = Acting::begin(acting, For::Files).map(|_acting| work());
        let _ = sender.send(done);
        if own.swap(DONE, Ordering::Relaxed) == GIVEN_UP {
            lost.fetch_sub(1, Ordering::Relaxed);
        }
    };
    match acting {
        None => own_user::run(Box::new(job))?,
        Some(_) => drop(thread::start("altair-files", job)?),
    }
    match done.recv_timeout(patience) {
        Ok(done) => Ok(done?),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread has ended")),
        Err(RecvTimeoutError::Timeout) => {
            // Counted first, as the thread may finish meanwhile.
            lost.fetch_add(1, Ordering::Relaxed);
            if state.swap(GIVEN_UP, Ordering::Relaxed) == DONE {
                lost.fetch_sub(1, Ordering::Relaxed);
            }
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// The threads that work with files as the host's own user. One may be used again, unlike one that has
/// acted as another user.
mod own_user {
    use std::io;
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::sync::{Mutex, PoisonError};
    use std::thread::{ThreadId, current};
    use std::time::Duration;

    use crate::thread;

    pub(super) type Job = Box<dyn FnOnce() + Send>;

    /// A thread that has nothing to do, and the process that it is in.
    struct Idle {
        process: u32,
        thread: ThreadId,
        jobs: SyncSender<Job>,
    }

    /// Who has a job only tries to lock it: a fork of the host may have a copy that is locked for good.
    static IDLE: Mutex<Option<Idle>> = Mutex::new(None);

    /// How long a thread waits for another job. Until then it takes less time than a new one.
    const LINGER: Duration = Duration::from_secs(1);

    /// Has a thread do a job.
    ///
    /// # Errors
    /// If there is no thread.
    pub(super) fn run(job: Job) -> io::Result<()> {
        let idle = IDLE.try_lock().ok().and_then(|mut idle| idle.take());
        let job = match idle {
            Some(idle) if idle.process == std::process::id() => match idle.jobs.send(job) {
                Ok(()) => return Ok(()),
                // It has just ended.
                Err(unsent) => unsent.0,
            },
            // The thread is in the process that this one is a fork of.
            Some(idle) => {
                std::mem::forget(idle);
                job
            }
            None => job,
        };
        thread::start("altair-files", move || {
            job();
            while let Some(job) = next() {
                job();
            }
        })
        .map(drop)
    }

    /// Waits for another job. `None` if none comes, or another thread waits already.
    fn next() -> Option<Job> {
        let (jobs, received) = sync_channel(1);
        let thread = current().id();
        match IDLE.try_lock() {
            Ok(mut idle) if idle.is_none() => {
                *idle = Some(Idle {
                    process: std::process::id(),
                    thread,
                    jobs,
                });
            }
            _ => return None,
        }
        received.recv_timeout(LINGER).ok().or_else(|| {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            drop(idle.take_if(|idle| idle.thread == thread));
            drop(idle);
            // Whoever has just taken this thread sends a job.
            received.recv().ok()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    const NOBODY: RunAs = RunAs {
        uid: 65534,
        gid: 65534,
    };
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn files_are_those_that_the_other_user_may_have() {
        if !nix::unistd::geteuid().is_root() {
            return; // only root can act as another user
        }
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().to_owned();
        std::fs::write(own.join("secret"), "x").unwrap();
        std::fs::set_permissions(own.join("secret"), PermissionsExt::from_mode(0o600)).unwrap();
        let looked = with_files_of(Some(NOBODY), LONG, move || {
            std::fs::read(own.join("secret"))
        });
        assert_eq!(
            looked.unwrap().unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let made = open.join("made");
        let path = made.clone();
        with_files_of(Some(NOBODY), LONG, move || std::fs::write(path, ""))
            .unwrap()
            .unwrap();
        assert_eq!(made.metadata().unwrap().uid(), NOBODY.uid);
        // The thread that asked keeps its user.
        assert_eq!(nix::unistd::geteuid().as_raw(), 0);
        std::fs::read(dir.path().join("secret")).unwrap();
    }

    #[test]
    fn what_does_not_answer_is_waited_for_no_longer_than_was_said() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let began = std::time::Instant::now();
        let looked = with_files_of(None, Duration::from_millis(20), move || wait.recv());
        assert_eq!(looked.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(10));
        drop(go);
    }
}
