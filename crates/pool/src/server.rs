//! The pool process: accepts connections, keeps templates, and ends when it is no longer needed.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use altair_engine::Pool;
use altair_sandbox::{CaughtSignals, Rights, Standing, peer};
use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::poll::{PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, bind, listen, socket};

use crate::address::Address;
use crate::client::Reached;
use crate::log;
use crate::message::{State, TemplateState, Work};
use crate::serving::{Conversation, Served};
use crate::title;

/// How long the pool waits for a request before it ends.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// The most templates: each holds the memory of a booted application.
const TEMPLATES_MAX: usize = 16;
/// The most connections at a time, each with a thread of its own; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 96;
/// The most connections that hosts may keep between their requests.
const KEPT_MAX: usize = 32;
/// The most threads that wait for a connection.
const WAITING_MAX: usize = 4;
/// The most runs of one caller at a time, so that none takes all connections.
const RUNS_OF_A_CALLER_MAX: usize = (CONNECTIONS_MAX - KEPT_MAX) / 4;
/// Connections that the kernel queues.
const BACKLOG: i32 = 128;
/// How often the pool looks whether it is still needed, and whether its socket is there.
const LOOK: Duration = Duration::from_millis(250);
/// How long the keepers of a pool that was killed may take to end.
const ENDING_PATIENCE: Duration = Duration::from_secs(2);
/// The signals that end it.
const ENDING: [i32; 3] = [
    Signal::SIGTERM as i32,
    Signal::SIGINT as i32,
    Signal::SIGHUP as i32,
];

/// Why a pool does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another pool serves these processes already.
    #[error("a pool is running already")]
    Running,
    /// What the system reports.
    #[error("the pool cannot be started: {0}")]
    System(#[from] io::Error),
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Held {
    pub pool: Arc<Pool>,
    pub rights: Rights,
    /// What the pool itself is granted, as of its last look.
    standing: Mutex<Standing>,
    started: Instant,
    served: AtomicU64,
    /// Requests under way.
    requests: AtomicUsize,
    /// Connections that are kept.
    kept: AtomicUsize,
    /// Runs under way of each caller, by its process id.
    callers: Mutex<HashMap<i32, usize>>,
    used: Mutex<Instant>,
    ends: AtomicBool,
}

/// A request, as long as it is under way.
struct Request<'h>(&'h Held);

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a connection needs that is kept, as long as it is.
#[derive(Debug)]
pub(crate) struct Place<'h>(&'h Held);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A caller has as many runs under way as it may have.
#[derive(Debug)]
pub(crate) struct TooMany;

/// A run of a caller, as long as it lives.
pub(crate) struct Running<'h> {
    held: &'h Held,
    caller: i32,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut callers = self.held.callers();
        if let Some(count) = callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                callers.remove(&self.caller);
            }
        }
    }
}

impl Held {
    /// A run of this caller is under way. `None`: it has too many already, and others must have
    /// theirs.
    fn running(&self, caller: i32) -> Option<Running<'_>> {
        self.touch();
        let mut callers = self.callers();
        let count = callers.entry(caller).or_default();
        if *count >= RUNS_OF_A_CALLER_MAX {
            return None;
        }
        *count += 1;
        self.served.fetch_add(1, Ordering::Relaxed);
        Some(Running { held: self, caller })
    }

    /// The same if it is a run that is asked for.
    pub(crate) fn running_if(
        &self,
        work: &Work<'_>,
        caller: i32,
    ) -> Result<Option<Running<'_>>, TooMany> {
        match work {
            Work::Run { .. } => self.running(caller).map(Some).ok_or(TooMany),
            Work::State | Work::Stop => Ok(None),
        }
    }

    /// A place among the connections that are kept, if there is one.
    pub(crate) fn place(&self) -> Option<Place<'_>> {
        let is_one_more = |count: usize| (count < KEPT_MAX).then_some(count + 1);
        (self.kept)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_one_more)
            .is_ok()
            .then(|| Place(self))
    }

    fn request(&self) -> Request<'_> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Request(self)
    }

    /// Whether there is one request under way, and no other.
    pub(crate) fn has_one_request(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 1
    }

    /// What the pool itself is granted.
    pub(crate) fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<i32, usize>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn idle(&self) -> Duration {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match self.requests.load(Ordering::Relaxed) {
            0 => used.elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// What is there, for users.
    pub(crate) fn state(&self) -> State {
        let templates = self.pool.listed().into_iter();
        State {
            pid: std::process::id(),
            age_seconds: self.started.elapsed().as_secs(),
            served: self.served.load(Ordering::Relaxed),
            running: self.callers().values().sum(),
            templates: templates
                .map(|template| TemplateState {
                    root: template.root.display().to_string(),
                    state: template.state.into(),
                    pid: template.pid,
                    age_seconds: template.age.as_secs(),
                    idle_seconds: template.idle.as_secs(),
                    uses: template.uses,
                    spares: template.spares,
                    memory_bytes: template.pid.and_then(memory),
                })
                .collect(),
        }
    }
}

/// A process's proportional share of memory, in bytes.
fn memory(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    kib.trim()
        .strip_suffix(" kB")?
        .parse::<u64>()
        .ok()
        .map(|kib| kib << 10)
}

/// Serves in this process until it is no longer needed. `directory`: where the socket is to be.
///
/// The process has nothing of whoever started it: a session and a working directory of its own, and
/// no descriptors.
///
/// # Errors
/// [`ServeError`].
pub fn serve(directory: &Path) -> Result<(), ServeError> {
    let _ = nix::unistd::setsid();
    nix::unistd::chdir("/").map_err(io::Error::from)?;
    // Runs have their callers'.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    let _signals = CaughtSignals::catch(&ENDING)?;
    let rights = Rights::own()?;
    let address = Address::at(directory, &rights)?;
    let flags = SockFlag::SOCK_CLOEXEC;
    let listener =
        socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).map_err(io::Error::from)?;
    let lock = take_place(&address, &rights, &listener)?;
    let inode = address.inode();
    let now = Instant::now();
    let held = Arc::new(Held {
        pool: Arc::new(Pool::new().with_room_for(TEMPLATES_MAX)),
        rights,
        standing: Mutex::new(Standing::of(0)?),
        started: now,
        served: AtomicU64::new(0),
        requests: AtomicUsize::new(0),
        kept: AtomicUsize::new(0),
        callers: Mutex::default(),
        used: Mutex::new(now),
        ends: AtomicBool::new(false),
    });
    log::write(&format!("serves at {}", address.path().display()));
    let threads = Arc::new(Threads {
        listener,
        held,
        waiting: AtomicUsize::new(0),
        count: AtomicUsize::new(0),
    });
    stay(&threads, || address.inode() == inode);
    log::write("ends");
    address.leave(inode);
    drop(lock);
    Ok(())
}

/// Binds and listens at an address that no living pool has. One that was killed has it until the
/// last of its keepers has ended.
fn take_place(
    address: &Address,
    rights: &Rights,
    listener: &OwnedFd,
) -> Result<Flock<File>, ServeError> {
    let until = Instant::now() + ENDING_PATIENCE;
    loop {
        let bound = address.bind(|at| {
            bind(listener.as_raw_fd(), at)?;
            // A host may ask before it is accepted: what it sends then is told of, too.
            peer::tell_senders(listener.as_fd())?;
            Ok(listen(listener, Backlog::new(BACKLOG)?)?)
        });
        match bound {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            bound => return Ok(bound?),
        }
        // One that is being killed has a socket still, and answers no more.
        let reached = Reached::at(rights.clone(), address);
        if reached.is_ok_and(|pool| pool.check().is_ok()) || Instant::now() >= until {
            return Err(ServeError::Running);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The threads that serve: each waits for a connection, serves it to its end, and waits for another.
struct Threads {
    listener: OwnedFd,
    held: Arc<Held>,
    /// How many wait for a connection.
    waiting: AtomicUsize,
    count: AtomicUsize,
}

/// Keeps threads that serve as long as the pool is needed.
fn stay(threads: &Arc<Threads>, is_there: impl Fn() -> bool) {
    let held = &threads.held;
    loop {
        threads.have_one_wait();
        let look = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::NONE);
        // A signal ends the wait; if it has come to another thread, it is seen at the next look.
        let _ = poll(&mut [], look);
        if CaughtSignals::take(&ENDING).is_some() || held.ends.load(Ordering::Relaxed) {
            return;
        }
        title::show(held.pool.listed().len());
        // Somebody may have changed it (prlimit(1), taskset(1)).
        if let Ok(standing) = Standing::of(0) {
            *held.standing() = standing;
        }
        if held.idle() >= IDLE || !is_there() {
            return;
        }
    }
}

impl Threads {
    /// Starts a thread if none waits, unless there are as many as there may be: further hosts wait
    /// in the queue then.
    fn have_one_wait(self: &Arc<Self>) {
        let is_one_more = |count: usize| (count < CONNECTIONS_MAX).then_some(count + 1);
        if self.waiting.load(Ordering::Relaxed) > 0
            || (self.count)
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_one_more)
                .is_err()
        {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let own = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name("altair-serving".into())
            .spawn(move || own.serve());
        // The next look tries again.
        if started.is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Serves what is asked for over one connection.
    fn converse(&self, socket: OwnedFd) -> io::Result<()> {
        let request = self.held.request();
        let mut conversation = Conversation::new(socket, &self.held)?;
        let mut served = conversation.first()?;
        drop(request);
        loop {
            match served {
                Served::Done => {}
                Served::Refused(why) => log::write(&format!("refused: {why}")),
                Served::Stop => self.held.ends.store(true, Ordering::Relaxed),
            }
            if !conversation.awaits_another() {
                return Ok(());
            }
            let _request = self.held.request();
            served = match conversation.further() {
                // The host needs it no more.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                served => served?,
            };
        }
    }

    /// Serves one connection after the other, as one of the threads that wait. Ends if enough others
    /// do.
    fn serve(self: Arc<Self>) {
        loop {
            let socket = match peer::accept(self.listener.as_fd()) {
                Ok(socket) => socket,
                Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
                    // It passes, and the host in the queue waits.
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                Err(_) => continue,
            };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let serving = Serving(&self);
            self.have_one_wait();
            // What a host does wrong ends its connection.
            if let Err(error) = self.converse(socket) {
                log::write(&format!("a connection has failed: {error}"));
            }
            drop(serving);
            if self.waiting.load(Ordering::Relaxed) >= WAITING_MAX {
                self.count.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A thread that serves a connection. A panic ends it.
struct Serving<'t>(&'t Threads);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
