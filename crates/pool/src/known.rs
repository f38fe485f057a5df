//! The pool that this process knows: one that it has found to have its rights, and to be able to look
//! into this process. Both stay true as long as the pool lives and this process has the same
//! credentials: a pool gives up nothing, and a sandbox that this process enters later does not hide it
//! from the pool. A process with capabilities remembers no pool: it may leave a namespace or a root
//! directory that it shared with one.
//!
//! The pool verifies this process at each request. Over a connection that is kept, the request brings its
//! proof with it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, TryLockError};

use altair_sandbox::Credentials;
use altair_sandbox::peer::Sender;

use crate::address::Address;
use crate::connection::Connection;
use crate::permit::Permit;

/// What a process remembers of a pool.
#[derive(Debug)]
pub(crate) struct Known {
    /// This process's credentials then.
    own: Credentials,
    /// Where it was told to look.
    runtime: Option<OsString>,
    directory: PathBuf,
    name: String,
    /// [`Sender::identity`] of the pool.
    identity: u64,
    /// The connection of the last request, if the pool keeps it.
    kept: Option<Kept>,
}

/// A connection to the pool over which a process asks again.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The process that has connected: what is forked from it has the connection, too.
    pub by: u32,
    pub connection: Connection,
    /// The pool's process id.
    pub pool: i32,
    /// [`Next::proof`](crate::message::Next::proof).
    pub proof: i32,
    pub permit: Permit,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

impl Known {
    /// A pool that was found at an address. `None` where it could not be told from another one.
    pub(crate) fn new(address: &Address, pool: &Sender) -> Option<Self> {
        Some(Self {
            own: Credentials::own().ok()??,
            runtime: runtime(),
            directory: address.path().to_owned(),
            name: address.name().to_owned(),
            identity: pool.identity()?,
            kept: None,
        })
    }

    /// Takes the one that was remembered, if this process has the credentials that it had then. It is
    /// forgotten unless it is remembered again.
    pub(crate) fn recalled() -> Option<Self> {
        // Another thread than the first has none, and takes nothing away.
        let own = Credentials::own().ok()??;
        let known = with(Option::take).flatten()?;
        (known.runtime == runtime() && known.own == own).then_some(known)
    }

    /// Takes the connection that was kept.
    pub(crate) fn kept(&mut self) -> Option<Kept> {
        let is_own = |kept: &Kept| kept.by == std::process::id();
        self.kept.take().filter(is_own)
    }

    /// Keeps a connection to it.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.kept = Some(kept);
    }

    /// Where it is.
    pub(crate) fn address(&self) -> Option<Address> {
        Address::again(&self.directory, &self.name).ok()
    }

    /// Whether a process is this pool.
    pub(crate) fn is(&self, pool: &Sender) -> bool {
        pool.identity() == Some(self.identity)
    }

    pub(crate) fn remember(self) {
        with(|known| *known = Some(self));
    }
}

fn runtime() -> Option<OsString> {
    std::env::var_os(crate::address::RUNTIME)
}

/// Does something with what is known. `None`: another thread does, or did when this process was forked
/// from its own, so that it will never be done.
fn with<T>(what: impl FnOnce(&mut Option<Known>) -> T) -> Option<T> {
    match KNOWN.try_lock() {
        Ok(mut known) => Some(what(&mut known)),
        Err(TryLockError::Poisoned(known)) => Some(what(&mut known.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}
