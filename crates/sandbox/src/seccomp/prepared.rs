//! The filter of a command, compiled in the host for a process that may not allocate.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, LazyLock, Mutex};

use nix::errno::Errno;
use nix::libc;
use seccompiler::BpfProgram;

use super::Seccomp;
use super::filter::{Ask, For, compile};

/// A filter in its two forms.
pub(crate) struct PreparedFilter {
    listening: Arc<BpfProgram>,
    alone: Arc<BpfProgram>,
}

/// Both forms of a filter.
type Forms = (Arc<BpfProgram>, Arc<BpfProgram>);

/// The filters that were compiled before: a host runs commands under few policies.
static COMPILED: LazyLock<Mutex<HashMap<Seccomp, Forms>>> = LazyLock::new(Mutex::default);
/// The number of filters kept.
const COMPILED_MAX: usize = 32;

impl PreparedFilter {
    /// Compiles the filter of a command.
    ///
    /// # Errors
    /// If there is no filter for this architecture.
    pub(crate) fn new(policy: &Seccomp) -> io::Result<Self> {
        // Never blocks: in a fork of the host a thread that does not exist there may hold the lock.
        let known = COMPILED.try_lock().ok();
        if let Some((listening, alone)) = known.as_ref().and_then(|known| known.get(policy)) {
            return Ok(Self {
                listening: Arc::clone(listening),
                alone: Arc::clone(alone),
            });
        }
        let form = |ask| compile(policy, For::Command, ask).map_err(io::Error::other);
        let listening = Arc::new(form(Ask::Listener)?);
        let alone = Arc::new(form(Ask::Nobody)?);
        if let Some(mut known) = known {
            if known.len() >= COMPILED_MAX {
                known.clear();
            }
            known.insert(policy.clone(), (Arc::clone(&listening), Arc::clone(&alone)));
        }
        Ok(Self { listening, alone })
    }

    /// Installs it on the calling process, which has one thread and `no_new_privs`. Returns its
    /// listener, if there can be one. Async-signal-safe.
    pub(crate) fn take(&self) -> nix::Result<Option<RawFd>> {
        // An outer filter may have a listener already, and old kernels have none.
        match install(&self.listening, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER) {
            Ok(listener) => Ok(Some(RawFd::try_from(listener).map_err(|_| Errno::EBADF)?)),
            Err(_) => install(&self.alone, 0).map(|_| None),
        }
    }
}

fn install(program: &BpfProgram, flags: libc::c_ulong) -> nix::Result<libc::c_long> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?,
        // The crate's instruction has the kernel's layout (linux/filter.h).
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: `program` and what it points to outlive the call, which only reads them.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    })
}
