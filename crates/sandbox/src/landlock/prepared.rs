//! Landlock for a process that may not allocate: the rules in the form of system calls.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

use landlock::{ABI, Access, AccessFs, AccessNet, BitFlags, Scope};
use nix::errno::Errno;
use nix::libc::{self, c_long};

use super::{Granted, Landlock, NEWEST, device, landlock_version, ports, readable, writable};
use crate::{GuardState, Inode, SpawnError, raw_descriptors};

/// `struct landlock_ruleset_attr` (linux/landlock.h).
#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr` (linux/landlock.h).
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

/// `struct landlock_net_port_attr` (linux/landlock.h).
#[repr(C)]
struct NetPortAttr {
    allowed_access: u64,
    port: u64,
}

/// `LANDLOCK_RULE_PATH_BENEATH` and `LANDLOCK_RULE_NET_PORT` (linux/landlock.h).
const PATH_BENEATH: c_long = 1;
const NET_PORT: c_long = 2;
/// `LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF` (linux/landlock.h), since version 7.
const LOG_SAME_EXEC_OFF: c_long = 1;

/// Rules for the running kernel.
pub(crate) struct PreparedRules {
    attr: RulesetAttr,
    paths: Vec<PreparedPath>,
    ports: Vec<u16>,
    /// The rights that a rule for something else than a directory may have.
    of_files: u64,
    flags: c_long,
}

/// Rights to what a path leads to, below it if it is a directory.
struct PreparedPath {
    path: CString,
    rights: u64,
    /// The inode that it must lead to ([`Granted::inode`]).
    inode: Option<Inode>,
}

impl PreparedPath {
    fn new(granted: &Granted, rights: BitFlags<AccessFs>) -> Result<Self, SpawnError> {
        let path = &granted.path;
        Ok(Self {
            path: CString::new(path.as_os_str().as_bytes()).map_err(|_| SpawnError::NulByte {
                what: format!("the path {}", path.display()),
            })?,
            rights: rights.bits(),
            inode: granted.inode,
        })
    }
}

/// The version that is enforced; `None` without Landlock.
fn version() -> Option<ABI> {
    let version = i32::try_from(landlock_version().ok()?).ok()?;
    Some(ABI::from(version).min(NEWEST))
}

/// The state of this guard once prepared rules are taken.
pub(crate) fn expected() -> GuardState {
    match (landlock_version(), version()) {
        (Err(because), _) => GuardState::Missing { because },
        (Ok(_), Some(version)) if version >= ABI::V3 => GuardState::InForce,
        (Ok(version), _) => GuardState::Degraded {
            to: format!("version {version} of Landlock: truncate() and TCP are not governed"),
        },
    }
}

impl PreparedRules {
    /// Prepares rules; `None` without Landlock. Missing files are skipped when the rules are taken.
    ///
    /// # Errors
    /// If a path holds a NUL byte.
    pub(crate) fn new(rules: &Landlock) -> Result<Option<Self>, SpawnError> {
        let Some(version) = version() else {
            return Ok(None);
        };
        let known = AccessFs::from_all(version);
        let mut paths = Vec::new();
        for granted in &rules.readable {
            paths.push(PreparedPath::new(granted, readable(rules) & known)?);
        }
        for path in &rules.listed {
            let rights = BitFlags::from(AccessFs::ReadDir) & known;
            paths.push(PreparedPath::new(&path.into(), rights)?);
        }
        for granted in &rules.writable {
            let rights = (writable(version) | readable(rules)) & known;
            paths.push(PreparedPath::new(granted, rights)?);
        }
        for path in &rules.devices {
            paths.push(PreparedPath::new(&path.into(), device(rules) & known)?);
        }
        let governs_ports = version >= ABI::V4;
        Ok(Some(Self {
            attr: RulesetAttr {
                handled_access_fs: known.bits(),
                handled_access_net: if governs_ports {
                    ports(rules).bits()
                } else {
                    0
                },
                scoped: match version >= ABI::V6 {
                    true => Scope::from_all(version).bits(),
                    false => 0,
                },
            },
            paths,
            ports: match governs_ports && !rules.network {
                true => rules.ports.clone(),
                false => Vec::new(),
            },
            of_files: AccessFs::from_file(version).bits(),
            flags: if version >= ABI::V7 {
                LOG_SAME_EXEC_OFF
            } else {
                0
            },
        }))
    }

    /// Restricts the calling process, which has one thread and `no_new_privs`. Async-signal-safe.
    pub(crate) fn take(&self) -> nix::Result<()> {
        // SAFETY: the struct outlives the call; the size is its own. An older kernel takes a larger
        // struct whose rest is zero.
        let ruleset = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const self.attr,
                size_of::<RulesetAttr>(),
                0 as c_long,
            )
        };
        let ruleset = RawFd::try_from(Errno::result(ruleset)?).map_err(|_| Errno::EBADF)?;
        let taken = self.fill(ruleset).and_then(|()| {
            // SAFETY: no pointer is passed.
            let taken =
                unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, self.flags) };
            Errno::result(taken).map(drop)
        });
        raw_descriptors::close(ruleset);
        taken
    }

    fn fill(&self, ruleset: RawFd) -> nix::Result<()> {
        for granted in &self.paths {
            let path = granted.path.as_ptr();
            // SAFETY: a C string that outlives the call.
            let file = unsafe { libc::open(path, libc::O_PATH | libc::O_CLOEXEC) };
            let Ok(file) = Errno::result(file) else {
                continue;
            };
            let added = self.grant(ruleset, file, granted);
            raw_descriptors::close(file);
            added?;
        }
        for port in &self.ports {
            let rule = NetPortAttr {
                allowed_access: AccessNet::ConnectTcp as u64,
                port: (*port).into(),
            };
            add(ruleset, NET_PORT, (&raw const rule).cast())?;
        }
        Ok(())
    }

    fn grant(&self, ruleset: RawFd, file: RawFd, granted: &PreparedPath) -> nix::Result<()> {
        // SAFETY: all zeros is a valid stat.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `stat` outlives the call.
        Errno::result(unsafe { libc::fstat(file, &raw mut stat) })?;
        let found = Inode::of(&stat);
        if granted.inode.is_some_and(|wanted| wanted != found) {
            // Another file is at this path by now.
            return Ok(());
        }
        let is_directory = stat.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let rule = PathBeneathAttr {
            allowed_access: if is_directory {
                granted.rights
            } else {
                granted.rights & self.of_files
            },
            parent_fd: file,
        };
        add(ruleset, PATH_BENEATH, (&raw const rule).cast())
    }
}

/// Adds a rule of a type to a ruleset.
fn add(ruleset: RawFd, kind: c_long, rule: *const libc::c_void) -> nix::Result<()> {
    // SAFETY: `rule` points to the struct of its type, which outlives the call.
    let added = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset,
            kind,
            rule,
            0 as c_long,
        )
    };
    Errno::result(added).map(drop)
}
