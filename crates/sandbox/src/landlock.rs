//! Guard: Landlock.
#![allow(unsafe_code)]

mod prepared;

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use serde::{Deserialize, Serialize};

pub(crate) use prepared::{PreparedRules, expected};

use crate::{GuardState, Inode, Place, Shown};

/// What Landlock permits; everything else that the kernel's Landlock version governs is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landlock {
    /// Readable files, and readable directories with everything below them.
    pub readable: Vec<Granted>,
    /// A readable directory with everything below it, except the entry of one name: below that,
    /// only file names can be listed.
    pub readable_but: Option<(Granted, PathBuf)>,
    /// Directories that may only be listed, with everything below them.
    #[serde(default, with = "paths")]
    pub listed: Vec<PathBuf>,
    /// Directories below which anything may be read, written, made, renamed and removed, but no
    /// device or socket may be made or used, and no program executed.
    pub writable: Vec<Granted>,
    /// Single files (devices) that may be read and written.
    #[serde(with = "paths")]
    pub devices: Vec<PathBuf>,
    /// Whether TCP connections may be made. Only a command may listen.
    pub network: bool,
    /// Ports to which TCP connections may be made even without `network`, at any address: Landlock
    /// does not filter by address.
    pub ports: Vec<u16>,
    /// For a command: what is readable may be executed, it may listen, and it may control its
    /// terminal.
    pub command: bool,
}

/// A file or directory that a rule grants rights to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Its path.
    #[serde(with = "one_path")]
    pub path: PathBuf,
    /// The inode that the path must lead to: another file at this path is granted
    /// nothing.
    pub inode: Option<Inode>,
}

impl<P: Into<PathBuf>> From<P> for Granted {
    fn from(path: P) -> Self {
        Self {
            path: path.into(),
            inode: None,
        }
    }
}

impl Granted {
    /// What a process is shown.
    #[must_use]
    pub fn shown(shown: &Shown) -> Self {
        Self {
            path: shown.path().to_owned(),
            inode: shown.inode(),
        }
    }

    /// A place that was found.
    #[must_use]
    pub fn place(place: &Place) -> Self {
        Self {
            path: place.path().to_owned(),
            inode: Some(place.inode()),
        }
    }
}

/// A path as bytes.
mod one_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(OsString::from_vec(Vec::deserialize(from)?).into())
    }
}

/// Paths as bytes, so that paths that are not UTF-8 can be sent, too.
mod paths {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| path.as_os_str().as_bytes()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<Vec<u8>>::deserialize(from)?;
        Ok(paths
            .into_iter()
            .map(|path| PathBuf::from(OsString::from_vec(path)))
            .collect())
    }
}

/// The newest version whose rights are handled. An older kernel enforces what it supports.
const NEWEST: ABI = ABI::V9;

/// The reason if the kernel does not know the calls.
const NOT_IMPLEMENTED: &str =
    "the kernel has no Landlock (added in 5.13), or an outer filter hides it";
/// The reason if the kernel has Landlock, but it is disabled.
const NOT_ENABLED: &str =
    "Landlock is disabled at boot: the kernel parameter lsm= does not list it";

/// The version of the kernel's Landlock (landlock_create_ruleset(2), "ABI").
///
/// # Errors
/// Why Landlock is unavailable, in words for the user.
pub fn landlock_version() -> Result<u32, String> {
    /// `LANDLOCK_CREATE_RULESET_VERSION` (linux/landlock.h).
    const VERSION: u32 = 1;
    // SAFETY: this flag requires a null pointer of length 0.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0usize,
            VERSION,
        )
    };
    match Errno::result(version) {
        Ok(version) => u32::try_from(version).map_err(|_| NOT_IMPLEMENTED.into()),
        Err(Errno::EOPNOTSUPP) => Err(NOT_ENABLED.into()),
        Err(_) => Err(NOT_IMPLEMENTED.into()),
    }
}

/// Restricts the calling process, which must have only one thread.
pub(crate) fn take(rules: &Landlock) -> GuardState {
    take_at(rules, NEWEST)
}

/// Restricts it as far as `version` can.
fn take_at(rules: &Landlock, version: ABI) -> GuardState {
    match restrict(rules, version) {
        Ok(status) => state(&status, version),
        Err(error) => GuardState::Missing {
            because: format!("the kernel rejects the rules: {error}"),
        },
    }
}

fn restrict(rules: &Landlock, version: ABI) -> Result<RestrictionStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(version))?;
    if version >= ABI::V4 && !ports(rules).is_empty() {
        ruleset = ruleset.handle_access(ports(rules))?;
    }
    if version >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(version))?;
    }
    let mut ruleset = ruleset.create()?;
    if version >= ABI::V4 && !rules.network {
        for port in &rules.ports {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    // Each file is closed once it has its rule.
    let grant = |ruleset: RulesetCreated, file: OwnedFd, rights: BitFlags<AccessFs>| {
        let rights = match fstat(&file).map(|stat| kind(&stat)) {
            Ok(SFlag::S_IFDIR) => rights,
            // A link's target has its own rule, or may not be read.
            Ok(SFlag::S_IFLNK) | Err(_) => return Ok(ruleset),
            Ok(_) => rights & AccessFs::from_file(version),
        };
        ruleset.add_rule(PathBeneath::new(file, rights))
    };
    // Missing files are skipped.
    for file in rules.readable.iter().filter_map(opened) {
        ruleset = grant(ruleset, file, readable(rules))?;
    }
    if let Some((directory, but)) = &rules.readable_but
        && let Some(directory) = opened(directory)
    {
        for name in names(&directory).filter(|name| name.as_os_str() != but.as_os_str()) {
            if let Ok(file) = openat(&directory, name.as_os_str(), POINT_ITSELF, Mode::empty()) {
                ruleset = grant(ruleset, file, readable(rules))?;
            }
        }
        ruleset = grant(ruleset, directory, AccessFs::ReadDir.into())?;
    }
    for file in rules.writable.iter().filter_map(opened) {
        ruleset = grant(ruleset, file, writable(version))?;
    }
    for (paths, rights) in [
        (&rules.listed, AccessFs::ReadDir.into()),
        (&rules.devices, device(rules)),
    ] {
        for file in paths.iter().filter_map(|path| opened(&path.into())) {
            ruleset = grant(ruleset, file, rights)?;
        }
    }
    // Denials of a run must not fill the machine's audit log.
    ruleset.log_same_exec(false)?.restrict_self()
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

/// Refers to a file without opening it for access (open(2), `O_PATH`).
const POINT: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);
const POINT_ITSELF: OFlag = POINT.union(OFlag::O_NOFOLLOW);

/// A descriptor of what is granted; `None`: it does not exist, or the path leads to another file.
fn opened(wanted: &Granted) -> Option<OwnedFd> {
    let file = openat(AT_FDCWD, &wanted.path, POINT, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    let is_it = wanted.inode.is_none_or(|inode| inode == Inode::of(&stat));
    is_it.then_some(file)
}

/// The names in a directory.
fn names(directory: &OwnedFd) -> impl Iterator<Item = OsString> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let found: Vec<OsString> = match Dir::openat(directory, ".", flags, Mode::empty()) {
        Ok(mut dir) => dir
            .iter()
            .flatten()
            .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
            .collect(),
        Err(_) => Vec::new(),
    };
    found.into_iter().filter(|name| name != "." && name != "..")
}

fn readable(rules: &Landlock) -> BitFlags<AccessFs> {
    let rights = AccessFs::ReadFile | AccessFs::ReadDir;
    match rules.command {
        true => rights | AccessFs::Execute,
        false => rights,
    }
}

fn device(rules: &Landlock) -> BitFlags<AccessFs> {
    let rights = AccessFs::ReadFile | AccessFs::WriteFile;
    match rules.command {
        true => rights | AccessFs::IoctlDev,
        false => rights,
    }
}

/// What is governed of TCP.
fn ports(rules: &Landlock) -> BitFlags<AccessNet> {
    let mut governed = BitFlags::empty();
    if !rules.command {
        governed |= AccessNet::BindTcp;
    }
    if !rules.network {
        governed |= AccessNet::ConnectTcp;
    }
    governed
}

/// All rights except making or using devices and sockets, and executing, which is never granted.
fn writable(version: ABI) -> BitFlags<AccessFs> {
    let never = AccessFs::Execute
        | AccessFs::MakeChar
        | AccessFs::MakeBlock
        | AccessFs::MakeSock
        | AccessFs::IoctlDev
        | AccessFs::ResolveUnix;
    AccessFs::from_all(version) & !never
}

fn state(status: &RestrictionStatus, version: ABI) -> GuardState {
    let missing = |because: &str| GuardState::Missing {
        because: because.into(),
    };
    match status.landlock {
        LandlockStatus::NotImplemented => missing(NOT_IMPLEMENTED),
        LandlockStatus::NotEnabled => missing(NOT_ENABLED),
        LandlockStatus::Available { .. } if status.ruleset == RulesetStatus::NotEnforced => {
            missing("the kernel enforces none of the rules")
        }
        LandlockStatus::Available { effective_abi, .. } => {
            let in_force = effective_abi.min(version);
            if in_force < ABI::V3 {
                GuardState::Degraded {
                    to: format!(
                        "version {in_force} of Landlock: truncate() and TCP are not governed"
                    ),
                }
            } else {
                GuardState::InForce
            }
        }
    }
}

#[cfg(test)]
mod tests;
