//! The driver `native`: the command in a private root, in namespaces of its own, behind Landlock and
//! a filter of system calls.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use altair_engine::ladder;
use altair_engine::launch::is_stripped;
use altair_engine::services::{self, Services};
use altair_sandbox::{
    Command as CommandCalls, FinalGuards, Granted, GuardState, Landlock, Layered, Limits, Made,
    Place, Policy, Privileges, Project, RunAs, Seccomp, Shown, Spaces, SpawnError, Step, Temp,
    View, Writes, landlock_version, may_become_another_user, may_copy_descriptors,
};
use nix::unistd::geteuid;

use crate::work_dir::NOBODY;
use crate::{CommandError, ExecutionPolicy, Memory};

/// What programs need to run: read-only, where they exist.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix/store",
    "/gnu/store",
];

/// What is not shown even if the whole root may be read: the command has its own.
const OWN: &[&str] = &["/proc", "/dev", "/tmp"];

/// Where files that only root may read are not shown to a command of root's, which has root's files,
/// but none of its powers.
const SETTINGS: &str = "/etc";

/// Device files that every program may expect.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
/// The writable ones among them. A shared mapping of a writable `/dev/zero` would be memory that no
/// limit counts.
const WRITABLE_DEVICES: &[&str] = &["/dev/null", "/dev/full"];
/// The command's own terminal, if it has one.
const TERMINAL: &str = "/dev/tty";

/// Links that programs expect in `/dev`.
const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/shm", "/tmp"),
];

/// Where temporary files go, and where they go if the policy names that directory itself.
const TEMP: &str = "/tmp";
const TEMP_ELSEWHERE: &str = "/var/tmp";

/// Bytes of temporary files.
pub const TEMP_BYTES: u64 = 64 << 20;
/// Bytes that a command may write into its layer: room for the packages of an application.
pub const LAYER_BYTES: u64 = 1 << 30;
/// The largest file that a command with a memory limit may write, in bytes.
pub const FILE_SIZE_BYTES: u64 = 1 << 30;
/// Processes and threads that a command may have at a time.
pub const PROCESSES: u64 = 512;
/// Descriptors that each of its processes may have.
pub const DESCRIPTORS: u64 = 4096;
/// Signals that may be pending for it.
pub const PENDING_SIGNALS: u64 = 4096;
/// Processor seconds beyond the deadline after which the kernel ends a process.
const CPU_BACKSTOP_SECONDS: u64 = 2;

/// Where a command works.
#[derive(Debug, Clone)]
pub(crate) struct Workplace {
    /// The directory on the host.
    pub place: Place,
    /// Where the command sees it.
    pub at: PathBuf,
    /// The working directory that the command starts in.
    pub cwd: PathBuf,
    /// Whether it is the command's own.
    pub is_own: bool,
}

impl Workplace {
    /// The command's own directory, which it sees at `at`.
    pub(crate) fn own(place: Place, at: PathBuf) -> Self {
        Self {
            cwd: at.clone(),
            place,
            at,
            is_own: true,
        }
    }

    /// The base directory, at its own place.
    pub(crate) fn at(base: Place) -> Self {
        Self {
            at: base.path().to_owned(),
            cwd: base.path().to_owned(),
            place: base,
            is_own: false,
        }
    }
}

/// Everything that a native command is made from.
#[derive(Debug)]
pub(crate) struct Native<'a> {
    pub policy: &'a ExecutionPolicy,
    pub workplace: &'a Workplace,
    pub readable: Vec<Place>,
    pub writable: Vec<Place>,
    pub layered: Vec<Place>,
    pub services: Services,
    pub user: Option<RunAs>,
    pub has_terminal: bool,
}

/// How much the kernel supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Level {
    /// A private root and namespaces, the layer in memory.
    Full,
    /// The same, the layer in this directory on disk.
    LayerOnDisk(Place),
    /// Neither: Landlock and the filter.
    NoRoot,
}

/// The user that a command of a root host runs as: the owner of the first directory that it may
/// write, otherwise of the directory that it works in if that is not its own, otherwise nobody. A root
/// without capabilities is as an ordinary user.
pub(crate) fn run_as(
    writable: &[Place],
    layered: &[Place],
    works_in: Option<&Place>,
) -> Option<RunAs> {
    if !geteuid().is_root() || !may_become_another_user() {
        return None;
    }
    let place = layered.first().or(writable.first()).or(works_in);
    Some(place.map_or(NOBODY, Place::owner))
}

/// Resolves a policy's services.
pub(crate) fn services(
    policy: &ExecutionPolicy,
    user: Option<RunAs>,
    until: Instant,
) -> Result<Services, CommandError> {
    let declared = services::declared(&policy.services).map_err(CommandError::Invalid)?;
    services::resolve(&declared, true, user, until).map_err(CommandError::Start)
}

impl Native<'_> {
    /// Whether the command gets a network of its own, with nothing in it. Services are connected by
    /// the host, on sockets of its own network.
    fn has_own_network(&self) -> bool {
        !self.policy.network && self.services.is_empty()
    }

    fn has_root(level: &Level) -> bool {
        *level != Level::NoRoot
    }

    /// The paths that the policy names.
    fn named(&self) -> impl Iterator<Item = &Path> {
        let places = self
            .readable
            .iter()
            .chain(&self.writable)
            .chain(&self.layered);
        places.map(Place::path).chain([self.workplace.at.as_path()])
    }

    /// The directory for temporary files.
    pub(crate) fn temp(&self, level: &Level) -> PathBuf {
        if !Self::has_root(level) {
            return self.workplace.place.path().to_owned();
        }
        match self.named().any(|path| path == Path::new(TEMP)) {
            true => TEMP_ELSEWHERE.into(),
            false => TEMP.into(),
        }
    }

    /// The directory that the command starts in.
    pub(crate) fn starts_in(&self, level: &Level) -> PathBuf {
        match Self::has_root(level) || !self.workplace.is_own {
            true => self.workplace.cwd.clone(),
            false => self.workplace.place.path().to_owned(),
        }
    }

    /// The command's own directory.
    fn works_at(&self, level: &Level) -> PathBuf {
        match Self::has_root(level) {
            true => self.workplace.at.clone(),
            false => self.workplace.place.path().to_owned(),
        }
    }

    /// What the kernel enforces.
    pub(crate) fn policy(&self, level: &Level) -> Policy {
        Policy {
            limits: self.limits(level),
            privileges: Privileges::Drop { run_as: self.user },
            view: Self::has_root(level).then(|| self.view(level)),
            connections: altair_sandbox::Connections {
                own_network: self.has_own_network() && Self::has_root(level),
                files: self.files_by_host(level),
                ..self.services.connections(self.policy.network)
            },
            made: Made::AsByHost,
            spaces: Some(Spaces {
                network: self.has_own_network(),
            }),
            before_exec: Some(FinalGuards {
                landlock: Some(self.landlock(level)),
                seccomp: Some(self.seccomp(level)),
                descriptors: Some(DESCRIPTORS),
            }),
        }
    }

    fn is_root(&self) -> bool {
        let uid = self
            .user
            .map_or_else(|| geteuid().as_raw(), |user| user.uid);
        uid == 0
    }

    /// What only root may read, and the policy does not name.
    fn secrets(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        if self.is_root() {
            collect_secrets(Path::new(SETTINGS), &mut found);
        }
        found.retain(|secret| !self.named().any(|named| named.starts_with(secret)));
        found
    }

    fn limits(&self, level: &Level) -> Limits {
        let memory = self.policy.memory.bytes();
        let counts = Self::has_root(level) && !self.is_root();
        Limits {
            data_bytes: memory,
            address_space_bytes: None,
            cpu_seconds: self
                .policy
                .timeout_seconds
                .map(|seconds| seconds + CPU_BACKSTOP_SECONDS),
            file_size_bytes: memory.map(|_| FILE_SIZE_BYTES),
            pending_signals: Some(PENDING_SIGNALS),
            descriptors: None,
            // Elsewhere, the user's other processes would count, too.
            processes: counts.then_some(PROCESSES),
            file_locks: None,
        }
    }

    fn seccomp(&self, level: &Level) -> Seccomp {
        let own_spaces = Self::has_root(level);
        let landlock_keeps_signals = landlock_version().is_ok_and(|version| version >= 6);
        Seccomp {
            network: self.policy.network || (own_spaces && self.has_own_network()),
            tcp: self.services.has_tcp(),
            local: self.services.has_sockets(),
            sockets_by_host: !self.services.is_empty() && !may_copy_descriptors(self.user),
            files_by_host: !self.files_by_host(level).is_empty(),
            metadata: own_spaces,
            attributes: own_spaces && self.writable.is_empty(),
            command: Some(CommandCalls {
                signals: own_spaces || landlock_keeps_signals,
                ipc: own_spaces,
                own_network: own_spaces && self.has_own_network(),
                uncounted_memory: self.policy.memory == Memory::Unlimited && own_spaces,
                processes: (!own_spaces || self.is_root())
                    .then_some(usize::try_from(PROCESSES).unwrap_or(usize::MAX)),
            }),
        }
    }

    fn landlock(&self, level: &Level) -> Landlock {
        let has_root = Self::has_root(level);
        let mut writable: Vec<Granted> = self
            .writable
            .iter()
            .chain(&self.layered)
            .map(|place| Granted::from(place.path()))
            .chain([self.temp(level).into()])
            .collect();
        if self.workplace.is_own {
            writable.push(self.works_at(level).into());
        }
        let devices = || DEVICES.iter().map(PathBuf::from);
        let mut listed = Vec::new();
        let readable = match has_root {
            true => vec![Granted::from("/")],
            false => {
                let secrets = self.secrets();
                let mut rest = Vec::new();
                for place in &self.readable {
                    match has_below(place.path(), &secrets) {
                        true => all_but(place.path(), &secrets, &mut rest, &mut listed),
                        false => rest.push(Granted::place(place)),
                    }
                }
                for path in SYSTEM {
                    all_but(Path::new(path), &secrets, &mut rest, &mut listed);
                }
                rest.push(Granted::place(&self.workplace.place));
                rest.extend(devices().map(Granted::from));
                rest
            }
        };
        let own_network = has_root && self.has_own_network();
        Landlock {
            readable,
            readable_but: None,
            listed,
            writable,
            devices: WRITABLE_DEVICES
                .iter()
                .copied()
                .chain(self.has_terminal.then_some(TERMINAL))
                .map(PathBuf::from)
                .collect(),
            network: self.policy.network || own_network,
            ports: self.services.ports(),
            command: true,
        }
    }

    /// The files by which the command looks up names: with the network on, those of the host.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        match self.services.is_empty() || self.policy.network {
            true => Vec::new(),
            false => self.services.files(),
        }
    }

    /// Those that the host opens in place of the command, without a private root that could hold
    /// them.
    fn files_by_host(&self, level: &Level) -> Vec<(PathBuf, Vec<u8>)> {
        match Self::has_root(level) {
            true => Vec::new(),
            false => self.files(),
        }
    }

    fn view(&self, level: &Level) -> View {
        let devices = DEVICES.iter().copied();
        let links = LINKS.iter();
        let files = self.files();
        let secrets = self.secrets();
        View {
            readable: self.shown(),
            devices: devices
                .chain(self.has_terminal.then_some(TERMINAL))
                .map(PathBuf::from)
                .collect(),
            files: Vec::new(),
            links: links.map(|(at, to)| (at.into(), to.into())).collect(),
            project: Project {
                root: self.workplace.place.clone(),
                at: self.workplace.at.clone(),
                writes: match self.workplace.is_own {
                    true => Writes::Real,
                    false => Writes::Refused,
                },
                sealed: None,
            },
            writable: self.writable.clone(),
            layered: (!self.layered.is_empty()).then(|| Layered {
                directories: self.layered.clone(),
                bytes: LAYER_BYTES,
                on_disk: match level {
                    Level::LayerOnDisk(place) => Some(place.clone()),
                    Level::Full | Level::NoRoot => None,
                },
            }),
            covered: secrets
                .into_iter()
                .chain(self.is_root().then(facts_for_root).into_iter().flatten())
                .map(|path| (path, Vec::new()))
                .chain(files)
                .collect(),
            processes: true,
            temp: Temp {
                path: self.temp(level),
                bytes: TEMP_BYTES,
            },
        }
    }

    /// What may be read.
    fn shown(&self) -> Vec<Shown> {
        let mut shown: Vec<Shown> = SYSTEM.iter().map(Shown::of_system).collect();
        if self.policy.network {
            // A link to a file elsewhere on many systems.
            shown.push(Shown::of_system("/etc/resolv.conf"));
        }
        for place in &self.readable {
            if place.path() == Path::new("/") {
                shown.extend(top_level());
            } else {
                shown.push(Shown::found(place.path(), place.clone()));
            }
        }
        shown
    }
}

/// Adds what is below a directory and may not be read by everybody.
fn collect_secrets(directory: &Path, found: &mut Vec<PathBuf>) {
    const ALL_READ: u32 = 0o004;
    const ALL_ENTER: u32 = 0o005;
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        // Of the entry itself, not of what a link leads to.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let needed = match metadata.is_dir() {
            true => ALL_ENTER,
            false => ALL_READ,
        };
        if metadata.mode() & needed != needed {
            found.push(entry.path());
        } else if metadata.is_dir() {
            collect_secrets(&entry.path(), found);
        }
    }
}

/// Files of `/proc` that only root may read: facts about the machine's memory and its processes.
fn facts_for_root() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let only_roots = entries.filter(|entry| {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && entry.metadata().is_ok_and(|of| of.mode() & 0o004 == 0)
    });
    only_roots.map(|entry| entry.path()).collect()
}

fn has_below(directory: &Path, secrets: &[PathBuf]) -> bool {
    secrets.iter().any(|secret| secret.starts_with(directory))
}

/// Adds a path without the secrets below it. Directories that hold some can only be listed; links
/// in them lead to what has a rule of its own.
fn all_but(
    path: &Path,
    secrets: &[PathBuf],
    readable: &mut Vec<Granted>,
    listed: &mut Vec<PathBuf>,
) {
    if !has_below(path, secrets) {
        return readable.push(path.into());
    }
    if secrets.iter().any(|secret| secret == path) {
        return;
    }
    listed.push(path.to_owned());
    let Ok(entries) = std::fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            all_but(&entry.path(), secrets, readable, listed);
        }
    }
}

/// Everything in the root directory but what the command has of its own.
fn top_level() -> Vec<Shown> {
    let Ok(entries) = std::fs::read_dir("/") else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| !OWN.iter().any(|own| path == Path::new(own)))
        .map(Shown::of_system)
        .collect()
}

/// The next level after a failed start; `Err` if there is none. `on_disk` makes a directory for the
/// layer.
pub(crate) fn step_down(
    level: &Level,
    error: &SpawnError,
    needs_layer: bool,
    on_disk: impl FnOnce() -> Result<Place, CommandError>,
) -> Result<(Level, String), CommandError> {
    let Some((step, why)) = ladder::why_unsupported(error) else {
        return Err(CommandError::Start(error.to_string()));
    };
    match level {
        Level::Full if needs_layer && step == Step::ProjectLayer => {
            Ok((Level::LayerOnDisk(on_disk()?), why))
        }
        Level::Full | Level::LayerOnDisk(_) if needs_layer => Err(CommandError::Start(format!(
            "No layer can be made here ({why}). `altair doctor` says how to get a private root."
        ))),
        Level::Full | Level::LayerOnDisk(_) => match landlock_version() {
            Ok(_) => Ok((Level::NoRoot, why)),
            Err(landlock) => Err(CommandError::Start(format!(
                "The driver native cannot confine files here: {why}; {landlock}. `altair doctor` says what is missing."
            ))),
        },
        Level::NoRoot => Err(CommandError::Start(error.to_string())),
    }
}

/// The guards that are not fully in force.
pub(crate) fn lacking(
    guards: &altair_sandbox::Guards,
    level: &Level,
    why: &str,
) -> Vec<(&'static str, GuardState)> {
    let mut lacking = Vec::new();
    let filesystem = match level {
        Level::Full => GuardState::InForce,
        Level::LayerOnDisk(_) => GuardState::Degraded {
            to: format!("a layer on disk, whose size is not bounded: {why}"),
        },
        Level::NoRoot => GuardState::Missing {
            because: format!("no private root and no namespaces: {why}"),
        },
    };
    let in_force = || GuardState::InForce;
    let taken = &guards.before_exec;
    for (name, state) in [
        ("process", guards.process.clone()),
        ("limits", guards.limits.clone()),
        ("privileges", guards.privileges.clone()),
        ("filesystem", filesystem),
        ("landlock", taken.landlock.clone().unwrap_or_else(in_force)),
        ("seccomp", taken.seccomp.clone().unwrap_or_else(in_force)),
        ("deadline", guards.deadline.clone()),
    ] {
        if state != GuardState::InForce {
            lacking.push((name, state));
        }
    }
    lacking
}

/// The command's environment: its variables, and where its temporary files go if not at the usual
/// place.
pub(crate) fn with_temp(
    mut environment: Vec<(OsString, OsString)>,
    temp: &Path,
) -> Vec<(OsString, OsString)> {
    let name = OsStr::new("TMPDIR");
    debug_assert!(!is_stripped(name));
    environment.retain(|(known, _)| known != name);
    if temp != Path::new(TEMP) {
        environment.push((name.to_owned(), temp.into()));
    }
    environment
}
