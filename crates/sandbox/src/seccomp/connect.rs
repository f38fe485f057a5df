//! Connections that a process may make: the host makes them, each on its own thread, which may wait
//! as long as the process would.
//!
//! The address and the descriptor are copied once, checked and then used, so later changes by the
//! process have no effect (seccomp_unotify(2) explains why a call must not continue after its
//! memory was checked).
//!
//! Where the host may not copy descriptors, it makes the sockets that are permitted, too
//! ([`super::sockets`]).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::libc::{c_int, seccomp_data, seccomp_notif};
use nix::unistd::Pid;

use super::attempts::{Attempts, Connecting, RefusedLater, Way};
use super::call::{Answer, Call, When, holds};
use super::listener::Answering;
use super::memory::Memory;
use super::sockets::Sockets;
use super::{lock, threads};
use crate::connections::{Address, Connections};
use crate::{Refusal, RunAs, procfs, system_calls};

/// Maximum number of addresses noted for one process.
const UNMET_MAX: usize = 64;

/// Where the processes behind a filter may connect to, and the attempts under way.
pub(crate) struct Connector {
    to: Connections,
    /// The user they run as, if different from the host's.
    run_as: Option<RunAs>,
    attempts: Attempts,
    /// What was refused only when it was looked who listens there, and to which process.
    refused: RefusedLater,
    sockets: Sockets,
    /// Whether the host makes sockets: the filter has asked for one.
    makes: AtomicBool,
    /// Addresses in the process's own network to which it has connected while nobody was there.
    unmet: Mutex<BTreeSet<SocketAddr>>,
    owner: u32,
}

/// The decision about a call.
pub(super) enum Decision {
    /// A thread answers it, or the caller no longer waits.
    Taken,
    /// The process makes it.
    Made,
    /// It fails, as it would have without a filter.
    Fails(Errno),
    /// It is refused.
    Refused(Option<Refusal>),
}

impl Connector {
    pub(crate) fn new(to: Connections, run_as: Option<RunAs>) -> Self {
        let attempts = Attempts::default();
        Self {
            to,
            run_as,
            sockets: Sockets::new(run_as, attempts.clone()),
            attempts,
            refused: RefusedLater::default(),
            makes: AtomicBool::new(false),
            unmet: Mutex::default(),
            owner: std::process::id(),
        }
    }

    /// Whether there is an IPv6 address to connect to.
    pub(super) fn has_v6(&self) -> bool {
        self.to.has_v6()
    }

    /// Whether the processes have the network of the host: not none, nor one of their own.
    pub(super) fn share_network(&self) -> bool {
        self.to.internet && !self.to.own_network
    }

    /// The memory of the processes.
    pub(super) fn memory(&self) -> Memory {
        Memory { user: self.run_as }
    }

    /// The files that the host opens in place of the processes.
    pub(super) fn files(&self) -> &[(PathBuf, Vec<u8>)] {
        &self.to.files
    }

    /// Whether a call of socket(2) asks for a socket that the host may connect. The arguments are
    /// in registers, which cannot change while the caller waits.
    pub(super) fn makes(&self, line: &Call, data: &seccomp_data) -> bool {
        let Answer::AllowIf(
            When::Sockets {
                internet,
                tcp,
                local,
            },
            _,
        ) = line.answer
        else {
            return false;
        };
        let permitted = [
            (internet, self.to.internet),
            (tcp, !self.to.addresses.is_empty()),
            (local, !self.to.sockets.is_empty()),
        ];
        permitted
            .into_iter()
            .any(|(rules, is)| is && holds(rules, &data.args))
    }

    /// Has a permitted socket made.
    pub(super) fn make(&self, call: &seccomp_notif, answering: &Answering) -> Decision {
        // Then the process makes it, and the host cannot connect it.
        if !answering.gives() {
            return Decision::Made;
        }
        self.makes.store(true, Ordering::Relaxed);
        match self.sockets.make(call, answering) {
            Ok(()) => Decision::Taken,
            Err(errno) => Decision::Fails(errno),
        }
    }

    /// Decides about a call of connect(2), and has it made if permitted.
    pub(super) fn decide(&self, call: &seccomp_notif, answering: &Answering) -> Decision {
        let thread = Pid::from_raw(call.pid.cast_signed());
        let [descriptor, address, length, ..] = call.data.args;
        let Some(address) = self.memory().socket_address(thread, address, length) else {
            return Decision::Refused(Some(Refusal::Connect { to: None }));
        };
        // Whatever the address is by the time that the kernel reads it again, it is one of the
        // process's own network.
        if let Address::Internet(own) = address
            && self.to.is_to_itself(&address)
        {
            self.note(own, thread);
            return Decision::Made;
        }
        let to = address.to_string();
        let Some(destination) = self.to.destination(&address) else {
            return Decision::Refused(super::describe::connect(Some(to)));
        };
        let process = threads::process_of(thread).unwrap_or(thread);
        let copying = system_calls::may_copy_descriptors(process);
        if let Err(errno) = copying
            && !self.makes.load(Ordering::Relaxed)
        {
            let because = format!("pidfd_getfd(): {}", errno.desc().to_lowercase());
            return Decision::Refused(Some(Refusal::Unserved { to, because }));
        }
        // Checked only now: what was read so far could be from another process that reused the id.
        if !answering.waits(call.id) {
            return Decision::Taken;
        }
        // Like the kernel, uses the lower half.
        let descriptor = descriptor as c_int;
        let wanted = Connecting::new(
            (process, thread),
            descriptor,
            destination,
            self.run_as,
            call.id,
            self.refused.clone(),
        );
        let begun = match copying {
            Ok(()) => self.attempts.begin(wanted, Way::Copied, answering),
            Err(_) => self.sockets.connect(wanted, answering),
        };
        begun.map_or_else(Decision::Fails, |()| Decision::Taken)
    }

    /// Notes whether the process meets itself at an address. If not, it probably means a service of
    /// the machine.
    fn note(&self, address: SocketAddr, thread: Pid) {
        let mut unmet = lock(&self.unmet);
        if procfs::is_bound(thread.as_raw(), address.port()) {
            unmet.remove(&address);
        } else if unmet.len() < UNMET_MAX {
            unmet.insert(address);
        }
    }

    /// Takes the connections that failed because the process's own network has no such service.
    pub(super) fn take_unmet(&self) -> impl Iterator<Item = Refusal> + use<> {
        std::mem::take(&mut *lock(&self.unmet))
            .into_iter()
            .map(|to| Refusal::Connect {
                to: Some(to.to_string()),
            })
    }

    /// Takes the connections that were refused after their calls were heard.
    pub(super) fn take_refused(&self) -> Vec<(Pid, Refusal)> {
        self.refused.take()
    }

    /// Gives up what is done for a process that has ended.
    pub(super) fn forget(&self, process: Pid) {
        // A fork of the host has no such threads.
        if self.owner == std::process::id() {
            self.attempts.give_up(|of| of == process);
            self.sockets.forget(process);
        }
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            self.attempts.give_up(|_| true);
            self.sockets.end();
        }
    }
}
