//! The driver `native`: the command in a private root, in namespaces of its own, behind Landlock and
//! a filter of system calls.

mod rules;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Instant;

use altair_engine::environment::never;
use altair_engine::services::{self, By, Services};
use altair_engine::services_of_project;
use altair_sandbox::{
    Command as CommandCalls, FinalGuards, Home as OwnHome, Layered, Limits, Made, Place, Policy,
    Privileges, Project, RunAs, Seccomp, Shown, Spaces, Temp, View, Writes, landlock_version,
    links_on, may_become_another_user, may_copy_descriptors,
};
use nix::unistd::{getegid, geteuid, symlinkat};

use crate::hidden::{but_named, collect_secrets, facts_for_root, nothing_for};
use crate::level::{Layers, Level};
use crate::sight::Sight;
use crate::surroundings::{self, Home, Surroundings, Toolchain};
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
/// Bytes that a command may write into its layers: room for the packages of an application.
pub const LAYER_BYTES: u64 = 1 << 30;
/// Bytes that a command may write into a home of its own: room for the caches of package managers.
pub const HOME_BYTES: u64 = 1 << 30;
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
    /// What is shown besides what the policy names, where the caller works.
    pub surroundings: Option<Surroundings>,
    /// What is not shown, wherever it would be.
    pub hidden: Vec<PathBuf>,
}

/// What is hidden from a command without surroundings: from root's, what only root may read.
pub(crate) fn secrets(user: Option<RunAs>, named: &[&Path]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if user.map_or_else(|| geteuid().as_raw(), |user| user.uid) == 0 {
        collect_secrets(Path::new(SETTINGS), &mut found);
    }
    but_named(found, named)
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

/// Resolves a policy's services: those that it names are the user's, else its project's count as far as the
/// project's word suffices.
pub(crate) fn services(
    policy: &ExecutionPolicy,
    user: Option<RunAs>,
    until: Instant,
) -> Result<Services, CommandError> {
    let Some(project) = policy.project_of_services() else {
        let named = services::declared(&policy.services).map_err(CommandError::Invalid)?;
        let place = services::Place { root: None, user };
        return services::resolve(&By::User.declares(named), true, place, until)
            .map_err(CommandError::Start);
    };
    let found = services_of_project(&project.root).map_err(CommandError::Invalid)?;
    let place = services::Place {
        root: Some(&project.root),
        user,
    };
    let mut services =
        services::resolve(&found, false, place, until).map_err(CommandError::Start)?;
    if project.is_found {
        services.keep_sockets_below(&project.root);
    }
    Ok(services)
}

impl Native<'_> {
    /// Whether the command gets a network of its own, with nothing in it. Services are connected by
    /// the host, on sockets of its own network.
    fn has_own_network(&self) -> bool {
        !self.policy.network && self.services.is_empty()
    }

    fn has_root(level: &Level) -> bool {
        level.has_root()
    }

    /// The layers that it has at best.
    pub(crate) fn layers(&self) -> Layers {
        match (self.layered.is_empty(), self.toolchains().is_empty()) {
            (false, none) => Layers::Needed { with_thrown: !none },
            (true, false) => Layers::Thrown,
            (true, true) => Layers::None,
        }
    }

    /// What is shown besides what the policy names.
    fn beside(&self) -> impl Iterator<Item = &Place> {
        self.surroundings.iter().flat_map(|around| &around.readable)
    }

    /// The toolchains in its home.
    fn toolchains(&self) -> &[Toolchain] {
        let around = self.surroundings.as_ref();
        around.map_or(&[], |around| around.home.toolchains())
    }

    /// Those that it may write, and nothing of it stays.
    fn thrown(&self, level: &Level) -> impl Iterator<Item = &Place> {
        let has_layers = matches!(level, Level::Full | Level::LayerOnDisk(_));
        let layered = self
            .toolchains()
            .iter()
            .filter(move |one| has_layers && one.has_layer);
        layered.map(|one| &one.place)
    }

    /// Its own home in a private root.
    fn own_home(&self) -> Option<OwnHome> {
        match &self.surroundings.as_ref()?.home {
            Home::Temp | Home::AsItIs(_) => None,
            Home::Own { path, .. } => Some(OwnHome {
                path: path.clone(),
                bytes: HOME_BYTES,
                owner: self.user.unwrap_or(RunAs {
                    uid: geteuid().as_raw(),
                    gid: getegid().as_raw(),
                }),
            }),
        }
    }

    /// What it sees of its caller's files, if what it misses is to be told.
    pub(crate) fn sight(&self, argv: &[OsString]) -> Option<Sight> {
        let around = self.surroundings.as_ref()?;
        let system = SYSTEM.iter().chain(surroundings::SYSTEM).map(PathBuf::from);
        let places = self
            .readable
            .iter()
            .chain(&self.writable)
            .chain(&self.layered);
        let places = places
            .chain(self.beside())
            .chain(self.toolchains().iter().map(|one| &one.place))
            .chain([&self.workplace.place]);
        Some(Sight {
            user: self.user,
            cwd: self.workplace.cwd.clone(),
            shown: system
                .chain(places.map(|place| place.path().to_owned()))
                .collect(),
            hidden: self.hidden.clone(),
            argv: argv.to_vec(),
            told: around.told.clone(),
        })
    }

    /// What its variable `HOME` is to be; `None`: as its caller's environment and its policy say.
    pub(crate) fn home(&self, level: &Level) -> Option<PathBuf> {
        let around = self.surroundings.as_ref()?;
        let is_given = self.policy.env.iter().any(|(name, _)| name == "HOME");
        if is_given || !self.policy.inherit_env {
            return None;
        }
        Some(match &around.home {
            Home::Temp => self.temp(level),
            Home::AsItIs(path) => path.clone(),
            Home::Own { named, .. } => level.own().unwrap_or(named).to_owned(),
        })
    }

    /// Puts links to toolchains that may only be read into the directory that is the command's home
    /// where nothing can be mounted.
    pub(crate) fn link_toolchains(&self, own: &Place) {
        for toolchain in self.toolchains().iter().filter(|one| one.is_linked()) {
            // Nothing depends on it but the toolchain itself.
            let _ = symlinkat(toolchain.place.path(), own.descriptor(), toolchain.name);
        }
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
        if let Some(own) = level.own() {
            return own.to_owned();
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

    /// What the kernel enforces, and the directories that Landlock cannot grant as a whole.
    pub(crate) fn policy(&self, level: &Level) -> (Policy, Vec<PathBuf>) {
        let (landlock, divided) = self.landlock(level);
        let policy = Policy {
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
                landlock: Some(landlock),
                seccomp: Some(self.seccomp(level)),
                descriptors: Some(DESCRIPTORS),
            }),
        };
        (policy, divided)
    }

    fn is_root(&self) -> bool {
        let uid = self
            .user
            .map_or_else(|| geteuid().as_raw(), |user| user.uid);
        uid == 0
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
        let files = self.files();
        let thrown: Vec<Place> = self.thrown(level).cloned().collect();
        let hidden = self.hidden.iter().cloned();
        let facts = self.is_root().then(facts_for_root).into_iter().flatten();
        View {
            readable: self.shown(level),
            devices: devices
                .chain(self.has_terminal.then_some(TERMINAL))
                .map(PathBuf::from)
                .collect(),
            files: Vec::new(),
            links: self.links(),
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
            layered: (!(self.layered.is_empty() && thrown.is_empty())).then(|| Layered {
                directories: self.layered.clone(),
                thrown,
                bytes: LAYER_BYTES,
                on_disk: match level {
                    Level::LayerOnDisk(place) => Some(place.clone()),
                    Level::Full | Level::NoLayer | Level::NoRoot(_) => None,
                },
            }),
            covered: hidden
                .chain(facts)
                .map(|path| {
                    let nothing = nothing_for(&path);
                    (path, nothing)
                })
                .chain(files)
                .collect(),
            processes: true,
            temp: Temp {
                path: self.temp(level),
                bytes: TEMP_BYTES,
            },
            home: self.own_home(),
        }
    }

    /// The links in a private root: those of devices, and those on the way to what is shown.
    fn links(&self) -> Vec<(PathBuf, PathBuf)> {
        let mut links: Vec<(PathBuf, PathBuf)> = LINKS
            .iter()
            .map(|(at, to)| (at.into(), to.into()))
            .collect();
        let named = self.policy.readable_paths.iter();
        let named = named
            .chain(&self.policy.writable_paths)
            .chain(&self.policy.layers);
        links.extend(
            named
                .filter_map(|path| std::path::absolute(path).ok())
                .flat_map(|path| links_on(&path)),
        );
        if let Some(around) = &self.surroundings
            && let Home::Own { links: home, .. } = &around.home
        {
            links.extend(home.iter().cloned());
        }
        links.extend(
            self.toolchains()
                .iter()
                .flat_map(|one| one.links.iter().cloned()),
        );
        links
    }

    /// What may be read.
    fn shown(&self, level: &Level) -> Vec<Shown> {
        let mut shown: Vec<Shown> = SYSTEM.iter().map(Shown::of_system).collect();
        if self.surroundings.is_some() {
            shown.extend(surroundings::SYSTEM.iter().map(Shown::of_system));
        }
        if self.policy.network {
            // A link to a file elsewhere on many systems.
            shown.push(Shown::of_system("/etc/resolv.conf"));
        }
        for place in &self.readable {
            if place.path() == Path::new("/") {
                shown.extend(top_level().map(Shown::of_system));
            } else if !rules::is_own(place.path()) {
                shown.push(Shown::found(place.path(), place.clone()));
            }
        }
        let thrown: Vec<&Place> = self.thrown(level).collect();
        let toolchains = self.toolchains().iter().map(|one| &one.place);
        let beside = self
            .beside()
            .chain(toolchains.filter(|place| !thrown.contains(place)));
        shown.extend(beside.map(|place| Shown::found(place.path(), place.clone())));
        shown
    }
}

/// Whether a working directory is shown at its place: not where the command has something of its own.
pub(crate) fn can_be_shown(directory: &Path) -> bool {
    let own = ["/proc", "/dev"];
    directory != Path::new("/") && !own.iter().any(|own| directory.starts_with(own))
}

/// Everything in the root directory but what the command has of its own.
fn top_level() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| !OWN.iter().any(|own| path == Path::new(own)))
}

/// The command's environment: its variables, where its home is, and where its temporary files go if
/// not at the usual place.
pub(crate) fn with_directories(
    mut environment: Vec<(OsString, OsString)>,
    temp: &Path,
    home: Option<PathBuf>,
) -> Vec<(OsString, OsString)> {
    if let Some(home) = home {
        environment.retain(|(known, _)| known != "HOME");
        environment.push(("HOME".into(), home.into()));
    }
    let name = OsStr::new("TMPDIR");
    debug_assert!(never(name).is_none());
    environment.retain(|(known, _)| known != name);
    if temp != Path::new(TEMP) {
        environment.push((name.to_owned(), temp.into()));
    }
    environment
}
