//! Translates a request's policy for the kernel: limits, privileges, view, final guards.

use std::path::{Path, PathBuf};

use altair_sandbox::{
    Connections, FinalGuards, Granted, Landlock, Limits, Made, Place, Policy, Privileges, Project,
    RunAs, Seccomp, Shown, TEMP_PATH, Temp, View, Writes, first_directory, may_copy_descriptors,
    shared_directory,
};

use crate::guards::{Guard, Selection};
use crate::ladder::Level;
use crate::owner::run_as;
use crate::request::{EvalRequest, Target};
use crate::services::Services;

/// Memory that the process may use beyond `memory_limit` before the kernel refuses it, in bytes:
/// PHP's own data, thread stacks, native libraries.
pub const HARD_CAP_HEADROOM_BYTES: u64 = 128 << 20;
/// Address space beyond that, in bytes: mappings that are not private memory, such as libraries and
/// ICU's data, and what the C library reserves for each thread (64 MiB and a stack). This bounds
/// what native code can allocate.
pub const ADDRESS_SPACE_HEADROOM_BYTES: u64 = 1 << 30;
/// The largest file a confined run may write, in bytes.
pub const FILE_SIZE_BYTES: u64 = 256 << 20;
/// The number of descriptors a confined run may hold.
pub const DESCRIPTORS: u64 = 256;
/// Signals that may be pending for a confined run, counted together with those of its user's other
/// processes: enough for the real-time signals that an event loop may pile up, few enough not to
/// starve others.
pub const PENDING_SIGNALS: u64 = 1024;
/// Locks on file ranges that a confined run may hold: SQLite takes some for each connection. Each
/// uses about 200 bytes of kernel memory.
pub const FILE_LOCKS: usize = 10_000;
/// CPU seconds beyond the deadline after which the kernel ends the process if the host fails to.
pub const CPU_BACKSTOP_SECONDS: u64 = 2;
/// Bytes that a run may write into the throwaway layer: room for a copy of a medium-sized database.
pub const LAYER_BYTES: u64 = 256 << 20;
/// Bytes that a run may write into its directory for temporary files.
pub const TEMP_BYTES: u64 = 64 << 20;

/// The directory of the audit log, below the root: never writable by a snippet.
pub const AUDIT_DIR: &str = ".altair";

/// The run's directory for temporary files.
const TEMP: &str = "/tmp";
/// The same for a project that is [`TEMP`] itself.
const TEMP_ELSEWHERE: &str = "/var/tmp";

/// The directory of frameworks' caches below that, if the project is read-only.
const CACHES: &str = "altair-caches";

/// Device files that every program may expect. Only the first is writable: a shared mapping of a
/// writable `/dev/zero` would be memory that no limit counts (mem(4), `drivers/char/mem.c`).
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];
/// The writable ones among them.
const WRITABLE_DEVICES: &[&str] = &["/dev/null"];

/// Which process a confinement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// One that boots for itself.
    Cold,
    /// A template.
    Template,
    /// A fork of a template.
    Fork,
}

/// Derives the parts of a run that depend on its policy.
pub(crate) struct Confinement<'a> {
    pub request: &'a EvalRequest,
    pub target: &'a Target,
    pub selection: &'a Selection,
    /// Without a private root: its directory for temporary files, or the one that holds those of a
    /// template and its forks.
    pub level: &'a Level<Place>,
    pub process: Process,
    /// Paths that may be read besides the project.
    pub readable: &'a [Shown],
    /// Services that may be connected to while the network is off.
    pub services: &'a Services,
    /// Whether the process lives longer than one deadline.
    pub lives_on: bool,
    /// The permissions that files of real writes do not get; `None`: as by this process.
    pub umask: Option<u32>,
}

impl Confinement<'_> {
    fn takes(&self, guard: Guard) -> bool {
        self.selection.takes(guard, self.request)
    }

    /// Returns whether the process is in a private root.
    pub fn has_view(&self) -> bool {
        !matches!(self.level, Level::None(_))
    }

    /// The directory for temporary files as seen by the run.
    pub fn temp(&self) -> &Path {
        match self.level {
            Level::None(dir) => match self.process {
                Process::Cold => dir.path(),
                Process::Template | Process::Fork => Path::new(TEMP_PATH),
            },
            _ if self.target.root.path() == Path::new(TEMP) => Path::new(TEMP_ELSEWHERE),
            _ => Path::new(TEMP),
        }
    }

    /// Where frameworks have their caches if the project is read-only: in a template a directory
    /// that its forks may read, elsewhere one of the run's own.
    pub fn caches(&self) -> Option<PathBuf> {
        let is_guarded = self.has_view() || self.takes(Guard::Landlock);
        let is_read_only = is_guarded && self.writes() == Writes::Refused;
        (is_read_only && !self.request.unconfined).then(|| match (self.level, self.process) {
            (Level::None(all), Process::Template | Process::Fork) => shared_directory(all.path()),
            _ => self.temp().join(CACHES),
        })
    }

    /// The policy that applies to the process before its program starts.
    pub fn policy(&self) -> Policy {
        if self.request.unconfined {
            return Policy::unconfined();
        }
        Policy {
            limits: self.limits(),
            privileges: if self.takes(Guard::Privileges) {
                Privileges::Drop {
                    run_as: run_as(&self.target.root),
                }
            } else {
                Privileges::Keep
            },
            view: self.has_view().then(|| self.view()),
            connections: Connections {
                files: self.files_by_host(),
                ..self.services.connections(self.request.allow_network)
            },
            made: match (self.request.allow_writes, self.umask) {
                (false, _) => Made::ForItself,
                (true, None) => Made::AsByHost,
                (true, Some(umask)) => Made::Without(umask),
            },
            spaces: None,
            before_exec: None,
        }
    }

    /// The limits of the process; none without that guard.
    pub fn limits(&self) -> Limits {
        if !self.takes(Guard::Limits) {
            return Limits::default();
        }
        let memory = u64::from(self.request.memory_limit_mb()) << 20;
        Limits {
            data_bytes: Some(memory + HARD_CAP_HEADROOM_BYTES),
            address_space_bytes: Some(
                memory + HARD_CAP_HEADROOM_BYTES + ADDRESS_SPACE_HEADROOM_BYTES,
            ),
            cpu_seconds: (!self.lives_on).then(|| {
                u64::from(self.request.timeout_ms()).div_ceil(1000) + CPU_BACKSTOP_SECONDS
            }),
            file_size_bytes: Some(FILE_SIZE_BYTES),
            pending_signals: Some(PENDING_SIGNALS),
            // The child sets it itself, after it has sent what it has to send.
            descriptors: None,
            processes: None,
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

    /// The files whose content differs from the host's. With the network on, names are resolved as
    /// on the host.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        match self.services.is_empty() || self.request.allow_network {
            true => Vec::new(),
            false => self.services.files(),
        }
    }

    /// Those that the host opens in place of the run, without a private root that could hold them.
    fn files_by_host(&self) -> Vec<(PathBuf, Vec<u8>)> {
        match self.has_view() {
            true => Vec::new(),
            false => self.files(),
        }
    }

    /// The user that the run has, if it is to drop privileges.
    fn user(&self) -> Option<RunAs> {
        let drops = self.takes(Guard::Privileges);
        drops.then(|| run_as(&self.target.root)).flatten()
    }

    fn view(&self) -> View {
        View {
            readable: self.readable.to_vec(),
            devices: DEVICES.iter().map(PathBuf::from).collect(),
            files: self.files(),
            project: Project {
                root: self.target.root.clone(),
                at: self.target.root.path().to_owned(),
                writes: self.writes(),
                sealed: Some(AUDIT_DIR.into()),
            },
            links: Vec::new(),
            writable: Vec::new(),
            layered: None,
            covered: Vec::new(),
            processes: false,
            temp: Temp {
                path: self.temp().to_owned(),
                bytes: TEMP_BYTES,
            },
            home: None,
        }
    }

    /// The guards that the child applies before it boots.
    pub fn final_guards(&self) -> FinalGuards {
        FinalGuards {
            landlock: self.takes(Guard::Landlock).then(|| self.landlock()),
            ..self.final_guards_of_fork()
        }
    }

    /// The same for a fork, whose template knows what Landlock is to allow it.
    pub fn final_guards_of_fork(&self) -> FinalGuards {
        FinalGuards {
            landlock: None,
            seccomp: self.takes(Guard::Seccomp).then(|| Seccomp {
                network: self.request.allow_network,
                tcp: self.services.has_tcp(),
                local: self.services.has_sockets(),
                sockets_by_host: !self.services.is_empty() && !may_copy_descriptors(self.user()),
                files_by_host: !self.files_by_host().is_empty(),
                metadata: self.has_view(),
                attributes: self.writes() != Writes::Real,
                command: None,
            }),
            descriptors: self.takes(Guard::Limits).then_some(DESCRIPTORS),
        }
    }

    fn landlock(&self) -> Landlock {
        let mut writable = vec![match (self.level, self.process) {
            // Its forks' rules only narrow its own, so theirs must be writable for it.
            (Level::None(all), Process::Template) => Granted::place(all),
            _ => Granted::from(self.temp()),
        }];
        let of_boot = match (self.level, self.process) {
            (Level::None(all), Process::Fork) => vec![
                // Boot may have kept real paths, from tempnam().
                first_directory(all.path()),
                shared_directory(all.path()),
            ],
            _ => Vec::new(),
        };
        if self.writes() != Writes::Refused {
            // In a private root the project has another inode: that of its layer.
            writable.push(match self.has_view() {
                true => Granted::from(self.target.root.path()),
                false => Granted::place(&self.target.root),
            });
        }
        Landlock {
            // In a private root everything else may be read; without one, this is the list.
            readable: if self.has_view() {
                vec![Granted::from("/")]
            } else {
                let devices = DEVICES.iter().map(Granted::from);
                let root = Some(self.target.root.inode());
                let others = self.readable.iter().filter(|shown| shown.inode() != root);
                others
                    .map(Granted::shown)
                    .chain(devices)
                    .chain(of_boot.iter().map(Granted::from))
                    .collect()
            },
            // Without a private root nothing covers the audit log, and whoever can open it can lock
            // it.
            readable_but: (!self.has_view())
                .then(|| (Granted::place(&self.target.root), AUDIT_DIR.into())),
            listed: Vec::new(),
            writable,
            devices: WRITABLE_DEVICES.iter().map(PathBuf::from).collect(),
            network: self.request.allow_network,
            ports: match self.takes(Guard::Seccomp) {
                true => self.services.ports(),
                // Nobody looks who listens.
                false => self.services.of_user().ports(),
            },
            command: false,
        }
    }
}
