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
use altair_sandbox::{CaughtSignals, Rights, peer};
use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, bind, listen, socket};

use crate::address::Address;
use crate::client;
use crate::log;
use crate::message::{State, TemplateState};
use crate::serving::{self, Served};
use crate::title;

/// How long the pool waits for a request before it ends.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// The most templates: each holds the memory of a booted application.
const TEMPLATES_MAX: usize = 16;
/// The most connections at a time; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// The most runs of one caller at a time, so that none takes all connections.
const RUNS_OF_A_CALLER_MAX: usize = CONNECTIONS_MAX / 4;
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
    started: Instant,
    served: AtomicU64,
    connections: AtomicUsize,
    /// Runs under way of each caller, by its process id.
    callers: Mutex<HashMap<i32, usize>>,
    used: Mutex<Instant>,
    ends: AtomicBool,
}

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
    pub(crate) fn running(&self, caller: i32) -> Option<Running<'_>> {
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

    fn callers(&self) -> MutexGuard<'_, HashMap<i32, usize>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn idle(&self) -> Duration {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match self.connections.load(Ordering::Relaxed) {
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
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let listener =
        socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).map_err(io::Error::from)?;
    let lock = take_place(&address, &rights, &listener)?;
    let inode = address.inode();
    let now = Instant::now();
    let held = Arc::new(Held {
        pool: Arc::new(Pool::new().with_room_for(TEMPLATES_MAX)),
        rights,
        started: now,
        served: AtomicU64::new(0),
        connections: AtomicUsize::new(0),
        callers: Mutex::default(),
        used: Mutex::new(now),
        ends: AtomicBool::new(false),
    });
    log::write(&format!("serves at {}", address.path().display()));
    accept(&listener, &held, || address.inode() == inode);
    log::write("ends");
    address.leave(inode);
    drop(listener);
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
        if client::connect(rights, address).is_ok() || Instant::now() >= until {
            return Err(ServeError::Running);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn accept(listener: &OwnedFd, held: &Arc<Held>, is_there: impl Fn() -> bool) {
    let mut looked = Instant::now();
    loop {
        let is_full = held.connections.load(Ordering::Relaxed) >= CONNECTIONS_MAX;
        let events = if is_full {
            PollFlags::empty()
        } else {
            PollFlags::POLLIN
        };
        let mut fds = [PollFd::new(listener.as_fd(), events)];
        let patience = if is_full {
            Duration::from_millis(2)
        } else {
            LOOK
        };
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::NONE);
        let ready = poll(&mut fds, timeout);
        // It may have come to another thread: it is seen at the next look at the latest.
        if CaughtSignals::take(&ENDING).is_some() || held.ends.load(Ordering::Relaxed) {
            return;
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            title::show(held.pool.listed().len());
            if held.idle() >= IDLE || !is_there() {
                return;
            }
        }
        if ready.is_ok_and(|ready| ready > 0) && !is_full {
            take_one(listener, held);
        }
    }
}

fn take_one(listener: &OwnedFd, held: &Arc<Held>) {
    let socket = match peer::accept(listener.as_fd()) {
        Ok(socket) => socket,
        Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
            // It passes, and the host in the queue waits.
            std::thread::sleep(Duration::from_millis(10));
            return;
        }
        Err(_) => return,
    };
    held.connections.fetch_add(1, Ordering::Relaxed);
    let of_thread = Arc::clone(held);
    let started = std::thread::Builder::new()
        .name("altair-serving".into())
        .spawn(move || {
            struct Left(Arc<Held>);
            impl Drop for Left {
                fn drop(&mut self) {
                    self.0.connections.fetch_sub(1, Ordering::Relaxed);
                    self.0.touch();
                }
            }
            let left = Left(of_thread);
            match serving::serve(socket, &left.0) {
                Ok(Served::Done) => {}
                Ok(Served::Refused(why)) => log::write(&format!("refused: {why}")),
                Ok(Served::Stop) => left.0.ends.store(true, Ordering::Relaxed),
                // What a host does wrong ends its connection.
                Err(error) => log::write(&format!("a connection has failed: {error}")),
            }
        });
    if started.is_err() {
        held.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
