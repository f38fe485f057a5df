//! What a request's policy means for the kernel: limits, privileges, view, final guards.

use std::path::{Path, PathBuf};

use altair_sandbox::{
    FinalGuards, Landlock, Limits, Place, Policy, Privileges, Project, Readable, Seccomp, Shown,
    Temp, View, Writes,
};

use crate::guards::{Guard, Selection};
use crate::ladder::Level;
use crate::owner::run_as;
use crate::request::{EvalRequest, Target};
use crate::services::Services;

/// What the process may use beyond `memory_limit` before the kernel refuses it, in bytes: PHP's
/// own data, the stacks of threads, native libraries.
pub const HARD_CAP_HEADROOM_BYTES: u64 = 128 << 20;
/// Address space beyond that, in bytes: what is mapped without being private memory, as libraries
/// and ICU's data are, and what the C library reserves for each thread (64 MiB and a stack). The
/// most that native code can come to hold.
pub const ADDRESS_SPACE_HEADROOM_BYTES: u64 = 1 << 30;
/// The largest file a confined run may write, in bytes.
pub const FILE_SIZE_BYTES: u64 = 256 << 20;
/// Descriptors a confined run may hold.
pub const DESCRIPTORS: u64 = 256;
/// Signals that may wait for a confined run, with those of its user's other processes: as many as
/// real-time signals of an event loop may pile up to, and none that others miss.
pub const PENDING_SIGNALS: u64 = 1024;
/// Locks on ranges of files that a confined run may hold: SQLite has some for each connection. Each
/// takes some 200 bytes of the kernel's.
pub const FILE_LOCKS: usize = 10_000;
/// CPU seconds beyond the deadline after which the kernel ends the process, should the host fail to.
pub const CPU_BACKSTOP_SECONDS: u64 = 2;
/// Bytes that a run may write into the throwaway layer: room for a copy of a middling database.
pub const LAYER_BYTES: u64 = 256 << 20;
/// Bytes that a run may write into its directory for temporary files.
pub const TEMP_BYTES: u64 = 64 << 20;

/// The directory of the audit log, below the root: never writable by a snippet.
pub const AUDIT_DIR: &str = ".altair";

/// Where a run finds its directory for temporary files.
const TEMP: &str = "/tmp";
/// The same for a project that is [`TEMP`] itself.
const TEMP_ELSEWHERE: &str = "/var/tmp";

/// Device files that every program may expect. Only the first may be written: a shared mapping of
/// a writable `/dev/zero` would be memory that no limit counts (mem(4), `drivers/char/mem.c`).
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];
/// Of these, what may be written.
const WRITABLE_DEVICES: &[&str] = &["/dev/null"];

/// What of a run is derived from its policy.
pub(crate) struct Confinement<'a> {
    pub request: &'a EvalRequest,
    pub target: &'a Target,
    pub selection: &'a Selection,
    pub level: &'a Level<Place>,
    /// What may be read beside the project.
    pub readable: &'a [Shown],
    /// What may be connected to while the network is off.
    pub services: &'a Services,
}

impl Confinement<'_> {
    fn takes(&self, guard: Guard) -> bool {
        self.selection.takes(guard, self.request)
    }

    /// Whether the process is in a private root.
    pub fn has_view(&self) -> bool {
        !matches!(self.level, Level::None(_))
    }

    /// The directory for temporary files as the run sees it.
    pub fn temp(&self) -> &Path {
        match self.level {
            Level::None(dir) => dir.path(),
            _ if self.target.root.path() == Path::new(TEMP) => Path::new(TEMP_ELSEWHERE),
            _ => Path::new(TEMP),
        }
    }

    /// What the process gets before its program.
    pub fn policy(&self) -> Policy {
        if self.request.unconfined {
            return Policy::unconfined();
        }
        Policy {
            limits: if self.takes(Guard::Limits) {
                self.limits()
            } else {
                Limits::default()
            },
            privileges: if self.takes(Guard::Privileges) {
                Privileges::Drop {
                    run_as: run_as(&self.target.root),
                }
            } else {
                Privileges::Keep
            },
            view: self.has_view().then(|| self.view()),
            connections: self.services.connections(self.request.allow_network),
            makes_real_files: self.request.allow_writes,
        }
    }

    fn limits(&self) -> Limits {
        let memory = u64::from(self.request.memory_limit_mb()) << 20;
        Limits {
            data_bytes: Some(memory + HARD_CAP_HEADROOM_BYTES),
            address_space_bytes: Some(
                memory + HARD_CAP_HEADROOM_BYTES + ADDRESS_SPACE_HEADROOM_BYTES,
            ),
            cpu_seconds: Some(
                u64::from(self.request.timeout_ms()).div_ceil(1000) + CPU_BACKSTOP_SECONDS,
            ),
            file_size_bytes: Some(FILE_SIZE_BYTES),
            pending_signals: Some(PENDING_SIGNALS),
            // The child takes it, when it has sent what it has to send.
            descriptors: None,
            file_locks: Some(FILE_LOCKS),
        }
    }

    fn writes(&self) -> Writes {
        match self.level {
            _ if self.request.allow_writes => Writes::Real,
            Level::Full => Writes::Layer {
                bytes: LAYER_BYTES,
                on_disk: None,
            },
            Level::LayerOnDisk(dir) => Writes::Layer {
                bytes: LAYER_BYTES,
                on_disk: Some(dir.clone()),
            },
            Level::ReadOnly | Level::None(_) => Writes::Refused,
        }
    }

    /// The files that have another content than outside. With the network on, names are looked up as
    /// they are there.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        match self.services.is_empty() || self.request.allow_network {
            true => Vec::new(),
            false => self.services.files(),
        }
    }

    fn view(&self) -> View {
        View {
            readable: self.readable.to_vec(),
            devices: DEVICES.iter().map(PathBuf::from).collect(),
            files: self.files(),
            project: Project {
                root: self.target.root.clone(),
                writes: self.writes(),
                sealed: Some(AUDIT_DIR.into()),
            },
            temp: Temp {
                path: self.temp().to_owned(),
                bytes: TEMP_BYTES,
            },
        }
    }

    /// What the child takes before it boots.
    pub fn final_guards(&self) -> FinalGuards {
        FinalGuards {
            landlock: self.takes(Guard::Landlock).then(|| self.landlock()),
            seccomp: self.takes(Guard::Seccomp).then(|| Seccomp {
                network: self.request.allow_network,
                tcp: self.services.has_tcp(),
                local: self.services.has_sockets(),
                metadata: self.has_view(),
                attributes: self.writes() != Writes::Real,
            }),
            descriptors: self.takes(Guard::Limits).then_some(DESCRIPTORS),
        }
    }

    fn landlock(&self) -> Landlock {
        let mut writable = vec![self.temp().to_owned()];
        if self.writes() != Writes::Refused {
            writable.push(self.target.root.path().to_owned());
        }
        Landlock {
            // What else is there in a private root may be read; without one, this is the list.
            readable: if self.has_view() {
                vec![Readable::from("/")]
            } else {
                let devices = DEVICES.iter().map(Readable::from);
                let root = Some(self.target.root.inode());
                let others = self.readable.iter().filter(|shown| shown.inode() != root);
                others.map(Readable::shown).chain(devices).collect()
            },
            // Without one nothing covers the audit log: who can open it can lock it.
            readable_but: (!self.has_view())
                .then(|| (Readable::place(&self.target.root), AUDIT_DIR.into())),
            writable,
            devices: WRITABLE_DEVICES.iter().map(PathBuf::from).collect(),
            network: self.request.allow_network,
            ports: self.services.ports(),
        }
    }
}
